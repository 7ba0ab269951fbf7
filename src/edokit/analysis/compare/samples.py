"""The data of a comparison: predictions and labels to fit on and to evaluate on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from edokit._errors import EDOWarning, InputError, counted, option
from edokit._types import Ints
from edokit.analysis.compare.options import CompareOptions
from edokit.annotations.core import Annotations
from edokit.datasets.item_groups import item_clusters
from edokit.datasets.similar_texts import warn_of_similar_texts
from edokit.fitdata import inputs
from edokit.fitdata.reading import InputFiles, LabelsLike, PredictionsLike, ReadOptions
from edokit.folds import stratified_folds
from edokit.metrics.resampling import unit_count
from edokit.predictions.core import Predictions
from edokit.runs.inputs import Input
from edokit.scales import Scale, check_same_scale


@dataclass(frozen=True)
class Samples:
    """Predictions and labels of the items to fit on (dev) and of those to evaluate on (test).

    In a cross-validation both are the same, and ``folds`` [N] has the fold of each row.
    ``train_labels`` are the labels whose shares the constant answer has; None for those of dev.
    ``inputs`` are the files that were read, by role.
    """

    dev: Predictions
    dev_labels: Annotations
    test: Predictions
    test_labels: Annotations
    folds: Ints | None = None
    train_labels: Annotations | None = None
    inputs: Mapping[str, Input] = field(default_factory=dict)

    @property
    def scale(self) -> Scale:
        """The answer scale."""
        return self.dev_labels.scale

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in the order of the probabilities."""
        return tuple(self.dev_labels.classes)


def read_samples(
    predictions: PredictionsLike,
    annotations: LabelsLike,
    reading: ReadOptions,
    options: CompareOptions,
) -> Samples:
    """Predictions and annotations to cross-validate on, read and matched, with their folds."""
    dev = inputs.match_inputs(predictions, annotations, reading)
    return Samples(
        dev=dev.predictions,
        dev_labels=dev.annotations,
        test=dev.predictions,
        test_labels=dev.annotations,
        folds=deal_folds(dev.annotations, options),
        inputs=dev.inputs,
    )


def read_test_samples(
    predictions: PredictionsLike,
    annotations: LabelsLike,
    reading: ReadOptions,
    test_predictions: PredictionsLike,
    test_annotations: LabelsLike,
    test_reading: ReadOptions,
) -> Samples:
    """Predictions and annotations of dev and test, read and matched."""
    dev = inputs.match_inputs(predictions, annotations, reading)
    test = inputs.match_inputs(test_predictions, test_annotations, test_reading, is_test=True)
    classes = dev.annotations.classes
    test_labels = test.annotations
    is_same_kind = test_labels.scale.kind == dev.annotations.scale.kind
    if is_same_kind and test_labels.classes != classes:
        test_labels = test_labels.with_classes(classes)
    check_same_scale(dev.annotations.scale, "annotations", test_labels.scale, "test annotations")
    matched_test = inputs.select_members(
        test.predictions.order_classes(classes), dev.predictions.members, "test predictions"
    )
    inputs.check_disjoint(dev.predictions, matched_test)
    return Samples(
        dev=dev.predictions,
        dev_labels=dev.annotations,
        test=matched_test,
        test_labels=test_labels,
        inputs={**dev.inputs, **test.inputs},
    )


def deal_folds(labels: Annotations, options: CompareOptions) -> Ints:
    """The fold of each row [N]; near-duplicate texts and the items of a group share one."""
    groups = item_clusters(labels, most_texts=None)
    if not labels.rows.are_pairs:
        warn_of_similar_texts(labels)
    with warnings.catch_warnings():
        # The warning about ties comes with the evaluation.
        warnings.simplefilter("ignore", EDOWarning)
        hard = labels.hard_labels()
    items = labels.rows.count_items()
    size = counted(items, "item")
    units = unit_count(len(hard), groups)
    if units < items:
        size += f" in {counted(units, 'group')}"
    if units < 2 * options.folds:
        raise InputError(
            f"{size} are too few to cross-validate in {option('folds', options.folds)}",
            f"give {option('test_predictions')}, or fewer folds",
            code="too-many-folds",
        )
    seed = [options.random_state, options.folds, 0]
    return stratified_folds(hard, options.folds, seed, groups=groups)


def align_extra_pool(
    name: str,
    pool: tuple[PredictionsLike, PredictionsLike],
    data: Samples,
    reading: ReadOptions,
) -> tuple[Predictions, Predictions]:
    """The predictions of another pool of members on the items of dev and of test."""
    dev = _align_pool(name, pool[0], data.dev, data, reading)
    test = _align_pool(name, pool[1], data.test, data, reading)
    return dev, inputs.select_members(test, dev.members, f"test predictions of {name!r}")


def _align_pool(
    name: str,
    source: PredictionsLike,
    members: Predictions,
    data: Samples,
    reading: ReadOptions,
) -> Predictions:
    """The predictions of a pool, in the order of these members' items and classes."""
    loaded = InputFiles(ReadOptions(scale=reading.scale)).predictions("predictions", source)
    predictions = inputs.predictions_for(data.dev_labels, loaded, reading.scale, reading.order)
    predictions = inputs.with_declared_order(predictions, members.rows, reading.order)
    predictions = predictions.align(members.rows, f"the predictions to compare {name!r} with")
    return predictions.order_classes(data.classes)
