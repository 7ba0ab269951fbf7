"""The joint loss of a problem that is in memory, as a descent asks for it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edokit._types import Floats
from edokit.objective import CE, Diversity, Pool, Problem, Settings, joint_hessian, joint_loss
from edokit.objective.arrays import EPSILON, slices

Ints = npt.NDArray[np.intp]

# Numbers looked at in one go: read from memory once, used twice while they are in the cache.
_BLOCK = 2**17
# Items that tell the curvature well enough for a descent: so many, so many per member, or such a
# share of all, whichever is most.
_ROUGH_ITEMS = 4096
_ROUGH_ITEMS_PER_MEMBER = 64
_ROUGH_SHARE = 1 / 16
_REMEMBERED = 4  # places whose value and slope are known without another look at the items


class _Place(NamedTuple):
    """What is known of weights v."""

    value: float
    slope: Floats
    """[K]"""
    ce: float


class InMemory:
    """The joint loss of a problem that is in memory."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self.problem, self.settings = problem, settings
        self.members = problem.members
        self._signed = settings.diversity.sign * settings.lambda_div
        self._pools = settings.ce is CE.MEAN and settings.lambda_ce > 0
        self._columns = _Columns(problem) if self._pools and problem.pool is Pool.LINEAR else None
        self._part: Problem | None = None
        self._known: dict[bytes, _Place] = {}

    def value(self, v: Floats) -> float:
        """The joint loss at v [K]."""
        return self._at(v).value

    def slope(self, v: Floats) -> Floats:
        """Its gradient [K]."""
        return self._at(v).slope

    def terms(self, v: Floats) -> dict[str, float]:
        """The terms at v [K] before weighting, and the total; no ``div`` without distances."""
        if self._columns is None:
            loss = joint_loss(v, self.problem, self.settings)
            found = {name: float(getattr(loss, name)) for name in ("f1", "ce", "div", "reg")}
        else:
            found = {"f1": float(1.0 - v @ self.problem.hit_rates), "ce": self._at(v).ce}
            if self.problem.distances is not None:
                found["div"] = float(v @ self.problem.distances @ v)
            found["reg"] = float(v @ v)
        if self.problem.distances is None:
            found.pop("div", None)
        return {**found, "total": self.value(v)}

    def curvature(
        self, v: Floats, inside: Ints, rough: bool = False
    ) -> tuple[Floats, Floats | None]:
        """Its Hessian among the members ``inside`` [k], which hold all weight: the convex part, and
        the diversity term where that is concave (else None): [k, k] each.

        ``rough``: the cross-entropy's part may be that of some of the items.
        """
        if self._columns is not None:
            convex = self.settings.lambda_ce * self._columns.hessian(v, inside, rough)
        elif self._pools:
            convex = joint_hessian(v[inside], self._items(rough).select(inside), self._ce_alone)
        else:
            convex = np.zeros((len(inside), len(inside)))
        convex[np.diag_indices(len(inside))] += 2.0 * self.settings.lambda_reg
        if self._signed == 0:
            return convex, None
        diversity = 2.0 * self._signed * self.problem.distances[np.ix_(inside, inside)]
        if self.settings.diversity is Diversity.SUPPRESS:
            return convex, diversity
        return convex + diversity, None

    @property
    def _ce_alone(self) -> Settings:
        return replace(self.settings, lambda_f1=0.0, lambda_div=0.0, lambda_reg=0.0)

    def _items(self, rough: bool) -> Problem:
        """All items, or fewer."""
        if not rough:
            return self.problem
        if self._part is None:
            step = _stride(self.problem)
            every = np.arange(0, self.problem.items, step)
            self._part = self.problem if step == 1 else self.problem.take(every)
        return self._part

    def _at(self, v: Floats) -> _Place:
        """Value and gradient; what was asked a moment ago is not computed again."""
        key = v.tobytes()
        if key not in self._known:
            if len(self._known) == _REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[key] = self._evaluate(v)
        return self._known[key]

    def _evaluate(self, v: Floats) -> _Place:
        problem, settings = self.problem, self.settings
        if self._columns is None:
            loss = joint_loss(v, problem, settings)
            return _Place(float(loss.total), loss.gradient, float(loss.ce))
        ce, slope = self._columns.cross_entropy(v)
        value = settings.lambda_ce * ce + settings.lambda_f1 * (1.0 - v @ problem.hit_rates)
        gradient = settings.lambda_ce * slope - settings.lambda_f1 * problem.hit_rates
        value += settings.lambda_reg * (v @ v)
        gradient += 2.0 * settings.lambda_reg * v
        if self._signed:
            to_others = problem.distances @ v
            value += self._signed * (v @ to_others)
            gradient += 2.0 * self._signed * to_others
        return _Place(float(value), gradient, ce)


class _Columns:
    """The cross-entropy of a linear pool: a column for each item and class that anybody chose."""

    def __init__(self, problem: Problem) -> None:
        self._items, self._classes = problem.items, int(problem.targets.shape[1])
        self._rows, self._targets = problem.rows, problem.targets.reshape(-1)
        chosen = self._targets > 0
        # What nobody chose adds nothing; leaving it out costs about one look at the rest.
        if chosen.mean() < 0.5:
            self._rows, self._targets = self._rows[:, chosen], self._targets[chosen]
        self._step = _stride(problem)
        self._few: tuple[Floats, Floats] | None = None

    def cross_entropy(self, v: Floats) -> tuple[float, Floats]:
        """Value and gradient [K]."""
        value, gradient = 0.0, np.zeros(len(v))
        for rows, targets in self._blocks(self._rows, self._targets):
            pooled = v @ rows
            pooled += EPSILON
            gradient -= rows @ (targets / pooled)
            value -= float(targets @ np.log(pooled, out=pooled))
        return value / self._items, gradient / self._items

    def hessian(self, v: Floats, inside: Ints, rough: bool) -> Floats:
        """[k, k] among the members ``inside``."""
        whole = not rough or self._step == 1
        rows, targets = (self._rows, self._targets) if whole else self._some()
        everyone = len(inside) == len(v)
        if not everyone:
            v, rows = v[inside], rows[inside]
        total = np.zeros((len(v), len(v)))
        for part, weights in self._blocks(rows, targets):
            scaled = part * (np.sqrt(weights) / (v @ part + EPSILON))
            total += scaled @ scaled.T
        # The few stand for all, by the weight of their answers.
        share = 1.0 if whole else self._targets.sum() / targets.sum()
        return total * (share / self._items)

    def _some(self) -> tuple[Floats, Floats]:
        if self._few is None:
            # Columns next to each other are the classes of one item: a stride that shares a
            # divisor with their number would never come to some of them.
            every = self._step
            while math.gcd(every, self._classes) > 1:
                every += 1
            self._few = np.ascontiguousarray(self._rows[:, ::every]), self._targets[::every]
        return self._few

    def _blocks(self, rows: Floats, targets: Floats) -> Iterator[tuple[Floats, Floats]]:
        for s in slices(len(targets), max(1, _BLOCK // len(rows))):
            yield rows[:, s], targets[s]


def _stride(problem: Problem) -> int:
    """Every how many items a rough look takes."""
    enough = max(_ROUGH_ITEMS, _ROUGH_ITEMS_PER_MEMBER * problem.members)
    return max(1, int(problem.items // max(enough, _ROUGH_SHARE * problem.items)))
