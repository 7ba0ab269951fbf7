"""Cost against loss: what an ensemble loses without some members, its weights solved again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from edokit._errors import InputError, counted, examples, money
from edokit._types import Floats, Ints
from edokit.ensemble._fit import pooled_rows
from edokit.ensemble.fitted import CLEARLY, ZERO, Fitted, costs_in_words
from edokit.ensemble.options import PER_LABEL, objective_from_flat
from edokit.fitdata import FitData
from edokit.fitdata.data import owner_codes
from edokit.metrics import METRIC, headline_metric
from edokit.metrics.compute import item_values
from edokit.objective import Regularize, Settings, fit_temperature
from edokit.predictions.core import SOURCES
from edokit.solvers import solve_exact

FOLDS = 5
ITEMS = 5000
"""Losses are estimated on so many items at most."""
FREE = 0.01
"""A member is free to drop if the loss grows by at most this share of it, interval included."""
_HARDLY = 0.001
"""Smaller shares of the loss do not rank members."""


@dataclass(frozen=True)
class Reduced:
    """An ensemble without some members, its weights solved again."""

    dropped: tuple[str, ...]
    """Members (or groups) that it may not use, in the order in which they were dropped."""
    members: tuple[str, ...]
    """Members (or groups) that carry weight."""
    cost: float | None
    """Of one item: the sum over the members with weight; None if some cost is unknown."""
    loss: float
    """Mean over items of the metric of `TradeOff.metric`."""
    difference: float = 0.0
    """Its loss less that of the whole ensemble, mean over items."""
    error: float = 0.0
    """Standard error of this difference, paired by item."""

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the 95 % interval of the difference."""
        return self.difference - CLEARLY * self.error, self.difference + CLEARLY * self.error

    @property
    def verdict(self) -> str:
        """``worse``, ``better``, ``free`` (worse by 1 % of the loss at most) or ``unclear``."""
        low, high = self.interval
        if high <= FREE * (self.loss - self.difference):
            return "better" if high < 0 else "free"
        return "worse" if low > 0 else "unclear"

    def to_dict(self) -> dict[str, Any]:
        """Everything ready for JSON."""
        return {**asdict(self), "interval": list(self.interval), "verdict": self.verdict}


@dataclass(frozen=True)
class TradeOff:
    """What cheaper ensembles lose: the result of `EDOEnsemble.trade_off`.

    Each ensemble is solved again, exactly, with the objective of the fit. Losses are held out: each
    item's is that of weights that were learned without its fold.
    """

    metric: str
    """Of the losses: ``ce``, on an ordinal scale ``rps``; lower is better."""
    items: int
    """Items that the losses are means over."""
    held_out: bool
    """Whether they are held out; with few items they are in-sample, and optimistic."""
    all_cost: float | None
    """What one item costs if all members are asked."""
    unit: str
    """``member``, or ``group`` where weights were learned between groups."""
    whole: Reduced
    """The ensemble with all members to choose from."""
    drops: tuple[Reduced, ...]
    """The ensemble without each of its members, the heaviest first."""
    path: tuple[Reduced, ...]
    """From the whole ensemble to one member: at each step the one goes that costs most for what it
    brings."""

    def to_dict(self) -> dict[str, Any]:
        """Everything ready for JSON."""
        rows = {name: [one.to_dict() for one in getattr(self, name)] for name in ("drops", "path")}
        return {**asdict(self), "whole": self.whole.to_dict(), **rows}

    def saved(self, one: Reduced) -> float | None:
        """What one item costs less than with the whole ensemble; None where that is unknown."""
        if one.cost is None or self.whole.cost is None:
            return None
        return self.whole.cost - one.cost

    @property
    def summary(self) -> list[str]:
        """In sentences: what the ensemble costs, and how much cheaper it gets for how much loss."""
        short, whole = METRIC[self.metric].short, self.whole
        costs = costs_in_words(whole.cost, self.all_cost, len(whole.members), self.unit)
        lines = [] if costs is None else [costs]
        how = (
            "held out, five folds"
            if self.held_out
            else "in-sample, optimistic: too few to hold out"
        )
        lines.append(
            f"{short} {whole.loss:.4f} ({how}, {counted(self.items, 'item')}); intervals of"
            " differences are 95%, paired by item."
        )
        free = [one for one in self.path[1:] if one.verdict in ("free", "better")]
        unclear = [one for one in self.path[1:] if one.verdict == "unclear"]
        # Of those as good the cheapest, else the one that can be least worse.
        if free:
            one = min(free, key=lambda one: (one.cost or 0.0, len(one.members)))
            words = f"As good within {FREE:.0%}, interval included"
        elif unclear:
            one = min(unclear, key=lambda one: one.interval[1])
            words = "Not clearly worse, but not shown to be as good"
        else:
            if len(self.path) > 1:
                lines.append("Every cheaper ensemble on the path is clearly worse.")
            return lines
        shown = counted(len(one.members), self.unit)
        if one.cost is not None and whole.cost:
            less = 1 - one.cost / whole.cost
            shown += f" at {money(one.cost)} per item ({less:.0%} less)"
        return [*lines, f"{words}: {shown}, Δ{short} {signed(one)}."]


