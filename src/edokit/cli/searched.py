"""What a person sees of a search that is done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from edokit._errors import counted
from edokit.cli import console

if TYPE_CHECKING:
    from edokit.search import SearchResult
    from edokit.search.trials import SearchTrial

METRICS = ("f1", "ce", "md")


def show(
    found: SearchResult,
    result: dict[str, Any],
    out: Path | None,
    asked: int,
    *,
    tested_before: bool = False,
) -> None:
    """The front as a table, the choice and its estimates.

    ``asked``: for how many trials. ``tested_before``: the result on test is an earlier search's.
    """
    # Trials of the same scores share a row, named after the chosen one or the first of them.
    alike: dict[tuple[str, ...], list[SearchTrial]] = {}
    for trial in found.front:
        scores = tuple(f"{getattr(trial, name):.4f}" for name in METRICS)
        alike.setdefault((*scores, str(trial.size)), []).append(trial)
    shared = len(alike) < len(found.front)
    rows = []
    for scores, trials in alike.items():
        chosen = any(trial is found.chosen for trial in trials)
        trial = found.chosen if chosen else trials[0]
        settings = trial.configuration.settings
        kind = f"{settings.diversity}, {settings.ce}"
        more = [f"{len(trials) - 1} more" if len(trials) > 1 else ""] if shared else []
        rows.append([f"{trial.number}{' ←' if chosen else ''}", *scores, kind, *more])
    header = ["trial", "F1 ↑", "CE ↓", "MD ↓", "size", "diversity, CE"]
    header += ["same scores"] if shared else []
    failed = f" ({result['failed']} failed)" if result["failed"] else ""
    console.print_table(
        f"{result['trials']} trials{failed}, {len(found.front)} on the front",
        header,
        rows,
        [
            *_resumed(result, asked),
            *_notes(found, result, tested_before),
            *([f"Kept in {out}: {_kept(out)}."] if out else []),
        ],
    )


def _resumed(result: dict[str, Any], asked: int) -> list[str]:
    """What was there already."""
    before, trials = result["done_before"], result["trials"]
    if before >= asked:
        fewer = f" ({asked} were asked for)" if asked < trials else ""
        return [
            f"Nothing was left to do: {counted(trials, 'trial')} had been done before{fewer}."
            " More --trials go on."
        ]
    return [f"{before} of these had been done before."] if before else []


def _kept(out: Path) -> str:
    page = ", report.html" if (out / "report.html").exists() else ""
    return f"search, ensemble, run.json{page}"


def _notes(found: SearchResult, result: dict[str, Any], tested_before: bool) -> list[str]:
    chosen = found.chosen
    lines = [f"Chosen (←, {found.rule}): {chosen.size} of {len(found.members)} members."]
    names = {
        "cross-fitted": "on held-out folds",
        "optimistic": "on the data it was fitted on",
    }
    for kind, words in names.items():
        estimate = chosen.estimates.get(kind)
        if estimate is not None:
            values = ", ".join(f"{name.upper()} {estimate[name]:.4f}" for name in METRICS)
            judged = "; the trials competed by this" if kind == chosen.judged else ""
            lines.append(f"Its estimate {words}: {values}{judged}.")
    if result["test"] is not None:
        values = ", ".join(f"{name.upper()} {result['test'][name]:.4f}" for name in METRICS)
        lines.append(f"On test{', as judged before' if tested_before else ''}: {values}.")
    return lines
