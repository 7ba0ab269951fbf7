"""How subjective annotation can look: who annotates, how often, and why they disagree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Integral

from edokit._errors import InputError, check_number, counted, one_of, option
from edokit.datasets.simulate.posts import VIEW_NAMES
from edokit.scales import Declared, Scale


def _check(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise InputError(
            f"{option(name, value)} is not possible: {rule}", f"choose another {option(name)}"
        )


@dataclass(frozen=True)
class Group:
    """Annotators who see posts alike: how many they are, and what weighs more or less for them.

    `views` maps a side of the post (`hostility`, `irony`, `person`, `people`, `reader`, a topic,
    or `always` for strictness whatever the post) to a weight: above 0 it makes a post worse in
    their eyes, below 0 more harmless. Only differences between groups matter, and their overall
    size comes from the regime.
    """

    name: str
    share: float = 1.0
    """Share of all annotators, in any unit."""
    views: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_number("share", self.share, 0, above=True)
        for side in self.views:
            one_of(f"a view of group {self.name!r}", side, (*VIEW_NAMES, "always"))


@dataclass(frozen=True)
class Regime:
    """A kind of annotation project. Copy one and change it with `dataclasses.replace`."""

    name: str
    items: tuple[int, int, int]
    """Items in train, dev and test."""
    annotators: int
    """How many annotators there are."""
    per_item: Mapping[int, float]
    """How many of them annotate an item: count -> share of the items, in any unit."""
    balance: tuple[float, ...]
    """Share of the items in each class (by their median label), mildest class first; with `labels`,
    share of the items that most annotators give each label."""
    groups: tuple[Group, ...] = (Group("everyone"),)
    """Groups of annotators who see posts alike."""
    disagreement: float = 0.5
    """How far annotators are apart on an item, where items are 1 apart (standard deviations)."""
    structured: float = 0.5
    """The lasting part of the disagreement: 0 is pure noise, at 1 there is none."""
    group_weight: float = 1.0
    """How much of the lasting part is views that groups share, ..."""
    personal_weight: float = 1.0
    """... how much is views of one annotator alone, ..."""
    threshold_weight: float = 1.0
    """... and how much is strictness of one annotator, whatever the post."""
    noise_spread: float = 0.3
    """How unequal the annotators' noise is (standard deviation of the log)."""
    activity_spread: float = 0.0
    """How unevenly the work is spread over annotators (standard deviation of the log)."""
    ordinal: bool = False
    """Whether the classes are points 1, 2, … of a scale."""
    labels: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Where annotators choose any number of labels: name -> weights of the sides of a post (as in
    `Group.views`) that speak for it."""

    def __post_init__(self) -> None:
        check_number("annotators", self.annotators, 1, whole=True)
        check_number("structured", self.structured, 0, 1)
        for amount in fields(self):
            if amount.type == "float":
                check_number(amount.name, getattr(self, amount.name), 0)
        rule = "it takes three whole numbers (train, dev, test), train at least 1"
        is_valid = [isinstance(n, Integral) and int(n) >= 0 for n in self.items]
        is_valid += [len(self.items) == 3, self.items[0] > 0]
        _check(all(is_valid), "items", self.items, rule)
        _check(bool(self.per_item), "per_item", self.per_item, "it maps counts to shares")
        for count, share in self.per_item.items():
            check_number("per_item", count, 1, self.annotators, whole=True)
            check_number("per_item", share, 0, above=True)
        names = [group.name for group in self.groups]
        rule = f"the names differ, and there are 1 to {self.annotators} groups (the annotators)"
        is_possible = 0 < len(names) == len(set(names)) <= self.annotators
        _check(is_possible, "groups", self.groups, rule)
        rule = "labels of a set have no order"
        _check(not (self.ordinal and self.labels), "ordinal", self.ordinal, rule)
        for name, sides in self.labels.items():
            for side in sides:
                one_of(f"a side of label {name!r}", side, VIEW_NAMES)
        is_possible, rule = self._balance_rule()
        _check(is_possible, "balance", self.balance, rule)

    def _balance_rule(self) -> tuple[bool, str]:
        """Whether the balance is possible, and the rule that it follows."""
        are_shares = all(0 < share < 1 for share in self.balance)
        if self.labels:
            labels = counted(len(self.labels), "label")
            rule = f"each of {labels} has a share above 0 and below 1"
            return are_shares and len(self.balance) == len(self.labels), rule
        rule = "each of two or more classes has a share above 0, and the shares sum to 1"
        return are_shares and math.isclose(sum(self.balance), 1.0, abs_tol=1e-6), rule

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, the points or the labels."""
        lowest = 1 if self.ordinal else 0
        return tuple(self.labels) or tuple(str(lowest + c) for c in range(len(self.balance)))

    @property
    def scale(self) -> Scale:
        """The answer scale."""
        kind = "multi-label" if self.labels else "ordinal" if self.ordinal else "nominal"
        return Declared(kind).on(self.classes)

    @property
    def hostile_share(self) -> float:
        """Share of posts that are written in anger."""
        return self.balance[0] if self.labels else 1.0 - self.balance[0]

    def sized(self, items: tuple[int, int, int] | float) -> Regime:
        """The same with other numbers of items, or with a fraction of them."""
        if not isinstance(items, int | float):
            return replace(self, items=items)
        rule = "a fraction of the items lies in (0, 1]; counts are three: train, dev, test"
        _check(0 < items <= 1, "items", items, rule)
        train, dev, test = (math.ceil(n * items) for n in self.items)
        return replace(self, items=(train, dev, test))

    def with_classes(self, n_classes: int) -> Regime:
        """The same with n classes; above the first, each is half as frequent as the one before."""
        check_number("n_classes", n_classes, 2, whole=True)
        if n_classes == len(self.balance):
            return self
        rule = f"the labels of regime {self.name!r} are {', '.join(self.labels)}"
        _check(not self.labels, "n_classes", n_classes, rule)
        above = 1.0 - self.balance[0]
        halving = [0.5**c for c in range(n_classes - 1)]
        shares = [above * part / sum(halving) for part in halving]
        return replace(self, balance=(self.balance[0], *shares))


