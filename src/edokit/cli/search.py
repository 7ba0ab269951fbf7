"""`edo search`: many configurations, the Pareto front, and the ensemble chosen from it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from edokit._errors import InputError
from edokit.cli import console, options, searched, shards
from edokit.cli.report import WithReport, add_page

if TYPE_CHECKING:
    from edokit.annotations import Ties
    from edokit.runs import Input, RunRecord
    from edokit.search import SearchSpace

JOURNAL = "journal.log"


def search(
    predictions: Annotated[
        Path, typer.Option(help="What the members say: .npz, Parquet or a folder of shards.")
    ],
    annotations: Annotated[Path, typer.Option(help="What the people said (any source).")],
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
            help="Judge trials on so many held-out parts of the data; 0: none. Unless told, five"
            " are estimated on, and gumbel's trials judged on the data they were fitted on.",
            show_default=False,
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(help="By which estimate trials compete: cross-fitted or optimistic."),
    ] = None,
    choose: Annotated[
        str,
        typer.Option(help="lowest-ce (the paper's), f1-within-one-se, knee or closest."),
    ] = "lowest-ce",
    prefer: Annotated[
        str | None, typer.Option(help="What closest is to be close to, e.g. f1=0.9,ce=0.3.")
    ] = None,
    ce: Annotated[str | None, typer.Option(help="Only these: mean, all, random.")] = None,
    diversity: Annotated[str | None, typer.Option(help="Only this: preserve or suppress.")] = None,
    space: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Another range (lambda_reg=1e-4..1e-1), choice (pool=linear,log) or fixed value"
            " (lambda_div=0) of a parameter (repeatable).",
        ),
    ] = None,
    groups: Annotated[
        bool, typer.Option("--groups/--no-groups", help="Average each group of members first.")
    ] = False,
    storage: Annotated[
        str | None,
        typer.Option(
            help="Where trials are kept and found again: a file, or postgresql://USER@HOST/NAME."
            f" OUT/search/{JOURNAL}, unless told."
        ),
    ] = None,
    study: Annotated[str, typer.Option(help="Name of the search in its storage.")] = "edo",
    worker: Annotated[
        bool,
        typer.Option("--worker", help="Share the search on PostgreSQL with other workers."),
    ] = False,
    test_predictions: Annotated[
        Path | None, typer.Option(help="Also judge the choice: what the members say of test.")
    ] = None,
    test_annotations: Annotated[
        Path | None,
        typer.Option(help="What the people said of test; as --annotations, unless told."),
    ] = None,
    split: options.Split = None,
    test_split: Annotated[
        str | None, typer.Option(help="The split of the test annotations, e.g. test.")
    ] = None,
    ties: Annotated[
        str, typer.Option(help="Hard label of evenly split items: first, error or random.")
    ] = "first",
    seed: Annotated[int, typer.Option(help="Seed of the search, the solver and the folds.")] = 0,
    column: options.Column = None,
    classes: options.Classes = None,
    duplicates: options.Duplicates = None,
    stream: shards.Stream = None,
    memory: shards.Memory = shards.MEMORY,
    jobs: shards.Jobs = None,
    engine: shards.Engine = "local",
    scratch: shards.Scratch = None,
    report: WithReport = True,
    json: options.Json = False,
) -> None:
    """Try many configurations (NSGA-II), keep those that nothing beats, choose and fit one.

    Started again with the same folder or storage, it goes on where it stopped.
    """
    from edokit._outputs import begin_run, check_output
    from edokit.ensemble.inputs import warn_if_unanimous
    from edokit.predictions import read_predictions
    from edokit.runs import as_typed
    from edokit.search import search as run_search
    from edokit.search.result import check_search, earlier_test
    from edokit.search.run import planned
    from edokit.search.storage import open_storage

    if out is None and not worker:
        raise InputError("a search needs a folder for its results, but got none", "give --out RUN")
    if worker and storage is None:
        raise InputError(
            "a worker shares a storage with others, but got none",
            "give --storage postgresql://USER@HOST/DATABASE",
        )
    said: dict[str, Any] = {"column": column, "classes": classes, "duplicates": duplicates}
    judged_by = annotations if test_annotations is None else test_annotations
    how: dict[str, Any] = {
        "trials": trials,
        "space": _space(space, ce=ce, diversity=diversity),
        "solver": solver,
        "population": population,
        "folds": folds,
        "judge": judge,
        "choose": choose,
        "preference": _preference(prefer),
        "seed": seed,
        "groups": groups,
        "study": study,
    }
    plan = planned(**how)
    if out is not None:
        check_output(out, "search")
        check_search(out, plan)
    parts = shards.to_stream(predictions, stream, memory, engine)
    place = storage if storage is not None else str((out or Path()) / "search" / JOURNAL)
    with ExitStack() as stack:
        bars = stack.enter_context(console.progress())
        if parts is None:
            people = options.read_people(annotations, split=split, **said)
            warn_if_unanimous(people.classes, people.counts.sum(axis=0), annotations, split)
            fit: Any = (read_predictions(predictions), people)
        else:
            where: Any = {"memory": memory, "jobs": jobs, "engine": engine, "scratch": scratch}
            where.update(split=split, ties=ties, seed=seed, bars=bars)
            data = stack.enter_context(shards.labelled(parts, annotations, **where, **said))
            told = data.summaries().soft_counts
            warn_if_unanimous(data.classes, told, annotations, split)
            fit = (data, None)
        inputs: dict[str, tuple[Path, dict[str, Any]]] = {"predictions": (predictions, {})}
        inputs["annotations"] = (annotations, options.read_as(split=split, **said))
        if test_predictions is not None:
            test = (
                read_predictions(test_predictions),
                options.read_people(judged_by, split=test_split, **said),
            )
            _check_test(fit[0] if parts is None else None, *test)
            inputs["test_predictions"] = (test_predictions, {})
            inputs["test_annotations"] = (judged_by, options.read_as(split=test_split, **said))
        # A search may take hours, and files may change meanwhile.
        record = None if out is None else _record(inputs, seed)
        opened = stack.enter_context(open_storage(place))
        task = bars.add_task("searching", total=trials, detail="")
        before: list[int] = []

        def progress(done: int, total: int, best: Mapping[str, float]) -> None:
            before.append(done)
            detail = "  ".join(f"{name.upper()} {value:.4f}" for name, value in best.items())
            bars.update(task, completed=done, total=total, detail=detail)

        found = run_search(
            *fit,
            **how,
            ties=cast("Ties", ties),
            storage=opened,
            worker=worker,
            progress=progress,
        )
    result = {**found.summary(), "storage": opened.shown, "test": None}
    result["done_before"] = before[0]
    if test_predictions is not None:
        result["test"] = found.judge(*test)
    elif out is not None:
        result["test"] = earlier_test(out, found)
    tested_before = test_predictions is None and result["test"] is not None
    if out is not None and record is not None:
        # Trials and tests of earlier commands count: what gives this result is one with all.
        tested = _tested(out) if tested_before else {}
        typed = _typed(len(found.trials), trials, tested)
        record = replace(record, inputs={**record.inputs, **tested}, command=as_typed(typed))
        begin_run(out)
        found.save(out, test=result["test"])
        record.save(out)
        if report:
            # What was streamed may be too much for a page.
            add_page(out, fit_items=parts is None)
    if json:
        console.print_json(result)
    else:
        searched.show(found, result, out, trials, tested_before=tested_before)


def _space(given: list[str] | None, *, ce: str | None, diversity: str | None) -> SearchSpace:
    """The paper's space with what the options change of it."""
    from edokit.search import SearchSpace

    said = options.pairs(given, "--space", "NAME=VALUE")
    said.update({name: value for name, value in (("ce", ce), ("diversity", diversity)) if value})
    return SearchSpace().with_(**{name: _value(text) for name, text in said.items()})


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
    said = options.pairs(options.names(text), "--prefer", "METRIC=NUMBER")
    try:
        return {name: float(value) for name, value in said.items()}
    except ValueError as error:
        raise InputError(
            f"--prefer must be written METRIC=NUMBER, but got {text!r}", "write --prefer f1=0.9"
        ) from error


