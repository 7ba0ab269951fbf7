"""The fit data as a search sees them: something that solves, scores and folds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from edokit._errors import InputError
from edokit._types import Floats, Ints
from edokit.objective import Pool, Problem, Summaries, log_probabilities, rank_members
from edokit.objective.arrays import slices
from edokit.solvers import GumbelSolver, Solution, solve_exact
from edokit.tuning.space import Configuration

CLIP = 1e-12  # as the metrics do
# Numbers of pooled probabilities at a time; keeps the memory beside the data small.
_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class Scores:
    """Sums over items for T weightings; ``a + b`` are those of both shards together."""

    items: int
    f1: Floats
    """[T] items whose likeliest class is the hard label."""
    ce: Floats
    """[T] Σ cross-entropy."""
    ce_squares: Floats
    """[T] Σ squared cross-entropy, for its standard error."""
    md: Floats
    """[T] Σ Manhattan distance."""

    def __add__(self, other: Scores) -> Scores:
        return Scores(
            self.items + other.items,
            self.f1 + other.f1,
            self.ce + other.ce,
            self.ce_squares + other.ce_squares,
            self.md + other.md,
        )

    def estimates(self) -> list[dict[str, float]]:
        """F1, CE, MD and the standard error of CE, for each weighting."""
        ce = self.ce / self.items
        variance = np.maximum(self.ce_squares / self.items - ce**2, 0.0)
        error = np.sqrt(variance / max(self.items - 1, 1))
        columns = (self.f1 / self.items, ce, self.md / self.items, error)
        return [
            {"f1": float(f1), "ce": float(loss), "md": float(md), "ce_se": float(se)}
            for f1, loss, md, se in zip(*columns, strict=True)
        ]


class FitData(Protocol):
    """What a search needs of predictions and answers; data larger than memory can offer it too."""

    @property
    def items(self) -> int:
        """N."""

    @property
    def members(self) -> Sequence[str]:
        """Names [K], in the order of the weights."""

    def described(self) -> dict[str, Any]:
        """Items, members, classes and a digest: what tells these data from others."""

    def solve(
        self, chosen: Sequence[Configuration], *, solver: str, seed: int, order: str
    ) -> list[Solution | str]:
        """A solution per configuration, or in words why there is none."""

    def scores(self, weights: Floats, pools: Sequence[Pool]) -> Scores:
        """Of pools with these weights [T, K]."""

    def folds(self, count: int, seed: int) -> list[tuple[FitData, FitData]]:
        """Parts to learn from and to judge by; every item is judged once."""


class ArrayData:
    """Predictions P [N, K, C], soft labels q [N, C] and hard label codes y [N] in memory."""

    def __init__(
        self,
        P: NDArray[Any],
        q: NDArray[Any],
        y: NDArray[Any],
        members: Sequence[str],
        classes: Sequence[str],
    ) -> None:
        self.P = np.ascontiguousarray(P, dtype=np.float64)
        self.q = np.ascontiguousarray(q, dtype=np.float64)
        self.y = np.ascontiguousarray(y, dtype=np.int64)
        self.members, self.classes = tuple(members), tuple(classes)
        self._problems: dict[tuple[bool, Pool], Problem] = {}
        self._solvers: dict[str, GumbelSolver] = {}

    @property
    def items(self) -> int:
        """N."""
        return len(self.P)

    def described(self) -> dict[str, Any]:
        """Items, members, classes and a digest: what tells these data from others."""
        digest = hashlib.sha256()
        for array in (self.P, self.q, self.y):
            digest.update(array.tobytes())
        return {
            "items": self.items,
            "members": list(self.members),
            "classes": list(self.classes),
            "digest": digest.hexdigest(),
        }

    def solve(
        self, chosen: Sequence[Configuration], *, solver: str, seed: int, order: str
    ) -> list[Solution | str]:
        """A solution per configuration, or in words why there is none."""
        if any(one.settings.class_weights for one in chosen):
            self._check_class_weights()
        with np.errstate(all="ignore"):
            if solver == "gumbel":
                found: list[Solution | str] = [
                    *self._gumbel(order).solve(
                        [one.settings for one in chosen],
                        [one.options for one in chosen],
                        seeds=seed,
                        keep=True,
                        trajectory=False,
                    )
                ]
            else:
                found = [self._exact(one, order) for one in chosen]
        return [_sound(solution) for solution in found]

    def scores(self, weights: Floats, pools: Sequence[Pool]) -> Scores:
        """Of pools with these weights [T, K]."""
        total = np.zeros((4, len(weights)))
        kinds = np.array([kind is Pool.LOG for kind in pools])
        step = max(1, _BLOCK // (max(1, len(weights)) * len(self.classes)))
        for part in slices(self.items, step):
            for is_log in (False, True):
                which = np.flatnonzero(kinds == is_log)
                if len(which):
                    p = self._pooled(part, weights[which], is_log)
                    total[:, which] += _sums(p, self.q[part], self.y[part])
        return Scores(self.items, *total)

    def folds(self, count: int, seed: int) -> list[tuple[FitData, FitData]]:
        """Parts to learn from and to judge by; every item is judged once. Hard labels are spread
        evenly over the parts."""
        if count > self.items:
            raise InputError(
                f"folds must be at most the number of items, {self.items}, but got {count}",
                "choose fewer folds",
            )
        shuffled = np.random.default_rng([seed, count]).permutation(self.items)
        by_label = shuffled[np.argsort(self.y[shuffled], kind="stable")]
        fold = np.empty(self.items, dtype=np.int64)
        fold[by_label] = np.arange(self.items) % count
        return [
            (self._take(np.flatnonzero(fold != k)), self._take(np.flatnonzero(fold == k)))
            for k in range(count)
        ]

    def _check_class_weights(self) -> None:
        """Refuse, by its name, a class that people chose and no hard label is."""
        hard = np.bincount(self.y, minlength=len(self.classes))
        if (hard[self.q.sum(axis=0) > 0] == 0).any():
            self._summaries.class_weights(self.classes)

    @cached_property
    def _summaries(self) -> Summaries:
        return Summaries.from_arrays(self.P, self.q, self.y)

    @cached_property
    def _rows(self) -> Floats:
        """[K, N, C]"""
        return np.ascontiguousarray(self.P.transpose(1, 0, 2))

    @cached_property
    def _log_rows(self) -> Floats:
        logs: Floats = log_probabilities(self._rows)
        return logs

    def _gumbel(self, order: str) -> GumbelSolver:
        if order not in self._solvers:
            self._solvers[order] = GumbelSolver(self.P, self.q, self.y, order=order)
        return self._solvers[order]

    def _exact(self, one: Configuration, order: str) -> Solution | str:
        kind = (one.settings.class_weights, one.settings.pool)
        if kind not in self._problems:
            self._problems[kind] = Problem.from_arrays(
                self.P,
                self.q,
                self.y,
                class_weights=kind[0],
                pool=kind[1],
                summaries=self._summaries,
            )
        ranks = rank_members(self._summaries, order)
        try:
            return solve_exact(
                self._problems[kind],
                one.settings,
                order=ranks,
                max_members=one.options.max_members,
            )
        except (np.linalg.LinAlgError, FloatingPointError) as error:
            return f"{type(error).__name__}: {error}"

    def _pooled(self, part: slice, weights: Floats, is_log: bool) -> Floats:
        """[T, n, C] pooled probabilities."""
        rows = (self._log_rows if is_log else self._rows)[:, part]
        flat: Floats = weights @ rows.reshape(len(rows), -1)
        pooled = flat.reshape(len(weights), rows.shape[1], rows.shape[2])
        if is_log:
            pooled -= pooled.max(axis=-1, keepdims=True)
            np.exp(pooled, out=pooled)
            pooled /= pooled.sum(axis=-1, keepdims=True)
        return pooled

    def _take(self, items: Ints) -> ArrayData:
        return ArrayData(self.P[items], self.q[items], self.y[items], self.members, self.classes)


def _sums(p: Floats, q: Floats, y: Ints) -> Floats:
    """[4, T] hits, cross-entropies, their squares and distances of p [T, n, C], summed up."""
    hits = (p.argmax(axis=-1) == y).sum(axis=-1)
    distances = np.abs(p - q).sum(axis=(-1, -2))
    logs = np.log(np.clip(p, CLIP, 1.0 - CLIP))
    losses = -np.einsum("tnc,nc->tn", logs, q)
    return np.stack([hits, losses.sum(axis=-1), np.square(losses).sum(axis=-1), distances])


def _sound(solution: Solution | str) -> Solution | str:
    if isinstance(solution, str) or np.isfinite(solution.weights).all():
        return solution
    return "the weights are not finite"
