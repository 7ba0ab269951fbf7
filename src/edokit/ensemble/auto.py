"""Which kind of pool suits these members? Settled on the fit data by cross-fitting.

The default is left only for what is better on held-out items by more than the noise: the candidate
with the lowest held-out cross-entropy takes its place if the difference is above one standard
error. List and rule were chosen on simulated people and on held-out parts of development sets
(``benchmarks/auto.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._types import Floats
from edokit.ensemble.recalibrate import fit_temperature, sharpen
from edokit.metrics import ce_items
from edokit.objective import Pool, Problem, Settings, average_groups, pool
from edokit.solvers import solve_exact

Ints = npt.NDArray[Any]

FOLDS = 5
ITEMS = 5000
"""Choices are made on so many items at most, drawn at random."""
FEW = 2 * FOLDS
"""With fewer items nothing is chosen: the first candidate is taken."""
ERRORS = 1.0
"""Standard errors by which another candidate must be better than the first."""
# Weights of the squared norm: of members' weights besides the default's, and of groups' weights.
_MEMBERS, _GROUPS = 0.01, 0.01


@dataclass(frozen=True)
class Candidate:
    """One kind of pool, and how it does on items that it did not learn from."""

    pool: str
    groups: bool
    lambda_reg: float
    recalibrate: str | None = None
    ce: float | None = None
    """Held-out cross-entropy."""
    above: float | None = None
    """How far that is above the lowest of all candidates."""
    error: float | None = None
    """Standard error of this difference."""
    chosen: bool = False


def decide(
    chosen: dict[str, Any],
    given: Mapping[str, Any],
    P: Floats,
    q: Floats,
    y: Ints,
    groups: Sequence[str] | None,
    *,
    seed: int = 0,
) -> None:
    """Put what suits the data into ``chosen``, and under ``considered`` what it was chosen from."""
    fixed = Settings(**{name: chosen[name] for name in Settings.__dataclass_fields__})
    found = choose(P, q, y, groups, fixed, given, seed=seed)
    best = next(each for each in found if each.chosen)
    for name in ("pool", "groups", "lambda_reg", "recalibrate"):
        chosen[name] = getattr(best, name)
    chosen["considered"] = [asdict(each) for each in found]


def candidates(
    groups: Sequence[str] | None, settings: Settings, given: Mapping[str, Any]
) -> list[Candidate]:
    """What to choose among, the default first. A choice that was given (not None) is kept.

    Groups are averaged first only where there are several, and fewer than members.
    """
    several = groups is not None and 1 < len(set(groups)) < len(groups)
    pools = [str(kind) for kind in Pool]
    found = [
        Candidate(kind, level, penalty)
        for kind in pools
        for level, penalty in (
            (False, settings.lambda_reg),
            (True, _GROUPS),
            (False, _MEMBERS),
        )
        if several or not level
    ]
    for name in ("pool", "groups", "lambda_reg"):
        if given.get(name) is not None:
            kept: dict[str, Any] = {name: str(given[name]) if name == "pool" else given[name]}
            found = [replace(each, **kept) for each in found]
    return list(dict.fromkeys(found))


def choose(
    P: Floats,
    q: Floats,
    y: Ints,
    groups: Sequence[str] | None,
    settings: Settings,
    given: Mapping[str, Any],
    *,
    seed: int = 0,
) -> list[Candidate]:
    """All candidates, judged, the chosen one marked; ``settings`` are the default's.

    P [N, K, C], soft labels q [N, C], hard labels y [N], one group name per member. A temperature
    after pooling is tried on the pool that was chosen.
    """
    listed = candidates(groups, settings, given)
    rng = np.random.default_rng([seed, 5])
    rows = rng.permutation(len(q))[:ITEMS]
    parts = np.array_split(rows, FOLDS)
    keep = given.get("recalibrate")
    if len(q) < FEW or not _usable(parts, y, settings):
        first, *rest = listed
        return [replace(first, recalibrate=_wanted(keep), chosen=True), *rest]
    folds = [(np.concatenate(parts[:k] + parts[k + 1 :]), parts[k]) for k in range(FOLDS)]
    cross = _CrossFit(P, q, y, groups, settings, folds)
    losses = [cross.losses(each) for each in listed]
    best = _settled(losses)
    if keep is None:
        # Whether a temperature helps is asked of the pool that was chosen.
        listed.append(replace(listed[best], recalibrate="temperature"))
        losses.append(cross.losses(listed[-1]))
        best = (best, -1)[_settled([losses[best], losses[-1]])]
    else:
        listed[best] = replace(listed[best], recalibrate=_wanted(keep))
    return _told(listed, losses, listed[best])


class _CrossFit:
    """Held-out losses of candidates; what they share is computed once."""

    def __init__(
        self,
        P: Floats,
        q: Floats,
        y: Ints,
        groups: Sequence[str] | None,
        settings: Settings,
        folds: list[tuple[Ints, Ints]],
    ) -> None:
        self.q, self.y, self.settings, self.folds = q, y, settings, folds
        self.units = {False: P}
        if groups is not None:
            self.units[True] = average_groups(P, groups)
        self._problems: dict[tuple[str, bool, int], Problem] = {}
        self._weights: dict[tuple[Candidate, int], Floats] = {}

    def losses(self, candidate: Candidate) -> Floats:
        """Cross-entropy of each item whose fold was held out, fold by fold."""
        units = self.units[candidate.groups]
        found = []
        for k, (learn, judge) in enumerate(self.folds):
            v = self._solved(replace(candidate, recalibrate=None), k)
            pooled = pool(units[judge], v, candidate.pool)
            if candidate.recalibrate is not None:
                seen = pool(units[learn], v, candidate.pool)
                pooled = sharpen(pooled, fit_temperature(seen, self.q[learn]))
            found.append(ce_items(pooled, self.q[judge]))
        return np.concatenate(found)

    def _solved(self, candidate: Candidate, k: int) -> Floats:
        if (candidate, k) not in self._weights:
            chosen = {"pool": candidate.pool, "lambda_reg": candidate.lambda_reg}
            settings = Settings(**{**asdict(self.settings), **chosen})
            problem = self._problem(candidate, k, settings)
            self._weights[candidate, k] = solve_exact(problem, settings).weights
        return self._weights[candidate, k]

    def _problem(self, candidate: Candidate, k: int, settings: Settings) -> Problem:
        key = (candidate.pool, candidate.groups, k)
        if key not in self._problems:
            learn = self.folds[k][0]
            arrays = self.units[candidate.groups][learn], self.q[learn], self.y[learn]
            self._problems[key] = Problem.for_settings(*arrays, settings)
        return self._problems[key]


def _settled(losses: list[Floats]) -> int:
    """The first, unless the lowest is lower by more than the noise."""
    lowest = int(np.argmin([loss.mean() for loss in losses]))
    above, error = _gap(losses[0], losses[lowest])
    return lowest if above > ERRORS * error + 1e-12 else 0


def _told(listed: list[Candidate], losses: list[Floats], best: Candidate) -> list[Candidate]:
    """The candidates with what they reached on held-out items."""
    lowest = min(losses, key=lambda loss: float(loss.mean()))
    found = []
    for each, loss in zip(listed, losses, strict=True):
        above, error = _gap(loss, lowest)
        mean = float(loss.mean())
        found.append(replace(each, ce=mean, above=above, error=error, chosen=each is best))
    return found


def _gap(loss: Floats, lowest: Floats) -> tuple[float, float]:
    """Mean difference of two losses on the same items, and its standard error."""
    gaps = loss - lowest
    return float(gaps.mean()), float(gaps.std() / np.sqrt(len(gaps)))


def _usable(parts: Sequence[Ints], y: Ints, settings: Settings) -> bool:
    """Class weights need every class in every part that is learned from."""
    if not settings.class_weights:
        return True
    present = [set(y[part].tolist()) for part in parts]
    everything = set().union(*present)
    return all(
        set().union(*(present[:k] + present[k + 1 :])) == everything for k in range(len(present))
    )


def _wanted(recalibrate: str | None) -> str | None:
    return None if recalibrate == "none" else recalibrate
