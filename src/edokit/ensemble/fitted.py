"""What a fit found: one frozen record, which is what ``ensemble.json`` stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field, PlainValidator, ValidationInfo
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from edokit._errors import counted, signed
from edokit._io.documents import Count, Json, Names, ReadAs
from edokit._types import Bools, Floats, Ints
from edokit.config import parameters_from_document, parameters_to_document
from edokit.ensemble.answers import Answer, Positive, Temperature
from edokit.metrics import entropy_items
from edokit.objective.pools import average_groups, group_names, pool, sharpen
from edokit.objective.settings import TERMS
from edokit.scales import NOMINAL, DeclaredScale, Scale
from edokit.solvers import Certificate, Column, Trajectory

Share = Annotated[float, Field(ge=0, le=1)]
Shares = Annotated[Floats, ReadAs(list[Share], np.array)]
JsonObject = Annotated[dict[str, Any], ReadAs(dict[str, Json], dict)]
DistinctNames = Annotated[tuple[str, ...], ReadAs(Annotated[Names, Field(min_length=1)], tuple)]


class FitCounts(TypedDict):
    """What the fit data hold."""

    annotators: Count
    annotations: Count
    hard_labels: dict[str, Count]


def _read_scale(stored: str, info: ValidationInfo) -> Scale:
    return DeclaredScale(stored).on(info.data.get("classes", ()))


@dataclass(frozen=True, eq=False)
class Constant:
    """The same probabilities and the same label for every item: what an ensemble has to beat."""

    shares: Shares
    """Mean soft label [C]; of sets the mean share of each label [L]."""
    label: Count | tuple[Count, ...]
    """Majority class of the hard labels, as a position in the classes; of sets whether each label
    is in most of them [L]."""
    source: str = "fit"
    """Whose shares these are: ``train`` (training items), ``fit`` (those that the ensemble was
    fitted on) or ``items`` (those that are evaluated)."""

    @classmethod
    def of(cls, totals: Floats, hard_counts: Floats | Ints, source: str = "fit") -> Constant:
        """From the summed soft labels and the number of hard labels, both [C].

        Of sets both [L, 2]: without and with each label.
        """
        shares = totals / totals.sum(axis=-1, keepdims=True)
        majority = np.argmax(hard_counts, axis=-1)
        if shares.ndim == 2:
            return cls(shares[:, 1], tuple(majority.tolist()), source)
        return cls(shares, int(majority), source)

    def ordered(self, names: Sequence[str], classes: Sequence[str]) -> Constant:
        """The same, from classes of these names to other classes, which include them."""
        positions = [tuple(classes).index(name) for name in names]
        shares = np.zeros(len(classes))
        shares[positions] = self.shares
        if isinstance(self.label, int):
            return Constant(shares, positions[self.label], self.source)
        indicators = np.zeros(len(classes), dtype=int)
        indicators[positions] = self.label
        return Constant(shares, tuple(indicators.tolist()), self.source)


Kind = Literal[
    "kept",
    "dominant",
    "not_learned",
    "excluded_by_loss",
    "excluded_by_size",
    "beyond_max_members",
]
MEANINGS: Mapping[str | None, str] = {term.flat_name: term.meaning for term in TERMS.values()}
"""What the terms of the objective measure, by the flat names of their weights."""


@dataclass(frozen=True)
class Reason:
    """Why a member (or a group of members) has its weight; ``str`` makes a sentence of it."""

    member: str
    """Name of the member, or of the group where weights are learned between groups."""
    weight: float
    kind: Kind
    """``dominant`` (above 0.6), ``not_learned`` (gumbel's weights and sizes are as at the start) or
    ``kept`` for members with weight; for the others
    ``excluded_by_loss`` (weight would raise the loss), ``excluded_by_size`` (the size that gumbel
    chose), ``beyond_max_members`` (ranked too low)."""
    ce: float
    """Its own cross-entropy on the fit data."""
    rank: int
    """Rank by this cross-entropy; 1 is the best."""
    price: float | None = None
    """How much the loss would grow per unit of weight, where that excludes it."""
    term: str | None = None
    """Weight of the term that grows most: ``lambda_f1``, ``lambda_ce``, …"""
    term_change: float | None = None
    """How much that term grows per unit of weight."""
    limit: int | None = None
    """``max_members``, or the size that was chosen, where that excludes it."""

    @property
    def has_weight(self) -> bool:
        """Whether the member counts in the pool."""
        return self.kind in ("kept", "dominant", "not_learned")

    @property
    def detail(self) -> str:
        """The reason without name and weight."""
        quality = f"own cross-entropy {self.ce:.4f}, rank {self.rank}"
        if self.kind == "dominant":
            best = " as the best alone" if self.rank == 1 else ""
            return f"most of the weight{best}; {quality}"
        if self.kind == "not_learned":
            return f"{quality}; nothing was learned, weights are as at the start"
        if self.kind == "excluded_by_loss":
            price, change = self.price or 0.0, self.term_change or 0.0
            return (
                f"{quality}: with weight the loss would grow by {price:.4f} per unit, above all"
                f" through {MEANINGS.get(self.term, self.term)} ({signed(change)})"
            )
        if self.kind == "excluded_by_size":
            return f"{quality}: the chosen size {self.limit} leaves it out"
        if self.kind == "beyond_max_members":
            return f"{quality}, beyond max_members={self.limit}"
        return quality

    def __str__(self) -> str:
        # A small weight must not read as none.
        number = f"{self.weight:.3f}" if self.weight >= 5e-4 else f"{self.weight:.1g}"
        weight = number if self.has_weight else "0"
        return f"{self.member}: weight {weight} ({self.detail})"

    def to_dict(self) -> dict[str, Any]:
        """The fields that are set, ready for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """A fitted ensemble; fields that are not explained here are attributes of `EDOEnsemble`."""

    # How ``ensemble.json`` is read: each field is checked by its type.
    __pydantic_config__: ClassVar = ConfigDict(strict=True, allow_inf_nan=False)

    members: DistinctNames
    groups: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    classes: DistinctNames
    """Names of the classes [C]."""
    labels: tuple[str | bool | int | float, ...] | None = None
    """Class labels in the type that the user gave [C]; None where they are the names."""
    scale: Annotated[Scale, PlainValidator(_read_scale)] = NOMINAL
    weights: Shares
    group_weights: Shares | None = None
    size: Positive
    temperature: Temperature = 1.0
    settings: JsonObject
    parameters: Annotated[JsonObject, AfterValidator(parameters_from_document)]
    """Parameters of the estimator."""
    objective: dict[str, float]
    certificate: Certificate | None = None
    trajectory: Trajectory | None = None
    metrics: dict[str, float | None]
    member_ce: Column
    items: Positive
    pairs: Positive | None = None
    """How many pairs of an item and an annotator it learned from, where these were its rows."""
    data: FitCounts
    explanation: Annotated[tuple[Reason, ...], Field(alias="reasons")]
    """Why each member has its weight, heaviest first."""
    constant: Constant
    """The constant answer, which the ensemble has to beat."""
    answers: dict[str, Answer]
    """Steps that make answers for a metric."""

    @property
    def learned_from(self) -> str:
        """How many items it was fitted on, in words, and how many pairs of them and annotators."""
        return " of ".join(
            counted(count, noun.removesuffix("s")) for noun, count in reversed(self.counts.items())
        )

    @property
    def counts(self) -> dict[str, int]:
        """How many items it was fitted on and, where these were its rows, how many pairs."""
        counts = {"items": self.items, "pairs": self.pairs}
        return {noun: count for noun, count in counts.items() if count is not None}

    @property
    def pool(self) -> str:
        """Kind of pool: ``linear`` or ``log``."""
        return str(self.settings["pool"])

    @property
    def unit_weights(self) -> tuple[tuple[str, ...], Floats]:
        """Names and weights of what weights were learned for: members, or groups of them."""
        if self.groups is None or self.group_weights is None:
            return self.members, self.weights
        return tuple(group_names(self.groups)), self.group_weights

    @property
    def regularization(self) -> str | None:
        """How ``lambda_reg`` was chosen, in a sentence; None where nothing was chosen."""
        return describe_lambda_reg(self.settings, self.counts)

    @property
    def nothing_learned(self) -> str | None:
        """In words that gumbel's weights and sizes are as they were at the start."""
        if self.trajectory is None or not self.trajectory.unlearned:
            return None
        epochs, rate = len(self.trajectory), float(self.settings["learning_rate"])
        return (
            f"Nothing was learned in {epochs} epochs at learning rate {rate:.1g}: the weights are"
            f" equal as at the start, and every size is as likely as the chosen {self.size}. Use"
            " `edo fit` with its default preset, more epochs and a higher learning rate, or members"
            " that differ more."
        )

    @property
    def below_constant(self) -> str | None:
        """That the pool is no better than the constant, and what to do; else None."""
        loss = self.metrics.get("ce")
        if loss is None:
            return None
        rows = self.scale.rows(np.asarray(self.constant.shares)[None])
        floor = float(entropy_items(rows).mean())
        if loss < floor:
            return None
        return (
            f"The pool is no better than a constant answer on the fit data: CE {loss:.4f} against"
            f" {floor:.4f}. Look at the members' own cross-entropies, or try --recalibrate"
            " temperature."
        )

    def summary(self) -> dict[str, Any]:
        """Weights by member, size, terms of the loss, certificate and metrics, ready for JSON."""
        certificate = self.certificate
        return {
            "weights": dict(zip(self.members, self.weights.tolist(), strict=True)),
            "size": self.size,
            **self.counts,
            "objective": dict(self.objective),
            "certificate": None if certificate is None else asdict(certificate),
            "temperature": self.temperature,
            "lambda_reg": self.settings["lambda_reg"],
            "lambda_reg_choice": self.settings.get("lambda_reg_choice"),
            "metrics": dict(self.metrics),
            "nothing_learned": self.nothing_learned,
            **({} if self.below_constant is None else {"below_constant": self.below_constant}),
            **({} if self.scale == NOMINAL else {"scale": self.scale.to_text(self.classes)}),
        }

    def pool_members(self, P: Floats) -> tuple[Floats, Floats]:
        """The pool [N, C] of P [N, k, C], the members that carry weight, and their spread [N]."""
        weights = self.weights[self.weights > 0]
        rows = sharpen(self._pool(self.scale.rows(P), weights), self.temperature)
        spread = spread_items(self.scale.coordinates(P), weights)
        return self.scale.from_rows(rows, P.shape[2]), spread

    def pool_known(self, P: Floats, is_known: Bools) -> tuple[Floats, Floats]:
        """The same, each row by the members that know its annotator (``is_known`` [N, k]) alone."""
        pooled, spread = np.empty((len(P), P.shape[2])), np.empty(len(P))
        has_weight = self.weights > 0
        patterns, codes = np.unique(is_known, axis=0, return_inverse=True)
        for code, pattern in enumerate(patterns):
            rows, chosen = codes.ravel() == code, has_weight.copy()
            chosen[has_weight] = pattern
            fitted = self.only(chosen)
            members = fitted.weights[has_weight] > 0
            pooled[rows], spread[rows] = fitted.pool_members(P[rows][:, members])
        return pooled, spread

    def only(self, chosen: Bools) -> Fitted:
        """The same with the weights of some members [K] alone; unchanged where they carry none."""
        weights = np.where(chosen, self.weights, 0.0)
        total = weights.sum()
        return replace(self, weights=weights / total) if total > 0 else self

    def _pool(self, rows: Floats, weights: Floats) -> Floats:
        """The pool [n, C] of rows [n, k, C] with these weights [k]."""
        if self.groups is not None and self.pool == "log":
            # A log pool of groups is not a log pool of members: average each group first.
            groups = [self.groups[k] for k in np.flatnonzero(self.weights > 0)]
            rows = average_groups(rows, groups)
            names = group_names(groups)
            weights = np.asarray(
                np.bincount([names.index(name) for name in groups], weights), dtype=np.float64
            )
        return np.asarray(pool(rows, weights, self.pool))

    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers, text, lists and dictionaries, ready for JSON."""
        content = {part.name: getattr(self, part.name) for part in fields(self)}
        for name in ("labels", "pairs"):
            if content[name] is None:
                del content[name]
        del content["scale"]
        if self.scale != NOMINAL:
            content["scale"] = self.scale.to_text(self.classes)
        content["parameters"] = parameters_to_document(self.parameters)
        content["pool"] = self.pool
        content["explanation"] = [str(reason) for reason in self.explanation]
        content["reasons"] = [reason.to_dict() for reason in self.explanation]
        # What is not finite becomes null.
        document: dict[str, Any] = to_jsonable_python(
            content, inf_nan_mode="null", fallback=lambda array: array.tolist()
        )
        return document


CLEARLY = 1.96
"""Standard errors by which a difference is called clear."""


def describe_lambda_reg(settings: Mapping[str, Any], counts: Mapping[str, int]) -> str | None:
    """How the penalty of these settings was chosen, of a fit on so many items, or pairs of them."""
    choice = settings.get("lambda_reg_choice")
    if choice is None:
        return None
    penalty = f"L2 {settings['lambda_reg']:g}"
    compared = int(choice["items"])
    if choice["folds"] is None:
        return f"{penalty}: too few items to choose it by cross-validation."
    noun, rows = list(counts.items())[-1]
    among = f"{compared:,} {noun}" if compared == rows else f"{compared:,} of the {rows:,} {noun}"
    above, error = float(choice["uniform_above"]), float(choice["uniform_above_error"])
    standing, within = "not clearly worse", CLEARLY * error
    if abs(above) > within + 1e-12:
        standing = "clearly worse" if above > 0 else "clearly better"
    gap = signed(above)
    return (
        f"{penalty}, chosen by {int(choice['folds'])}-fold cross-validation on {among};"
        f" uniform weights were {standing} (held-out ΔCE {gap} ± {within:.4f})."
    )


def spread_items(P: Floats, weights: Floats) -> Floats:
    """Σ_k v_k ‖p_k − φ‖₁ of each item [N], φ the linear pool of P [N, K, C]."""
    centre = np.einsum("nkc,k->nc", P, weights)
    spread = np.zeros(len(P))
    for k, weight in enumerate(weights):
        spread += weight * np.abs(P[:, k] - centre).sum(axis=1)
    return spread


def on_simplex(weights: Floats, *shape: int) -> bool:
    """Whether weights have this shape, are not negative and sum to 1 along the last axis."""
    sums = weights.sum(axis=-1)
    return weights.shape == shape and bool((weights >= 0).all() and (abs(sums - 1) < 1e-6).all())
