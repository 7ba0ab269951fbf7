"""Four regimes, shaped like the four datasets of LeWiDi 2023."""

from __future__ import annotations

from edokit.datasets.simulate.regimes import Group, Regime

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
"""Three people with views of their own label everything, 3:2 (like ArMIS)."""

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
"""Eight people share the work, two to seven per item, 5:1 (like ConvAbuse)."""

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
"""Six people in two camps label everything, 10:1 (like HS-Brexit)."""

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
"""Five of 670 people answer each item, few of them most of the time, 7:3 (like MD-Agreement)."""

REGIMES: dict[str, Regime] = {
    regime.name: regime for regime in (THREE_VOICES, PARTIAL_PANEL, TWO_CAMPS, CROWD)
}
"""The named regimes."""
