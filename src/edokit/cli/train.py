"""`edo train`: members and their predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edokit.cli import console, options
from edokit.errors import InputError, counted

if TYPE_CHECKING:
    from edokit.members import Trained


def train(
    data: options.Source,
    out: Annotated[
        Path, typer.Option(help="Folder for members, predictions and manifest.", show_default=False)
    ],
    recipe: Annotated[
        str,
        typer.Option(
            help="linear, encoder, sklearn or transformer; several as linear:5,encoder:5; or a"
            " TOML file."
        ),
    ] = "linear",
    supervision: Annotated[
        str, typer.Option(help="Whose answers: random-select, per-annotator, soft or majority.")
    ] = "random-select",
    draw: Annotated[
        str | None,
        typer.Option(help="random-select draws every epoch or once.", metavar="epoch|once"),
    ] = None,
    members: Annotated[
        int | None, typer.Option(help="How many members; 10 unless the recipe says.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="KEY=VALUE", help="An option of the recipe, or GROUP.KEY=VALUE."
        ),
    ] = None,
    cross_fit: Annotated[
        int | None,
        typer.Option(help="Train on train and dev in so many folds; predictions/fit.npz."),
    ] = None,
    tune: Annotated[
        int | None,
        typer.Option(help="Search a transformer's options on dev in so many trials first."),
    ] = None,
    pairs: Annotated[
        bool,
        typer.Option("--pairs", help="The first line of a text is judged, the rest is context."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of all members.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(help="Members at a time; else one per core, or per GPU.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="Where to compute, e.g. cpu or cuda.")] = None,
    engine: Annotated[
        str, typer.Option(help="local, or a Dask cluster: dask://host:port.")
    ] = "local",
    forget_models: Annotated[
        bool, typer.Option("--forget-models", help="Keep the predictions, not the models.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace members trained in another way.")
    ] = False,
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare", help="Only write what `python -m edokit.members OUT` trains elsewhere."
        ),
    ] = False,
    column: options.Column = None,
    classes: options.Classes = None,
    duplicates: options.Duplicates = None,
    format: options.Format = None,
    control: options.Control = None,
    question: options.Question = None,
    multi_choice: options.MultiChoice = None,
    clean: options.Clean = False,
    dialogue: options.Dialogue = None,
    json: options.Json = False,
) -> None:
    """Train members and write what they say about dev and test; start again to go on."""
    from edokit.members import parse_pool, train_members
    from edokit.members.train import prepare_elsewhere

    groups = parse_pool(
        recipe,
        members=members,
        supervision=supervision,
        draw=draw,
        options=options.pairs(option, "--option", "KEY=VALUE"),
    )
    people = options.read_people(
        data,
        column=column,
        classes=classes,
        duplicates=duplicates,
        format=format,
        control=control,
        question=question,
        multi_choice=multi_choice,
        clean=clean,
        dialogue=dialogue,
    )
    how: dict[str, Any] = {"out": out, "seed": seed, "cross_fit": cross_fit, "pairs": pairs}
    if prepare:
        units = prepare_elsewhere(people, groups, **how)
        line = f"{out}: {counted(units, 'fit')} planned; train with `python -m edokit.members`"
        console.done({"out": str(out), "planned": units}, line, json)
        return
    with console.progress() as bars:
        task = bars.add_task("training", total=None, detail="")

        def step(event: dict[str, Any]) -> None:
            done = {"completed": event["done"]} if "done" in event else {}
            bars.update(task, total=event.get("total"), detail=_detail(event), **done)

        trained = train_members(
            people,
            groups,
            **how,
            tune=tune,
            jobs=jobs,
            device=device,
            engine=engine,
            keep_models=not forget_models,
            overwrite=overwrite,
            source=data.name,
            step=step,
        )
    _show(trained, out, json)
    if trained.failed:
        listed = "; ".join(f"{one.unit.path}: {one.reason}" for one in trained.failed)
        raise InputError(
            f"every member must be trained, but {len(trained.failed)} failed ({listed})",
            "the others are saved; start again to try these again",
        )


def _detail(event: dict[str, Any]) -> str:
    parts = [str(event["member"])]
    if "epoch" in event:
        parts.append(f"epoch {event['epoch']}")
    if event.get("dev_ce") is not None:
        parts.append(f"dev CE {event['dev_ce']:.4f}")
    return ", ".join(parts)


def _show(trained: Trained, out: Path, json: bool) -> None:
    manifest = trained.manifest
    if json:
        kept = ("cross_fit", "groups", "members", "mean", "failed", "predictions", "seconds")
        console.print_json({"out": str(out), **{key: manifest[key] for key in kept}})
        return
    splits = list(manifest["predictions"])
    rows = [
        [one["name"], *_numbers(one["metrics"], splits), f"{one['seconds']:.1f}"]
        for one in manifest["members"]
    ]
    rows.append(["mean of all", *_numbers(manifest["mean"], splits), f"{manifest['seconds']:.1f}"])
    header = [f"{split} {name}" for split in splits for name in ("CE ↓", "F1 ↑")]
    console.print_table(
        f"{out}: {counted(len(manifest['members']), 'member')}",
        ["member", *header, "seconds"],
        rows,
        [f"Predictions: {', '.join(manifest['predictions'].values())}"],
    )


def _numbers(metrics: dict[str, Any], splits: list[str]) -> list[str]:
    return [f"{metrics[split][name]:.4f}" for split in splits for name in ("ce", "f1")]
