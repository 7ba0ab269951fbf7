"""`edo search`: many configurations, the Pareto front, and the ensemble chosen from it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edokit._errors import InputError, counted
from edokit.cli import console, options
from edokit.cli.report import WithReport, add_page

if TYPE_CHECKING:
    from edokit.tuning import SearchResult, SearchSpace, SearchTrial

JOURNAL = "journal.log"


@options.streams
@options.reads(options.SPLIT, options.LABELS, options.LEARNING)
def search(
    predictions: options.Predictions,
    annotations: options.Labels,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the trials and the ensemble; a worker needs none."),
    ] = None,
    trials: Annotated[int, typer.Option(help="Trials in all, those already done included.")] = 50,
    solver: Annotated[str, typer.Option(help="gumbel (the paper's) or exact.")] = "gumbel",
    population: Annotated[int, typer.Option(help="Trials per generation.")] = 10,
    folds: Annotated[
        int | None,
        typer.Option(
            help="Held-out parts of the data to estimate trials on; 0: none. By default five; in"
            " the paper's space trials compete by their in-sample estimate all the same."
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(help="By which estimate trials compete: cross-fitted or optimistic."),
    ] = None,
    choose: Annotated[
        str | None,
        typer.Option(
            help="lowest-ce (the paper's), lowest-md, lowest-rps, lowest-w1, f1-within-one-se, knee"
            " or closest. By default lowest-ce; on an ordinal scale lowest-rps."
        ),
    ] = None,
    prefer: Annotated[
        str | None, typer.Option(help="What closest is to be close to, e.g. f1=0.9,ce=0.3.")
    ] = None,
    ce: Annotated[str | None, typer.Option(help="Only these: mean, all, random.")] = None,
    diversity: Annotated[str | None, typer.Option(help="Only this: preserve or suppress.")] = None,
    space: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME | PARAMETER=VALUE",
            help="paper for the paper's space, ordinal for the terms of ordered classes, else"
            " thorough; or another range"
            " (lambda_reg=1e-4..1e-1), choice (pool=linear,log) or fixed value (lambda_div=0) of a"
            " parameter (repeatable).",
        ),
    ] = None,
    groups: Annotated[
        bool, typer.Option("--groups/--no-groups", help="Average each group of members first.")
    ] = False,
    storage: Annotated[
        str | None,
        typer.Option(
            help="Where trials are kept and found again: a file, or postgresql://USER@HOST/NAME."
            f" OUT/search/{JOURNAL} if not given."
        ),
    ] = None,
    study: Annotated[str, typer.Option(help="Name of the search in its storage.")] = "edo",
    worker: Annotated[
        bool,
        typer.Option("--worker", help="Share the search on PostgreSQL with other workers."),
    ] = False,
    test_predictions: Annotated[
        Path | None,
        typer.Option(help="Also evaluate the choice: predictions of test."),
    ] = None,
    test_annotations: Annotated[
        Path | None,
        typer.Option(help="The annotations of test; else those of --annotations."),
    ] = None,
    test_split: options.TestSplit = None,
    ties: options.Ties = "first",
    seed: Annotated[int, typer.Option(help="Seed of the search, the solver and the folds.")] = 0,
    report: WithReport = True,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files in OUT that edo did not write.")
    ] = False,
    *,
    reading: options.Reading,
    streaming: options.Streaming,
    json: options.Json = False,
) -> None:
    """Try many configurations (NSGA-II), keep those that nothing beats, choose and fit one.

    Started again with the same folder or storage, it goes on where it stopped.
    """
    from edokit._outputs import locked
    from edokit.tuning import search as run_search

    if out is None and not worker:
        raise InputError("a search needs a folder for its results, but got none", "give --out RUN")
    how: dict[str, Any] = {
        "trials": trials,
        "space": _space(space, ce=ce, diversity=diversity),
        "solver": solver,
        "population": population,
        "folds": folds,
        "judge": judge,
        "choose": choose,
        "preference": _preference(prefer),
        "groups": groups,
        "ties": ties,
        "random_state": seed,
        "out": out,
        "overwrite": overwrite,
        "storage": storage,
        "study": study,
        "worker": worker,
        "test_predictions": test_predictions,
        "test_annotations": test_annotations,
        "test_split": options.names(test_split),
        **reading.keywords(),
    }
    shards = streaming.shards(predictions, reading.given.get("learn"))
    # Beyond the search itself, for the page; workers may share a folder.
    own = nullcontext() if out is None or worker else locked(out)
    kept = nullcontext() if out is None and storage is None else console.kept_if_interrupted()
    with own, kept, console.progress() as bars:
        if shards is not None:
            how["streaming"] = streaming.keywords(bars, shards)
        update = console.add_bar(bars, "searching", total=trials)

        def progress(done: int, total: int, best: Mapping[str, float]) -> None:
            detail = "  ".join(f"{name.upper()} {value:.4f}" for name, value in best.items())
            update(done, total, detail)

        found = run_search(
            predictions,
            annotations,
            progress=progress,
            command=["edo", *sys.argv[1:]],
            **how,
        )
        if out is not None and report:
            # What was streamed may be too much for a page.
            add_page(out, fit_items=shards is None, overwrite=overwrite)
    if json:
        more: dict[str, Any] = {"storage": found.storage, "done_before": found.done_before}
        if out is not None:
            more["nothing_learned"] = found.ensemble.fitted_.nothing_learned
        console.print_json({**found.to_dict(), **more})
    else:
        show(found, out, trials)


def _space(given: list[str] | None, *, ce: str | None, diversity: str | None) -> SearchSpace:
    """The space that was named, else the thorough one, with what the options change of it."""
    from edokit.tuning import SearchSpace

    names = [text for text in given or () if "=" not in text]
    if len(names) > 1:
        raise InputError(
            f"a search has one space, but got --space {' --space '.join(names)}",
            "name one; parameters are written --space PARAMETER=VALUE",
        )
    changes = options.pairs([text for text in given or () if "=" in text], "--space", "NAME=VALUE")
    changes.update({name: value for name, value in (("ce", ce), ("diversity", diversity)) if value})
    base = SearchSpace.named(names[0] if names else "thorough")
    return base.with_(**{name: _value(text) for name, text in changes.items()})


def _value(text: str) -> Any:
    """``1e-4..1e-1`` as a range, ``a,b`` as choices, else one value."""
    from edokit.members.recipe import plain_value

    low, dots, high = text.partition("..")
    if dots:
        ends = (plain_value(low.strip()), plain_value(high.strip()))
        if any(end is None or isinstance(end, str | bool) for end in ends):
            raise InputError(
                f"a range must be written LOW..HIGH, but got {text!r}", "write 0.001..0.1"
            )
        return ends
    several = [plain_value(part.strip()) for part in text.split(",")]
    return several if len(several) > 1 else several[0]


def _preference(text: str | None) -> dict[str, float] | None:
    """``f1=0.9,ce=0.3`` as a dictionary."""
    if text is None:
        return None
    return options.numbers(options.names(text), "--prefer", "METRIC=NUMBER,…")


def show(found: SearchResult, out: Path | None, asked: int) -> None:
    """The front as a table, the choice and its estimates; ``asked``: for how many trials."""
    from edokit.metrics import METRIC

    # Trials of the same scores share a row, named after the chosen one or the first of them.
    alike: dict[tuple[str, ...], list[SearchTrial]] = {}
    for trial in found.front:
        scores = tuple(f"{trial.value(name):.4f}" for name in trial.metrics)
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
    goals = [METRIC[name].label for name in found.chosen.metrics]
    header = ["trial", *goals, "size", "diversity, CE"]
    header += ["same scores"] if shared else []
    number = sum(trial.state == "failed" for trial in found.trials)
    failed = f" ({number} failed)" if number else ""
    page = ", report.html" if out and (out / "report.html").exists() else ""
    console.print_table(
        f"{counted(len(found.trials), 'trial')}{failed}, {len(found.front)} on the front",
        header,
        rows,
        [
            *_resumed(found, asked),
            *_estimates(found),
            *([unlearned] if out and (unlearned := found.ensemble.fitted_.nothing_learned) else []),
            *([f"Results in {out}: search, ensemble, run.json{page}."] if out else []),
        ],
    )


def _resumed(found: SearchResult, asked: int) -> list[str]:
    """How many trials were there already."""
    before, trials = found.done_before, len(found.trials)
    if before >= asked:
        fewer = f" ({asked} were asked for)" if asked < trials else ""
        return [
            f"Nothing was left to do: {counted(trials, 'trial')} had been done before{fewer}."
            " More --trials go on."
        ]
    return [f"{before} of these had been done before."] if before else []


def _estimates(found: SearchResult) -> list[str]:
    chosen = found.chosen
    lines = [f"Chosen (←, {found.rule}): {chosen.size} of {counted(len(found.members), 'member')}."]
    names = {"cross-fitted": "on held-out folds", "optimistic": "on the data it was fitted on"}
    for kind, words in names.items():
        estimate = chosen.estimates.get(kind)
        if estimate is not None:
            competed = "; the trials competed by this" if kind == chosen.judge else ""
            lines.append(f"Its estimate {words}: {_values(estimate, chosen.metrics)}{competed}.")
    if found.test is not None:
        earlier = ", as evaluated before" if found.tested_before else ""
        lines.append(f"On test{earlier}: {_values(found.test, chosen.metrics)}.")
    return lines


def _values(values: Mapping[str, Any], metrics: Sequence[str]) -> str:
    return ", ".join(f"{name.upper()} {values[name]:.4f}" for name in metrics)
