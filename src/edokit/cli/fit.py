"""`edo fit`: member weights from predictions and annotations, one configuration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edokit._errors import counted
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit.ensemble.fitted import Fitted
    from edokit.solvers import Certificate


TERMS = {
    "f1": "1 − soft F1",
    "ce": "cross-entropy",
    "div": "disagreement",
    "reg": "squared norm",
    "rps": "ranked probability",
    "w1": "Wasserstein-1",
    "total": "joint loss",
}


@options.streams
@options.reads(options.SPLIT, options.LABELS, options.LEARNING)
def fit(
    predictions: options.Predictions,
    annotations: options.Labels,
    out: Annotated[Path, typer.Option(help="Folder for the ensemble.")],
    preset: Annotated[
        str,
        typer.Option(help="default, paper-fixed, or paper (where the paper's search starts)."),
    ] = "default",
    solver: Annotated[str | None, typer.Option(help="exact or gumbel.")] = None,
    ce: Annotated[str | None, typer.Option(help="mean, all or random.")] = None,
    diversity: Annotated[str | None, typer.Option(help="preserve or suppress.")] = None,
    pool: Annotated[str | None, typer.Option(help="linear or log.")] = None,
    groups: options.Groups = None,
    lambda_f1: Annotated[float | None, typer.Option(help="Weight of the F1 term.")] = None,
    lambda_ce: Annotated[float | None, typer.Option(help="Weight of the cross-entropy.")] = None,
    lambda_div: Annotated[float | None, typer.Option(help="Weight of the diversity term.")] = None,
    lambda_reg: Annotated[
        float | None,
        typer.Option(
            help="Weight of the squared norm; in the default preset chosen by cross-validation."
        ),
    ] = None,
    lambda_rps: Annotated[
        float | None,
        typer.Option(help="Weight of the ranked probability score (ordinal scales)."),
    ] = None,
    lambda_w1: Annotated[
        float | None, typer.Option(help="Weight of the Wasserstein-1 distance (ordinal scales).")
    ] = None,
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
    label_weights: Annotated[
        str, typer.Option(help="Sets of labels: shared weights, or per-label.")
    ] = "shared",
    ties: options.Ties = "first",
    seed: Annotated[
        int, typer.Option(help="Seed of folds, of random ties and of the gumbel solver.")
    ] = 0,
    overwrite: options.Overwrite = False,
    *,
    reading: options.Reading,
    streaming: options.Streaming,
    json: options.Json = False,
) -> None:
    """Learn member weights and ensemble size, so that the pool matches the annotators."""
    flat = dict(locals())
    from edokit import ensemble
    from edokit.runs import command_text

    flat = {name: value for name, value in flat.items() if name in ensemble.OPTION_NAMES}
    with console.progress() as bars:
        fitted = ensemble.fit(
            predictions,
            annotations,
            ensemble=ensemble.EDOEnsemble(**ensemble.from_flat(flat), random_state=seed),
            out=out,
            overwrite=overwrite,
            command=command_text(["edo", *sys.argv[1:]]),
            **streaming.fit_inputs(bars, predictions, reading),
        ).fitted_
    if json:
        console.print_json(fitted.summary())
        return
    objective = fitted.objective
    console.print_table(
        f"{out}: {fitted.size} of {_units(fitted)}"
        f" {'carries' if fitted.size == 1 else 'carry'} weight"
        f" ({fitted.learned_from})",
        ["term", "value on the fit data"],
        [[name, f"{objective[term]:.4f}"] for term, name in TERMS.items() if term in objective],
        [
            *map(str, fitted.explanation),
            *(["Each label has weights of its own:"] if fitted.by_label else []),
            *fitted.by_label,
            *([f"Temperature after pooling: {fitted.temperature:.3f}."] if recalibrate else []),
            *filter(None, [fitted.cost_of_items, fitted.regularization]),
            _promise(fitted.certificate),
            *filter(None, [fitted.nothing_learned]),
        ],
    )


def _units(fitted: Fitted) -> str:
    """What has weights: members, or groups of them."""
    if fitted.groups is None:
        return counted(len(fitted.members), "member")
    groups = counted(len(set(fitted.groups)), "group")
    return f"{groups} ({counted(len(fitted.members), 'member')})"


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
