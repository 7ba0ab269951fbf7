"""Rank correlation of resampled items, without repeating them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import spearmanr

from edokit.metrics.formulas import RankCorrelation


@given(st.data(), st.integers(2, 15))
def test_counted_items_rank_like_repeated_items(data: st.DataObject, items: int) -> None:
    few = hnp.arrays(np.float64, items, elements=st.integers(0, 5).map(float))
    x = data.draw(few)
    y = data.draw(few)
    counts = data.draw(hnp.arrays(np.int64, items, elements=st.integers(0, 4)))
    again_x = np.repeat(x, counts)
    again_y = np.repeat(y, counts)
    assume(len(set(again_x)) > 1)
    assume(len(set(again_y)) > 1)
    (rho,) = RankCorrelation(x, y)(counts[None])
    assert rho == pytest.approx(spearmanr(again_x, again_y).statistic)


def test_each_row_of_counts_is_its_own_multiset() -> None:
    x = np.array([1.0, 2.0, 3.0])
    y = np.array([1.0, 3.0, 2.0])
    counts = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [3.0, 0.0, 0.0]])
    np.testing.assert_allclose(RankCorrelation(x, y)(counts), [1, -1, np.nan])


def test_a_constant_has_no_correlation() -> None:
    once = np.ones((1, 4))
    assert np.isnan(RankCorrelation(np.ones(4), np.arange(4.0))(once))
    assert RankCorrelation(np.arange(4.0), np.arange(4.0))(once) == 1
