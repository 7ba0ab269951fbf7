"""`edo score`: predictions of trained or existing models."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from edokit._errors import InputError, counted
from edokit.cli import console, options


@options.reads(options.SPLIT, options.COLUMNS, options.DIALOGUE)
def score(
    texts: Annotated[
        Path,
        typer.Option(
            help="A table with item and text columns, a .txt file with a text per line, or any"
            " source of annotations."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The predictions: .npz or .parquet.")],
    members: Annotated[
        Path | None, typer.Option(help="A folder of members that `edo train` made.")
    ] = None,
    ensemble: Annotated[
        Path | None, typer.Option(help="Only the members of this ensemble.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Only these members, separated by commas.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]MODEL",
            help="A text-classification model: hub id or folder (repeatable).",
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL=CLASS", help="The class of a model's label (repeatable)."),
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="The classes in order, separated by commas.")
    ] = None,
    device: options.Device = None,
    trust: options.Trust = None,
    annotators: options.Annotators = None,
    judges: options.Judges = None,
    pairs: options.Pairs = False,
    budget: options.Budget = None,
    dry_run: options.DryRun = False,
    overwrite: options.Overwrite = False,
    *,
    reading: options.Reading,
    json: options.Json = False,
) -> None:
    """Write the predictions of trained members, or of models that you have, for texts."""
    from edokit._outputs import output_files
    from edokit.ensemble import EDOEnsemble
    from edokit.members import score_members, score_models
    from edokit.members.hub import LabelMap, model_names
    from edokit.members.recipes._endpoint import session
    from edokit.predictions import read_predictions, write_predictions
    from edokit.predictions.files import check_ending

    if (members is None) == (not model):
        raise InputError(
            "neither --members nor --model is given"
            if members is None
            else "both --members and --model are given",
            "give one of them: it says which models predict",
        )
    if members is None:
        of_members = {
            "--annotators": annotators is not None,
            "--judges": judges is not None,
            "--budget": budget is not None,
            "--dry-run": dry_run,
        }
        options.refuse(of_members, "trained members (--members), but --model is given")
    if annotators is not None and judges is not None:
        raise InputError(
            "--annotators gives a row per item and annotator, --judges one per item",
            "leave one of them out",
        )
    inputs = [texts, annotators, judges]
    check_ending(out)
    with output_files(out, inputs=inputs):
        asked, known = reading.texts(texts, annotators or judges, pairs=pairs)
    if out.is_file() and not overwrite:
        # Scoring may take hours: what can't be the same is refused before.
        there = None
        with suppress(InputError):
            there = set(map(str, read_predictions(out).items))
        if there != set(asked.items):
            raise InputError(
                f"{out} is there already, and does not hold predictions of these texts",
                "name another file, or replace it with overwrite=True",
                parameters=("overwrite",),
            )
    maps: dict[str, LabelMap] = {}
    with console.progress() as bars, session(dry=dry_run) as requests:
        step = console.add_bar(bars, "scoring")
        if members is not None:
            table = score_members(
                members,
                asked,
                EDOEnsemble.load(ensemble).needed_members() if ensemble else options.names(only),
                device=device,
                trust=options.names(trust) or (),
                annotators=known,
                by_annotator=annotators is not None,
                budget=budget,
                attributes=reading.attributes(members, annotators or judges),
                step=step,
            )
        else:
            table, maps = score_models(
                model_names(model or []),
                asked,
                classes=options.names(classes),
                labels=options.pairs(label, "--label", "LABEL=CLASS"),
                device=device,
                step=step,
            )
    if dry_run:
        console.print_requests(requests.previews, json)
        return
    with output_files(out, inputs=inputs, overwrite=overwrite):
        write_predictions(table, out)
    (n, k, _), items = table.shape, len(set(table.items))
    rows, people = counted(n, "item"), None
    if table.annotators is not None:
        people = len({*table.annotators} - {""})
        rows = (
            f"{counted(n - items, 'pair')} of item and annotator ({counted(items, 'item')},"
            f" {counted(people, 'annotator')}) and anonymous answers"
        )
    shown = "".join(
        f"\n{name}: " + ", ".join(f"{own} → {mine}" for own, mine in labels.items())
        for name, labels in maps.items()
    )
    console.done(
        {
            "out": str(out),
            "items": items,
            "rows": n,
            "members": list(table.members),
            "classes": list(table.classes),
            "labels": maps,
            "judges": None if judges is None else str(judges),
            "annotators": people,
            "member_info": {name: dict(about) for name, about in table.member_info.items()},
        },
        f"{out}: {rows}, {counted(k, 'member')}, classes {', '.join(table.classes)}{shown}",
        json,
    )
    if not json:
        console.print_asked(table.member_info)
