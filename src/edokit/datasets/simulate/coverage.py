"""Who answers which item, and the thresholds that give the asked-for class balance."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from edokit._types import Floats
from edokit.datasets.simulate.people import reaches

Chosen = npt.NDArray[np.int64]

_BLOCK = 2048


def choose_annotators(
    rng: np.random.Generator, n: int, per_item: Mapping[int, float], activity: Floats
) -> Chosen:
    """Annotators of each item, the active ones more often: [N, most per item], -1 fills up."""
    sizes = np.array(sorted(per_item))
    shares = np.array([per_item[int(size)] for size in sizes])
    limits = np.cumsum(shares / shares.sum())[:-1]
    most = int(sizes[-1])
    chosen = np.empty((n, most), dtype=np.int64)
    for start in range(0, n, _BLOCK):
        u = np.clip(rng.random((min(_BLOCK, n - start), len(activity) + 1)), 1e-300, None)
        count = sizes[np.sum(u[:, :1] >= limits, axis=1)]
        # The largest keys (log activity plus Gumbel noise) are a draw without replacement.
        keys = np.log(activity) - np.log(-np.log(u[:, 1:]))
        top = np.argsort(-keys, axis=1)[:, :most]
        # Sorting by name hides who came first; empty places go to the end.
        top[np.arange(most) >= count[:, None]] = len(activity)
        top.sort(axis=1)
        chosen[start : start + len(u)] = np.where(top == len(activity), -1, top)
    return chosen


def give_everyone_work(rng: np.random.Generator, chosen: Chosen, annotators: int) -> None:
    """Lets annotators without an item take over one from a busier colleague, in place."""
    work = np.bincount(chosen[chosen >= 0], minlength=annotators)
    rows = iter(rng.random(len(chosen)).argsort().tolist())
    for idle in np.flatnonzero(work == 0).tolist():
        for row in rows:
            busiest = int(np.argmax(np.where(chosen[row] >= 0, work[chosen[row]], -1)))
            if work[chosen[row, busiest]] > 1:
                work[chosen[row, busiest]] -= 1
                work[idle] = 1
                chosen[row, busiest] = idle
                present = np.sort(chosen[row][chosen[row] >= 0])
                chosen[row, : len(present)] = present
                break


def solve_thresholds(
    scores: Floats, noise: Floats, chosen: Chosen, balance: tuple[float, ...]
) -> Floats:
    """Rising thresholds [C - 1] at which the items' middle answers are expected in balance.

    scores [N, A] and noise [A] are those of the annotators; chosen says who answers.
    """
    answers = chosen >= 0
    score = np.take_along_axis(scores, np.where(answers, chosen, 0), axis=1)
    waver = noise[chosen]
    reach = float(np.max(np.abs(score))) + 50.0 * float(noise.max()) + 1.0

    def surplus(threshold: float, wanted: float) -> float:
        chance = np.where(answers, reaches(score, waver, threshold), 0.0)
        return _majority(chance, answers) - wanted

    above = 1.0 - np.cumsum(balance)[:-1]
    # Bracketing, since without noise the share is a staircase and has no slope.
    return np.array([brentq(surplus, -reach, reach, args=(share,)) for share in above])


def _majority(chance: Floats, answers: npt.NDArray[np.bool_]) -> float:
    """Expected share of items with more yes than no; a tie counts half."""
    n, most = chance.shape
    # votes[i, v]: probability of v yes among the answers seen so far (Poisson-binomial).
    votes = np.zeros((n, most + 1))
    votes[:, 0] = 1.0
    for k in range(most):
        yes = chance[:, k, None]
        votes[:, 1:] = votes[:, 1:] * (1.0 - yes) + votes[:, :-1] * yes
        votes[:, 0] *= 1.0 - chance[:, k]
    twice = 2 * np.arange(most + 1)
    total = answers.sum(axis=1)[:, None]
    wins = (twice > total) + 0.5 * (twice == total)
    return float(np.mean(np.sum(votes * wins, axis=1)))
