"""Sentences about a fitted ensemble."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from edokit._errors import counted, signed
from edokit.objective.settings import TERMS

if TYPE_CHECKING:
    from edokit.ensemble.fitted import Reason

CLEAR_STANDARD_ERRORS = 1.96
"""A difference of more than this many standard errors is called clear."""


def learned_from(counts: Mapping[str, int]) -> str:
    """What an ensemble was fitted on, such as "60 items" or "180 pairs of 60 items".

    ``counts`` has the number of ``items`` and, if the rows were pairs, that of ``pairs``.
    """
    items = counted(counts["items"], "item")
    if _row_noun(counts) == "items":
        return items
    return f"{counted(counts['pairs'], 'pair')} of {items}"


def _row_noun(counts: Mapping[str, int]) -> str:
    """What the rows of the fit are: items, or pairs of an item and an annotator."""
    if "pairs" in counts:
        return "pairs"
    return "items"


def nothing_learned(epochs: int, learning_rate: float, size: int) -> str:
    """A warning that the gumbel solver did not move from its start, and what to do."""
    return (
        f"Nothing was learned in {epochs} epochs at learning rate {learning_rate:.1g}: the weights"
        f" are equal as at the start, and every size is as likely as the chosen {size}. Use"
        " `edo fit` with its default preset, more epochs and a higher learning rate, or members"
        " that differ more."
    )


def below_constant(loss: float, constant_loss: float) -> str:
    """A warning that the pool does not beat the constant answer, and what to do."""
    return (
        f"The pool does not beat a constant answer on the fit data: CE {loss:.4f} against"
        f" {constant_loss:.4f}. Check the cross-entropy of each member, or"
        " recalibrate the pool with a temperature."
    )


def describe_penalty(settings: Mapping[str, Any], counts: Mapping[str, int]) -> str | None:
    """How λ_Reg was chosen, in a sentence; None if it was given.

    ``settings`` and ``counts`` are those of a `Fitted`.
    """
    choice = settings.get("lambda_reg_choice")
    if choice is None:
        return None
    penalty = f"L2 {settings['lambda_reg']:g}"
    if choice["folds"] is None:
        return f"{penalty}: too few items, groups or items of a class for cross-validation."
    noun = _row_noun(counts)
    n_rows = counts[noun]
    n_compared = int(choice["items"])
    rows = f"{n_compared:,} {noun}"
    if n_compared != n_rows:
        rows = f"{n_compared:,} of the {n_rows:,} {noun}"
    return f"{penalty}, chosen by {int(choice['folds'])}-fold cross-validation on {rows}."


def describe_lambda_reg(settings: Mapping[str, Any], counts: Mapping[str, int]) -> str | None:
    """How λ_Reg was chosen, with a comparison of the chosen value with uniform weights."""
    penalty = describe_penalty(settings, counts)
    choice = settings.get("lambda_reg_choice")
    if penalty is None or choice is None or choice["folds"] is None:
        return penalty
    excess = float(choice["uniform_above"])
    margin = CLEAR_STANDARD_ERRORS * float(choice["uniform_above_error"])
    comparison = "not clearly worse"
    if excess > margin + 1e-12:
        comparison = "clearly worse"
    elif excess < -margin - 1e-12:
        comparison = "clearly better"
    return (
        f"{penalty.removesuffix('.')}; uniform weights were {comparison} (held-out ΔCE"
        f" {signed(excess)} ± {margin:.4f})."
    )


def reason_sentence(reason: Reason) -> str:
    """The member, its weight, and the reason for it."""
    weight = "0"
    if reason.has_weight:
        weight = f"{reason.weight:.3f}"
        if reason.weight < 5e-4:  # it would be rounded to zero
            weight = f"{reason.weight:.1g}"
    return f"{reason.member}: weight {weight} ({reason_detail(reason)})"


def reason_detail(reason: Reason) -> str:
    """The reason without the member's name and weight."""
    quality = f"own cross-entropy {reason.ce:.4f}, rank {reason.rank}"
    if reason.kind == "dominant":
        best = " as the best alone" if reason.rank == 1 else ""
        return f"most of the weight{best}; {quality}"
    if reason.kind == "not_learned":
        return f"{quality}; nothing was learned, weights are as at the start"
    if reason.kind == "excluded_by_loss":
        price = reason.price or 0.0
        change = signed(reason.term_change or 0.0)
        return (
            f"{quality}: with weight the loss would grow by {price:.4f} per unit, above all"
            f" through {_meaning(reason.term)} ({change})"
        )
    if reason.kind == "excluded_by_size":
        return f"{quality}: the chosen size {reason.limit} leaves it out"
    if reason.kind == "beyond_max_members":
        return f"{quality}, beyond max_members={reason.limit}"
    return quality


def _meaning(flat_name: str | None) -> str:
    """What the term with this weight measures; for a term of another version, the name."""
    for term in TERMS.values():
        if term.flat_name == flat_name:
            return term.meaning
    return str(flat_name)