def _record(inputs: Mapping[str, tuple[Path, dict[str, Any]]], seed: int) -> RunRecord:
    """What is being run, on the files as they are now."""
    from edokit.runs import Input, RunRecord, as_typed, digest

    return RunRecord(
        "search",
        {role: Input(str(path), digest(path), how) for role, (path, how) in inputs.items()},
        seed=seed,
        command=as_typed(["edo", *sys.argv[1:]]),
    )


def _check_test(known: Any, unseen: Any, people: Any) -> None:
    """Refuse, before a search begins, test data that do not match or that it learns from."""
    from edokit.baselines.compare import check_disjoint, same_members
    from edokit.ensemble.inputs import align_inputs, as_predictions

    try:
        named, _ = align_inputs(as_predictions(unseen), people)
    except InputError as error:
        raise InputError(f"of the test data, {error}", "--test-split chooses one split") from None
    if known is not None:
        check_disjoint(known, same_members(known, named, "test predictions"))


def _tested(out: Path) -> dict[str, Input]:
    """The test data that the earlier search of this folder was judged on, as it recorded them."""
    from edokit.runs import RunRecord

    try:
        earlier = RunRecord.load(out)
    except InputError:
        return {}
    return {role: given for role, given in earlier.inputs.items() if role.startswith("test_")}


def _typed(found: int, asked: int, tested: Mapping[str, Input]) -> list[str]:
    """The command line that gives this result: with so many trials, and judged on these data."""
    from edokit.runs import with_option

    typed = ["edo", *sys.argv[1:]]
    if found != asked:
        typed = with_option(typed, "--trials", found)
    for role, given in tested.items():
        typed = with_option(typed, f"--{role.replace('_', '-')}", given.path)
        said = given.options.get("split") or given.options.get("splits")
        if said:
            text = ",".join(map(str, said)) if isinstance(said, list) else said
            typed = with_option(typed, "--test-split", text)
    return typed