VERDICTS = {
    "worse": "clearly worse",
    "better": "better",
    "free": "free to drop",
    "unclear": "unclear",
}


def signed(one: Reduced) -> str:
    """A difference with its interval: ``+0.0012 ± 0.0008``."""
    return f"{one.difference:+.4f} ± {CLEARLY * one.error:.4f}".replace("-", "−")


def earned(fitted: Fitted) -> dict[str, list[dict[str, Any]]]:
    """What each model, prompt and persona earns: its members' weights and costs, by kind and value.

    Values with the largest weight first; ``cost`` is of one item with the members that have weight,
    ``all_cost`` with all members.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for kind in SOURCES:
        values = [fitted.member_info.get(name, {}).get(kind) for name in fitted.members]
        if set(values) == {None}:
            continue
        rows = []
        for value in dict.fromkeys(values):
            own = [k for k, other in enumerate(values) if other == value]
            heavy = [k for k in own if fitted.weights[k] > ZERO]
            rows.append(
                {
                    "value": None if value is None else str(value),
                    "members": len(own),
                    "with_weight": len(heavy),
                    "weight": float(fitted.weights[own].sum()),
                    "cost": fitted.cost([fitted.members[k] for k in heavy]),
                    "all_cost": fitted.cost([fitted.members[k] for k in own]),
                }
            )
        found[kind] = sorted(rows, key=lambda row: -row["weight"])
    return found


def trade_off(fitted: Fitted, data: FitData) -> TradeOff:
    """What the ensemble loses without some of its members, on the data that it was fitted on."""
    if missing := [name for name in fitted.members if name not in data.members]:
        raise InputError(
            f"the predictions lack {counted(len(missing), 'member')} of the ensemble:"
            f" {examples(missing)}",
            "give what the ensemble was fitted on",
            parameters=("predictions",),
        )
    names, _ = fitted.unit_weights
    own_units = fitted.members if fitted.group_weights is None else fitted.groups or ()
    of_unit = dict(zip(fitted.members, own_units, strict=True))
    costs = {
        unit: fitted.cost([name for name, own in of_unit.items() if own == unit]) for unit in names
    }
    units = (data if fitted.group_weights is None else data.grouped()).draw(ITEMS)
    units = units.select([units.members.index(name) for name in names])
    held_out = units.items >= 2 * FOLDS
    seed = int(fitted.settings.get("random_state") or 0)
    folds = units.folds(FOLDS, seed) if held_out else [(units, units)]
    solve = _solver(fitted)
    metric = headline_metric(data.scale)
    value = item_values(data.scale)[metric]
    owner = _owners([fold for _, fold in folds])

    def without(dropped: tuple[int, ...]) -> tuple[Floats, Reduced, Floats]:
        """Weights [K], the ensemble, and its loss item by item."""
        kept = [k for k in range(len(names)) if k not in dropped]
        weights = np.zeros(len(names))
        weights[kept] = solve(units.select(kept))[0]
        losses = []
        for rest, fold in folds:
            each, temperature = solve(rest.select(kept))[1:]
            rows = pooled_rows(fold.select(kept).sample.P, each, fitted.pool, temperature)
            losses.append(value(*fold.per_item(rows)))
        every = np.concatenate(losses)
        heavy = tuple(names[k] for k in np.argsort(-weights, kind="stable") if weights[k] > ZERO)
        each_cost = [costs[name] for name in heavy]
        cost = None if None in each_cost else math.fsum(each_cost)  # type: ignore[arg-type]
        one = Reduced(tuple(names[k] for k in dropped), heavy, cost, float(every.mean()))
        return weights, one, every

    weights, whole, base = without(())

    def compared(one: Reduced, every: Floats) -> Reduced:
        apart = every - base
        return replace(one, difference=float(apart.mean()), error=_error(apart, owner))

    drops = []
    if len(names) > 1:
        for k in np.argsort(-weights, kind="stable"):
            if weights[k] > ZERO:
                _, one, every = without((int(k),))
                drops.append(compared(one, every))
    path, dropped, now = [whole], tuple[int, ...](), weights
    while (
        next_one := _next(units, now, [costs[n] for n in names], fitted.pool, metric)
    ) is not None:
        dropped = (*dropped, next_one)
        now, one, every = without(dropped)
        path.append(compared(one, every))
    return TradeOff(
        metric,
        units.items,
        held_out,
        fitted.cost(fitted.members),
        "member" if fitted.group_weights is None else "group",
        whole,
        tuple(drops),
        tuple(path),
    )


def _solver(fitted: Fitted) -> Callable[[FitData], tuple[Floats, Floats, float]]:
    """Solves the fit's objective: weights [K], those to pool with ([K], or [L, K]), temperature."""
    chosen = fitted.settings
    objective = replace(objective_from_flat(chosen), regularize=Regularize.EFFECTIVE)
    settings = Settings.of(objective, fitted.pool)
    by_label = fitted.label_fits if chosen.get("label_weights") == PER_LABEL else None
    order, most = chosen.get("order") or "ce", chosen.get("max_members")

    def solved(part: FitData, penalty: float) -> Floats:
        own = replace(settings, reg=penalty)
        return solve_exact(part, own, order=order, max_members=most, all_terms=False).weights

    def solve(data: FitData) -> tuple[Floats, Floats, float]:
        if by_label is None:
            weights = solved(data, settings.reg)
        else:
            fits = zip(data.per_label(), by_label.values(), strict=True)
            weights = np.array([solved(part, fit.lambda_reg) for part, fit in fits])
        temperature = 1.0
        if chosen.get("recalibrate") is not None:
            sample = data.sample
            rows = pooled_rows(sample.P, weights, fitted.pool, 1.0)
            temperature = fit_temperature(rows, sample.q)
        return weights if weights.ndim == 1 else weights.mean(axis=0), weights, temperature

    return solve


