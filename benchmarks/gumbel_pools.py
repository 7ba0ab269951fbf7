"""Pools of ten members on simulated people, for ``gumbel.py``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edokit.datasets.simulate.simulation import simulate
from edokit.objective.pools import softmax
from edokit.objective.summaries import Summaries, rank_members

KINDS = ("three of ten", "graded", "alike")
MEMBERS = 10


class Pool(NamedTuple):
    P: np.ndarray  # [N, K, C]
    q: np.ndarray  # [N, C]
    y: np.ndarray  # [N]


def make_pool(regime: str, kind: str, seed: int = 0) -> Pool:
    """The development items of a simulation, members in rank order (best first).

    ``three of ten``: three members near the truth, seven that know only the class shares.
    ``graded``: from nearly the truth to nearly noise. ``alike``: ten members that mostly err
    together, as those of one recipe do.
    """
    simulation = simulate(regime, random_state=seed)
    dev = simulation.annotations.split("dev")
    q = np.asarray(dev.soft_labels)
    y = np.asarray(dev.hard_labels())
    truth = simulation.truth[simulation.rows("dev")]
    rng = np.random.default_rng(seed)
    own_noise = rng.normal(size=(len(truth), MEMBERS, truth.shape[1]))
    shared_noise = rng.normal(size=(len(truth), 1, truth.shape[1]))
    log_truth = np.repeat(np.log(truth + 1e-3)[:, None], MEMBERS, axis=1)
    if kind == "three of ten":
        log_truth[:, 3:] = np.log(truth.mean(axis=0))
        errors = np.repeat([0.7, 1.0], [3, MEMBERS - 3])[:, None] * own_noise
    elif kind == "graded":
        errors = np.linspace(0.3, 3.0, MEMBERS)[:, None] * own_noise
    else:
        errors = 0.8 * shared_noise + 0.2 * own_noise
    P = softmax(log_truth + errors)
    return Pool(P[:, rank_members(Summaries.from_arrays(P, q, y))], q, y)
