"""`edo search`: many configurations, the Pareto front, and the ensemble chosen from it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from edokit._errors import InputError
from edokit.analysis.search import search as run_search
from edokit.analysis.search import text as search_text
from edokit.analysis.search.options import SearchOptions
from edokit.analysis.search.result import SearchResult
from edokit.analysis.search.space import ParameterSpace, SearchSpace
from edokit.annotations.core import Ties
from edokit.cli import console, options
from edokit.cli.report import add_page
from edokit.members.recipe_options import plain_value


def read_space(arguments: Sequence[str], option: str, form: str) -> SearchSpace:
    """The named space (by default the thorough one), in which the given parameters are replaced."""
    names = [argument for argument in arguments if "=" not in argument]
    if len(names) > 1:
        raise InputError(
            f"a search has one space, but got {option} {f' {option} '.join(names)}",
            f"name one; parameters are written {option} PARAMETER=VALUE",
            code="repeated-option",
        )
    assignments = [argument for argument in arguments if "=" in argument]
    changes = options.key_values(assignments, option, "NAME=VALUE")
    name = "thorough"
    if names:
        name = names[0]
    space = SearchSpace.named(name)
    return space.with_(**{parameter: space_value(text) for parameter, text in changes.items()})


def space_value(text: str) -> ParameterSpace:
    """``1e-4..1e-1`` as a range, ``a,b`` as choices, else one value."""
    low, dots, high = text.partition("..")
    if dots:
        ends = (plain_value(low.strip()), plain_value(high.strip()))
        if any(end is None or isinstance(end, str | bool) for end in ends):
            raise InputError(
                f"a range must be written LOW..HIGH, but got {text!r}",
                "write 0.001..0.1",
                code="malformed-option",
            )
        return ends
    choices = [plain_value(part.strip()) for part in text.split(",")]
    if len(choices) == 1:
        return choices[0]
    return choices


@dataclass(frozen=True, kw_only=True)
class SearchFlags:
    """What a search tries, how its trials compete, and where they are stored.

    Parameters
    ----------
    trials : int
        Trials in all, those of an earlier run included.
    space : list of str
        paper for the paper's space, ordinal for the terms of ordered classes, else thorough; or
        another range (lambda_reg=1e-4..1e-1), choice (pool=linear,log) or fixed value
        (lambda_div=0) of a parameter (repeatable).
    solver : str
        How the weights of a trial are found.
    population : int
        Trials per generation. All trials of a generation are fitted in one batch.
    folds : int, optional
        Parts of the data that are held out in turn to estimate trials, which compete by this
        estimate; with 0 they compete in-sample. By default 5, but gumbel trials in the paper's
        space compete in-sample.
    groups : bool
        Average the members of each group first.
    ties : str
        Hard label of evenly split items.
    random_state : int
        Seed of the search, the solver, the folds and random ties.
    storage : str, optional
        Where trials are stored and found again: a file, or postgresql://USER@HOST/DATABASE. By
        default search/journal.log in the folder of the results; without one, in memory.
    study : str
        Name of the search in its storage.
    worker : bool
        Share the search on PostgreSQL with other processes.
    """

    trials: int = 50
    space: Annotated[
        SearchSpace | Literal["thorough"], options.parser(read_space, "NAME | PARAMETER=VALUE")
    ] = "thorough"
    solver: Literal["gumbel", "exact"] = "gumbel"
    population: int = 10
    folds: int | None = None
    groups: Annotated[bool, options.TWO_SIDED] = False
    ties: Ties = "first"
    random_state: int = 0
    storage: str | None = None
    study: str = "edo"
    worker: bool = False

    def to_options(self) -> SearchOptions:
        """Return the options of the search."""
        return SearchOptions(
            trials=self.trials,
            space=self.space,
            solver=self.solver,
            population=self.population,
            folds=self.folds,
            groups=self.groups,
            ties=self.ties,
            random_state=self.random_state,
            storage=self.storage,
            study=self.study,
            worker=self.worker,
        )


def search(
    *,
    predictions: options.PredictionsPath,
    annotations: options.AnnotationsPath,
    out: Path | None = None,
    flags: Annotated[SearchFlags, options.FLAT] = SearchFlags(),
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
    if out is None and not flags.worker:
        raise InputError(
            "a search needs a folder for its results, but got none",
            "give --out RUN",
            code="missing-option",
        )
    with console.resumable(), console.progress() as bars:
        shard_options = streaming.shard_options(bars, predictions, reading.learn)
        progress = console.add_stages(bars, "searching", total=flags.trials)
        result = run_search(
            predictions,
            annotations,
            flags.to_options(),
            out=out,
            overwrite=overwrite,
            streaming=shard_options,
            progress=progress,
            command=["edo", *sys.argv[1:]],
            **options.given_arguments(reading),
        )
        if out is not None and report:
            # What was streamed may be too much for a page.
            add_page(out, fit_items=shard_options is None, overwrite=overwrite)
    summary = {"storage": result.storage, "done_before": result.done_before}
    if out is not None:
        summary["nothing_learned"] = result.ensemble.fitted_.nothing_learned
    console.print_result(
        {**result.to_dict(), **summary}, lambda: _print(result, out, flags.trials), json
    )


def _print(result: SearchResult, out: Path | None, requested: int) -> None:
    """Print the front as a table, the choice and its estimates.

    ``requested`` is the number of trials that the search was to have in all.
    """
    notes = [*search_text.resumption(result, requested), *search_text.choice(result)]
    if out is not None:
        if result.ensemble.fitted_.nothing_learned:
            notes.append(result.ensemble.fitted_.nothing_learned)
        files = "search, ensemble, run.json"
        if (out / "report.html").exists():
            files += ", report.html"
        notes.append(f"Results in {out}: {files}.")
    console.print_records(search_text.title(result), search_text.front_rows(result), notes)
