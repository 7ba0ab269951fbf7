"""How subjective annotation can look: who annotates, how often, and why they disagree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral

from edokit._errors import InputError, one_of
from edokit.datasets.simulate.posts import VIEW_NAMES


def _check(holds: bool, name: str, value: object, rule: str, hint: str) -> None:
    if not holds:
        raise InputError(f"{name}={value!r} is not possible: {rule}", hint)


def _counts(value: object) -> bool:
    return isinstance(value, Integral) and int(value) > 0


def _are_weights(values: Iterable[float]) -> bool:
    listed = list(values)
    return all(0 <= value < math.inf for value in listed) and sum(listed) > 0


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
        _check(
            0 < self.share < math.inf,
            "share",
            self.share,
            f"group {self.name!r} needs a share above 0",
            "leave the group out, or give it a share",
        )
        for side, weight in self.views.items():
            one_of(f"a view of group {self.name!r}", side, (*VIEW_NAMES, "always"))
            _check(
                math.isfinite(weight),
                f"views of group {self.name!r}: {side}",
                weight,
                "a weight is a finite number",
                "weights of -2 to 2 are usual",
            )


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
    """Share of the items in each class (by their median label), mildest class first."""
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

    def __post_init__(self) -> None:
        _check(
            len(self.items) == 3
            and all(isinstance(n, Integral) and n >= 0 for n in self.items)
            and self.items[0] > 0,
            "items",
            self.items,
            "it takes three whole numbers (train, dev, test), train at least 1",
            "write for example items=(600, 100, 100)",
        )
        _check(
            _counts(self.annotators),
            "annotators",
            self.annotators,
            "it takes a whole number above 0",
            "write for example annotators=5",
        )
        _check(
            len(self.per_item) > 0
            and all(_counts(count) and count <= self.annotators for count in self.per_item)
            and _are_weights(self.per_item.values()),
            "per_item",
            dict(self.per_item),
            f"it maps counts of 1 to {self.annotators} annotators to shares",
            "write for example per_item={1: 1.0}, or add annotators",
        )
        _check(
            len(self.balance) >= 2
            and min(self.balance) > 0
            and math.isclose(sum(self.balance), 1.0, abs_tol=1e-6),
            "balance",
            self.balance,
            "each of two or more classes has a share above 0, and the shares sum to 1",
            "write for example balance=(0.7, 0.3)",
        )
        names = [group.name for group in self.groups]
        _check(
            0 < len(names) == len(set(names)) <= self.annotators,
            "groups",
            names,
            f"the names differ, and there are 1 to {self.annotators} groups (the annotators)",
            "rename or leave out groups, or add annotators",
        )
        _check(
            0 <= self.structured <= 1,
            "structured",
            self.structured,
            "it lies in [0, 1]",
            "0 is pure noise, 1 pure structure",
        )
        for name in ("disagreement", "noise_spread", "activity_spread"):
            value = getattr(self, name)
            _check(0 <= value < math.inf, name, value, "it is 0 or more", f"use {name}=0.5")
        weights = (self.group_weight, self.personal_weight, self.threshold_weight)
        _check(
            _are_weights(weights),
            "(group_weight, personal_weight, threshold_weight)",
            weights,
            "they are 0 or more, and one is above 0",
            "for no lasting disagreement set structured=0",
        )

    def sized(self, items: tuple[int, int, int] | float) -> Regime:
        """The same with other numbers of items, or with a fraction of them."""
        if isinstance(items, int | float):
            hint = "give counts as items=(train, dev, test)"
            _check(0 < items <= 1, "items", items, "a fraction of the items lies in (0, 1]", hint)
            train, dev, test = (math.ceil(n * items) for n in self.items)
            return replace(self, items=(train, dev, test))
        return replace(self, items=items)

    def with_classes(self, n_classes: int) -> Regime:
        """The same with n classes; above the first, each is half as frequent as the one before."""
        _check(
            _counts(n_classes) and n_classes >= 2,
            "n_classes",
            n_classes,
            "it takes a whole number from 2",
            "use n_classes=3, for example",
        )
        if n_classes == len(self.balance):
            return self
        above = 1.0 - self.balance[0]
        halving = [0.5**c for c in range(n_classes - 1)]
        shares = [above * part / sum(halving) for part in halving]
        return replace(self, balance=(self.balance[0], *shares))


THREE_VOICES = Regime(
    name="three-voices",
    items=(657, 141, 145),
    annotators=3,
    per_item={3: 1.0},
    balance=(387 / 657, 270 / 657),
    disagreement=0.6,
    structured=0.6,
    threshold_weight=0.3,
)
"""Three annotators with views of their own label everything, 3:2 (like ArMIS)."""

PARTIAL_PANEL = Regime(
    name="partial-panel",
    items=(2398, 812, 840),
    annotators=8,
    per_item={2: 629, 3: 1382, 4: 223, 5: 137, 6: 26, 7: 1},
    balance=(2009 / 2398, 389 / 2398),
    groups=(
        Group("steady", 5, {"irony": -1.0}),
        Group("touchy", 3, {"reader": 1.0, "person": 0.5}),
    ),
    disagreement=0.5,
    structured=0.5,
    activity_spread=0.15,
)
"""Eight annotators share the work, two to seven per item, 5:1 (like ConvAbuse)."""

TWO_CAMPS = Regime(
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
)
"""Six annotators in two camps label everything, 10:1 (like HS-Brexit)."""

CROWD = Regime(
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
    structured=0.5,
    activity_spread=1.6,
)
"""Five of 670 annotators label each item, few of them most of the time, 7:3 (like MD-Agreement)."""

REGIMES: dict[str, Regime] = {
    regime.name: regime for regime in (THREE_VOICES, PARTIAL_PANEL, TWO_CAMPS, CROWD)
}
"""The named regimes."""
