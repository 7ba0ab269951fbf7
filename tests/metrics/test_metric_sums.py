"""Metrics add over shards."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit import Scale
from edokit.metrics import MetricSums, compute_metrics, metrics_of
from edokit.scales import NOMINAL

SCALES = [NOMINAL, Scale("ordinal", (0, 1, 4)), Scale("multi-label")]


@given(
    st.integers(1, 30),
    st.sampled_from([2, 3, 7]),
    st.sampled_from(SCALES),
    st.integers(0, 999),
    st.lists(st.integers(0, 30)),
)
def test_the_sum_over_any_partition_gives_the_metrics_of_the_whole(
    items: int, classes: int, scale: Scale, seed: int, cuts: list[int]
) -> None:
    classes = classes if scale.positions is None else len(scale.positions)
    rng = np.random.default_rng(seed)
    p, q = (rng.dirichlet(np.ones(classes), items) for _ in range(2))
    q = np.round(q * 3) / np.round(q * 3).sum(axis=1, keepdims=True)
    y = scale.hard(q)
    ends = sorted({min(cut, items) for cut in cuts} | {0, items})
    parts = [MetricSums.from_arrays(p[a:b], q[a:b], y[a:b], scale) for a, b in pairwise(ends)]
    wanted = compute_metrics(p, q, y, scale=scale)
    found = sum(parts[1:], parts[0]).values()
    assert list(found) == list(wanted) == list(metrics_of(scale))
    for name in ("entropy_correlation", "icm_soft"):  # no sums over shards
        assert found.pop(name, None) is None
        wanted.pop(name, None)
    assert found == pytest.approx(wanted, abs=1e-12)
