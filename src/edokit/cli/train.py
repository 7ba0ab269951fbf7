"""`edo train`: members and their predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edokit._errors import InputError, counted
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit.members import Trained


@options.reads(options.FORMATS, options.TEXTS)
def train(
    data: options.Source,
    out: Annotated[Path, typer.Option(help="Folder for members, predictions and manifest.")],
    recipe: Annotated[
        str | None,
        typer.Option(
            help="linear (the default), encoder, sklearn, transformer or llm; several as"
            " linear:5,encoder:5; or a TOML file."
        ),
    ] = None,
    supervision: Annotated[
        str, typer.Option(help="Targets: random-select, per-annotator, soft or majority.")
    ] = "random-select",
    posterior: Annotated[
        str | None,
        typer.Option(
            help="dawid-skene or mace: this model's posterior of each train item in place of the"
            " soft label (with --supervision soft; needs the extra crowds)."
        ),
    ] = None,
    draw: Annotated[
        str | None,
        typer.Option(help="random-select draws every epoch or once.", metavar="epoch|once"),
    ] = None,
    members: Annotated[
        int | None,
        typer.Option(help="How many members of a group; 10 (of llm 1) unless the recipe says."),
    ] = None,
    end_to_end: Annotated[
        bool,
        typer.Option(
            "--end-to-end",
            help="Fine-tune one transformer with a head per member, together with the weights that"
            " pool them.",
        ),
    ] = False,
    preset: Annotated[
        str | None,
        typer.Option(help="With --end-to-end, the objective: default or paper-fixed."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="An option of the recipe, or GROUP.KEY=VALUE; one that is given several times"
            " makes a group of members for each value.",
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
    pairs: options.Pairs = False,
    seed: Annotated[int, typer.Option(help="Seed of all members.")] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Members that train at a time; else as many as fit into a GPU's memory, or one"
            " per core."
        ),
    ] = None,
    device: options.Device = None,
    forget_models: Annotated[
        bool, typer.Option("--forget-models", help="Keep the predictions, not the models.")
    ] = False,
    budget: options.Budget = None,
    dry_run: options.DryRun = False,
    overwrite: options.Overwrite = False,
    *,
    reading: options.Reading,
    json: options.Json = False,
) -> None:
    """Train members and write their predictions for dev and test; run it again to resume."""
    from edokit._outputs import check_output
    from edokit.members import parse_groups, train_members
    from edokit.members.train import preview_training

    check_output(out, "members", data, overwrite=overwrite)
    listed: dict[str, list[str]] = {}
    for one in option or ():
        for key, value in options.pairs([one], "--option", "KEY=VALUE").items():
            listed.setdefault(key, []).append(value)
    chosen: dict[str, Any] = {key: v if len(v) > 1 else v[0] for key, v in listed.items()}
    if end_to_end:
        if recipe not in (None, "transformer"):
            raise InputError(
                f"end to end a transformer is trained with a head per member, but --recipe is"
                f" {recipe}",
                "leave it out, and say how many heads with --members",
            )
        one_by_one = {
            "--cross-fit": cross_fit is not None,
            "--tune": tune is not None,
            "--jobs": jobs is not None,
            "--forget-models": forget_models,
            "--budget": budget is not None,
            "--dry-run": dry_run,
        }
        why = "members that are trained one by one, but --end-to-end is given"
        options.refuse(one_by_one, why)
        from edokit.members import train_end_to_end
    elif preset is not None:
        raise InputError(
            "--preset chooses the objective of --end-to-end, which is not given",
            "choose it when you fit weights: edo fit --preset",
        )
    else:
        more: Any = {"members": members, "supervision": supervision, "draw": draw}
        groups = parse_groups(recipe or "linear", options=chosen, **more)
    annotations = reading.annotations(data)
    if posterior is not None:
        from edokit.members.supervision import crowd_targets

        annotations = crowd_targets(annotations, posterior, random_state=seed)
    how: dict[str, Any] = {"out": out, "random_state": seed, "cross_fit": cross_fit, "pairs": pairs}
    if dry_run:
        del how["out"]
        console.print_requests(preview_training(annotations, groups, **how), json)
        return
    trained: Trained
    kept = 0
    with console.kept_if_interrupted(), console.progress() as bars:
        task = bars.add_task("training", total=None, detail="")

        def step(event: dict[str, Any]) -> None:
            nonlocal kept
            kept = event.get("kept", kept)
            done = {"completed": event["done"]} if "done" in event else {}
            bars.update(task, total=event.get("total"), detail=_detail(event), **done)

        if end_to_end:
            trained = train_end_to_end(
                annotations,
                out=out,
                members=10 if members is None else members,
                options=chosen,
                preset=preset or "default",
                supervision=supervision,
                draw=draw or "epoch",
                random_state=seed,
                device=device,
                pairs=pairs,
                overwrite=overwrite,
                source=data.name,
                step=step,
            )
        else:
            trained = train_members(
                annotations,
                groups,
                **how,
                tune=tune,
                jobs=jobs,
                device=device,
                keep_models=not forget_models,
                overwrite=overwrite,
                source=data.name,
                budget=budget,
                step=step,
            )
    _show(trained, out, json, kept)
    if trained.failed:
        reasons = dict.fromkeys(one.reason for one in trained.failed)
        why = "; ".join(
            f"{', '.join(one.job.path for one in trained.failed if one.reason == reason)}: {reason}"
            for reason in reasons
        )
        raise InputError(
            f"every member must be trained, but {len(trained.failed)} failed ({why})",
            "the others are saved; start again to try these again",
        )


def _detail(event: dict[str, Any]) -> str:
    parts = [str(event["member"])]
    if "epoch" in event:
        parts.append(f"epoch {event['epoch']}")
    if "requests" in event:
        parts.append(f"request {event['requests']} of {event['of']}")
    if "items_per_second" in event:
        parts.append(f"{event['items_per_second']:,.0f} items a second")
    if event.get("dev_ce") is not None:
        parts.append(f"dev CE {event['dev_ce']:.4f}")
    return ", ".join(parts)


def _show(trained: Trained, out: Path, json: bool, before: int) -> None:
    manifest, ensemble = trained.manifest, trained.ensemble
    if json:
        kept = ("cross_fit", "groups", "members", "mean", "failed", "predictions", "seconds")
        result = {"out": str(out), **{key: manifest[key] for key in kept}}
        more = {} if ensemble is None else {"ensemble": ensemble.summary()}
        console.print_json({**result, **more})
        return
    from edokit.members.jobs import BY_ANNOTATOR
    from edokit.members.training_data import DEV, FIT
    from edokit.metrics import METRIC, headline_metric

    scale = next(iter(trained.predictions.values())).scale
    names = list(dict.fromkeys([headline_metric(scale), "ce", "f1"]))

    def numbers(metrics: dict[str, Any]) -> list[str]:
        return [f"{metrics[split][name]:.4f}" for split in seen for name in names]

    # Quality is chosen on dev and reported on test once, by other commands.
    seen = [split for split in manifest["predictions"] if split in (FIT, *DEV)]
    header = [
        f"{split} {name}" for split in seen for name in (METRIC[each].label for each in names)
    ]
    rows = [[one["name"], *numbers(one["metrics"])] for one in manifest["members"]]
    rows.append(["mean of all", *numbers(manifest["mean"])])
    whose = [one["targets"].get("annotator", "") for one in manifest["members"]]
    if any(whose):
        header.insert(0, "annotator")
        for row, name in zip(rows, [*whose, ""], strict=True):
            row.insert(1, name)
    written = [str(out / name) for name in manifest["predictions"].values()]
    lines = [f"Predictions: {', '.join(written)}"]
    if before:
        was = "was" if before == 1 else "were"
        lines.insert(0, f"{counted(before, 'fit')} had been done before and {was} kept.")
    if ensemble is None:
        header.append("seconds")
        for row, one in zip(rows, [*manifest["members"], manifest], strict=True):
            row.append(f"{one['seconds']:.1f}")
    else:
        header.append("weight")
        for row, one in zip(rows, manifest["members"], strict=False):
            row.append(f"{one['weight']:.3f}")
        rows[-1].append("")
        rows.append(["weighted pool", *numbers(manifest["pool"]), ""])
        of_all = f"{ensemble.size_} of {len(rows) - 2} members kept"
        lines.append(f"Weights: {out / 'ensemble'} ({of_all})")
    splits = [name for name in manifest["predictions"] if not name.endswith(BY_ANNOTATOR)]
    if others := ", ".join(split for split in splits if split not in seen):
        lines.append(f"Not looked at here: {others} (edo evaluate, edo compare).")
    console.print_table(
        f"{out}: {counted(len(manifest['members']), 'member')}, {manifest['seconds']:.1f} s",
        ["member", *header],
        rows,
        lines,
    )
    console.print_asked({one["name"]: one.get("details", {}) for one in manifest["members"]})
