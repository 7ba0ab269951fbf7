"""Data larger than memory as a search sees them."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edokit._errors import EDOWarning, InputError
from edokit._types import Floats
from edokit.ensemble.inputs import named_groups
from edokit.fitdata.passes import units_of
from edokit.fitdata.sharded import LabelledShards
from edokit.objective import Pool, group_names
from edokit.solvers import Solution, solve_exact_shards, solve_gumbel_shards
from edokit.tuning.data import ArrayData, FitData, Scores
from edokit.tuning.space import Configuration


class ShardData:
    """Shards with their annotations; trials are solved and judged in passes over them.

    Exact trials are solved on all items. Gumbel trials learn from the sample of the data; like all
    others they are judged on all items.
    """

    def __init__(
        self, data: LabelledShards, groups: tuple[str, ...] | None = None, *, quiet: bool = False
    ) -> None:
        self.data, self._groups, self._quiet = data, groups, quiet
        self.members: tuple[str, ...] = data.members
        if groups is not None:
            self.members = tuple(group_names(groups))

    @classmethod
    def of(cls, data: LabelledShards, *, groups: bool = False) -> ShardData:
        """With members, or with the means of their groups."""
        return cls(data, named_groups(data.members, data.groups) if groups else None)

    @property
    def items(self) -> int:
        """N."""
        return self.data.items

    def described(self) -> dict[str, Any]:
        """Items, members, classes and a digest: what tells these data from others."""
        sums = self.data.summaries(self._groups)
        digest = hashlib.sha256()
        for part in (sums.class_counts, sums.soft_counts, sums.hits, sums.log_losses):
            # The last digits of a sum depend on the machine.
            digest.update(" ".join(f"{value:.9e}" for value in np.ravel(part)).encode())
        return {
            "items": self.items,
            "members": list(self.members),
            "classes": list(self.data.classes),
            "digest": digest.hexdigest(),
        }

    def solve(
        self, chosen: Sequence[Configuration], *, solver: str, seed: int, order: str
    ) -> list[Solution | str]:
        """A solution per configuration, or in words why there is none."""
        with np.errstate(all="ignore"):
            if solver == "gumbel":
                self._note()
                settings = [one.settings for one in chosen]
                options = [one.options for one in chosen]
                found: list[Solution | str] = [
                    *solve_gumbel_shards(
                        self.data,
                        settings,
                        options,
                        seeds=seed,
                        groups=self._groups,
                        order=order,
                    )
                ]
            else:
                found = [self._exact(one, order) for one in chosen]
        return [
            one
            if isinstance(one, str) or np.isfinite(one.weights).all()
            else "the weights are not finite"
            for one in found
        ]

    def scores(self, weights: Floats, pools: Sequence[Pool]) -> Scores:
        """Of pools with these weights [T, K], in one pass."""
        (found,) = self.data.total(_scores, weights, tuple(pools), self._groups, what="judging")
        return found  # type: ignore[no-any-return]

    def folds(self, count: int, seed: int) -> list[tuple[FitData, FitData]]:
        """Parts to learn from and to judge by, dealt at random; every item is judged once."""
        if count > self.items:
            raise InputError(
                f"folds must be at most the number of items, {self.items}, but got {count}",
                "choose fewer folds",
            )
        return [
            (
                ShardData(learn, self._groups, quiet=True),
                ShardData(judge, self._groups, quiet=True),
            )
            for learn, judge in self.data.folds(count, seed)
        ]

    def _note(self) -> None:
        """Say once that the sample is what gumbel learns from."""
        sampled = len(self.data.sample.y)
        if sampled < self.items and not self._quiet:
            warnings.warn(
                f"gumbel trials learn from a random sample of {sampled} of {self.items} items and"
                " are judged on all (solver='exact' learns from all)",
                EDOWarning,
                stacklevel=2,
            )
        self._quiet = True

    def _exact(self, one: Configuration, order: str) -> Solution | str:
        try:
            return solve_exact_shards(
                self.data,
                one.settings,
                groups=self._groups,
                order=order,
                max_members=one.options.max_members,
            )
        except (np.linalg.LinAlgError, FloatingPointError) as error:
            return f"{type(error).__name__}: {error}"


def _scores(
    P: Floats,
    q: Floats,
    y: NDArray[Any],
    weights: Floats,
    pools: tuple[Pool, ...],
    groups: tuple[str, ...] | None,
) -> list[Scores]:
    units = units_of(P, groups)
    names = [str(k) for k in range(units.shape[1])]
    classes = [str(c) for c in range(units.shape[2])]
    return [ArrayData(units, q, y, names, classes).scores(weights, pools)]
