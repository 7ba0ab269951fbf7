"""`Fitted`: the result of a fit in one frozen record, which ``ensemble.json`` stores.

`edokit.ensemble.text` describes it in words, and `edokit.ensemble.pooling` pools with it.
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
from edokit.ensemble.answers import Answer, PositiveCount, Temperature
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
    """Counts of the fit data."""

    annotators: Count
    annotations: Count
    hard_labels: dict[str, Count]


# Readers of fields that depend on the fields before them, such as the classes. Pydantic calls them
# with the stored value, and with ``info.data``, the fields that were read before.


def _read_scale(stored: str, info: ValidationInfo) -> Scale:
    """Return the scale that a file stores as text."""
    return DeclaredScale(stored).resolve(info.data.get("classes", ()))


def _read_people(document: PeopleDocument | None, info: ValidationInfo) -> PeopleEffects | None:
    """Return the effects of people that a file stores."""
    if document is None:
        return None
    classes = info.data.get("classes", ())
    return PeopleEffects.from_document(document, info.data.get("scale", NOMINAL), len(classes))


@dataclass(frozen=True)
class _StoredAsPeopleDocument:
    """Annotation of a field: pydantic checks a `PeopleDocument`, then calls `_read_people`."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        stored = handler.generate_schema(PeopleDocument | None)
        return core_schema.with_info_after_validator_function(_read_people, stored)


def _read_held_out(document: HeldOutDocument | None, info: ValidationInfo) -> HeldOut | None:
    """Return the cross-fitted answers that a file stores."""
    if document is None:
        return None
    return HeldOut.from_document(document, len(info.data.get("classes", ())))


