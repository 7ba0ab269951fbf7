"""The joint loss as the exact solver asks for it: value, slope and curvature at one v."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from typing import TypeAlias

import numpy as np

from edokit._types import Floats, Ints
from edokit.fitdata import FitData
from edokit.objective import CE, Curvature, Diversity, Pool, Problem, Settings
from edokit.objective.loss import (
    SMOOTHING,
    curvature_sums,
    pool_ce,
    pool_hessian,
    pool_rows,
    smooth_w1,
    w1_curvature,
    w1_hessian,
)
from edokit.objective.pools import slices, spread

# Numbers looked at in one go: read from memory once, used twice while they are in the cache.
_BLOCK = 2**17
# Items that tell the curvature well enough for a descent: so many, so many per member, or such a
# share of all, whichever is most.
_ROUGH_ITEMS = 4096
_ROUGH_ITEMS_PER_MEMBER = 64
_ROUGH_SHARE = 1 / 16
_REMEMBERED = 4  # weights whose cross-entropy is known without another look at the items


class JointObjective:
    """The joint loss; its cross-entropy comes from ``ce``, all else from the problem's sums."""

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        ce: CrossEntropy | None = None,
        w1: PoolW1 | DataTerm | None = None,
    ) -> None:
        problem.check_scale(settings)
        self.problem, self.settings = problem, settings
        self.members = problem.members
        self.w1 = PoolW1(problem) if w1 is None and settings.w1 else w1
        if ce is None:
            ce = PoolCE(problem) if settings.ce is CE.MEAN else Linear(problem.member_ce)
        self.ce = ce
        self._terms: dict[str, Term] = {
            "f1": Linear(-problem.hit_rates, 1.0),
            "ce_weight": ce,
            **{name: Quadratic(matrix) for name, matrix in problem.matrices.items()},
            **({} if self.w1 is None else {"w1": self.w1}),
            "reg": Quadratic(np.eye(problem.members)),
        }
        weights = {term: settings.signed_weight(term) for term in self._terms}
        self._weights = {term: weight for term, weight in weights.items() if weight}

    def value(self, v: Floats) -> float:
        """The joint loss at v [K]."""
        return sum(weight * self._terms[term].value(v) for term, weight in self._weights.items())

    def slope(self, v: Floats) -> Floats:
        """Its gradient [K]."""
        return sum(self.slopes(v).values(), np.zeros(self.members))

    def slopes(self, v: Floats) -> dict[str, Floats]:
        """The gradient [K] of each term that counts, times its weight."""
        return {
            term: weight * self._terms[term].gradient(v) for term, weight in self._weights.items()
        }

    def curvature(
        self, v: Floats, inside: Ints, rough: bool = False
    ) -> tuple[Floats, Floats | None]:
        """Its Hessian among the members ``inside`` [k], which hold all weight: the convex part, and
        the diversity term where that is concave (else None): [k, k] each.
        """
        hessians = {
            term: weight * self._terms[term].hessian(v, inside, rough)
            for term, weight in self._weights.items()
        }
        is_concave = self.settings.diversity is Diversity.SUPPRESS
        concave = hessians.pop("div", None) if is_concave else None
        return sum(hessians.values(), np.zeros((len(inside), len(inside)))), concave

    def terms(self, v: Floats) -> dict[str, float]:
        """The terms at v [K] before weighting, and the total; no ``div`` without distances."""
        terms = {name: term.value(v) for name, term in self._terms.items()}
        return {
            "f1": terms.pop("f1"),
            "ce": terms.pop("ce_weight"),
            **terms,
            "total": self.value(v),
        }


