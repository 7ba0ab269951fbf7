"""What a simulation gives: annotations, and the truth behind them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, one_of
from edokit._types import Codes, Floats, Strings
from edokit.annotations import Annotations
from edokit.datasets.simulate.people import People, class_probabilities
from edokit.datasets.simulate.posts import Features
from edokit.datasets.simulate.regimes import Regime
from edokit.datasets.simulate.variance import Variance, decompose

if TYPE_CHECKING:
    import pandas as pd

Rows = npt.NDArray[np.intp]

SPLITS: tuple[str, ...] = ("train", "dev", "test")

# Items at a time: all annotators on all items of the largest regime are 7 million answers.
_BLOCK = 512


@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulated annotations of N items, and what real ones hide.

    The population, whose answers are the truth, is all A annotators, each counted once: the
    active ones no more than the others.
    """

    regime: Regime
    """What was simulated, with the sizes that were used."""
    seed: int
    """The seed that gives the same simulation again."""
    annotations: Annotations
    """What people said, with texts, splits, hard labels and the `group` of each annotator."""
    annotators: Strings
    """Everyone in the population [A], also those who answered nothing."""
    groups: Strings
    """The group of everyone in the population [A]."""
    features: Features
    """What the posts are about."""
    people: People
    """How the population sees posts."""
    thresholds: Floats
    """How bad a post must be for each class above the first [C - 1]."""

    @property
    def texts(self) -> Strings:
        """The posts [N]."""
        assert self.annotations.texts is not None
        return self.annotations.texts

    @cached_property
    def truth(self) -> Floats:
        """Share of the population that would give each answer [N, C]."""
        return np.concatenate([p.mean(axis=1) for p in self._blocks(self.rows())])

    def rows(self, split: str | None = None) -> Rows:
        """Positions of the items of a split, or of all, in `truth` and `texts`."""
        if split is None:
            return np.arange(len(self.features))
        one_of("split", split, SPLITS)
        return np.flatnonzero(self.annotations.splits == split)

    def feature_table(self) -> pd.DataFrame:
        """One row per item: `item, topic, hostility, irony, target`."""
        return self.features.frame(self.annotations.items)

    def annotator_probabilities(self, rows: npt.ArrayLike | None = None) -> Floats:
        """Everyone's probability of each answer on these items, or on all: [n, A, C]."""
        chosen = self.rows() if rows is None else np.asarray(rows)
        scores = self.people.scores(self.features.take(chosen))
        return class_probabilities(scores, self.people.noise, self.thresholds)

    def ask_everyone(self, seed: int, rows: npt.ArrayLike | None = None) -> Codes:
        """A fresh answer of everyone on these items, or on all: codes of classes [n, A]."""
        p = self.annotator_probabilities(rows)
        return draw_answers(np.random.default_rng(seed).random(p.shape[:2]), p)

    def variance(self, split: str | None = None) -> Variance:
        """Where the labels' variance comes from, everyone on all items (or on those of a split)."""
        rows = self.rows(split)
        if len(rows) == 0:
            raise InputError(
                f"the variance needs items, but split {split!r} has none",
                "choose another split, or simulate items for this one",
            )
        return self._variance if split is None else self._decompose(rows)

    @cached_property
    def _variance(self) -> Variance:
        return self._decompose(self.rows())

    def _decompose(self, rows: Rows) -> Variance:
        return decompose(lambda: self._blocks(rows), self.people.group)

    def _blocks(self, rows: Rows) -> Iterator[Floats]:
        for start in range(0, len(rows), _BLOCK):
            yield self.annotator_probabilities(rows[start : start + _BLOCK])


def draw_answers(draws: Floats, probabilities: Floats) -> Codes:
    """The class that each uniform draw falls on: shape of draws; probabilities add an axis C."""
    limits = np.cumsum(probabilities, axis=-1)[..., :-1]
    codes: Codes = np.sum(draws[..., None] >= limits, axis=-1, dtype=np.int32)
    return codes
