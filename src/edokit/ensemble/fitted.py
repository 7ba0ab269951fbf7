"""What a fit found: one frozen record, which is what ``ensemble.json`` stores.

`edokit.ensemble.text` puts it into words, `edokit.ensemble.pooling` pools with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainValidator,
    ValidationInfo,
)
from pydantic_core import CoreSchema, core_schema, to_jsonable_python
from typing_extensions import TypedDict

from edokit._io.documents import Count, Json, Names, ReadAs
from edokit._types import Floats, Ints
from edokit.config import parameters_from_document, parameters_to_document
from edokit.ensemble import text
from edokit.ensemble.answers import Answer, Positive, Temperature
from edokit.ensemble.held_out import HeldOut, HeldOutDocument
from edokit.ensemble.people import PeopleDocument, PeopleEffects
from edokit.metrics import entropy_items
from edokit.objective.pools import group_names
from edokit.scales import NOMINAL, DeclaredScale, Scale
from edokit.solvers import Certificate, Column, Trajectory

GIVEN = "given"
"""Name of the solver in ``settings`` where weights come from elsewhere."""
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
    return DeclaredScale(stored).resolve(info.data.get("classes", ()))


def _read_people(document: PeopleDocument | None, info: ValidationInfo) -> PeopleEffects | None:
    if document is None:
        return None
    classes = info.data.get("classes", ())
    return PeopleEffects.from_document(document, info.data.get("scale", NOMINAL), len(classes))


@dataclass(frozen=True)
class _ReadPeople:
    """Annotates the field that a document holds as a `PeopleDocument`."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        stored = handler.generate_schema(PeopleDocument | None)
        return core_schema.with_info_after_validator_function(_read_people, stored)


def _read_held_out(document: HeldOutDocument | None, info: ValidationInfo) -> HeldOut | None:
    if document is None:
        return None
    return HeldOut.from_document(document, len(info.data.get("classes", ())))


@dataclass(frozen=True)
class _ReadHeldOut:
    """Annotates the field that a document holds as a `HeldOutDocument`."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        stored = handler.generate_schema(HeldOutDocument | None)
        return core_schema.with_info_after_validator_function(_read_held_out, stored)


@dataclass(frozen=True, eq=False)
class Constant:
    """The same probabilities and the same label for every item: what an ensemble has to beat."""

    shares: Shares
    """Mean soft label [C]; for multi-label data the mean share of each label [L]."""
    label: Count | tuple[Count, ...]
    """Majority class of the hard labels, as a position in the classes; for multi-label data whether
    each label is in most of them [L]."""
    source: str = "fit"
    """Whose shares these are: ``train`` (training items), ``fit`` (those that the ensemble was
    fitted on) or ``items`` (those that are evaluated)."""

    @classmethod
    def from_totals(
        cls, totals: Floats, hard_counts: Floats | Ints, source: str = "fit"
    ) -> Constant:
        """From the summed soft labels and the number of hard labels, both [C].

        For multi-label data both [L, 2]: without and with each label.
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
        """The reason without name and weight, in words."""
        return text.reason_detail(self)

    def __str__(self) -> str:
        return text.reason_sentence(self)

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
    metrics: Mapping[str, float | None]
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
    people: Annotated[PeopleEffects | None, _ReadPeople()] = None
    """How the annotators differ from the pool; None where it was not fitted."""
    held_out: Annotated[HeldOut | None, _ReadHeldOut()] = None
    """Cross-fitted answers to the items of the fit; None for rows of single annotators, and where
    an earlier version fitted it."""

    @property
    def learned_from(self) -> str:
        """How many items it was fitted on, in words, and how many pairs of them and annotators."""
        return text.learned_from(self.counts)

    @property
    def counts(self) -> dict[str, int]:
        """How many items it was fitted on and, where these were its rows, how many pairs."""
        counts = {"items": self.items}
        if self.pairs is not None:
            counts["pairs"] = self.pairs
        return counts

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
        return text.describe_lambda_reg(self.settings, self.counts)

    @property
    def chosen_penalty(self) -> str | None:
        """The same without the comparison with uniform weights, for the summary of a run."""
        return text.describe_penalty(self.settings, self.counts)

    @property
    def nothing_learned(self) -> str | None:
        """In words that gumbel's weights and sizes are as they were at the start."""
        if self.trajectory is None or not self.trajectory.unlearned:
            return None
        rate = float(self.settings["learning_rate"])
        return text.nothing_learned(len(self.trajectory), rate, self.size)

    @property
    def below_constant(self) -> str | None:
        """A note if the pool does not beat the constant, with what to do; else None."""
        loss = self.metrics.get("ce")
        if loss is None:
            return None
        rows = self.scale.rows(np.asarray(self.constant.shares)[None])
        floor = float(entropy_items(rows).mean())
        if loss < floor:
            return None
        return text.below_constant(loss, floor)

    def summary(self) -> dict[str, Any]:
        """Weights by member, size, terms of the loss, certificate and metrics, ready for JSON."""
        summary: dict[str, object] = {
            "weights": dict(zip(self.members, self.weights.tolist(), strict=True)),
            "size": self.size,
            **self.counts,
            "objective": dict(self.objective),
            "certificate": None,
            "temperature": self.temperature,
            "lambda_reg": self.settings["lambda_reg"],
            "lambda_reg_choice": self.settings.get("lambda_reg_choice"),
            "metrics": dict(self.metrics),
            "nothing_learned": self.nothing_learned,
        }
        if self.certificate is not None:
            summary["certificate"] = asdict(self.certificate)
        below_constant = self.below_constant
        if below_constant is not None:
            summary["below_constant"] = below_constant
        if self.scale != NOMINAL:
            summary["scale"] = self.scale.to_text(self.classes)
        return summary

    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers, text, lists and dictionaries, ready for JSON."""
        content = {part.name: getattr(self, part.name) for part in fields(self)}
        if self.people is not None:
            content["people"] = self.people.to_document()
        if self.held_out is not None:
            content["held_out"] = self.held_out.to_document()
        content["metrics"] = dict(self.metrics)
        for name in ("labels", "pairs", "people", "held_out"):
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
        document: dict[str, object] = to_jsonable_python(
            content, inf_nan_mode="null", fallback=lambda array: array.tolist()
        )
        return document


def on_simplex(weights: Floats, *shape: int) -> bool:
    """Whether weights have this shape, are not negative and sum to 1 along the last axis."""
    sums = weights.sum(axis=-1)
    return weights.shape == shape and bool((weights >= 0).all() and (abs(sums - 1) < 1e-6).all())
