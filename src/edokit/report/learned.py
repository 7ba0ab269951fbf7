"""What was learned, in words: which members carry the weight, and why."""

from __future__ import annotations

import numpy as np

from edokit._types import Floats
from edokit.ensemble import EDOEnsemble
from edokit.report.evaluation import Judged
from edokit.report.formatting import clean, count, listed, number, percent

EVEN = 1.2
"""Weights whose largest is not this many times their smallest are called even."""


def learned(ensemble: EDOEnsemble, judged: Judged | None) -> list[str]:
    """Which members carry the weight, and why."""
    names, held, own = _named_weights(ensemble)
    order = np.argsort(-held, kind="stable")
    reach = int(np.searchsorted(np.cumsum(held[order]), 0.5)) + 1
    heavy = order[: min(reach, 3)]
    classes = [f"“{clean(name, 40)}”" for name in ensemble.classes_]
    shown = listed(classes) if len(classes) <= 6 else f"{len(classes)} classes"
    sentences = [
        f"Out of {count(len(names), unit(ensemble))}, {ensemble.size_}"
        f" {'has' if ensemble.size_ == 1 else 'have'} weight in a {ensemble.settings_['pool']}"
        f" pool that answers for {shown}; learned from {count(ensemble.n_items_, 'item')}"
        f"{_answers(ensemble)}."
    ]
    kept = held[held > 0]
    if len(kept) > 1 and kept.max() < EVEN * kept.min():
        ends = f"{number(float(kept.min()), 3)} to {number(float(kept.max()), 3)}"
        sentences.append(f"They share it almost evenly ({ends}).")
    elif len(names) > 1:
        parts = [f"“{clean(names[k], 40)}” ({number(float(held[k]), 3)})" for k in heavy]
        verb = "carries" if len(heavy) == 1 else "carry"
        sentences.append(
            f"{listed(parts)} {verb} {percent(float(held[heavy].sum()))} of the weight."
            f" {_why(names, own, [int(k) for k in heavy], judged)}".rstrip()
        )
    sentences += _zeros(ensemble, names)
    return sentences


def _why(names: list[str], own: list[float | None], heavy: list[int], judged: Judged | None) -> str:
    """Why the heaviest are heavy: good alone, or unlike the others."""
    reasons = []
    apart = _distance_to_others(names, judged)
    for k in heavy:
        value = own[k]
        if value is None:
            continue
        rank = 1 + sum(other is not None and other < value for other in own)
        unlike = rank > 1 and apart is not None and apart[k] > float(np.median(apart))
        text = f"“{clean(names[k], 40)}” is {'the best' if rank == 1 else f'number {rank}'}"
        reasons.append(f"{text} (CE {number(value)}{', but unlike the others' if unlike else ''})")
    return f"Alone on the fit data, {listed(reasons)}." if reasons else ""


def _distance_to_others(names: list[str], judged: Judged | None) -> Floats | None:
    if judged is None or any(name not in judged.predictions.members for name in names):
        return None
    distances = judged.distances
    where = [judged.predictions.members.index(name) for name in names]
    apart: Floats = distances[np.ix_(where, where)].sum(axis=1) / max(len(names) - 1, 1)
    return apart


def _zeros(ensemble: EDOEnsemble, names: list[str]) -> list[str]:
    """Why members have no weight, counted by reason."""
    without = len(names) - ensemble.size_
    if without <= 0:
        return []
    reasons = [line for line in ensemble.explain() if ": weight 0.000" in line]
    kinds = {
        ("would raise the loss", "would raise the loss"): "the loss would grow",
        ("lies beyond the largest size", "lie beyond the largest size"): "beyond max_members",
        ("is left out by the chosen size", "are left out by the chosen size"): "leaves it out",
    }
    counted = {verbs: sum(mark in line for line in reasons) for verbs, mark in kinds.items()}
    noun = count(without, unit(ensemble))
    start = f"{noun} {'has' if without == 1 else 'have'} no weight"
    if sum(counted.values()) != without:
        return [f"{start}."]
    parts = [(n, one if n == 1 else many) for (one, many), n in counted.items() if n]
    if len(parts) == 1:
        return [f"{start}: {'it' if without == 1 else 'they'} {parts[0][1]}."]
    return [f"{start}: {listed([f'{n} {verb}' for n, verb in parts])}."]


def units(ensemble: EDOEnsemble) -> int:
    """How many members, or groups, the weights are for."""
    held = ensemble.group_weights_
    return len(ensemble.members_ if held is None else held)


def unit(ensemble: EDOEnsemble) -> str:
    """What the weights are for."""
    return "member" if ensemble.group_weights_ is None else "group"


def _named_weights(
    ensemble: EDOEnsemble,
) -> tuple[list[str], Floats, list[float | None]]:
    """Names, weights and own cross-entropies of what the weights are for: members or groups."""
    if ensemble.group_weights_ is None or ensemble.groups_ is None:
        return (
            list(ensemble.members_),
            ensemble.weights_,
            [float(value) for value in ensemble.member_ce_],
        )
    names = list(dict.fromkeys(ensemble.groups_))
    return names, ensemble.group_weights_, [None] * len(names)


def _answers(ensemble: EDOEnsemble) -> str:
    data = ensemble.data_
    if not data:
        return ""
    return (
        f" with {count(int(data['annotations']), 'answer')} of"
        f" {count(int(data['annotators']), 'annotator')}"
    )
