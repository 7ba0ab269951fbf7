"""`edo fit`: member weights from predictions and annotations, one configuration."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import asdict, make_dataclass
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

from cyclopts import Parameter
from docstring_parser import parse

from edokit._errors import counted
from edokit.cli import console, options
from edokit.config import SHARED, SOLVER_OPTIONS, from_flat
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.estimator import fit as fit_ensemble
from edokit.ensemble.fitted import Fitted
from edokit.objective.settings import FLAT_NAMES, Gumbel, Objective

LOSS_TERMS = {
    "f1": "1 − soft F1",
    "ce": "cross-entropy",
    "div": "disagreement",
    "reg": "squared norm",
    "rps": "ranked probability",
    "w1": "Wasserstein-1",
    "total": "joint loss",
}


def _flat_options() -> Iterator[tuple[str, Any, Any]]:
    """Name, type and default of every flat option of `EDOEnsemble`, with the help of its class."""
    ensemble_names = {name: name for name in ("preset", "solver", *SHARED) if name != "scale"}
    solver_names = {name: name for name in SOLVER_OPTIONS}
    tables = ((EDOEnsemble, ensemble_names), (Objective, FLAT_NAMES), (Gumbel, solver_names))
    for kind, names in tables:
        hints: dict[str, Any] = get_type_hints(kind.__init__)
        help_texts = {part.arg_name: part.description for part in parse(kind.__doc__ or "").params}
        for field, name in names.items():
            default = inspect.signature(kind).parameters[field].default
            # None: as the preset says.
            default = default if kind is EDOEnsemble else None
            yield name, _flag(hints[field], help_texts[field]), default


def _flag(hint: Any, help_text: str | None) -> Any:
    """The type of a flat option: the first that its field may have, or none."""
    parts = (hint, *get_args(hint))
    choices = [part for part in parts if get_origin(part) is Literal]
    sides = ("no-",) if bool in parts else ()
    parameter = Parameter(help=help_text, negative_bool=sides)
    return Annotated[(choices or parts)[0] | None, parameter]


if TYPE_CHECKING:
    Configuration: TypeAlias = Any
else:
    Configuration = make_dataclass(
        "Configuration", _flat_options(), namespace={"__module__": __name__}, frozen=True
    )


def fit(
    *,
    predictions: options.PredictionsPath,
    annotations: options.AnnotationsPath,
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
    read_options = options.keywords(reading)
    split = read_options.pop("split", None)
    with console.progress() as bars:
        fitted = fit_ensemble(
            predictions,
            annotations,
            ensemble=EDOEnsemble(**from_flat(asdict(configuration))),
            out=out,
            overwrite=overwrite,
            command=console.command_line(),
            split=split,
            read_options=read_options,
            streaming=streaming.passes(bars, predictions, reading.learn),
        ).fitted_
    recalibrated = configuration.recalibrate is not None
    console.print_result(fitted.summary(), lambda: _print(fitted, out, recalibrated), json)


def _print(fitted: Fitted, out: Path, recalibrated: bool) -> None:
    verb = "carries" if fitted.size == 1 else "carry"
    losses = fitted.objective
    notes: list[str | None] = [str(reason) for reason in fitted.explanation]
    if recalibrated:
        notes.append(f"Temperature after pooling: {fitted.temperature:.3f}.")
    certificate = (
        fitted.certificate or "No certificate: gumbel is a search; --solver exact has one."
    )
    notes += [fitted.regularization, str(certificate)]
    console.print_table(
        f"{out}: {fitted.size} of {_units(fitted)} {verb} weight ({fitted.learned_from})",
        ["term", "value on the fit data"],
        [[name, losses[term]] for term, name in LOSS_TERMS.items() if term in losses],
        list(filter(None, [*notes, fitted.nothing_learned, fitted.below_constant])),
    )


def _units(fitted: Fitted) -> str:
    """What has weights: members, or groups of them."""
    if fitted.groups is None:
        return counted(len(fitted.members), "member")
    groups = counted(len(set(fitted.groups)), "group")
    return f"{groups} ({counted(len(fitted.members), 'member')})"
