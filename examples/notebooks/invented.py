"""The invented tables of the notebooks: comments labelled by readers and by language models.

The texts are simulated and mild: buses, concerts, canteens.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import edokit
from edokit.datasets.simulate.regimes import AnnotatorGroup, Regime
from edokit.datasets.simulate.simulation import Simulation

READERS = Regime(
    name="comments",
    items=(400, 0, 0),
    annotators=30,
    per_item={5: 1.0},
    balance=(0.65, 0.35),
    groups=(
        AnnotatorGroup("regular", 1.0, {"irony": -2.0, "always": -0.5}),
        AnnotatorGroup("newcomer", 1.0, {"people": 1.0, "always": 0.5}),
    ),
    disagreement=0.9,
    structured=0.7,
    group_weight=4.0,
)
"""Thirty readers in two groups, five of them for each comment."""
FAMILIES = {"gull-small": "gull", "gull-medium": "gull", "gull-large": "gull", "wren": "wren"}
"""Language models, and which of them were trained on the same texts."""


def make_comments(items: int = 400) -> pd.DataFrame:
    """A row for each label: item, annotator, label, text, and the group of the annotator."""
    table = _simulate(items).annotations.to_table().to_pandas()
    table["item"] = table["item"].map(_comment)
    table["annotator"] = table["annotator"].str.replace("ann-", "reader-")
    return table[["item", "annotator", "label", "text", "group"]]


def make_judgements(items: int = 400) -> pd.DataFrame:
    """A row for each comment: the probability of `offensive` that each language model gives."""
    simulation = _simulate(items)
    truth = simulation.truth[:, 1].clip(0.02, 0.98)
    score = np.log(truth / (1 - truth))
    rng = np.random.default_rng(5)
    columns: dict[str, object] = {"item": [_comment(item) for item in simulation.annotations.items]}
    # What a family gets wrong, all its models get wrong.
    errors = {name: rng.normal(0, 1.2, len(score)) for name in sorted({*FAMILIES.values()})}
    for model, family in FAMILIES.items():
        own = rng.normal(0, 0.4, len(score))
        probability = 1 / (1 + np.exp(-(score + errors[family] + own)))
        columns[model] = probability.clip(0.01, 0.99).round(3)
    return pd.DataFrame(columns)


def _simulate(items: int) -> Simulation:
    return edokit.simulate(READERS, random_state=7, items=(items, 0, 0))


def _comment(item: object) -> str:
    return str(item).replace("sim-train-", "comment-")
