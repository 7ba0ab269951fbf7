"""`edo search`: many configurations, the Pareto front, and the ensemble chosen from it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from edokit._errors import InputError
from edokit.analysis.search import search as run_search
from edokit.analysis.search import text
from edokit.analysis.search.options import SearchOptions
from edokit.analysis.search.result import SearchResult
from edokit.analysis.search.space import ParameterSpace, SearchSpace
from edokit.cli import console, options
from edokit.cli.report import add_page
from edokit.members.recipe_options import plain_value


def read_space(arguments: Sequence[str], option: str, form: str) -> SearchSpace:
    """The space that was named, else the thorough one, with the parameters that are given."""
    names = [argument for argument in arguments if "=" not in argument]
    if len(names) > 1:
        raise InputError(
            f"a search has one space, but got {option} {f' {option} '.join(names)}",
            f"name one; parameters are written {option} PARAMETER=VALUE",
        )
    assignments = [argument for argument in arguments if "=" in argument]
    changes = options.key_values(assignments, option, "NAME=VALUE")
    space = SearchSpace.named(names[0] if names else "thorough")
    return space.with_(**{name: space_value(value) for name, value in changes.items()})


def space_value(written: str) -> ParameterSpace:
    """``1e-4..1e-1`` as a range, ``a,b`` as choices, else one value."""
    low, dots, high = written.partition("..")
    if dots:
        ends = (plain_value(low.strip()), plain_value(high.strip()))
        if any(end is None or isinstance(end, str | bool) for end in ends):
            raise InputError(
                f"a range must be written LOW..HIGH, but got {written!r}", "write 0.001..0.1"
            )
        return ends
    choices = [plain_value(part.strip()) for part in written.split(",")]
    if len(choices) == 1:
        return choices[0]
    return choices


@options.evaluated
@dataclass(frozen=True, kw_only=True)
class Search(SearchOptions):
    """The options of a search as one types them.

    Parameters
    ----------
    space : list of str, optional
        paper for the paper's space, ordinal for the terms of ordered classes, else thorough; or
        another range (lambda_reg=1e-4..1e-1), choice (pool=linear,log) or fixed value
        (lambda_div=0) of a parameter (repeatable).
    """

    space: Annotated[Any, options.parser(read_space, "NAME | PARAMETER=VALUE")] = "thorough"
    groups: Annotated[bool, options.TWO_SIDED] = False
    storage: str | None = None


def search(
    *,
    predictions: options.PredictionsPath,
    annotations: options.AnnotationsPath,
    out: Path | None = None,
    settings: Annotated[Search, options.FLAT] = Search(),
    report: options.WithReport = True,
    overwrite: options.Overwrite = False,
    reading: Annotated[options.FitReading, options.FLAT] = options.FitReading(),
    streaming: Annotated[options.Streaming, options.FLAT] = options.Streaming(),
    json: options.Json = False,
) -> None:
    """Try many configurations (NSGA-II), keep the Pareto front, choose and fit one.

    Started again with the same folder or storage, it goes on where it stopped.

    Parameters
    ----------
    out : Path, optional
        Folder for the trials and the ensemble; a worker needs none.
    """
    if out is None and not settings.worker:
        raise InputError("a search needs a folder for its results, but got none", "give --out RUN")
    with console.kept_if_interrupted(), console.progress() as bars:
        passes = streaming.passes(bars, predictions, reading.learn)
        progress = console.add_stages(bars, "searching", total=settings.trials)
        result = run_search(
            predictions,
            annotations,
            settings,
            out=out,
            overwrite=overwrite,
            streaming=passes,
            progress=progress,
            command=["edo", *sys.argv[1:]],
            **options.keywords(reading),
        )
        if out is not None and report:
            # What was streamed may be too much for a page.
            add_page(out, fit_items=passes is None, overwrite=overwrite)
    summary = {"storage": result.storage, "done_before": result.done_before}
    if out is not None:
        summary["nothing_learned"] = result.ensemble.fitted_.nothing_learned
    console.print_result(
        {**result.to_dict(), **summary}, lambda: show(result, out, settings.trials), json
    )


def show(result: SearchResult, out: Path | None, requested: int) -> None:
    """The front as a table, the choice and its estimates; ``requested``: trials in all."""
    notes = [*text.resumption(result, requested), *text.choice(result)]
    if out is not None:
        if result.ensemble.fitted_.nothing_learned:
            notes.append(result.ensemble.fitted_.nothing_learned)
        files = "search, ensemble, run.json"
        if (out / "report.html").exists():
            files += ", report.html"
        notes.append(f"Results in {out}: {files}.")
    console.print_records(text.title(result), text.front_rows(result), notes)