_NAMED = (
    # Three annotators with views of their own label everything, 3:2 (like ArMIS).
    Regime(
        name="three-voices",
        items=(657, 141, 145),
        annotators=3,
        per_item={3: 1.0},
        balance=(387 / 657, 270 / 657),
        disagreement=0.6,
        structured=0.6,
        threshold_weight=0.3,
    ),
    # Eight annotators share the work, two to seven per item, 5:1 (like ConvAbuse).
    Regime(
        name="partial-panel",
        items=(2398, 812, 840),
        annotators=8,
        per_item={2: 629, 3: 1382, 4: 223, 5: 137, 6: 26, 7: 1},
        balance=(2009 / 2398, 389 / 2398),
        groups=(
            Group("steady", 5, {"irony": -1.0}),
            Group("touchy", 3, {"reader": 1.0, "person": 0.5}),
        ),
        activity_spread=0.15,
    ),
    # Six annotators in two camps label everything, 10:1 (like HS-Brexit).
    Regime(
        name="two-camps",
        items=(784, 168, 168),
        annotators=6,
        per_item={6: 1.0},
        balance=(712 / 784, 72 / 784),
        groups=(
            Group("bystanders", 1, {"irony": -1.0}),
            Group("concerned", 1, {"people": 1.5, "always": 1.0}),
        ),
        disagreement=1.0,
        structured=0.7,
        group_weight=6.0,
    ),
    # Five of 670 annotators label each item, few of them most of the time, 7:3 (like MD-Agreement).
    Regime(
        name="crowd",
        items=(6592, 1104, 3057),
        annotators=670,
        per_item={5: 1.0},
        balance=(4630 / 6592, 1962 / 6592),
        groups=(
            Group("literal", 0.5),
            Group("playful", 0.3, {"irony": -2.0, "reader": -0.5}),
            Group("loyal", 0.2, {"football": 1.0, "people": 1.0, "irony": 0.5}),
        ),
        disagreement=1.2,
        activity_spread=1.6,
    ),
    # Sixty annotators rate on a scale of seven points, some of them stricter than others.
    Regime(
        name="seven-points",
        items=(2000, 500, 1000),
        annotators=60,
        per_item={4: 3, 5: 1, 6: 1},
        balance=(0.30, 0.17, 0.13, 0.14, 0.12, 0.09, 0.05),
        groups=(
            Group("literal", 0.6),
            Group("playful", 0.4, {"irony": -1.5, "reader": -0.5}),
        ),
        disagreement=0.7,
        threshold_weight=2.0,
        activity_spread=0.5,
        ordinal=True,
    ),
    # Twelve annotators choose any of three labels, or none.
    Regime(
        name="three-labels",
        items=(1200, 400, 800),
        annotators=12,
        per_item={3: 1, 4: 2, 5: 1},
        balance=(0.35, 0.20, 0.30),
        groups=(Group("lenient", 2, {"always": -0.5}), Group("strict", 1, {"always": 1.0})),
        disagreement=0.7,
        labels={
            "hostile": {"hostility": 1.0},
            "ironic": {"irony": 1.0},
            "personal": {"person": 1.0, "reader": 1.0},
        },
    ),
)
REGIMES: dict[str, Regime] = {regime.name: regime for regime in _NAMED}
"""The named regimes."""
