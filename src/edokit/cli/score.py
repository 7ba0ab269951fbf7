"""`edo score`: what trained or existing models say about texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edokit._errors import InputError, counted
from edokit.cli import console, options


def score(
    texts: Annotated[
        Path,
        typer.Option(
            help="A table with item and text columns, a .txt file with a text per line, or any"
            " source of annotations.",
            show_default=False,
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
            "--model",
            metavar="[NAME=]MODEL",
            help="A text-classification model: hub id or folder (repeatable).",
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label", metavar="LABEL=CLASS", help="The class of a model's label (repeatable)."
        ),
    ] = None,
    classes: options.Classes = None,
    device: Annotated[str | None, typer.Option(help="Where to compute, e.g. cpu or cuda.")] = None,
    trust: Annotated[
        str | None,
        typer.Option(help="Packages beside scikit-learn whose types may be loaded."),
    ] = None,
    judges: options.Judges = None,
    pairs: Annotated[
        bool,
        typer.Option("--pairs", help="The first line of a text is judged, the rest is context."),
    ] = False,
    split: options.Split = None,
    column: options.Column = None,
    dialogue: options.Dialogue = None,
    json: options.Json = False,
) -> None:
    """Write what trained members, or models that you have, say about texts."""
    from edokit.ensemble import load_ensemble
    from edokit.members import score_members, score_models
    from edokit.members.hub import LabelMap, model_names
    from edokit.predictions import write_predictions

    if (members is None) == (not model):
        raise InputError(
            "either --members or --model says who judges the texts, but"
            f" {'neither is' if members is None else 'both are'} given",
            "give one of them",
        )
    if judges is not None and members is None:
        raise InputError(
            "--judges is for trained members (--members), but --model is given",
            "leave one of them out",
        )
    asked, people = options.read_asked(
        texts, judges, column=column, split=split, context=pairs, dialogue=dialogue
    )
    maps: dict[str, LabelMap] = {}
    with console.progress() as bars:
        task = bars.add_task("scoring", total=None, detail="")

        def step(done: int, total: int, name: str) -> None:
            bars.update(task, completed=done, total=total, detail=name)

        if members is not None:
            table = score_members(
                members,
                asked,
                load_ensemble(ensemble).needed_members() if ensemble else options.names(only),
                device=device,
                trust=options.names(trust) or (),
                annotators=people,
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
    write_predictions(table, out)
    n, k, _ = table.shape
    shown = "".join(
        f"\n{name}: " + ", ".join(f"{own} → {mine}" for own, mine in labels.items())
        for name, labels in maps.items()
    )
    console.done(
        {
            "out": str(out),
            "items": n,
            "members": list(table.members),
            "classes": list(table.classes),
            "labels": maps,
            "judges": None if judges is None else str(judges),
        },
        f"{out}: {counted(n, 'item')}, {counted(k, 'member')}, classes"
        f" {', '.join(table.classes)}{shown}",
        json,
    )
