"""What a pool is trained from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edokit.members import Group

SEED_GROUP = "seed-"
"""Begins the name of a group of members that are trained for one seed alone."""


@dataclass(frozen=True)
class PoolPlan:
    """One pool to train.

    Attributes
    ----------
    dataset, name : str
        The dataset, and the name of the pool.
    groups : sequence of Group
        Its members.
    seed : int
        Of the training.
    cross_fit : int or None
        Number of folds; None: members learn from train and are stopped on dev.
    clean_texts : bool
        Whether members read texts as the paper cleans them, conversations as one text.
    """

    dataset: str
    name: str
    groups: Sequence[Group]
    seed: int = 0
    cross_fit: int | None = None
    clean_texts: bool = False
