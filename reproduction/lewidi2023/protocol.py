"""The paper's own training protocol: what its members read, and how they are trained.

The committed pools of ``benchmarks/lewidi2023`` are better members than the paper's: adversarially
trained, stopped by cross-entropy, on texts that are not cleaned. These plans follow section 4.2 of
the paper instead, so that findings can be tested on members of its kind. Three choices are ours:
the backbone, since BERT was not available for training; an output bias that starts at the class
prior; and annotators that are drawn anew in every epoch (``draw="epoch"``), which makes the
estimator of the expected loss unbiased.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from edokit.annotations.core import Annotations
from edokit.members import Group
from edokit.members.supervision import PER_ANNOTATOR
from reproduction.lewidi2023.plans import SEED_GROUP, PoolPlan

SEEDS = 5
MEMBERS = 10
"""Members of a seed: the paper's largest ensemble."""
OPTIONS: Mapping[str, str | int | float] = {
    "learning_rate": 2e-5,
    "batch_size": 16,
    "eval_batch_size": 32,
    "epochs": 20,
    "patience": 3,
    "epoch_metric": "f1",
    "least_gain": 0.01,
    "warmup_steps": 500,
    "max_length": 512,
    "pooling": "first",
}
"""Options of the recipe ``transformer``; the weight decay is drawn in [0.005, 0.015]."""
_REMOVED = (
    r"<[^>]*>|&\w+;",  # markup, also <user> and <url> of the published files
    r"https?://\S+|www\.\S+",
    r"@\w+",  # mentions
    r"[^\x00-\x7f]",
    r"[^A-Za-z\s]",  # punctuation and digits
)


def clean_text(text: str) -> str:
    """The text without markup, links, mentions, non-ASCII characters, punctuation and digits.

    Examples
    --------
    >>> clean_text("@user See https://a.example: 2 <b>odd</b> ideas…")
    'See odd ideas'
    """
    for pattern in _REMOVED:
        text = re.sub(pattern, " ", text)
    return " ".join(text.split())


def with_clean_texts(annotations: Annotations) -> Annotations:
    """The annotations with cleaned texts; a text of which nothing is left is ``"empty"``."""
    assert annotations.texts is not None
    cleaned = [clean_text(text) or "empty" for text in annotations.texts.tolist()]
    return replace(annotations, texts=np.array(cleaned, dtype=object))


def protocol_plans(
    annotator_counts: Mapping[str, int],
    backbone: str,
    *,
    seeds: int = SEEDS,
    members: int = MEMBERS,
    options: Mapping[str, str] | None = None,
) -> list[PoolPlan]:
    """The pools of the paper, each seed with members of its own.

    Parameters
    ----------
    annotator_counts : mapping of str to int
        For each dataset the number of annotators of its least annotated item, which is the
        largest number of per-annotator members (the paper's K ≤ min A_i).
    backbone : str
        Hub id or folder of the pretrained encoder.
    seeds : int, default=5
        Number of independent trainings of each pool.
    members : int, default=10
        Members of a seed.
    options : mapping of str to str, default=None
        Options of the recipe that differ from the protocol's.
    """
    backbone_options = {**OPTIONS, **(options or {}), "model": backbone}
    distance = {**backbone_options, "loss": "md"}
    plans = []
    for dataset, fewest in annotator_counts.items():
        random_select = _of_each_seed(seeds, members, "random-select", backbone_options)
        per_annotator = _of_each_seed(seeds, min(fewest, members), PER_ANNOTATOR, backbone_options)
        soft_ce = [Group("transformer", seeds, "soft-ce", "soft", options=backbone_options)]
        soft_md = [Group("transformer", seeds, "soft-md", "soft", options=distance)]
        plans += [
            PoolPlan(dataset, "random-select", random_select, clean_texts=True),
            PoolPlan(dataset, "per-annotator", per_annotator, clean_texts=True),
            PoolPlan(dataset, "soft-ce", soft_ce, clean_texts=True),
            PoolPlan(dataset, "soft-md", soft_md, clean_texts=True),
        ]
    return plans


def _of_each_seed(
    seeds: int, members: int, supervision: str, options: Mapping[str, str | int | float]
) -> Sequence[Group]:
    """A group of members for each seed."""
    return [
        Group("transformer", members, f"{SEED_GROUP}{seed}", supervision, options=options)
        for seed in range(seeds)
    ]
