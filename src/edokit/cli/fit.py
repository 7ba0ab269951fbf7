"""`edo fit`: member weights from predictions and annotations, one configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from edokit._errors import counted, option, warn
from edokit.annotations.core import Ties
from edokit.cli import console, options
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.estimator import fit as fit_ensemble
from edokit.ensemble.fitted import Fitted
from edokit.objective.settings import (
    FLAT_NAMES,
    Exact,
    Gumbel,
    Objective,
    preset_objective,
    preset_solver,
)
from edokit.scales import ScaleLike

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
class FitFlags:
    """The configuration of a fit, as flags. What is not given is as in the preset.

    Parameters
    ----------
    preset : str
        default: exact solver, settings chosen by experiments, --lambda-reg by cross-validation on
        the fit data; paper-fixed: the paper's ablations. The paper's search over settings is `edo
        search --space paper`.
    solver : str, optional
        The optimum, with a certificate, or the paper's search over weights and sizes; else that
        of the preset.
    pool : str, optional
        Linear or logarithmic opinion pool; else linear. The log pool needs the exact solver.
    groups : bool, optional
        Average the members of a group first and learn weights between groups.
    recalibrate : str, optional
        Fit a temperature after pooling.
    ties : str
        Hard label of items whose annotators are evenly split.
    random_state : int
        Seed of gumbel, of random ties and of the folds of the cross-validation.
    ce : str, optional
        Cross-entropy of the pool, of every member by its weight, or of one member per item,
        sampled by weight.
    lambda_ce : float, optional
        Weight of the cross-entropy (λ_CE).
    lambda_f1 : float, optional
        Weight of 1 − soft micro-F1 (λ_F1); for a log pool, of the members' weighted mean.
    lambda_div : float, optional
        Weight of the mean pairwise disagreement between members (λ_Div).
    lambda_reg : float, optional
        Weight of the squared norm of the weights (λ_Reg), which shrinks them towards uniform ones.
        By default chosen by five-fold cross-validation on the fit data.
    lambda_rps : float, optional
        Weight of the ranked probability score (λ_RPS); ordinal scales and linear pools only.
    lambda_w1 : float, optional
        Weight of the Wasserstein-1 distance (λ_W1); ordinal scales and linear pools only.
    diversity : str, optional
        Reward or penalise disagreement between members (the paper's s = -1 and s = +1); without
        effect if --lambda-div is 0.
    class_weights : bool, optional
        Weigh the classes in the cross-entropy by inverse frequency.
    max_members : int, optional
        Largest number of members (K_max), those with the lowest cross-entropy on the fit data. By
        default all members.
    epochs : int, optional
        Gumbel: passes over the items.
    learning_rate : float, optional
        Gumbel: step size of Adam (η).
    min_members : int, optional
        Gumbel: smallest number of members (K_min).
    no_people : bool
        Do not estimate how annotators and their attributes differ from the pool; `edo predict` then
        answers for nobody in particular.
    """

    preset: Literal["default", "paper-fixed"] = "default"
    solver: Literal["exact", "gumbel"] | None = None
    pool: Literal["linear", "log"] | None = None
    groups: Annotated[bool | None, options.TWO_SIDED] = None
    recalibrate: Literal["temperature"] | None = None
    ties: Ties = "first"
    random_state: int = 0
    ce: Literal["mean", "all", "random"] | None = None
    lambda_ce: float | None = None
    lambda_f1: float | None = None
    lambda_div: float | None = None
    lambda_reg: float | None = None
    lambda_rps: float | None = None
    lambda_w1: float | None = None
    diversity: Literal["preserve", "suppress"] | None = None
    class_weights: Annotated[bool | None, options.TWO_SIDED] = None
    max_members: int | None = None
    epochs: int | None = None
    learning_rate: float | None = None
    min_members: int | None = None
    no_people: bool = False

    def ensemble(self, scale: ScaleLike | None = None) -> EDOEnsemble:
        """Return the estimator with these parameters.

        Options of the gumbel solver that the exact one does not have are left out, with a warning.
        """
        return EDOEnsemble(
            self.preset,
            pool=self.pool,
            groups=self.groups,
            objective=self._objective(),
            solver=self._solver(),
            recalibrate=self.recalibrate,
            scale=scale,
            ties=self.ties,
            people=not self.no_people,
            random_state=self.random_state,
        )

    def _objective(self) -> Objective | None:
        """Return the objective that the flags ask for; None if it is that of the preset."""
        flags = {field: getattr(self, flag) for field, flag in FLAT_NAMES.items()}
        changes = _without_none(flags)
        if not changes:
            return None
        base = preset_objective(self.preset)
        objective = replace(base, **changes)
        return None if objective == base else objective

    def _solver(self) -> Literal["exact", "gumbel"] | Exact | Gumbel | None:
        """Return the solver that the flags ask for.

        A name, or None, stands for a solver as the preset configures it.
        """
        base = preset_solver(self.preset, self.solver)
        flags: dict[str, float | None] = {"max_members": self.max_members}
        if isinstance(base, Exact):
            self._warn_of_gumbel_flags()
        else:
            flags["epochs"] = self.epochs
            flags["learning_rate"] = self.learning_rate
            flags["min_members"] = self.min_members
        changes = _without_none(flags)
        if not changes:
            return self.solver
        solver = replace(base, **changes)
        return self.solver if solver == base else solver

    def _warn_of_gumbel_flags(self) -> None:
        """Warn of flags that the exact solver does not use."""
        unused_flags: list[str] = []
        for name in ("epochs", "learning_rate", "min_members"):
            if getattr(self, name) is not None:
                unused_flags.append(option(name))
        if unused_flags:
            warn(f"{', '.join(unused_flags)}: only the gumbel solver uses this")


def _without_none(flags: Mapping[str, object]) -> dict[str, Any]:
    """Return the flags that are given, by name."""
    return {name: value for name, value in flags.items() if value is not None}


def fit(
    *,
    predictions: options.PredictionsPath,
    annotations: options.AnnotationsPath,
    out: Path,
    flags: Annotated[FitFlags, options.FLAT] = FitFlags(),
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
    ensemble = flags.ensemble()
    read_options = options.given_arguments(reading)
    split = read_options.pop("split", None)
    with console.progress() as bars:
        fitted = fit_ensemble(
            predictions,
            annotations,
            ensemble=ensemble,
            out=out,
            split=split,
            overwrite=overwrite,
            command=console.command_line(),
            streaming=streaming.shard_options(bars, predictions, reading.learn),
            read_options=read_options,
        ).fitted_
    recalibrated = flags.recalibrate is not None
    console.print_result(fitted.summary(), lambda: _print(fitted, out, recalibrated), json)


def _print(fitted: Fitted, out: Path, recalibrated: bool) -> None:
    """The losses, and why members have their weights."""
    verb = "carry"
    if fitted.size == 1:
        verb = "carries"
    losses = fitted.objective
    notes: list[str | None] = [str(reason) for reason in fitted.explanation]
    if recalibrated:
        notes.append(f"Temperature after pooling: {fitted.temperature:.3f}.")
    certificate = "No certificate: gumbel is a search; --solver exact has one."
    if fitted.certificate is not None:
        certificate = str(fitted.certificate)
    notes += [fitted.regularization, certificate, fitted.nothing_learned, fitted.below_constant]
    console.print_table(
        f"{out}: {fitted.size} of {_units(fitted)} {verb} weight ({fitted.learned_from})",
        ["term", "value on the fit data"],
        [[name, losses[term]] for term, name in LOSS_TERMS.items() if term in losses],
        [note for note in notes if note],
    )


def _units(fitted: Fitted) -> str:
    """What has weights: members, or groups of them."""
    if fitted.groups is None:
        return counted(len(fitted.members), "member")
    groups = counted(len(set(fitted.groups)), "group")
    return f"{groups} ({counted(len(fitted.members), 'member')})"
