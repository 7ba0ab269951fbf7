"""Problems for the tests of the metrics: predictions p, soft labels q, hard labels y."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

Array = npt.NDArray[np.float64]


class Problem(NamedTuple):
    p: Array
    q: Array
    y: npt.NDArray[np.int64]


def normalized(rows: Array) -> Array:
    """Rows that sum to 1; a row of zeros becomes uniform."""
    total = rows.sum(axis=1, keepdims=True)
    return np.where(total > 0, rows / np.where(total > 0, total, 1), 1 / rows.shape[1])


@st.composite
def simplices(draw: st.DrawFn, items: int, classes: int) -> Array:
    """Either shares of a few votes (zeros and ties abound) or arbitrary probabilities."""
    votes = st.integers(0, 6).map(float)
    reals = st.floats(0, 1, allow_subnormal=False)
    elements = draw(st.sampled_from([votes, reals]))
    return normalized(draw(hnp.arrays(np.float64, (items, classes), elements=elements)))


@st.composite
def problems(draw: st.DrawFn, min_items: int = 1) -> Problem:
    """Up to 12 items and 11 classes; y need not be the majority."""
    items = draw(st.integers(min_items, 12))
    classes = draw(st.integers(2, 11))
    y = draw(hnp.arrays(np.int64, items, elements=st.integers(0, classes - 1)))
    return Problem(draw(simplices(items, classes)), draw(simplices(items, classes)), y)


def simulated(items: int, classes: int, seed: int = 0, annotators: int = 5) -> Problem:
    """Predictions that are sharper than the truth, and noisy; soft labels of five people."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(classes), items)
    p = normalized(truth**1.4 * np.exp(rng.normal(scale=0.3, size=truth.shape)))
    q = rng.multinomial(annotators, truth) / annotators
    return Problem(p, q, q.argmax(axis=1))
