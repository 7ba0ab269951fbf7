"""The trials of a search, as a page shows them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edokit._errors import InputError
from edokit._io import read_json, read_table
from edokit.metrics import SEARCH_METRICS
from edokit.tuning import Correlation

# Columns of the table that are not settings.
_OUTCOMES = {
    *("number", "generation", "slot", "size", "weights", "on_front", "chosen", "state", "failure"),
    *(*SEARCH_METRICS, "ce_se"),
}
_ESTIMATES = ("optimistic_", "cross_fitted_")


@dataclass(frozen=True)
class Trial:
    """One configuration and its metrics."""

    number: int
    sign: str
    """``preserve`` or ``suppress``; empty if the trial has neither."""
    f1: float
    ce: float
    md: float
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
    estimates: dict[str, float] = field(default_factory=dict)
    """CE of the chosen trial by kind of estimate."""
    weights: dict[str, float] = field(default_factory=dict)
    """Of the chosen trial, by member."""
    correlations: list[Correlation] = field(default_factory=list)

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
    about = read_json(folder / "search.json") if (folder / "search.json").exists() else {}
    return parse_search(read_table(folder / "trials.parquet").to_pylist(), about)


def parse_search(rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> Search:
    """The search with these rows of ``trials.parquet`` and this content of ``search.json``."""
    try:
        done = [row for row in rows if all(_finite(row[goal]) for goal in SEARCH_METRICS)]
        chosen = about.get("chosen") or {}
        found = chosen.get("estimates") or {}
        estimates = {kind: (one or {}).get("ce") for kind, one in found.items()}
        return Search(
            sorted(map(_trial, done), key=lambda trial: trial.number),
            len(rows) - len(done),
            str(chosen.get("rule")),
            {kind: float(ce) for kind, ce in estimates.items() if ce is not None},
            {name: float(weight) for name, weight in (chosen.get("weights") or {}).items()},
            [_correlation(one) for one in about.get("correlations") or []],
        )
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        # Anyone may have written these files.
        raise InputError(
            f"trials.parquet or search.json is damaged ({error!r})", "run the search again"
        ) from error


def _trial(row: Mapping[str, Any]) -> Trial:
    settings = {
        name: f"{value:.4g}" if isinstance(value, float) else str(value)
        for name, value in row.items()
        if value is not None and name not in _OUTCOMES and not name.startswith(_ESTIMATES)
    }
    settings |= {
        name: str(row[name]) for name in ("size", "generation") if row.get(name) is not None
    }
    sign = str(row.get("diversity"))
    return Trial(
        number=int(row["number"]),
        sign=sign if sign in ("preserve", "suppress") else "",
        f1=float(row["f1"]),
        ce=float(row["ce"]),
        md=float(row["md"]),
        on_front=bool(row.get("on_front")),
        chosen=bool(row.get("chosen")),
        settings=settings,
    )


def _correlation(one: Mapping[str, Any]) -> Correlation:
    diversity, parameter, metric = (str(one[key]) for key in ("diversity", "parameter", "metric"))
    numbers = float(one["rho"]), float(one["p_value"]), int(one["trials"])
    return Correlation(diversity, parameter, metric, *numbers)


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
