"""`edo fit`: member weights from predictions and annotations, one configuration."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from edokit._errors import counted
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit.ensemble.fitted import Fitted
    from edokit.solvers import Certificate


LOSS_TERMS = {
    "f1": "1 − soft F1",
    "ce": "cross-entropy",
    "div": "disagreement",
    "reg": "squared norm",
    "rps": "ranked probability",
    "w1": "Wasserstein-1",
    "total": "joint loss",
}


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Parameters of `EDOEnsemble`; what is not given is as the preset says.

    Parameters
    ----------
    preset : str, default="default"
        default, paper-fixed, or paper (where the paper's search starts).
    solver : str, optional
        exact or gumbel.
    ce : str, optional
        mean, all or random.
    diversity : str, optional
        preserve or suppress.
    pool : str, optional
        linear or log.
    groups : bool, optional
        Average the members of each group first.
    lambda_f1 : float, optional
        Weight of the F1 term.
    lambda_ce : float, optional
        Weight of the cross-entropy.
    lambda_div : float, optional
        Weight of the diversity term.
    lambda_reg : float, optional
        Weight of the squared norm; in the default preset chosen by cross-validation.
    lambda_rps : float, optional
        Weight of the ranked probability score (ordinal scales).
    lambda_w1 : float, optional
        Weight of the Wasserstein-1 distance (ordinal scales).
    class_weights : bool, optional
        Weigh rare classes up.
    min_members : int, optional
        Smallest size (gumbel).
    max_members : int, optional
        Largest size.
    epochs : int, optional
        Epochs (gumbel).
    learning_rate : float, optional
        Step size (gumbel).
    recalibrate : str, optional
        temperature: fit one after pooling.
    label_weights : str, default="shared"
        Sets of labels: shared weights, or per-label.
    ties : str, default="first"
        Hard label of evenly split items: first, error or random.
    random_state : int, default=0
        Seed of folds, of random ties and of the gumbel solver.
    """

    preset: str = "default"
    solver: str | None = None
    ce: str | None = None
    diversity: str | None = None
    pool: str | None = None
    groups: Annotated[bool | None, options.TWO_SIDED] = None
    lambda_f1: float | None = None
    lambda_ce: float | None = None
    lambda_div: float | None = None
    lambda_reg: float | None = None
    lambda_rps: float | None = None
    lambda_w1: float | None = None
    class_weights: Annotated[bool | None, options.TWO_SIDED] = None
    min_members: int | None = None
    max_members: int | None = None
    epochs: int | None = None
    learning_rate: float | None = None
    recalibrate: str | None = None
    label_weights: str = "shared"
    ties: str = "first"
    random_state: int = 0


def fit(
    *,
    predictions: options.Pool,
    annotations: options.Labels,
    out: Path,
    configuration: Annotated[Configuration, options.FLAT] = Configuration(),
    overwrite: options.Overwrite = False,
    reading: Annotated[options.FitReading, options.FLAT] = options.FitReading(),
    streaming: Annotated[options.Streaming, options.FLAT] = options.Streaming(),
    json: options.Json = False,
) -> None:
    """Learn member weights and ensemble size, so that the pool matches the annotators.

    Parameters
    ----------
    out : Path
        Folder for the ensemble.
    """
    from edokit import ensemble

    flat = asdict(configuration)
    seed = flat.pop("random_state")
    with console.progress() as bars:
        fitted = ensemble.fit(
            predictions,
            annotations,
            ensemble=ensemble.EDOEnsemble(**ensemble.from_flat(flat), random_state=seed),
            out=out,
            overwrite=overwrite,
            command=console.command_line(),
            **streaming.fit_inputs(bars, predictions, reading),
        ).fitted_
    if json:
        console.print_json(fitted.summary())
    else:
        _print(fitted, out, configuration.recalibrate is not None)


def _print(fitted: Fitted, out: Path, recalibrated: bool) -> None:
    verb = "carries" if fitted.size == 1 else "carry"
    losses = fitted.objective
    notes: list[str | None] = [str(reason) for reason in fitted.explanation]
    if fitted.by_label:
        notes += ["Each label has weights of its own:", *fitted.by_label]
    if recalibrated:
        notes.append(f"Temperature after pooling: {fitted.temperature:.3f}.")
    notes += [fitted.cost_of_items, fitted.regularization, _promise(fitted.certificate)]
    console.print_table(
        f"{out}: {fitted.size} of {_units(fitted)} {verb} weight ({fitted.learned_from})",
        ["term", "value on the fit data"],
        [[name, f"{losses[term]:.4f}"] for term, name in LOSS_TERMS.items() if term in losses],
        list(filter(None, [*notes, fitted.nothing_learned])),
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
