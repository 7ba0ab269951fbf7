"""Sentences and rows of a table made of the result of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edokit._errors import counted
from edokit.analysis.search.result import SearchResult, SearchTrial
from edokit.metrics import METRIC

_ESTIMATED_ON = {"cross-fitted": "on held-out folds", "optimistic": "on the data it was fitted on"}


def title(result: SearchResult) -> str:
    """How many trials there are, and how many of them are on the front."""
    return f"{counted(len(result.trials), 'trial')}, {len(result.front)} on the front"


def front_rows(result: SearchResult) -> list[dict[str, object]]:
    """The front; trials of equal scores share a row, which names the chosen one among them."""
    same_scores: dict[tuple[str, ...], list[SearchTrial]] = {}
    for trial in result.front:
        scores = [f"{trial.value(name):.4f}" for name in trial.metrics]
        same_scores.setdefault((*scores, str(trial.size)), []).append(trial)
    columns = [METRIC[name].label for name in result.chosen.metrics]
    columns.append("size")
    rows: list[dict[str, object]] = []
    for values, trials in same_scores.items():
        trial = trials[0]
        name = str(trial.number)
        if result.chosen in trials:
            trial = result.chosen
            name = f"{trial.number} ←"
        equal_trials = None
        if len(trials) > 1:
            equal_trials = f"{len(trials) - 1} more"
        objective = trial.configuration.objective
        rows.append(
            {
                "trial": name,
                **dict(zip(columns, values, strict=True)),
                "diversity, CE": f"{objective.diversity}, {objective.ce}",
                "same scores": equal_trials,
            }
        )
    return rows


def choice(result: SearchResult) -> list[str]:
    """The chosen trial and its estimates in sentences."""
    chosen_trial = result.chosen
    members = counted(len(result.members), "member")
    lines = [f"Chosen (←, {result.rule}): {chosen_trial.size} of {members}."]
    for kind, data in _ESTIMATED_ON.items():
        estimate = chosen_trial.estimates.get(kind)
        if estimate is None:
            continue
        line = f"Its estimate {data}: {_scores(estimate, chosen_trial.metrics)}"
        if kind == chosen_trial.judge:
            line += "; the trials competed by this"
        lines.append(line + ".")
    return lines


def resumption(result: SearchResult, requested: int) -> list[str]:
    """How many of the trials an earlier run had finished; ``requested`` is the number in all."""
    if not result.done_before:
        return []
    line = f"{result.done_before} of these had been done before"
    if result.done_before >= requested:
        line += "; to continue, ask for more trials"
    return [line + "."]


def _scores(estimate: Mapping[str, float], metrics: Sequence[str]) -> str:
    """Metrics with their values: ``F1 0.8750, CE 0.1974``."""
    return ", ".join(f"{name.upper()} {estimate[name]:.4f}" for name in metrics)
