"""Which kind of pool suits these members? Settled on the fit data by cross-fitting.

The default is left only for what is better on held-out items by more than the noise: the candidate
with the lowest held-out cross-entropy takes its place if the difference is above one standard
error. List and rule were chosen on simulated annotators and on held-out parts of development sets
(``benchmarks/auto.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from edokit._types import Floats, Ints, Strings
from edokit.ensemble._fit import objective_of
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
    known = data.groups is not None or chosen["groups"]
    found = choose(
        *data.sample,
        data.member_groups() if known else None,
        objective_of(chosen),
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
    levels = [(False, settings.lambda_reg), (True, _GROUPS), (False, _MEMBERS)]
    found = [
        Candidate(str(kind), level, penalty)
        for kind in Pool
        for level, penalty in levels
        if several or not level
    ]
    kept: dict[str, Any] = {
        name: given[name]
        for name in ("pool", "groups", "lambda_reg", "recalibrate")
        if given.get(name) is not None
    }
    if "pool" in kept:
        kept["pool"] = str(kept["pool"])
    if kept.get("recalibrate") == "none":
        kept["recalibrate"] = None
    return list(dict.fromkeys(replace(each, **kept) for each in found))


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
    positions = np.arange(len(y))
    if item_ids is not None and len(y) <= ITEMS:
        # By name, so that the order of the items does not matter.
        positions = np.argsort(item_ids.astype(str), kind="stable")
    shuffled = np.random.default_rng([random_state, 5]).permutation(len(y))[:ITEMS]
    parts = np.array_split(positions[shuffled], FOLDS)
    learned = [np.concatenate(parts[:k] + parts[k + 1 :]) for k in range(FOLDS)]
    classes = len(np.unique(y[positions[shuffled]]))
    # Class weights need every class in every part that is learned from.
    lacking = any(len(np.unique(y[part])) < classes for part in learned)
    if len(q) < FEW or (settings.class_weights and lacking):
        return [replace(each, chosen=each is listed[0]) for each in listed]

    units = {False: P} if groups is None else {False: P, True: average_groups(P, groups)}
    folds = {
        level: [
            (FitData.from_arrays(rows[learn], q[learn], y[learn]), rows[judge], q[judge])
            for learn, judge in zip(learned, parts, strict=True)
        ]
        for level, rows in units.items()
    }

    @cache
    def solve(kind: str, level: bool, penalty: float, fold: int) -> Floats:
        chosen = replace(settings, pool=Pool(kind), lambda_reg=penalty)
        data = folds[level][fold][0]
        return solve_exact(data, chosen, order="given", all_terms=False).weights

    def held_out(each: Candidate) -> Floats:
        """Cross-entropy of each item whose fold was held out, fold by fold."""
        found = []
        for k, (learn, rows, target) in enumerate(folds[each.groups]):
            v = solve(each.pool, each.groups, each.lambda_reg, k)
            pooled = np.asarray(pool(rows, v, each.pool))
            if each.recalibrate is not None:
                own = np.asarray(pool(learn.sample.P, v, each.pool))
                pooled = sharpen(pooled, fit_temperature(own, learn.sample.q))
            found.append(ce_items(pooled, target))
        return np.concatenate(found)

    losses = [held_out(each) for each in listed]
    best = _settled(losses)
    if given.get("recalibrate") is None:
        # Whether a temperature helps is asked of the pool that was chosen.
        listed.append(replace(listed[best], recalibrate="temperature"))
        losses.append(held_out(listed[-1]))
        best = (best, len(listed) - 1)[_settled([losses[best], losses[-1]])]
    lowest = min(losses, key=lambda loss: float(loss.mean()))
    found = []
    for k, (each, loss) in enumerate(zip(listed, losses, strict=True)):
        above, error = _gap(loss, lowest)
        mean = float(loss.mean())
        found.append(replace(each, ce=mean, above=above, error=error, chosen=k == best))
    return found


def _settled(losses: list[Floats]) -> int:
    """The first, unless the lowest is lower by more than the noise."""
    lowest = int(np.argmin([loss.mean() for loss in losses]))
    above, error = _gap(losses[0], losses[lowest])
    return lowest if above > ERRORS * error + 1e-12 else 0


def _gap(loss: Floats, lowest: Floats) -> tuple[float, float]:
    """Mean difference of two losses on the same items, and its standard error."""
    gaps = loss - lowest
    return float(gaps.mean()), float(gaps.std() / np.sqrt(len(gaps)))
