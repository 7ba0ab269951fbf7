"""Cost against loss: what an ensemble loses without some members, its weights solved again."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edokit._errors import InputError, counted, examples, money, option
from edokit._types import Floats, Ints
from edokit.ensemble._fit import pooled_rows, temperature_after
from edokit.ensemble.answers import FOLDS, MAX_ITEMS
from edokit.ensemble.fitted import CLEARLY, Fitted, costs_in_words
from edokit.fitdata.data import FitData
from edokit.metrics import METRIC, headline_metric, item_values
from edokit.objective.settings import Regularize
from edokit.predictions.core import SOURCES
from edokit.rows import Rows
from edokit.solvers.exact import SMALLEST_WEIGHT, solve_exact

# Differences that rounding alone may make.
_ROUNDING = 1e-9
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
            return "better" if high < -_ROUNDING else "free"
        return "worse" if low > 0 else "unclear"


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

    def saved(self, reduced: Reduced) -> float | None:
        """What one item costs less than with the whole ensemble; None where that is unknown."""
        if reduced.cost is None or self.whole.cost is None:
            return None
        return self.whole.cost - reduced.cost

    @property
    def summary(self) -> list[str]:
        """In sentences: what the ensemble costs, and how much cheaper it gets for how much loss."""
        short, whole = METRIC[self.metric].short, self.whole
        costs = costs_in_words(whole.cost, self.all_cost, len(whole.members), self.unit)
        source = "held out, five folds"
        if not self.held_out:
            source = "in-sample, optimistic: too few to hold out"
        lines = [] if costs is None else [costs]
        lines.append(
            f"{short} {whole.loss:.4f} ({source}, {counted(self.items, 'item')}); intervals of"
            " differences are 95%, paired by item."
        )
        cheaper = self.path[1:]
        as_good = [reduced for reduced in cheaper if reduced.verdict in ("free", "better")]
        unclear = [reduced for reduced in cheaper if reduced.verdict == "unclear"]
        # Of those as good the cheapest, else the one that can be least worse.
        if as_good:
            best = min(as_good, key=lambda reduced: (reduced.cost or 0.0, len(reduced.members)))
            words = f"As good within {FREE:.0%}, interval included"
        elif unclear:
            best = min(unclear, key=lambda reduced: reduced.interval[1])
            words = "Not clearly worse, but not shown to be as good"
        else:
            worse = "Every cheaper ensemble on the path is clearly worse."
            return [*lines, worse] if cheaper else lines
        size = counted(len(best.members), self.unit)
        if best.cost is not None and whole.cost:
            saving = 1 - best.cost / whole.cost
            size += f" at {money(best.cost)} per item ({saving:.0%} less)"
        return [*lines, f"{words}: {size}, Δ{short} {signed(best)}."]


VERDICTS = {
    "worse": "clearly worse",
    "better": "better",
    "free": "free to drop",
    "unclear": "unclear",
}


def signed(reduced: Reduced) -> str:
    """A difference with its interval: ``+0.0012 ± 0.0008``."""
    return f"{reduced.difference:+.4f} ± {CLEARLY * reduced.error:.4f}".replace("-", "−")


def earned(fitted: Fitted) -> dict[str, list[dict[str, Any]]]:
    """What each model, prompt and persona earns: its members' weights and costs, by kind and value.

    Values with the largest weight first; ``cost`` is of one item with the members that have weight,
    ``all_cost`` with all members.
    """
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for kind in SOURCES:
        values = [fitted.member_info.get(name, {}).get(kind) for name in fitted.members]
        if set(values) == {None}:
            continue
        rows = []
        for value in dict.fromkeys(values):
            members = [k for k, member_value in enumerate(values) if member_value == value]
            heavy = [k for k in members if fitted.weights[k] >= SMALLEST_WEIGHT]
            rows.append(
                {
                    "value": None if value is None else str(value),
                    "members": len(members),
                    "with_weight": len(heavy),
                    "weight": float(fitted.weights[members].sum()),
                    "cost": fitted.cost([fitted.members[k] for k in heavy]),
                    "all_cost": fitted.cost([fitted.members[k] for k in members]),
                }
            )
        by_kind[kind] = sorted(rows, key=lambda row: -row["weight"])
    return by_kind


def trade_off(fitted: Fitted, data: FitData) -> TradeOff:
    """What the ensemble loses without some of its members, on the data that it was fitted on."""
    if missing := [name for name in fitted.members if name not in data.members]:
        raise InputError(
            f"the {option('predictions')} lack {counted(len(missing), 'member')} of the ensemble:"
            f" {examples(missing)}",
            "give what the ensemble was fitted on",
        )
    search = _Search(fitted, data)
    weights, whole, losses = search.without(())
    heaviest = search.heavy(weights) if len(search.names) > 1 else []
    drops = [search.without((k,), losses)[1] for k in heaviest]
    path, dropped = [whole], tuple[int, ...]()
    while (member := search.next_to_drop(weights)) is not None:
        dropped = (*dropped, member)
        weights, reduced, _ = search.without(dropped, losses)
        path.append(reduced)
    return TradeOff(
        search.metric,
        search.units.items,
        search.held_out,
        fitted.cost(fitted.members),
        "member" if fitted.groups is None else "group",
        whole,
        tuple(drops),
        tuple(path),
    )


class _Search:
    """Ensembles without some members, each solved again and evaluated on held-out folds."""

    def __init__(self, fitted: Fitted, data: FitData) -> None:
        self.fitted, self.options = fitted, fitted.options
        settings = replace(self.options.settings, regularize=Regularize.EFFECTIVE)
        penalties = [fit.lambda_reg for fit in (fitted.label_fits or {}).values()]
        self.settings = [replace(settings, reg=reg) for reg in penalties or [settings.reg]]
        self.names, _ = fitted.unit_weights
        unit_of = list(zip(fitted.groups or fitted.members, fitted.members, strict=True))
        self.costs = [
            fitted.cost([name for group, name in unit_of if group == unit]) for unit in self.names
        ]
        units = (data if fitted.groups is None else data.grouped()).draw(MAX_ITEMS)
        self.units = units.select([units.members.index(name) for name in self.names])
        self.held_out = self.units.items >= 2 * FOLDS
        self.folds = [(self.units, self.units)]
        if self.held_out:
            self.folds = list(self.units.folds(FOLDS, self.options.random_state))
        self.metric = headline_metric(data.scale)
        self.item_losses = item_values(data.scale)[self.metric]
        # Rows of pairs belong to items.
        rows = [fold.rows for _, fold in self.folds if fold.rows is not None]
        self.owners = Rows.concatenate(rows).clusters if rows else None

    def without(
        self, dropped: tuple[int, ...], whole: Floats | None = None
    ) -> tuple[Floats, Reduced, Floats]:
        """Weights [K], the ensemble, and its losses by item; ``whole`` are those of all members."""
        competing = [k for k in range(len(self.names)) if k not in dropped]
        weights = np.zeros(len(self.names))
        weights[competing] = self.solve(self.units.select(competing)).mean(axis=0)
        losses = []
        for train, fold in self.folds:
            part = train.select(competing)
            pool_weights = self.solve(part)
            temperature = temperature_after(part, pool_weights, self.options)
            P = fold.select(competing).sample.P
            rows = pooled_rows(P, pool_weights, self.options.pool, temperature)
            losses.append(self.item_losses(*fold.per_item(rows)))
        by_item = np.concatenate(losses)
        differences = by_item - (by_item if whole is None else whole)
        heavy = self.heavy(weights)
        costs: list[Any] = [self.costs[k] for k in heavy]
        reduced = Reduced(
            tuple(self.names[k] for k in dropped),
            tuple(self.names[k] for k in heavy),
            None if None in costs else math.fsum(costs),
            float(by_item.mean()),
            float(differences.mean()),
            _error(differences, self.owners),
        )
        return weights, reduced, by_item

    def heavy(self, weights: Floats) -> list[int]:
        """Positions of those with weight, the heaviest first."""
        order = np.argsort(-weights, kind="stable").tolist()
        return [k for k in order if weights[k] >= SMALLEST_WEIGHT]

    def solve(self, data: FitData) -> Floats:
        """[L, K] the optimum of the fit's objective: one for all labels, or one for each."""
        parts = [data] if self.fitted.label_fits is None else data.per_label()
        order, limit = self.options.solver.order, self.options.solver.max_members
        solutions = [
            solve_exact(part, settings, order=order, max_members=limit, all_terms=False)
            for part, settings in zip(parts, self.settings, strict=True)
        ]
        return np.array([solution.weights for solution in solutions])

    def next_to_drop(self, weights: Floats) -> int | None:
        """The member whose weight brings least for its cost; None at the end.

        Where costs are unknown or nothing, all members cost the same. Without it the others'
        weights are renormalised, which is enough to rank them.
        """
        heavy = np.flatnonzero(weights >= SMALLEST_WEIGHT)
        costs = np.array([cost or 0.0 for cost in self.costs])
        prices = costs if None not in self.costs and costs.any() else np.ones(len(weights))
        paid = heavy[prices[heavy] > 0]
        if len(heavy) < 2 or not len(paid):
            return None
        candidates = np.tile(weights, (len(paid) + 1, 1))
        candidates[np.arange(len(paid)), paid] = 0.0
        candidates /= candidates.sum(axis=1, keepdims=True)
        scores = self.units.evaluate(candidates, self.options.pool)
        losses = np.array([score[self.metric] for score in scores], dtype=np.float64)
        # Of members that hardly matter, whichever they are, the dearest goes.
        rise = np.maximum(losses[:-1] - losses[-1], 0.0) + _HARDLY * losses[-1]
        return int(paid[np.argmin(rise / prices[paid])])


def _error(differences: Floats, owners: Ints | None) -> float:
    """The standard error of the mean; rows of the same item are one observation."""
    centred = differences - differences.mean()
    sums = centred if owners is None else np.bincount(owners, centred)
    correction = len(sums) / max(len(sums) - 1, 1)
    return float(np.sqrt(correction * np.square(sums).sum()) / len(differences))
