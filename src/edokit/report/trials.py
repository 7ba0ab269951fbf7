"""The trials of a search, as a page shows them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edokit._errors import InputError
from edokit._io import read_json, read_table

GOALS = ("f1", "ce", "md")
_SIGNS = ("preserve", "suppress")
# Columns that are not settings.
_OUTCOMES = {
    *("number", "generation", "slot", "size", "weights", "on_front", "chosen", "state", "failure"),
    *(*GOALS, "ce_se"),
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
class Panel:
    """Spearman correlations between settings and metrics."""

    sign: str
    """Of the trials: ``preserve``, ``suppress`` or ``all``."""
    trials: int
    settings: list[str]
    metrics: list[str]
    rho: list[list[float | None]]
    """[settings, metrics]; None where it is undefined."""
    p_values: list[list[float | None]]


@dataclass(frozen=True)
class Search:
    """The trials of a search, and which one was chosen."""

    trials: list[Trial]
    failed: int
    """Trials without a result."""
    about: dict[str, Any] = field(default_factory=dict)
    """Content of ``search.json``: the rule of the choice, the estimates, the space."""
    correlations: list[Panel] = field(default_factory=list)
    """A panel per sign."""

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
    rows = read_table(folder / "trials.parquet").to_pylist()
    return search_of(rows, about if isinstance(about, dict) else {})


def search_of(rows: list[dict[str, Any]], about: dict[str, Any]) -> Search:
    """The search with these rows of the table of trials, in any order."""
    _check_chosen(about.get("chosen"))
    missing = [goal for goal in GOALS if rows and goal not in rows[0]]
    if missing:
        raise InputError(
            f"the table of trials has no column {', '.join(missing)}",
            "run the search again",
        )
    done = [row for row in rows if all(_finite(row.get(goal)) for goal in GOALS)]
    trials = [
        Trial(
            number=int(row.get("number", position)),
            sign=_sign(row),
            f1=float(row["f1"]),
            ce=float(row["ce"]),
            md=float(row["md"]),
            on_front=bool(row.get("on_front")),
            chosen=bool(row.get("chosen")),
            settings=_settings(row),
        )
        for position, row in enumerate(done)
    ]
    return Search(
        sorted(trials, key=lambda trial: trial.number),
        len(rows) - len(done),
        about,
        panels(about.get("correlations") or []),
    )


def _check_chosen(chosen: object) -> None:
    """Check the chosen trial of ``search.json``; anyone may have written the file."""
    if chosen is None:
        return
    parts = chosen if isinstance(chosen, dict) else {"estimates": "none"}
    estimates, weights = parts.get("estimates") or {}, parts.get("weights") or {}
    whole = (
        isinstance(estimates, dict)
        and all(one is None or isinstance(one, dict) for one in estimates.values())
        and all(
            value is None or _finite(value)
            for one in estimates.values()
            for value in (one or {}).values()
        )
        and isinstance(weights, dict)
        and all(_finite(value) for value in weights.values())
    )
    if not whole:
        raise InputError(
            "search.json has no valid estimates and weights of the chosen trial",
            "run the search again",
        )


def panels(found: list[dict[str, Any]]) -> list[Panel]:
    """A panel per sign from a list of single correlations."""
    made = []
    named = ("diversity", "parameter", "metric")
    if not isinstance(found, list) or not all(
        isinstance(one, dict)
        and all(isinstance(one.get(name), str) for name in named)
        and all(one.get(name) is None or _finite(one[name]) for name in ("rho", "p_value"))
        for one in found
    ):
        raise InputError(
            f"search.json has correlations without {', '.join(named)} or without numbers",
            "run the search again",
        )
    for sign in dict.fromkeys(str(one["diversity"]) for one in found):
        here = {
            (str(one["parameter"]), str(one["metric"])): one
            for one in found
            if one["diversity"] == sign
        }
        settings = list(dict.fromkeys(setting for setting, _ in here))
        metrics = [goal for goal in GOALS if any(metric == goal for _, metric in here)]

        def grid(key: str, here: Any = here, rows: Any = settings, columns: Any = metrics) -> Any:
            return [[here.get((row, column), {}).get(key) for column in columns] for row in rows]

        count = max(_whole(one.get("trials")) for one in here.values())
        made.append(Panel(sign, count, settings, metrics, grid("rho"), grid("p_value")))
    return made


def _whole(value: object) -> int:
    """A number of trials; 0 if it is not known."""
    return value if isinstance(value, int) else 0


def _sign(row: dict[str, Any]) -> str:
    for value in (row.get("diversity"), row.get("sign")):
        name = str(value).lower()
        if name in _SIGNS:
            return name
        if _finite(value) and value in (-1, 1):
            return _SIGNS[0] if value < 0 else _SIGNS[1]
    return ""


def _settings(row: dict[str, Any]) -> dict[str, str]:
    shown = {}
    for name, value in row.items():
        if name in _OUTCOMES or value is None or name.startswith(_ESTIMATES):
            continue
        shown[name] = f"{value:.4g}" if isinstance(value, float) else str(value)
    for name in ("size", "generation"):
        if row.get(name) is not None:
            shown[name] = str(row[name])
    return shown


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
