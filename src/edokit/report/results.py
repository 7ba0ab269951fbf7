"""Results that a page shows: the trials of a search, and the table of methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from edokit._errors import InputError
from edokit._io import schema
from edokit._io.tables import read_table
from edokit.baselines.scores import Score
from edokit.metrics import METRIC, SEARCH_METRICS, PairedTest
from edokit.report.evaluation import ABOUT, Evaluation
from edokit.report.formatting import NONE, clean, interval, number, signed
from edokit.tuning import Correlation

_ABOUT = ABOUT | {
    "edo": "EDO, kind of pool selected on dev",
    "edo-paper": "EDO with the search of the paper",
}
# Columns of the table of trials that are not settings.
_OUTCOMES = {
    *("number", "generation", "slot", "size", "weights", "on_front", "chosen", "state", "failure"),
    *(*METRIC, *(f"{name}_se" for name in METRIC)),
}
_ESTIMATES = ("optimistic_", "cross_fitted_")
_REAL = schema.number(finite=False)
_SEARCH = schema.record(
    {},
    {
        "metrics": schema.listed(schema.choice(*METRIC), 3),
        "chosen": schema.record(
            {},
            {
                "rule": schema.text,
                "estimates": schema.mapping(
                    schema.optional(schema.record({}, dict.fromkeys(METRIC, _REAL), only=True))
                ),
                "weights": schema.mapping(_REAL),
            },
            only=True,
        ),
        "correlations": schema.listed(
            schema.record(
                {
                    **dict.fromkeys(("diversity", "parameter", "metric"), schema.text),
                    **dict.fromkeys(("rho", "p_value"), _REAL),
                    "trials": schema.number(0, whole=True),
                },
                only=True,
            )
        ),
    },
    only=True,
)
_ENDS = schema.listed(_REAL, 2)
_TESTS = schema.mapping(
    schema.instance(
        partial(PairedTest, p_value=math.nan, n=0),
        dict.fromkeys(("difference", "low", "high"), _REAL),
    )
)
_METHODS = schema.record(
    {
        "methods": schema.listed(
            schema.record(
                {"name": schema.text},
                {
                    "about": schema.text,
                    **dict.fromkeys(METRIC, _REAL),
                    "intervals": schema.mapping(_ENDS),
                    **dict.fromkeys(("against_reference", "against_constant"), _TESTS),
                },
                only=True,
            )
        )
    },
    {
        "samples": schema.number(0, whole=True),
        "level": schema.number(1e-6, 1 - 1e-6),
        "by": schema.listed(schema.text),
        "skipped": schema.listed(
            schema.record({}, {"name": schema.text, "reason": schema.text}, only=True)
        ),
    },
    only=True,
)
# Anyone may have written the files.
_DAMAGED = (AttributeError, KeyError, TypeError, ValueError, OverflowError)


@dataclass(frozen=True)
class Trial:
    """One configuration and its metrics."""

    number: int
    sign: str
    """``preserve`` or ``suppress``; empty if the trial has neither."""
    metrics: dict[str, float]
    """By name, in the order of `Search.metrics`."""
    on_front: bool
    chosen: bool
    settings: dict[str, str]
    """Every setting as text, size and generation included."""


@dataclass(frozen=True)
class Search:
    """The trials of a search, and how one of them was chosen."""

    trials: list[Trial]
    failed: int = 0
    """Trials without a result."""
    rule: str = ""
    """Of the choice."""
    metrics: tuple[str, ...] = SEARCH_METRICS
    """What it optimised: F1, the headline metric of the answer scale, and a distance."""
    estimates: dict[str, float] = field(default_factory=dict)
    """Headline metric of the chosen trial by kind of estimate."""
    weights: dict[str, float] = field(default_factory=dict)
    """Of the chosen trial, by member."""
    correlations: list[Correlation] = field(default_factory=list)

    @property
    def headline(self) -> str:
        """The metric by which the best trial comes first."""
        return self.metrics[1]

    @property
    def front(self) -> list[Trial]:
        """The trials that are not dominated."""
        return [trial for trial in self.trials if trial.on_front]

    @property
    def chosen(self) -> Trial | None:
        """The chosen trial."""
        return next((trial for trial in self.trials if trial.chosen), None)


def read_search(folder: Path) -> Search:
    """Read the folder ``search/`` of a run."""
    about, path = {}, folder / "search.json"
    if path.exists():
        about = schema.read_document(
            path, _SEARCH, "the result of a search", "run the search again"
        )
    return parse_search(read_table(folder / "trials.parquet").to_pylist(), about)


def parse_search(rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> Search:
    """The search with these rows of ``trials.parquet`` and this content of ``search.json``."""
    try:
        metrics = tuple(about.get("metrics") or SEARCH_METRICS)
        done = [row for row in rows if all(_finite(row[goal]) for goal in metrics)]
        chosen = about.get("chosen") or {}
        found = chosen.get("estimates") or {}
        estimates = {kind: (one or {}).get(metrics[1]) for kind, one in found.items()}
        return Search(
            sorted((_trial(row, metrics) for row in done), key=lambda trial: trial.number),
            len(rows) - len(done),
            str(chosen.get("rule")),
            metrics,
            {kind: float(value) for kind, value in estimates.items() if value is not None},
            {name: float(weight) for name, weight in (chosen.get("weights") or {}).items()},
            [Correlation(**one) for one in about.get("correlations") or []],
        )
    except _DAMAGED as error:
        raise InputError(
            f"trials.parquet or search.json is damaged ({error!r})", "run the search again"
        ) from error


def _trial(row: Mapping[str, Any], metrics: Sequence[str]) -> Trial:
    settings = {
        name: f"{value:.4g}" if isinstance(value, float) else str(value)
        for name, value in row.items()
        if value is not None and name not in _OUTCOMES and not name.startswith(_ESTIMATES)
    }
    last = {name: str(row[name]) for name in ("size", "generation") if row.get(name) is not None}
    sign = str(row.get("diversity"))
    return Trial(
        number=int(row["number"]),
        sign=sign if sign in ("preserve", "suppress") else "",
        metrics={metric: float(row[metric]) for metric in metrics},
        on_front=bool(row.get("on_front")),
        chosen=bool(row.get("chosen")),
        settings=settings | last,
    )


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True)
class Comparison:
    """The content of ``compare/methods.json``."""

    scores: list[Score]
    skipped: list[str]
    """Methods that could not be fitted, each with its reason."""
    samples: int | None
    level: float
    """Of the intervals."""
    by: list[str] = field(default_factory=list)
    """Item columns that it was sliced by."""


def read_comparison(path: Path) -> Comparison:
    """Read ``compare/methods.json``."""
    what = "the result of a comparison"
    content = schema.read_document(path, _METHODS, what, "run the comparison again")
    skipped = [
        f"{clean(row.get('name'), 60)}: {clean(row.get('reason'), 300)}"
        for row in content.get("skipped") or []
    ]
    scores = [_score(row) for row in content["methods"]]
    how = (content.get("samples") or None, content.get("level") or 0.95, content.get("by") or [])
    return Comparison(scores, skipped, *how)


def _score(row: Mapping[str, Any]) -> Score:
    name, ends = str(row["name"]), row.get("intervals")
    metrics = {metric: float(row[metric]) for metric in METRIC if row.get(metric) is not None}
    intervals = {metric: (float(low), float(high)) for metric, (low, high) in (ends or {}).items()}
    against, constant = (row.get(key) or {} for key in ("against_reference", "against_constant"))
    about = str(row.get("about") or _ABOUT.get(name, ""))
    # An ordinal scale has RPS, which ranks methods there.
    headline = "rps" if "rps" in metrics else "ce"
    return Score(name, about, metrics, intervals, against, constant, headline=headline)


def method_rows(
    comparison: Comparison | None, evaluation: Evaluation | None
) -> list[dict[str, Any]]:
    """The table of methods, lowest headline metric first: of the comparison, else the evaluation.

    ``value`` is the headline metric (CE; RPS on an ordinal scale) and ``ends`` its interval;
    ``cells`` hold the value of each metric, its interval, and whether it is the best;
    ``differences`` are those of the headline metric vs uniform and vs constant with their
    intervals, None where not known.
    """
    source = evaluation if comparison is None else comparison
    scores = [] if source is None else source.scores
    scores = [one for one in scores if math.isfinite(headline_value(one))]
    scores.sort(key=headline_value)
    metrics = tuple(name for name in METRIC if any(name in one.metrics for one in scores))
    best = {}
    for metric in metrics:
        values = [v for one in scores if math.isfinite(v := getattr(one, metric))]
        best[metric] = number((max if METRIC[metric].higher else min)(values, default=None))
    rows = []
    for one in scores:
        shown = {metric: number(getattr(one, metric)) for metric in metrics}
        tests = one.against.get(one.headline), one.against_constant.get(one.headline)
        row = {
            "name": clean(one.name, 60),
            "about": clean(one.about, 120),
            "ours": one.name == "edo" or one.name.startswith(("edo-", "edo:")),
            "value": headline_value(one),
            "metrics": metrics,
            "headline": one.headline,
            "ends": one.intervals.get(one.headline),
            "cells": [
                (value, interval(one.intervals.get(metric)), value == best[metric] != NONE)
                for metric, value in shown.items()
            ],
            "differences": [
                t and (signed(t.difference), f"{signed(t.low)} to {signed(t.high)}") for t in tests
            ],
        }
        rows.append(row)
    return rows


def headline_value(score: Score) -> float:
    """The metric that ranks methods."""
    return float(getattr(score, score.headline))


def slice_rows(evaluation: Evaluation | None) -> list[dict[str, Any]]:
    """The table of slices: items, F1 and headline metric with intervals, and that of others.

    ``difference`` is that of the headline metric vs constant with its interval, if known.
    """
    rows = []
    for one in () if evaluation is None else evaluation.slices:
        ours, headline = one.scores[0], one.scores[0].headline
        test = ours.against_constant.get(headline)
        beside = [one.score(name) for name in ("uniform", "constant")]
        others = [None if score is None else headline_value(score) for score in beside]
        row = {
            "name": clean(one.name, 60),
            "items": one.items,
            "headline": headline,
            "value": headline_value(ours),
            "ends": ours.intervals.get(headline),
            "others": others,
            "cells": [
                (number(getattr(ours, metric)), interval(ours.intervals.get(metric)))
                for metric in ("f1", headline)
            ],
            "beside": [number(value) for value in others],
            "floor": number(one.floor),
            "difference": test
            and (signed(test.difference), f"{signed(test.low)} to {signed(test.high)}"),
        }
        rows.append(row)
    return rows
