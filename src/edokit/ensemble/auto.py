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

from edokit._types import Floats, Ints, Strings
from edokit.fitdata import FitData
from edokit.metrics import ce_items
from edokit.objective import Pool, Settings, average_groups, fit_temperature, pool, sharpen
from edokit.solvers import solve_exact

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


def decide(data: FitData, chosen: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Put what suits the data into ``chosen``, and under ``considered`` what it was chosen from.

    ``given`` are the user's parameters; those that are not None are kept.
    """
    settings = Settings(**{name: chosen[name] for name in Settings.__dataclass_fields__})
    known = data.groups is not None or chosen["groups"]
    found = choose(
        *data.sample,
        data.member_groups() if known else None,
        settings,
        given,
        item_ids=data.item_ids,
        random_state=chosen["random_state"],
    )
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
    item_ids: Strings | None = None,
    random_state: int = 0,
) -> list[Candidate]:
    """All candidates, evaluated, the chosen one marked; ``settings`` are the default's.

    P [N, K, C], soft labels q [N, C], hard labels y [N], one group name per member. Unless
    ``given`` says, a temperature after pooling is tried on the pool that was chosen.
    """
    listed = candidates(groups, settings, given)
    keep = given.get("recalibrate")
    if keep is not None:
        listed = [replace(each, recalibrate=_wanted(keep)) for each in listed]
    folds = _folds(y, item_ids, random_state)
    if len(q) < FEW or not _usable([judge for _, judge in folds], y, settings):
        first, *rest = listed
        return [replace(first, chosen=True), *rest]
    cross = _CrossFit(P, q, y, groups, settings, folds)
    losses = [cross.losses(each) for each in listed]
    best = _settled(losses)
    if keep is None:
        # Whether a temperature helps is asked of the pool that was chosen.
        listed.append(replace(listed[best], recalibrate="temperature"))
        losses.append(cross.losses(listed[-1]))
        best = (best, -1)[_settled([losses[best], losses[-1]])]
    return _evaluated(listed, losses, listed[best])


def _folds(y: Ints, item_ids: Strings | None, random_state: int) -> list[tuple[Ints, Ints]]:
    """Positions to learn from and to evaluate on; at most `ITEMS` items in all."""
    positions = np.arange(len(y))
    if item_ids is not None and len(y) <= ITEMS:
        # By name, so that the order of the items does not matter.
        positions = np.argsort(item_ids.astype(str), kind="stable")
    shuffled = np.random.default_rng([random_state, 5]).permutation(len(y))[:ITEMS]
    parts = np.array_split(positions[shuffled], FOLDS)
    return [(np.concatenate(parts[:k] + parts[k + 1 :]), parts[k]) for k in range(FOLDS)]


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
        self._q, self._settings = q, settings
        units = {False: P}
        if groups is not None:
            units[True] = average_groups(P, groups)
        self._folds = {
            level: [
                (FitData.from_arrays(part[learn], q[learn], y[learn]), part[judge], q[judge])
                for learn, judge in folds
            ]
            for level, part in units.items()
        }
        self._weights: dict[tuple[Candidate, int], Floats] = {}

    def losses(self, candidate: Candidate) -> Floats:
        """Cross-entropy of each item whose fold was held out, fold by fold."""
        found = []
        for k, (learn, P, q) in enumerate(self._folds[candidate.groups]):
            v = self._solved(replace(candidate, recalibrate=None), k)
            pooled = np.asarray(pool(P, v, candidate.pool))
            if candidate.recalibrate is not None:
                own = np.asarray(pool(learn.sample.P, v, candidate.pool))
                pooled = sharpen(pooled, fit_temperature(own, learn.sample.q))
            found.append(ce_items(pooled, q))
        return np.concatenate(found)

    def _solved(self, candidate: Candidate, k: int) -> Floats:
        if (candidate, k) not in self._weights:
            settings = replace(
                self._settings, pool=Pool(candidate.pool), lambda_reg=candidate.lambda_reg
            )
            learn = self._folds[candidate.groups][k][0]
            solution = solve_exact(learn, settings, order="given", all_terms=False)
            self._weights[candidate, k] = solution.weights
        return self._weights[candidate, k]


def _settled(losses: list[Floats]) -> int:
    """The first, unless the lowest is lower by more than the noise."""
    lowest = int(np.argmin([loss.mean() for loss in losses]))
    above, error = _gap(losses[0], losses[lowest])
    return lowest if above > ERRORS * error + 1e-12 else 0


def _evaluated(listed: list[Candidate], losses: list[Floats], best: Candidate) -> list[Candidate]:
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