class Linear:
    """A term that is linear in v, such as the weighted mean of the members' own cross-entropies.

    Like the classes below, it gives the value at weights v [K] (a mean over items), the gradient
    [K], and the Hessian [k, k] among the members ``inside``, which hold all weight (``rough``: a
    good guess).
    """

    def __init__(self, slope: Floats, offset: float = 0.0) -> None:
        self._slope, self._offset = slope, offset

    def value(self, v: Floats) -> float:
        return self._offset + float(v @ self._slope)

    def gradient(self, v: Floats) -> Floats:
        return self._slope

    def hessian(self, v: Floats, inside: Ints, rough: bool = False) -> Floats:
        return np.zeros((len(inside), len(inside)))


class Quadratic:
    """vᵀMv of a symmetric matrix."""

    def __init__(self, matrix: Floats) -> None:
        self._matrix = matrix

    def value(self, v: Floats) -> float:
        return float(v @ self._matrix @ v)

    def gradient(self, v: Floats) -> Floats:
        return 2.0 * (self._matrix @ v)

    def hessian(self, v: Floats, inside: Ints, rough: bool = False) -> Floats:
        return 2.0 * self._matrix[np.ix_(inside, inside)]


# What is pooled [K, n] and the targets: flat [n] for a linear pool, [n / C, C] for a log pool.
_Columns: TypeAlias = tuple[Floats, Floats]


