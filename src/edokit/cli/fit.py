"""`edo fit`: member weights from predictions and people's answers, one configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edokit.cli import console, options, shards

if TYPE_CHECKING:
    from edokit.ensemble import EDOEnsemble
    from edokit.solvers import Certificate


def fit(
    predictions: Annotated[
        Path, typer.Option(help="What the members say: .npz, Parquet or a folder of shards.")
    ],
    annotations: Annotated[
        Path,
        typer.Option(help="What the people said (any source, or files named like the shards)."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the ensemble.")],
    preset: Annotated[
        str,
        typer.Option(
            help="default, auto (settled on the data), paper-fixed, or paper (where the paper's"
            " search starts)."
        ),
    ] = "default",
    solver: Annotated[str | None, typer.Option(help="exact or gumbel.")] = None,
    ce: Annotated[str | None, typer.Option(help="mean, all or random.")] = None,
    diversity: Annotated[str | None, typer.Option(help="preserve or suppress.")] = None,
    pool: Annotated[str | None, typer.Option(help="linear or log.")] = None,
    groups: Annotated[
        bool | None,
        typer.Option("--groups/--no-groups", help="Average each group of members first."),
    ] = None,
    lambda_f1: Annotated[float | None, typer.Option(help="Weight of the F1 term.")] = None,
    lambda_ce: Annotated[float | None, typer.Option(help="Weight of the cross-entropy.")] = None,
    lambda_div: Annotated[float | None, typer.Option(help="Weight of the diversity term.")] = None,
    lambda_reg: Annotated[float | None, typer.Option(help="Weight of the squared norm.")] = None,
    class_weights: Annotated[
        bool | None,
        typer.Option("--class-weights/--no-class-weights", help="Weigh rare classes up."),
    ] = None,
    min_members: Annotated[int | None, typer.Option(help="Smallest size (gumbel).")] = None,
    max_members: Annotated[int | None, typer.Option(help="Largest size.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs (gumbel).")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Step size (gumbel).")] = None,
    recalibrate: Annotated[
        str | None, typer.Option(help="temperature: fit one after pooling.")
    ] = None,
    ties: Annotated[
        str, typer.Option(help="Hard label of evenly split items: first, error or random.")
    ] = "first",
    seed: Annotated[int, typer.Option(help="Seed of the gumbel solver and of random ties.")] = 0,
    split: options.Split = None,
    column: options.Column = None,
    classes: options.Classes = None,
    duplicates: options.Duplicates = None,
    stream: shards.Stream = None,
    memory: shards.Memory = shards.MEMORY,
    jobs: shards.Jobs = None,
    engine: shards.Engine = "local",
    scratch: shards.Scratch = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an ensemble that was fitted otherwise.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Learn which members to trust, and how many, so that the pool answers like the people."""
    from edokit.ensemble import EDOEnsemble
    from edokit.ensemble.inputs import warn_if_unanimous
    from edokit.ensemble.persistence import check_replaceable
    from edokit.predictions import read_predictions

    parameters: dict[str, Any] = {
        "preset": preset,
        "solver": solver,
        "ce": ce,
        "diversity": diversity,
        "pool": pool,
        "groups": groups,
        "lambda_f1": lambda_f1,
        "lambda_ce": lambda_ce,
        "lambda_div": lambda_div,
        "lambda_reg": lambda_reg,
        "class_weights": class_weights,
        "min_members": min_members,
        "max_members": max_members,
        "epochs": epochs,
        "learning_rate": learning_rate,
        "recalibrate": recalibrate,
        "ties": ties,
        "random_state": seed,
    }
    ensemble = EDOEnsemble(**parameters)
    check_replaceable(out, ensemble, overwrite=overwrite)
    said: Any = {"column": column, "split": split, "classes": classes, "duplicates": duplicates}
    parts = shards.to_stream(predictions, stream, memory, engine)
    if parts is None:
        people = options.read_people(annotations, **said)
        answers = read_predictions(predictions)
        check_replaceable(
            out, ensemble, members=answers.members, items=len(answers), overwrite=overwrite
        )
        warn_if_unanimous(people.classes, people.counts.sum(axis=0), annotations, split)
        ensemble.fit(answers, people)
    else:
        ensemble.check()
        where: Any = {"memory": memory, "jobs": jobs, "engine": engine, "scratch": scratch}
        where.update(ties=ties, random_state=seed)
        with shards.labelled(parts, annotations, **where, **said) as data:
            check_replaceable(
                out, ensemble, members=data.members, items=data.items, overwrite=overwrite
            )
            shares = data.summaries().soft_counts
            warn_if_unanimous(data.classes, shares, annotations, split)
            ensemble.fit(data)
    check_replaceable(out, ensemble, overwrite=overwrite)
    ensemble.save(out)
    if json:
        console.print_json(ensemble.summary())
        return
    certificate = ensemble.certificate_
    objective = ensemble.objective_
    console.print_table(
        f"{out}: {ensemble.size_} of {_units(ensemble)} carry weight ({ensemble.n_items_} items)",
        ["term", "value on the fit data"],
        [
            ["1 − soft F1", f"{objective['f1']:.4f}"],
            ["cross-entropy", f"{objective['ce']:.4f}"],
            ["disagreement", f"{objective['div']:.4f}"],
            ["squared norm", f"{objective['reg']:.4f}"],
            ["joint loss", f"{objective['total']:.4f}"],
        ],
        [
            *map(str, ensemble.explain()),
            *([f"Temperature after pooling: {ensemble.temperature_:.3f}."] if recalibrate else []),
            _promise(certificate),
        ],
    )


def _units(ensemble: EDOEnsemble) -> str:
    """What has weights: members, or groups of them."""
    if ensemble.groups_ is None:
        return f"{len(ensemble.members_)} members"
    return f"{len(set(ensemble.groups_))} groups ({len(ensemble.members_)} members)"


def _promise(certificate: Certificate | None) -> str:
    """What is known about how good the weights are."""
    if certificate is None:
        return "No certificate: gumbel is a search; --solver exact has one."
    if not certificate.global_optimum:
        return f"No certificate: {certificate.reason}."
    if not certificate.convex:
        return f"Certificate: {certificate.reason}."
    # A gap below this is rounding.
    gap = max(certificate.gap, 1e-12)
    return f"Certificate: no other weights lower the loss by more than {gap:.1e}."
