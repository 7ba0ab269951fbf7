"""`edo reproduce`: the paper's tables and figures on the real data."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edokit._errors import InputError, one_of
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit.reproduce import Section, Study


def reproduce(
    name: Annotated[str, typer.Argument(help="lewidi2023.", show_default=False)],
    table: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this table (repeatable): checks, datasets, ce-variants, diversity,"
            " weighting, sizes, heat-maps, benchmark, stability, bars, trade, near-duplicates,"
            " qualitative, efficiency or findings."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The LeWiDi 2023 folder; else EDO_LEWIDI2023, else ./lewidi2023."),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(help="Members' predictions; else those of the clone, benchmarks/lewidi2023."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables (Markdown, CSV, LaTeX), figures and RESULTS.md."),
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="Write the page that sums it up to this file.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds: members and solver's draws.")] = 5,
    trials: Annotated[int, typer.Option(min=1, help="Trials of each search.")] = 50,
    jobs: Annotated[int | None, typer.Option(help="Processes; else one per core.")] = None,
    train: Annotated[
        bool, typer.Option("--train", help="Train the members from scratch first (needs --out).")
    ] = False,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Train members of this dataset only (repeatable).")
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="Train with linear, encoder or transformer; else as committed."),
    ] = None,
    backbone: Annotated[
        str | None, typer.Option(help="Hub id or folder for encoder and transformer.")
    ] = None,
    members: Annotated[int, typer.Option(min=1, help="Members of a trained pool.")] = 20,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="An option of the recipe."),
    ] = None,
    device: Annotated[str | None, typer.Option(help="Where to train, e.g. cpu or cuda.")] = None,
    json: options.Json = False,
) -> None:
    """Make the paper's tables again, beside its own numbers, and check these numbers."""
    from edokit._io import whole_file
    from edokit.reproduce import Study, find_data, find_predictions, results_page
    from edokit.reproduce import reproduce as run
    from edokit.reproduce.train import plans_for, train_pools
    from edokit.runs import as_typed

    one_of("the paper's benchmark", name, ["lewidi2023"])
    found = find_data(data)
    with console.progress() as bars:
        task = bars.add_task("reproducing", total=None, detail="")
        place = None if train and predictions is None and recipe else find_predictions(predictions)
        if train:
            if found is None or out is None:
                missing = "--data (or ./lewidi2023)" if found is None else "--out"
                raise InputError(
                    "training needs the data and a folder for what it makes, but"
                    f" {missing} is missing",
                    "add it",
                )
            plans = plans_for(
                found,
                place,
                datasets=dataset,
                recipe=recipe,
                backbone=backbone,
                members=members,
                options=options.pairs(option, "--option", "KEY=VALUE"),
            )
            place = train_pools(
                found,
                plans,
                out,
                device=device,
                jobs=jobs,
                step=lambda what, event: bars.update(
                    task, detail=f"training {what} {event.get('member', '')}"
                ),
            )
        else:
            _no_training(
                dataset=dataset, recipe=recipe, backbone=backbone, option=option, device=device
            )
        study = Study(
            found,
            place,
            seeds,
            step=lambda what: bars.update(task, detail=what),
            jobs=jobs or os.cpu_count() or 1,
            trials=trials,
        )
        sections = run(study, table, out=out)
    written = [results] if results is not None else []
    if out is not None:
        written.append(out / "RESULTS.md")
    if written:
        page = results_page(sections, study, as_typed(["edo", *sys.argv[1:]]))
        for path in written:
            with whole_file(path) as temporary:
                temporary.write_text(page, encoding="utf-8")
    _show(sections, study, [str(path) for path in written], json)


def _show(sections: list[Section], study: Study, written: list[str], json: bool) -> None:
    if json:
        console.print_json(
            {
                "benchmark": "lewidi2023",
                "seeds": study.seeds,
                "pools": study.pools,
                "sections": {section.name: section.to_dict() for section in sections},
                "written": written,
            }
        )
        return
    for section in sections:
        typer.echo(f"\n# {section.title}")
        for sentence in section.words:
            typer.echo(f"- {sentence}")
        for key, table in section.tables.items():
            if key not in ("checks", "findings"):
                # Many columns: plain lines can be scrolled, a fitted table could not be read.
                typer.echo("\n" + table.markdown().rstrip())
    for path in written:
        typer.echo(f"written: {path}")


def _no_training(**given: Any) -> None:
    for name, value in given.items():
        if value:
            raise InputError(
                f"--{name} is for training, but --train was not given", "add --train, or leave it"
            )