def _next(
    units: FitData, weights: Floats, costs: Sequence[float | None], pool: str, metric: str
) -> int | None:
    """The member to drop next: that whose weight brings least for its cost; None at the end.

    Where costs are unknown or nothing, all members cost the same. Without it the others' weights
    are renormalised, which is enough to rank them.
    """
    heavy = np.flatnonzero(weights > ZERO)
    known = np.array([costs[k] or 0.0 for k in range(len(weights))])
    price = known if None not in costs and known.any() else np.ones(len(weights))
    paid = heavy[price[heavy] > 0]
    if len(heavy) < 2 or not len(paid):
        return None
    each = np.tile(weights, (len(paid) + 1, 1))
    each[np.arange(len(paid)), paid] = 0.0
    each /= each.sum(axis=1, keepdims=True)
    losses = [float(one[metric]) for one in units.evaluate(each, pool)]  # type: ignore[arg-type]
    # Of members that hardly matter, whichever they are, the dearest goes.
    rise = np.maximum(np.array(losses[:-1]) - losses[-1], 0.0) + _HARDLY * losses[-1]
    return int(paid[np.argmin(rise / price[paid])])


def _owners(folds: Sequence[FitData]) -> Ints | None:
    """The item of each row, where rows are pairs of an item and an annotator."""
    ids = [fold.item_ids for fold in folds]
    return None if any(one is None for one in ids) else owner_codes(np.concatenate(ids))  # type: ignore[arg-type]


def _error(apart: Floats, owner: Ints | None) -> float:
    """The standard error of the mean; rows of the same item are one observation."""
    centred = apart - apart.mean()
    sums = centred if owner is None else np.bincount(owner, centred)
    few = len(sums) / max(len(sums) - 1, 1)
    return float(np.sqrt(few * np.square(sums).sum()) / len(apart))