@dataclass(frozen=True)
class _StoredAsHeldOutDocument:
    """Annotation of a field: pydantic checks a `HeldOutDocument`, then calls `_read_held_out`."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        stored = handler.generate_schema(HeldOutDocument | None)
        return core_schema.with_info_after_validator_function(_read_held_out, stored)


@dataclass(frozen=True, eq=False)
class Constant:
    """The same probabilities and label for every item: the least that an ensemble must beat."""

    shares: Shares
    """Mean soft label [C]; for multi-label data the mean share of each label [L]."""
    label: Count | tuple[Count, ...]
    """The most frequent hard label, as a position in the classes; for multi-label data 1 for each
    label that most items have, else 0 [L]."""
    source: str = "fit"
    """The items that it was computed on: ``train`` (those of the training), ``fit`` (those of the
    fit) or ``items`` (those that are evaluated)."""

    @classmethod
    def from_totals(
        cls, totals: Floats, hard_counts: Floats | Ints, source: str = "fit"
    ) -> Constant:
        """Return the constant answer from the sums of soft labels and counts of hard labels [C].

        For multi-label data both are [L, 2]: for each label, "not chosen" and "chosen".
        """
        shares = totals / totals.sum(axis=-1, keepdims=True)
        majority = np.argmax(hard_counts, axis=-1)
        if shares.ndim == 2:
            return cls(shares[:, 1], tuple(majority.tolist()), source)
        return cls(shares, int(majority), source)

    def with_classes(self, names: Sequence[str], classes: Sequence[str]) -> Constant:
        """Return the same answer for other classes, which include its own classes ``names``."""
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
    """Why a member (or a group of members) has its weight; ``str`` returns a sentence."""

    member: str
    """Name of the member, or of the group where weights are learned between groups."""
    weight: float
    kind: Kind
    """For members with weight: ``dominant`` (above 0.6), ``not_learned`` (the gumbel solver did not
    move from its start) or ``kept``. For the others: ``excluded_by_loss`` (weight would raise the
    loss), ``excluded_by_size`` (by the size that the gumbel solver chose) or ``beyond_max_members``
    (ranked too low)."""
    ce: float
    """Cross-entropy of the member alone on the fit data."""
    rank: int
    """Rank by this cross-entropy; 1 is the best."""
    price: float | None = None
    """For ``excluded_by_loss``: how much the loss would grow per unit of weight."""
    term: str | None = None
    """The term that would grow most, by name of its weight: ``lambda_f1``, ``lambda_ce``, …"""
    term_change: float | None = None
    """How much that term would grow per unit of weight."""
    limit: int | None = None
    """``max_members`` for ``beyond_max_members``, the chosen size for ``excluded_by_size``."""

    @property
    def has_weight(self) -> bool:
        """Whether the member has weight in the pool."""
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
    """A fitted ensemble; `EDOEnsemble` describes the fields that are not described here."""

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
    size: PositiveCount
    temperature: Temperature = 1.0
    settings: JsonObject
    parameters: Annotated[JsonObject, AfterValidator(parameters_from_document)]
    """Parameters of the estimator."""
    objective: dict[str, float]
    certificate: Certificate | None = None
    trajectory: Trajectory | None = None
    metrics: Mapping[str, float | None]
    member_ce: Column
    items: PositiveCount
    pairs: PositiveCount | None = None
    """Number of pairs of an item and an annotator, if these were the rows of the fit; else None."""
    data: FitCounts
    explanation: Annotated[tuple[Reason, ...], Field(alias="reasons")]
    """Why each member has its weight, heaviest first."""
    constant: Constant
    """The constant answer, which the ensemble has to beat."""
    answers: dict[str, Answer]
    """The step after pooling for each metric of the scale."""
    people: Annotated[PeopleEffects | None, _StoredAsPeopleDocument()] = None
    """How the annotators differ from the pool; None if that was not estimated."""
    held_out: Annotated[HeldOut | None, _StoredAsHeldOutDocument()] = None
    """Cross-fitted answers for the items of the fit; None if the rows were pairs, and in files of
    earlier versions."""

    @property
    def is_fitted_on_pairs(self) -> bool:
        """Whether the rows of the fit were pairs of an item and an annotator."""
        return self.pairs is not None

    @property
    def learned_from(self) -> str:
        """What it was fitted on, such as "60 items" or "180 pairs of 60 items"."""
        return text.learned_from(self.counts)

    @property
    def counts(self) -> dict[str, int]:
        """The number of ``items`` of the fit and, if its rows were pairs, that of ``pairs``."""
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
        """Names and learned weights: of the groups if groups were averaged, else of the members."""
        if self.groups is None or self.group_weights is None:
            return self.members, self.weights
        return tuple(group_names(self.groups)), self.group_weights

    @property
    def regularization(self) -> str | None:
        """How ``lambda_reg`` was chosen, compared with uniform weights; None if it was given."""
        return text.describe_lambda_reg(self.settings, self.counts)

    @property
    def chosen_penalty(self) -> str | None:
        """How ``lambda_reg`` was chosen, in a sentence; None if it was given."""
        return text.describe_penalty(self.settings, self.counts)

    @property
    def nothing_learned(self) -> str | None:
        """A warning if the gumbel solver did not move from its start; else None."""
        if self.trajectory is None or not self.trajectory.unlearned:
            return None
        rate = float(self.settings["learning_rate"])
        return text.nothing_learned(len(self.trajectory), rate, self.size)

    @property
    def below_constant(self) -> str | None:
        """A warning if the pool does not beat the constant answer; else None."""
        loss = self.metrics.get("ce")
        if loss is None:
            return None
        rows = self.scale.rows(np.asarray(self.constant.shares)[None])
        # The mean soft label of the fit data has its own entropy as cross-entropy on these data.
        constant_loss = float(entropy_items(rows).mean())
        if loss < constant_loss:
            return None
        return text.below_constant(loss, constant_loss)

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
        """All fields as numbers, text, lists and dictionaries, ready for JSON."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.people is not None:
            content["people"] = self.people.to_document()
        if self.held_out is not None:
            content["held_out"] = self.held_out.to_document()
        content["metrics"] = dict(self.metrics)
        for name in ("labels", "pairs", "people", "held_out"):
            if content[name] is None:
                del content[name]
        del content["scale"]  # the text comes last; nominal scales are not mentioned
        if self.scale != NOMINAL:
            content["scale"] = self.scale.to_text(self.classes)
        content["parameters"] = parameters_to_document(self.parameters)
        content["pool"] = self.pool
        content["explanation"] = [str(reason) for reason in self.explanation]
        content["reasons"] = [reason.to_dict() for reason in self.explanation]
        # Numbers that are not finite become null.
        document: dict[str, object] = to_jsonable_python(
            content, inf_nan_mode="null", fallback=lambda array: array.tolist()
        )
        return document


def on_simplex(weights: Floats, *shape: int) -> bool:
    """Whether weights have this shape, are not negative, and sum to 1 along the last axis."""
    if weights.shape != shape:
        return False
    sums_to_one = abs(weights.sum(axis=-1) - 1) < 1e-6
    return bool((weights >= 0).all() and sums_to_one.all())
