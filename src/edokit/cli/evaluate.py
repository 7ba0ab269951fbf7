"""`edo evaluate`: all metrics of one file of probabilities, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from edokit._errors import InputError, option
from edokit.analysis.evaluate import evaluate as evaluate_probabilities
from edokit.analysis.evaluate.options import EvaluateOptions
from edokit.analysis.evaluate.text import further_tables, metric_table
from edokit.annotations.core import Ties
from edokit.cli import console, options
from edokit.predictions.core import Invalid

GATE_FAILED = 1
"""The exit code of a gate that fails."""


@dataclass(frozen=True, kw_only=True)
class EvaluateFlags:
    """Metrics and confidence intervals to compute.

    Parameters
    ----------
    ties : str
        Hard label of evenly split items.
    samples : int
        Bootstrap samples; 0 for no intervals.
    level : float
        Level of the intervals.
    random_state : int
        Seed of the bootstrap and of random ties.
    """

    by: options.By = None
    ties: Ties = "first"
    samples: int = 1000
    level: float = 0.95
    random_state: int = 0

    def to_options(self, invalid: Invalid) -> EvaluateOptions:
        """Return the options of the evaluation."""
        return EvaluateOptions(
            by=self.by,
            ties=self.ties,
            samples=self.samples,
            level=self.level,
            random_state=self.random_state,
            invalid=invalid,
        )


def evaluate(
    run: options.Argument | None = None,
    /,
    *,
    annotations: Path,
    gate: bool = False,
    tolerance: float = 0.0,
    probabilities: Path | None = None,
    ensemble: Path | None = None,
    predictions: Path | None = None,
    train: Annotated[options.TrainFiles, options.FLAT] = options.TrainFiles(),
    flags: Annotated[EvaluateFlags, options.FLAT] = EvaluateFlags(),
    normalize: options.Normalize = False,
    reading: Annotated[options.SplitReading, options.FLAT] = options.SplitReading(),
    json: options.Json = False,
) -> None:
    """Compare probabilities with annotations: F1, CE, MD, BS and more, with intervals.

    On an ordinal scale also RPS, W1 and MAD, for multi-label data exact match and label error.
    Beside each metric are its best possible value and that of a constant answer. A headline says
    where the probabilities are not clearly better than the constant answer.

    `edo evaluate RUN --annotations week.csv --gate` says whether new labels are answered as well as
    those of the fit, and exits with 1 if they clearly are not.

    Parameters
    ----------
    run : Path, optional
        With --gate: a folder made by `edo run`, or by `edo fit` with --predictions.
    annotations : Path
        Annotations of the same items (any source); with --gate they have texts.
    gate : bool, default=False
        Compare the loss on these labels with that on the held-out items of the fit.
    tolerance : float, default=0
        With --gate: a rise of the loss up to this share of it still passes, e.g. 0.02.
    probabilities : Path, optional
        A table with item and `p_<class>` columns; answers for each annotator have a column
        annotator, too (or are predictions of `edo score --annotators`).
    ensemble : Path, optional
        The ensemble that made them: it knows the constant answer to beat.
    predictions : Path, optional
        The members' predictions of these items: their uniform mean is shown, too; with --ensemble
        they are pooled, and --probabilities is not needed.
    """
    if gate:
        from edokit.analysis.gate import gate as compare_with_fit  # loads members

        if run is None:
            raise InputError(
                f"{option('gate', True)} compares with a fit, but no run is given",
                "write edo evaluate RUN --annotations week.csv --gate",
                code="missing-option",
            )
        _check_gate(probabilities, ensemble, train, flags, normalize=normalize)
        slice_column = None
        if flags.by:
            slice_column = flags.by[0]
        gate_result = compare_with_fit(
            run,
            annotations,
            predictions=predictions,
            by=slice_column,
            level=flags.level,
            tolerance=tolerance,
            **options.given_arguments(reading),
        )
        console.print_answer(gate_result, json)
        if not gate_result.passes:
            raise SystemExit(GATE_FAILED)
        return
    if tolerance:
        raise InputError(
            f"{option('tolerance', tolerance)} is for {option('gate', True)}, which is not given",
            f"add {option('gate', True)}, or leave {option('tolerance')} out",
            code="missing-option",
        )
    if run is not None:
        raise InputError(
            f"{run} is read as a run, which takes {option('gate', True)}",
            f"add {option('gate', True)}; if it holds probabilities, write"
            f" {option('probabilities', str(run))}",
            code="missing-option",
        )
    evaluation = evaluate_probabilities(
        probabilities,
        annotations,
        flags.to_options("normalize" if normalize else "error"),
        predictions=predictions,
        ensemble=ensemble,
        **options.given_arguments(train),
        **options.given_arguments(reading),
    )
    if json:
        console.print_json(evaluation.to_dict())
        return
    title = (probabilities or ensemble or annotations).name
    table = metric_table(evaluation, title)
    console.print_table(table.title, table.header, table.marked(), table.notes, evaluation.headline)
    subject = "ensemble" if probabilities is None else probabilities.name
    console.print_tables(*further_tables(evaluation, subject))


def _check_gate(
    probabilities: Path | None,
    ensemble: Path | None,
    train: options.TrainFiles,
    flags: EvaluateFlags,
    *,
    normalize: bool,
) -> None:
    """Refuse options that a gate does not take."""
    for name, value in (("probabilities", probabilities), ("ensemble", ensemble)):
        if value is not None:
            raise InputError(
                f"{option(name)} is not for {option('gate', True)}, whose run answers",
                "leave it out",
                code="inapplicable-option",
            )
    options.refuse_given(train, "an evaluation, not for --gate")
    if normalize:
        raise InputError(
            f"{option('normalize')} is for {option('probabilities')}, which a gate does not take",
            "leave it out",
            code="inapplicable-option",
        )
    defaults = EvaluateFlags()
    for name in ("ties", "samples", "random_state"):
        if getattr(flags, name) != getattr(defaults, name):
            raise InputError(
                f"{option(name)} is for an evaluation, not for {option('gate', True)}",
                "leave it out",
                code="inapplicable-option",
            )
    if flags.by is not None and len(flags.by) > 1:
        raise InputError(
            "a gate takes one column of slices", f"give {option('by')} once", code="repeated-option"
        )
