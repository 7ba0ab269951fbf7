"""How subjective annotation can look: who annotates, how often, and why they disagree."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral

from edokit._errors import InputError, counted, one_of
from edokit.datasets.simulate.posts import VIEW_NAMES
from edokit.scales import Declared, Scale


def _check(holds: bool, given: str, rule: str, hint: str) -> None:
    if not holds:
        raise InputError(f"{given} is not possible: {rule}", hint)


def _counts(value: object, least: int = 1) -> bool:
    return isinstance(value, Integral) and int(value) >= least


def _are_weights(values: Collection[float]) -> bool:
    return all(0 <= value < math.inf for value in values) and sum(values) > 0


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
        rule = f"group {self.name!r} needs a share above 0"
        hint = "leave the group out, or give it a share"
        _check(0 < self.share < math.inf, f"share={self.share!r}", rule, hint)
        for side, weight in self.views.items():
            one_of(f"a view of group {self.name!r}", side, (*VIEW_NAMES, "always"))
            problem = f"views of group {self.name!r}: {side}={weight!r}"
            hint = "weights of -2 to 2 are usual"
            _check(math.isfinite(weight), problem, "a weight is a finite number", hint)


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
        _check(
            len(self.items) == 3 and all(map(_counts, self.items, (1, 0, 0))),
            f"items={self.items!r}",
            "it takes three whole numbers (train, dev, test), train at least 1",
            "write for example items=(600, 100, 100)",
        )
        _check(
            _counts(self.annotators),
            f"annotators={self.annotators!r}",
            "it takes a whole number above 0",
            "write for example annotators=5",
        )
        _check(
            all(_counts(count) and count <= self.annotators for count in self.per_item)
            and _are_weights(self.per_item.values()),
            f"per_item={dict(self.per_item)!r}",
            f"it maps counts of 1 to {self.annotators} annotators to shares",
            "write for example per_item={1: 1.0}, or add annotators",
        )
        if self.labels:
            self._check_labels()
        else:
            _check(
                len(self.balance) >= 2
                and min(self.balance) > 0
                and math.isclose(sum(self.balance), 1.0, abs_tol=1e-6),
                f"balance={self.balance!r}",
                "each of two or more classes has a share above 0, and the shares sum to 1",
                "write for example balance=(0.7, 0.3)",
            )
        names = [group.name for group in self.groups]
        _check(
            0 < len(names) == len(set(names)) <= self.annotators,
            f"groups={names!r}",
            f"the names differ, and there are 1 to {self.annotators} groups (the annotators)",
            "rename or leave out groups, or add annotators",
        )
        problem, hint = f"structured={self.structured!r}", "0 is pure noise, 1 pure structure"
        _check(0 <= self.structured <= 1, problem, "it lies in [0, 1]", hint)
        for name in ("disagreement", "noise_spread", "activity_spread"):
            value = getattr(self, name)
            problem, hint = f"{name}={value!r}", f"use {name}=0.5"
            _check(0 <= value < math.inf, problem, "it is 0 or more", hint)
        weights = (self.group_weight, self.personal_weight, self.threshold_weight)
        _check(
            _are_weights(weights),
            f"(group_weight, personal_weight, threshold_weight)={weights}",
            "they are 0 or more, and one is above 0",
            "for no lasting disagreement set structured=0",
        )

    def _check_labels(self) -> None:
        _check(
            len(self.balance) == len(self.labels) and all(0 < share < 1 for share in self.balance),
            f"balance={self.balance!r} for {counted(len(self.labels), 'label')}",
            "each label has a share of the items above 0 and below 1",
            "write for example balance=(0.3, 0.2, 0.4) for three labels",
        )
        _check(
            not self.ordinal,
            "ordinal=True with labels",
            "labels of a set have no order",
            "leave one of them out",
        )
        for name, weights in self.labels.items():
            for side in weights:
                one_of(f"a side of label {name!r}", side, VIEW_NAMES)
            problem = f"labels: {name}={dict(weights)!r}"
            is_valid = any(weights.values()) and all(map(math.isfinite, weights.values()))
            _check(is_valid, problem, "it takes finite weights, not all 0", "write {'irony': 1.0}")

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
        if isinstance(items, int | float):
            rule = "a fraction of the items lies in (0, 1]"
            hint = "give counts as items=(train, dev, test)"
            _check(0 < items <= 1, f"items={items!r}", rule, hint)
            train, dev, test = (math.ceil(n * items) for n in self.items)
            return replace(self, items=(train, dev, test))
        return replace(self, items=items)

    def with_classes(self, n_classes: int) -> Regime:
        """The same with n classes; above the first, each is half as frequent as the one before."""
        problem, rule = f"n_classes={n_classes!r}", "it takes a whole number from 2"
        _check(_counts(n_classes, 2), problem, rule, "use n_classes=3, for example")
        if n_classes == len(self.balance):
            return self
        problem = f"n_classes={n_classes!r} in regime {self.name!r}"
        hint = "leave it out, or write a regime with other labels"
        _check(not self.labels, problem, f"its labels are {', '.join(self.labels)}", hint)
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
