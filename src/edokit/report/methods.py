"""The table of methods: those of a comparison, else those of the evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edokit._errors import InputError
from edokit._io import read_json
from edokit.baselines.scores import Score
from edokit.metrics import MAIN_METRICS, PairedTest
from edokit.report.evaluation import Evaluation
from edokit.report.formatting import clean, interval, number, signed

ABOUT = {
    "constant": "same probabilities for every item",
    "best-single": "member with the lowest CE on the fit data",
    "uniform": "uniform mean of all members",
    "edo": "EDO, kind of pool selected on dev",
    "edo-paper": "EDO with the search of the paper",
}


@dataclass(frozen=True)
class Comparison:
    """The content of ``compare/methods.json``."""

    scores: list[Score]
    skipped: list[str]
    """Methods that could not be fitted, each with its reason."""
    samples: int | None
    level: float
    """Of the intervals."""


@dataclass(frozen=True)
class Row:
    """One method: its metrics as numbers and as text."""

    name: str
    about: str
    """What it does."""
    ours: bool
    ce: float
    ends: tuple[float, float] | None
    """Interval of the CE."""
    cells: list[tuple[str, str, bool]]
    """For each metric: the value, its interval, and whether it is the best."""
    difference: tuple[str, str]
    """ΔCE vs uniform and its interval; empty if it is not known."""


def read_comparison(path: Path) -> Comparison:
    """Read ``compare/methods.json``; anyone may have written the file."""
    content = read_json(path)
    try:
        samples, level = content.get("samples"), float(content.get("level") or 0.95)
        if not 0 < level < 1 or (samples is not None and not samples > 0):
            raise ValueError(f"level {level}, samples {samples}")
        skipped = [
            f"{clean(row.get('name'), 60)}: {clean(row.get('reason'), 300)}"
            for row in content.get("skipped") or []
        ]
        scores = [_score(row) for row in content["methods"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is not the result of a comparison ({error!r})", "run the comparison again"
        ) from error
    return Comparison(scores, skipped, samples, level)


def _score(row: Mapping[str, Any]) -> Score:
    name = str(row["name"])
    intervals = {
        metric: (float(low), float(high))
        for metric, (low, high) in (row.get("intervals") or {}).items()
    }
    tests = {
        metric: PairedTest(
            float(one["difference"]), float(one["low"]), float(one["high"]), math.nan, 0
        )
        for metric, one in (row.get("against_reference") or {}).items()
    }
    f1, ce, md, bs = (
        math.nan if row.get(metric) is None else float(row[metric]) for metric in MAIN_METRICS
    )
    about = str(row.get("about") or ABOUT.get(name, ""))
    return Score(name, about, f1, ce, md, bs, intervals, tests)


def method_rows(comparison: Comparison | None, evaluation: Evaluation | None) -> list[Row]:
    """The methods, lowest cross-entropy first."""
    scores = [] if evaluation is None else evaluation.scores
    if comparison is not None:
        ours = scores[0] if scores else None
        # A demo's comparison does not keep the differences of its ensemble.
        scores = [
            replace(one, against=ours.against)
            if ours and one.name == "edo" and not one.against and number(one.ce) == number(ours.ce)
            else one
            for one in comparison.scores
        ]
    scores = sorted((one for one in scores if math.isfinite(one.ce)), key=lambda one: one.ce)
    best = {}
    for metric in MAIN_METRICS:
        values = [v for one in scores if math.isfinite(v := getattr(one, metric))]
        best[metric] = number((max if metric == "f1" else min)(values, default=None))
    return [_row(score, best) for score in scores]


def _row(score: Score, best: Mapping[str, str]) -> Row:
    cells = []
    for metric in MAIN_METRICS:
        value = number(getattr(score, metric))
        cells.append((value, interval(score.intervals.get(metric)), value == best[metric] != "–"))
    ce = score.against.get("ce")
    return Row(
        name=clean(score.name, 60),
        about=clean(score.about, 120),
        ours=score.name == "edo" or score.name.startswith(("edo-", "edo:")),
        ce=score.ce,
        ends=score.intervals.get("ce"),
        cells=cells,
        difference=(signed(ce.difference), f"{signed(ce.low)} to {signed(ce.high)}")
        if ce
        else ("", ""),
    )
