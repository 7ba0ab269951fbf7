"""Terms that look at all items, in passes over the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edokit._types import Floats, Ints
from edokit.fitdata import FitData
from edokit.objective.loss import Curvature, ItemTerm, PoolTerm, pool_terms
from edokit.objective.settings import Pool, Settings


class DataTerm(ItemTerm):
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
    alone = sums.select(members).member_ce(alpha)
    known = {"ce_weight": alone} if settings.pool is Pool.LINEAR else {}
    return {name: DataTerm(data, members, terms[name], known.get(name)) for name in terms}
