"""The data of a comparison: predictions and labels to fit on and to evaluate on."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from edokit._errors import EDOWarning, InputError, counted, option
from edokit._types import Ints
from edokit.analysis.compare.options import CompareOptions
from edokit.annotations.core import Annotations
from edokit.datasets.item_groups import item_clusters
from edokit.datasets.similar_texts import warn_of_similar_texts
from edokit.fitdata import inputs
from edokit.folds import stratified_folds
from edokit.predictions.core import Predictions
from edokit.runs.inputs import InputReader
from edokit.scales import Scale, check_same_scale

PredictionsSource: TypeAlias = Predictions | npt.ArrayLike | str | Path
AnnotationsSource: TypeAlias = Annotations | npt.ArrayLike | str | Path


@dataclass(frozen=True)
class Source:
    """Predictions and annotations of some items as they are given: in memory or as files."""

    predictions: PredictionsSource
    annotations: AnnotationsSource
    split: str | Sequence[str] | None


@dataclass(frozen=True)
class Samples:
    """Predictions and labels of the items to fit on (dev) and of those to evaluate on (test).

    In a cross-validation both are the same, and ``folds`` [N] has the fold of each row.
    ``train_labels`` are the labels whose shares the constant answer has; None for those of dev.
    """

    dev: Predictions
    dev_labels: Annotations
    test: Predictions
    test_labels: Annotations
    folds: Ints | None = None
    train_labels: Annotations | None = None

    @property
    def scale(self) -> Scale:
        """The answer scale."""
        return self.dev_labels.scale

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in the order of the probabilities."""
        return tuple(self.dev_labels.classes)


def read_samples(
    reader: InputReader, dev: Source, test: Source | None, options: CompareOptions
) -> Samples:
    """Predictions and annotations of dev and test, read and matched.

    Without a test source, the items of dev are dealt into folds.
    """
    dev_labels = reader.annotations("annotations", dev.annotations, dev.split)
    dev_predictions = reader.predictions("predictions", dev.predictions)
    dev_predictions, dev_labels = inputs.align_inputs(dev_predictions, dev_labels)
    if test is None:
        folds = _deal_folds(dev_labels, options)
        return Samples(dev_predictions, dev_labels, dev_predictions, dev_labels, folds)

    test_labels = reader.annotations("test_annotations", test.annotations, test.split)
    test_predictions = reader.predictions("test_predictions", test.predictions)
    test_predictions, test_labels = inputs.align_test_inputs(
        test_predictions, test_labels, test.split
    )
    is_same_kind = test_labels.scale.kind == dev_labels.scale.kind
    if is_same_kind and test_labels.classes != dev_labels.classes:
        test_labels = test_labels.with_classes(dev_labels.classes)
    check_same_scale(dev_labels.scale, "annotations", test_labels.scale, "test annotations")
    test_predictions = test_predictions.order_classes(dev_labels.classes)
    test_predictions = inputs.select_members(
        test_predictions, dev_predictions.members, "test predictions"
    )
    inputs.check_disjoint(dev_predictions, test_predictions)
    return Samples(dev_predictions, dev_labels, test_predictions, test_labels)


def _deal_folds(labels: Annotations, options: CompareOptions) -> Ints:
    """The fold of each row [N]; near-duplicate texts and the items of a group share one."""
    groups = item_clusters(labels, most_texts=None)
    if labels.rows.annotators is None:
        warn_of_similar_texts(labels)
    with warnings.catch_warnings():
        # The warning about ties comes with the evaluation.
        warnings.simplefilter("ignore", EDOWarning)
        hard = labels.hard_labels()
    units = len(hard)
    noun = "item"
    if groups is not None:
        units = len(np.unique(groups))
    if labels.item_groups is not None:
        noun = "group"
    if units < 2 * options.folds:
        raise InputError(
            f"{counted(units, noun)} are too few to cross-validate in"
            f" {option('folds', options.folds)}",
            f"give {option('test_predictions')}, or fewer folds",
        )
    seed = [options.random_state, options.folds, 0]
    return stratified_folds(hard, options.folds, seed, groups=groups)


def align_extra_pool(
    reader: InputReader, name: str, pool: tuple[PredictionsSource, PredictionsSource], data: Samples
) -> tuple[Predictions, Predictions]:
    """The predictions of another pool of members on the items of dev and of test."""
    dev_source, test_source = pool
    dev = _align_pool(reader, name, dev_source, data.dev, data)
    test = _align_pool(reader, name, test_source, data.test, data)
    return dev, inputs.select_members(test, dev.members, f"test predictions of {name!r}")


def _align_pool(
    reader: InputReader, name: str, source: PredictionsSource, members: Predictions, data: Samples
) -> Predictions:
    """The predictions of a pool, in the order of these members' items and classes."""
    predictions = inputs.predictions_for(data.dev_labels, reader.predictions("extra", source))
    predictions = predictions.align(members.rows, f"the predictions to compare {name!r} with")
    return predictions.order_classes(data.classes)
