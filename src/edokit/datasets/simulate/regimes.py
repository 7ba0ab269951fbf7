"""How subjective annotation can look: who annotates, how often, and why they disagree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from pydantic import TypeAdapter

from edokit._errors import InputError, check_number, one_of, option
from edokit.datasets.simulate.posts import VIEW_NAMES
from edokit.scales import DeclaredScale, Scale

TWO_CLASSES = ("fine", "offensive")
"""What two classes are called; more are numbered by severity from 0."""


_NOT_NEGATIVE = (
    "disagreement",
    "group_weight",
    "personal_weight",
    "threshold_weight",
    "noise_spread",
    "activity_spread",
)
"""Fields of a regime that are numbers of at least 0."""


@dataclass(frozen=True)
class AnnotatorGroup:
    """Annotators who see posts alike: how many they are, and what weighs more or less for them.

    `views` maps a side of the post (`hostility`, `irony`, `person`, `people`, `reader`, a topic,
    or `always` for strictness whatever the post) to a weight: above 0 it makes a post worse in
    their eyes, below 0 more harmless. Only differences between groups matter, and their overall
    size comes from the regime.

    Attributes
    ----------
    share : float
        Share of all annotators, in any unit.
    """

    name: str
    share: float = 1.0
    views: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for side in self.views:
            one_of(f"a view of group {self.name!r}", side, (*VIEW_NAMES, "always"))


@dataclass(frozen=True)
class Regime:
    """A kind of annotation project. Copy one and change it with `dataclasses.replace`.

    Attributes
    ----------
    items : tuple[int, int, int]
        Items in train, dev and test.
    annotators : int
        How many annotators there are.
    per_item : Mapping[int, float]
        How many of them annotate an item: count -> share of the items, in any unit.
    balance : tuple[float, ...]
        Share of the items in each class (by their median label), mildest class first; with
        `labels`, share of the items that most annotators give each label.
    groups : tuple[AnnotatorGroup, ...]
        Groups of annotators who see posts alike.
    disagreement : float
        How far annotators are apart on an item, where items are 1 apart (standard deviations).
    structured : float
        The lasting part of the disagreement: 0 is pure noise, at 1 there is none.
    group_weight : float
        How much of the lasting part is views that groups share, ...
    personal_weight : float
        ... how much is views of one annotator alone, ...
    threshold_weight : float
        ... and how much is strictness of one annotator, whatever the post.
    noise_spread : float
        How unequal the annotators' noise is (standard deviation of the log).
    activity_spread : float
        How unevenly the work is spread over annotators (standard deviation of the log).
    ordinal : bool
        Whether the classes are points 1, 2, … of a scale.
    labels : Mapping[str, Mapping[str, float]]
        Where annotators choose any number of labels: name -> weights of the sides of a post (as in
        `AnnotatorGroup.views`) that speak for it.
    """

    name: str
    items: tuple[int, int, int]
    annotators: int
    per_item: Mapping[int, float]
    balance: tuple[float, ...]
    groups: tuple[AnnotatorGroup, ...] = (AnnotatorGroup("everyone"),)
    disagreement: float = 0.5
    structured: float = 0.5
    group_weight: float = 1.0
    personal_weight: float = 1.0
    threshold_weight: float = 1.0
    noise_spread: float = 0.3
    activity_spread: float = 0.0
    ordinal: bool = False
    labels: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_number("annotators", self.annotators, 1, whole=True)
        check_number("structured", self.structured, 0, 1)
        for name in _NOT_NEGATIVE:
            check_number(name, getattr(self, name), 0)
        for number in self.items:
            check_number("items", number, 0, whole=True)
        for number, share in self.per_item.items():
            check_number("per_item", number, 1, self.annotators, whole=True)
            check_number("per_item", share, 0)
        for share in self.balance:
            check_number("balance", share, 0, 1)
        if len(self.items) != 3 or self.items[0] == 0:
            raise _impossible(
                "items", self.items, "give the numbers of train, dev and test, train at least 1"
            )
        if not any(self.per_item.values()):
            raise _impossible("per_item", self.per_item, "give at least one number a share above 0")
        if not 0 < len(self.groups) <= self.annotators:
            raise _impossible(
                "groups", self.groups, "give at least one group, and at most one per annotator"
            )
        if self.labels:
            if len(self.balance) != len(self.labels):
                raise _impossible("balance", self.balance, "give a share for each label")
        elif not math.isclose(sum(self.balance), 1.0, abs_tol=1e-6):
            raise _impossible("balance", self.balance, "give shares that sum to 1")

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, the points or the labels."""
        if self.labels:
            return tuple(self.labels)
        if len(self.balance) == 2 and not self.ordinal:
            return TWO_CLASSES
        lowest = 0
        if self.ordinal:
            lowest = 1
        return tuple(str(lowest + number) for number in range(len(self.balance)))

    @property
    def scale(self) -> Scale:
        """The answer scale."""
        kind = "nominal"
        if self.labels:
            kind = "multi-label"
        elif self.ordinal:
            kind = "ordinal"
        return DeclaredScale(kind).resolve(self.classes)

    @property
    def hostile_share(self) -> float:
        """Share of posts that are written in anger."""
        if self.labels:
            return self.balance[0]
        return 1.0 - self.balance[0]


def _impossible(name: str, value: object, hint: str) -> InputError:
    return InputError(f"{option(name, value)} is not possible", hint, code="invalid-option")


def _read_regimes() -> dict[str, Regime]:
    content = files(__package__).joinpath("regimes.json").read_bytes()
    regimes = TypeAdapter(list[Regime]).validate_json(content)
    return {regime.name: regime for regime in regimes}


REGIMES = _read_regimes()
"""The named regimes."""
