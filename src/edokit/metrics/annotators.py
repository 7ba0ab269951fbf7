"""Whom do the predictions serve badly? The error for each annotator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Floats, Ints
from edokit.metrics import _checks
from edokit.metrics.scores import CLIP


@dataclass(frozen=True)
class AnnotatorErrors:
    """One entry per annotator who gave at least one annotation; every array is [A]."""

    annotator: Ints
    """Codes of the annotators, ascending."""
    n: Ints
    """How many annotations each one gave."""
    ce: Floats
    """Cross-entropy of the predictions on the annotator's own labels."""
    error: Floats
    """Share of the annotator's labels that differ from the likeliest class."""


def annotator_errors(
    p: npt.ArrayLike, items: npt.ArrayLike, annotators: npt.ArrayLike, labels: npt.ArrayLike
) -> AnnotatorErrors:
    """The error of predictions p [N, C] on each annotator's own labels.

    Annotation m says: annotator ``annotators[m]`` gave item ``items[m]`` the class
    ``labels[m]`` (codes [M]), or the probabilities ``labels[m]`` ([M, C]); then the error is
    one less the probability that the annotator gave to the likeliest class.
    """
    predicted = _checks.probabilities("p", p)
    count, classes = predicted.shape
    item = _checks.codes("items", items, None, count, "item")
    if not len(item):
        raise InputError("items must hold at least one annotation, but it is empty", "give some")
    annotator = _checks.codes("annotators", annotators, len(item), None, "annotator")

    logs = np.log(np.clip(predicted, CLIP, 1 - CLIP))
    likeliest = predicted.argmax(axis=1)[item]
    answers = _checks.as_array("labels", labels)
    if answers.ndim == 2:
        given = _checks.probabilities("labels", answers)
        if given.shape != (len(item), classes):
            raise InputError(
                f"labels must be codes [{len(item)}] or probabilities [{len(item)}, {classes}], "
                f"but got [{given.shape[0]}, {given.shape[1]}]",
                "give one row per annotation and one column per class of p",
            )
        losses = -np.einsum("mc,mc->m", given, logs[item])
        wrong = 1 - given[np.arange(len(item)), likeliest]
    else:
        label = _checks.codes("labels", answers, len(item), classes, "class")
        losses = -logs[item, label]
        wrong = (likeliest != label).astype(np.float64)

    who, place, n = np.unique(annotator, return_inverse=True, return_counts=True)
    return AnnotatorErrors(
        annotator=who,
        n=n.astype(np.int64),
        ce=np.bincount(place, weights=losses) / n,
        error=np.bincount(place, weights=wrong) / n,
    )
