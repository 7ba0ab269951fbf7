"""The joint loss as the exact solver asks for it: value, slope and curvature at one v."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from edokit._types import Floats, Ints
from edokit.fitdata import FitData
from edokit.objective.loss import (
    Curvature,
    Linear,
    OverItems,
    PoolTerm,
    Quadratic,
    Term,
    pool_terms,
)
from edokit.objective.settings import CE, Diversity, Pool, Settings
from edokit.objective.summaries import Problem


class JointObjective:
    """The joint loss of a problem; ``terms`` take the place of its own of the same names."""

    def __init__(
        self, problem: Problem, settings: Settings, terms: Mapping[str, Term] | None = None
    ) -> None:
        problem.check_scale(settings)
        self.problem, self.settings, self.members = problem, settings, problem.members
        given = dict(terms or {})
        ce = {} if settings.ce is CE.MEAN else {"ce_weight": Linear(problem.member_ce)}
        over_items = {
            name: OverItems.of(term, problem)
            for name, term in pool_terms(settings, steps=problem.steps).items()
            if name not in given
        }
        self.all_terms: dict[str, Term] = {
            "f1": Linear(-problem.hit_rates, 1.0),
            **ce,
            **over_items,
            **{name: Quadratic(matrix) for name, matrix in problem.matrices.items()},
            "reg": Quadratic(np.eye(problem.members)),
            **given,
        }
        weights = {name: settings.signed_weight(name) for name in self.all_terms}
        self._weights = {name: weight for name, weight in weights.items() if weight}

    @property
    def ce(self) -> Term:
        """The cross-entropy."""
        return self.all_terms["ce_weight"]

    @property
    def of_items(self) -> dict[str, OverItems | DataTerm]:
        """The terms that count and look at the items."""
        terms = ((name, self.all_terms[name]) for name in self._weights)
        return {name: term for name, term in terms if isinstance(term, OverItems | DataTerm)}

    def value(self, v: Floats) -> float:
        """The joint loss at v [K]."""
        return sum(
            weight * float(self.all_terms[n].value(v)) for n, weight in self._weights.items()
        )

    def slope(self, v: Floats) -> Floats:
        """Its gradient [K]."""
        return sum(self.slopes(v).values(), np.zeros(self.members))

    def slopes(self, v: Floats) -> dict[str, Floats]:
        """The gradient [K] of each term that counts, times its weight."""
        return {
            name: weight * self.all_terms[name].at(v)[1] for name, weight in self._weights.items()
        }

    def curvature(self, v: Floats, inside: Ints) -> tuple[Floats, Floats | None]:
        """Its Hessian among the members ``inside`` [k], which hold all weight: the convex part, and
        the diversity term where that is concave (else None): [k, k] each.
        """
        hessians = {
            name: weight * self.all_terms[name].hessian(v, inside)
            for name, weight in self._weights.items()
        }
        is_concave = self.settings.diversity is Diversity.SUPPRESS
        concave = hessians.pop("div", None) if is_concave else None
        return sum(hessians.values(), np.zeros((len(inside), len(inside)))), concave

    def terms(self, v: Floats) -> dict[str, float]:
        """The terms at v [K] before weighting, and the total; no ``div`` without distances."""
        terms = {name: float(term.value(v)) for name, term in self.all_terms.items()}
        values = {"f1": terms.pop("f1"), "ce": terms.pop("ce_weight"), **terms}
        return {**values, "total": self.value(v)}


class DataTerm(Term):
    """A pool term of all items, in passes over the data.

    One pass gives value, gradient and Hessian; what is known of some weights is not asked again.
    """

    def __init__(
        self, data: FitData, members: Ints, term: PoolTerm, at_vertices: Floats | None = None
    ) -> None:
        """Of these members (positions), in this order; ``at_vertices`` [k] of each alone."""
        self._data, self._members, self.term = data, members, term
        self._at_vertices = at_vertices
        self._known: dict[bytes, Curvature] = {}

    def value(self, v: Floats) -> float:
        vertex = np.flatnonzero(v == 1.0)
        if len(vertex) and self._at_vertices is not None:
            return float(self._at_vertices[vertex[0]])
        return float(self.at(v)[0])

    def at(self, v: Floats) -> tuple[float, Floats]:
        at = self._at(v)
        return float(at.value) / at.items, np.asarray(at.gradient / at.items)

    def hessian(self, v: Floats, inside: Ints) -> Floats:
        at = self._at(v)
        return np.asarray(at.hessian[np.ix_(inside, inside)] / at.items)

    def look_at(self, weightings: Sequence[Floats]) -> None:
        """Know these weights [T, K] after one pass."""
        new = [v for v in weightings if v.tobytes() not in self._known]
        if new:
            curvatures = self._data.curvatures(np.array(new), self._members, self.term)
            self._known |= {v.tobytes(): at for v, at in zip(new, curvatures, strict=True)}

    def _at(self, v: Floats) -> Curvature:
        self.look_at([v])
        return self._known[v.tobytes()]


def data_terms(data: FitData, settings: Settings, members: Ints) -> dict[str, DataTerm]:
    """The terms of these settings that look at the items, each in passes over all of them."""
    sums, steps = data.summaries(), data.scale.steps
    alpha = sums.class_weights(data.row_classes) if settings.class_weights else None
    terms = pool_terms(settings, alpha, steps)
    # A single member's linear pool is the member itself.
    alone = sums.select(members).member_ce(settings.class_weights)
    known = {"ce_weight": alone} if settings.pool is Pool.LINEAR else {}
    return {name: DataTerm(data, members, terms[name], known.get(name)) for name in terms}
