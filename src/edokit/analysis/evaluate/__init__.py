"""`evaluate`: probabilities against annotations in every metric, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from edokit.analysis.evaluate.answers import ProbabilitiesLike, read_answers
from edokit.analysis.evaluate.options import EvaluateOptions
from edokit.analysis.evaluate.result import Evaluation
from edokit.analysis.evaluate.statistics import evaluate_answers
from edokit.analysis.scores.slices import find_slices
from edokit.analysis.scores.statistics import constant_of_annotations, find_constant
from edokit.fitdata.inputs import load_annotations
from edokit.fitdata.reading import (
    AnnotationsLike,
    PredictionsLike,
    ReadOptions,
    separate_settings,
)
from edokit.item_array import Order

if TYPE_CHECKING:
    from edokit.ensemble.estimator import EDOEnsemble


def evaluate(
    probabilities: ProbabilitiesLike | None,
    annotations: AnnotationsLike,
    options: EvaluateOptions | None = None,
    *,
    predictions: PredictionsLike | None = None,
    ensemble: EDOEnsemble | str | Path | None = None,
    split: str | Sequence[str] | None = None,
    train_split: str | Sequence[str] | None = None,
    order: Order | None = None,
    **settings: object,
) -> Evaluation:
    """Evaluate probabilities against annotations with every metric.

    Parameters
    ----------
    probabilities : path, table, Predictions, Pooled or array-like
        A file or table with ``item`` and one ``p_<class>`` column per class, matched by item id
        (the index of a DataFrame without ``item``); what an ensemble's ``predict_proba`` or
        ``describe`` returns for named predictions, also matched by id; or a bare array [N, C] with
        the annotations' classes, whose rows ``order`` explains. Answers for each annotator (a table
        with ``annotator``, too, or predictions of pairs, as of `edo score --annotators`) are
        averaged over an item's annotators. None for the probabilities of ``ensemble`` on
        ``predictions``.
    annotations : Annotations, path or table
        Annotations of the same items; a path is read with `edokit.read_annotations`, a table with
        `Annotations.from_table`.
    options : EvaluateOptions, default=None
        Metrics and confidence intervals to compute.
    predictions : Predictions, array of shape (N, K, C), str or Path, default=None
        The members' predictions of the same items: their uniform mean is evaluated, too. With
        predictions for pairs of an item and an annotator, the ensemble is evaluated as answers for
        annotators.
    ensemble : EDOEnsemble, str or Path, default=None
        The ensemble, or its folder, that made the probabilities. The constant answer then has the
        shares of the items that it was fitted on.
    split : str or sequence of str, default=None
        Only these splits of the annotations.
    train_split : str or sequence of str, default=None
        Splits of ``annotations`` whose shares the constant answer has instead. Without them and
        without an ensemble it has those of the evaluated items, the best constant answer to them.
    order : {"annotations"}, default=None
        The rows of arrays without ids are in the order of the annotations' items. None: arrays
        without ids are refused, unless the annotations have none either.
    **settings
        Single fields of `EvaluateOptions`, such as ``samples=200``, and further arguments of
        `read_annotations`, such as ``columns`` or ``scale``, for annotations that are files.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        If the items, classes or scales differ, only the annotations have ids, a row holds no
        probabilities, or ``samples`` is too small.

    Examples
    --------
    >>> import edokit
    >>> annotations = edokit.Annotations.from_matrix(
    ...     [["no", "yes", "yes"], ["no", "no", "no"]], items=["a", "b"]
    ... )
    >>> probabilities = {"item": ["b", "a"], "p_no": [0.9, 0.4], "p_yes": [0.1, 0.6]}
    >>> evaluation = edokit.evaluate(probabilities, annotations, samples=0)
    >>> evaluation
    Evaluation(2 items, f1=1.0000, ce=0.3757, md=0.1667, bs=0.0144)
    >>> round(evaluation.ce_floor, 4)
    0.3183
    """
    changes, arguments = separate_settings(settings, EvaluateOptions)
    options = replace(options or EvaluateOptions(), **changes)
    reading = ReadOptions.from_arguments(arguments, split=split)
    labels = load_annotations(annotations, reading).annotations
    slices = find_slices(labels, options.by)
    if isinstance(ensemble, str | Path):
        from edokit.ensemble.estimator import EDOEnsemble

        ensemble = EDOEnsemble.load(ensemble)
    answers = read_answers(probabilities, predictions, ensemble, labels, options.invalid, order)
    labels = answers.labels
    y = labels.hard_labels(ties=options.ties, random_state=options.random_state)
    if train_split is None:
        constant = find_constant(ensemble, labels, y)
    else:
        train_reading = replace(reading, split=train_split)
        train = load_annotations(annotations, train_reading, "train_annotations").annotations
        train = train.with_classes(labels.classes)
        constant = constant_of_annotations(
            train, "train", ties=options.ties, random_state=options.random_state
        )
    subject = "The model"
    if isinstance(probabilities, str | Path):
        subject = Path(probabilities).name
    elif ensemble is not None:
        subject = "The ensemble"
    return evaluate_answers(answers, y, constant, slices, options, subject)