class PoolCE:
    """The cross-entropy of the pool of a problem in memory."""

    def __init__(self, problem: Problem) -> None:
        self._items, self._classes = problem.items, int(problem.targets.shape[1])
        self._pool = problem.pool
        self._all: _Columns = problem.rows, problem.targets
        if self._pool is Pool.LINEAR:
            targets = problem.targets.reshape(-1)
            has_label = targets > 0
            # What nobody chose adds nothing; leaving it out costs about one look at the rest.
            sparse = has_label.mean() < 0.5
            rows = problem.rows
            self._all = (rows[:, has_label], targets[has_label]) if sparse else (rows, targets)
        enough = max(_ROUGH_ITEMS, _ROUGH_ITEMS_PER_MEMBER * problem.members)
        self._stride = max(1, int(problem.items // max(enough, _ROUGH_SHARE * problem.items)))
        self._at = lru_cache(_REMEMBERED)(lambda key: self._evaluate(np.frombuffer(key)))

    def value(self, v: Floats) -> float:
        return self._at(v.tobytes())[0]

    def gradient(self, v: Floats) -> Floats:
        return self._at(v.tobytes())[1]

    def hessian(self, v: Floats, inside: Ints, rough: bool = False) -> Floats:
        use_all = not rough or self._stride == 1
        rows, targets = self._all if use_all else self._part
        # The few stand for all, by the weight of their labels.
        share = 1.0 if use_all else self._all[1].sum() / targets.sum()
        if len(inside) < len(v):
            v, rows = v[inside], rows[inside]
        total: Floats = sum(
            pool_hessian(part, labels, pool_rows(v, part, labels, self._pool), self._pool)
            for part, labels in self._blocks(rows, targets)
        )
        return total * (share / self._items)

    def _evaluate(self, v: Floats) -> tuple[float, Floats]:
        value, gradient = 0.0, np.zeros(len(v))
        for rows, targets in self._blocks(*self._all):
            pooled = pool_rows(v, rows, targets, self._pool)
            loss, slope = pool_ce(rows, targets, pooled, self._pool)
            value += float(loss)
            gradient += slope
        return value / self._items, gradient / self._items

    @cached_property
    def _part(self) -> _Columns:
        """Some of the items."""
        rows, targets = self._all
        sampled = spread(len(targets), self._stride)
        if self._pool is Pool.LOG:
            by_item = rows.reshape(len(rows), -1, self._classes)[:, sampled]
            return by_item.reshape(len(rows), -1), targets[sampled]
        return rows[:, sampled], targets[sampled]

    def _blocks(self, rows: Floats, targets: Floats) -> Iterator[_Columns]:
        width = self._classes if self._pool is Pool.LOG else 1
        for s in slices(len(targets), max(1, _BLOCK // (len(rows) * width))):
            yield rows[:, s.start * width : s.stop * width], targets[s]


class PoolW1:
    """The smoothed Wasserstein-1 distance of the pool of a problem in memory."""

    def __init__(self, problem: Problem, smoothing: float = SMOOTHING) -> None:
        self.smoothing = smoothing
        self._given = *problem.scale_rows, problem.steps
        self._items = problem.items

    def value(self, v: Floats) -> float:
        return float(smooth_w1(v, *self._given, self.smoothing)[0]) / self._items

    def gradient(self, v: Floats) -> Floats:
        return np.asarray(smooth_w1(v, *self._given, self.smoothing)[1] / self._items)

    def hessian(self, v: Floats, inside: Ints, rough: bool = False) -> Floats:
        rows, labels, steps = self._given
        hessian = w1_hessian(v[inside], rows[inside], labels, steps, self.smoothing)
        return np.asarray(hessian / self._items)


class DataTerm:
    """A term of the pool of all items, in passes over the data.

    One pass gives value, gradient and Hessian; what is known of some weights is not asked again.
    """

    smoothing = SMOOTHING

    def __init__(
        self,
        data: FitData,
        members: Ints,
        curvature: Callable[..., Curvature],
        at_vertices: Floats | None = None,
    ) -> None:
        """Of these members (positions), in this order; ``at_vertices`` [k] of each alone."""
        self._data, self._members, self._curvature = data, members, curvature
        self._at_vertices = at_vertices
        self._everyone = len(members) == len(data.members)
        self._known: dict[bytes, Curvature] = {}

    @classmethod
    def ce(cls, data: FitData, settings: Settings, members: Ints) -> DataTerm:
        """The cross-entropy of the pool."""
        sums, weighted, kind = data.summaries(), settings.class_weights, settings.pool
        alpha = sums.class_weights(data.row_classes) if weighted else None
        # A single member's linear pool is the member itself.
        alone = sums.select(members).member_ce(weighted) if kind is Pool.LINEAR else None
        return cls(data, members, partial(curvature_sums, alpha=alpha, pool=kind), alone)

    @classmethod
    def w1(cls, data: FitData, members: Ints) -> DataTerm:
        """The smoothed Wasserstein-1 distance of the pool."""
        steps = data.scale.steps
        return cls(data, members, partial(w1_curvature, steps=steps, smoothing=cls.smoothing))

    def value(self, v: Floats) -> float:
        vertex = np.flatnonzero(v == 1.0)
        if len(vertex) and self._at_vertices is not None:
            return float(self._at_vertices[vertex[0]])
        at = self._at(v)
        return float(at.value) / at.items

    def gradient(self, v: Floats) -> Floats:
        at = self._at(v)
        return np.asarray(at.gradient / at.items)

    def hessian(self, v: Floats, inside: Ints, rough: bool = False) -> Floats:
        # Never rough: the pass gave all of it.
        at = self._at(v)
        return np.asarray(at.hessian[np.ix_(inside, inside)] / at.items)

    def look_at(self, weightings: Sequence[Floats]) -> None:
        """Know these weights [T, K] after one pass."""
        new = [v for v in weightings if v.tobytes() not in self._known]
        if not new:
            return
        if not self._everyone:
            curvatures = self._data.curvatures(np.array(new), self._members, self._curvature)
        else:
            # Weights are put in the members' order, which costs less than the other way round.
            weights = np.zeros((len(new), len(self._members)))
            weights[:, self._members] = new
            of_all = self._data.curvatures(weights, None, self._curvature)
            curvatures = [at.select(self._members) for at in of_all]
        self._known |= {v.tobytes(): at for v, at in zip(new, curvatures, strict=True)}

    def _at(self, v: Floats) -> Curvature:
        self.look_at([v])
        return self._known[v.tobytes()]


CrossEntropy: TypeAlias = Linear | PoolCE | DataTerm
Term: TypeAlias = CrossEntropy | Quadratic | PoolW1
