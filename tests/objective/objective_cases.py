"""Random problems for the tests of the objective."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st


class Case(NamedTuple):
    """Predictions, labels and weights of a random problem."""

    P: np.ndarray  # [N, K, C]
    q: np.ndarray  # [N, C]
    y: np.ndarray  # [N]
    v: np.ndarray  # [K]
    rng: np.random.Generator


def make_case(
    items: int, members: int, classes: int, seed: int = 0, zeros: float = 0.0, annotators: int = 4
) -> Case:
    """Members of varied sharpness, labels of a few annotators; a share of exact zeros in P."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(classes), size=(items, members)) ** rng.uniform(0.5, 3, (members, 1))
    P[rng.random(P.shape) < zeros] = 0.0
    P[P.sum(axis=-1) == 0.0] = 1.0
    P /= P.sum(axis=-1, keepdims=True)
    q = rng.multinomial(annotators, rng.dirichlet(np.ones(classes), size=items)) / annotators
    v = rng.dirichlet(np.ones(members))
    v[rng.random(members) < zeros / 2] = 0.0
    if v.sum() == 0:
        v = np.ones(members)
    v = v / v.sum()
    return Case(P, q, q.argmax(axis=1), v, rng)


@st.composite
def cases(draw: st.DrawFn, zeros: bool = True) -> Case:
    """One item or a dozen, one member or six, two classes or eleven."""
    items = draw(st.integers(1, 12))
    members = draw(st.integers(1, 6))
    classes = draw(st.sampled_from([2, 3, 11]))
    seed = draw(st.integers(0, 10**6))
    share_of_zeros = 0.0
    if zeros:
        share_of_zeros = draw(st.sampled_from([0.0, 0.2]))
    annotators = draw(st.sampled_from([1, 3]))
    return make_case(items, members, classes, seed, share_of_zeros, annotators)
