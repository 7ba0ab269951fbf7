"""`edo evaluate`: all metrics of one file of probabilities, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from edokit.analysis.evaluate import evaluate as evaluate_probabilities
from edokit.analysis.evaluate.options import EvaluateOptions
from edokit.analysis.evaluate.text import further_tables, metric_table
from edokit.cli import console, options


@options.evaluated
@dataclass(frozen=True, kw_only=True)
class Scoring(EvaluateOptions):
    """The options of an evaluation as one types them."""

    by: options.By = None
    invalid: Annotated[Literal["error"], options.HIDDEN] = "error"


def evaluate(
    *,
    annotations: Path,
    probabilities: Path | None = None,
    ensemble: Path | None = None,
    predictions: Path | None = None,
    train: Annotated[options.TrainFiles, options.FLAT] = options.TrainFiles(),
    scoring: Annotated[Scoring, options.FLAT] = Scoring(),
    normalize: options.Normalize = False,
    reading: Annotated[options.SplitReading, options.FLAT] = options.SplitReading(),
    json: options.Json = False,
) -> None:
    """Compare probabilities with annotations: F1, CE, MD, BS and more, with intervals.

    On an ordinal scale also RPS, W1 and MAD, for multi-label data exact match and label error.
    Beside each the best possible value and that of a constant answer, and a headline where they
    are not better than it.

    Parameters
    ----------
    annotations : Path
        Annotations of the same items (any source).
    probabilities : Path, optional
        A table with item and `p_<class>` columns; answers for each annotator have a column
        annotator, too (or are predictions of `edo score --annotators`).
    ensemble : Path, optional
        The ensemble that made them: it knows the constant answer to beat.
    predictions : Path, optional
        The members' predictions of these items: their uniform mean is shown, too; with --ensemble
        they are pooled, and --probabilities is not needed.
    """
    evaluation = evaluate_probabilities(
        probabilities,
        annotations,
        scoring,
        predictions=predictions,
        ensemble=ensemble,
        invalid="normalize" if normalize else "error",
        **options.keywords(train),
        **options.keywords(reading),
    )
    if json:
        console.print_json(evaluation.to_dict())
        return
    title = (probabilities or ensemble or annotations).name
    table = metric_table(evaluation, title)
    console.print_table(table.title, table.header, table.shown(), table.notes, evaluation.headline)
    subject = "ensemble" if probabilities is None else probabilities.name
    console.print_tables(*further_tables(evaluation, subject))
