"""Regimes of the simulator: who annotates, how often, and why they disagree."""

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
"""Names of two classes; if there are more, they are numbered by severity from 0."""


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
    """Annotators who see posts alike.

    Attributes
    ----------
    name : str
        The name of the group.
    share : float
        Share of all annotators, relative to the shares of other groups.
    views : Mapping[str, float]
        The weight that they give to a side of a post: ``hostility``, ``irony``, ``person``,
        ``people``, ``reader``, a topic, or ``always`` for all posts alike (strictness). A weight
        above 0 makes posts worse in their eyes, one below 0 more harmless. Only differences between
        groups matter; the regime determines how large they are overall.
    """

    name: str
    share: float = 1.0
    views: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for side in self.views:
            one_of(f"a view of group {self.name!r}", side, (*VIEW_NAMES, "always"))


@dataclass(frozen=True)
class Regime:
    """A kind of annotation project. Change one with `dataclasses.replace`.

    Attributes
    ----------
    name : str
        The name of the regime.
    items : tuple[int, int, int]
        Numbers of items in train, dev and test.
    annotators : int
        Number of annotators.
    per_item : Mapping[int, float]
        For each number of annotators of an item, the share of the items that have so many, relative
        to the other shares.
    balance : tuple[float, ...]
        Share of the items in each class (by their median label), mildest class first; with
        `labels`, share of the items to which most annotators give each label.
    groups : tuple[AnnotatorGroup, ...]
        Groups of annotators who see posts alike.
    disagreement : float
        Standard deviation of annotators on an item, relative to that of items.
    structured : float
        Share of the disagreement that lasts from item to item: with 0, all of it is noise, with 1,
        none.
    group_weight : float
        Weight of views that a group shares, among the lasting disagreement.
    personal_weight : float
        Weight of views of single annotators, among the lasting disagreement.
    threshold_weight : float
        Weight of the strictness of single annotators, among the lasting disagreement.
    noise_spread : float
        Differences between the annotators' noise (standard deviation of the logarithm).
    activity_spread : float
        Differences between the numbers of items that annotators label (standard deviation of the
        logarithm).
    ordinal : bool
        Whether the classes are points 1, 2, … of a scale.
    labels : Mapping[str, Mapping[str, float]]
        For multi-label data, the weight of each side of a post (as in `AnnotatorGroup.views`) for
        each label; else empty.
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
            check_number("balance", share, 0, 1, above=True)
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
            if len(self.balance) != len(self.labels) or max(self.balance) == 1:
                raise _impossible("balance", self.balance, "give a share below 1 for each label")
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
