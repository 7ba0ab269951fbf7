"""The labels of the annotators as vectors, which audits, plans, gates and checks of labels share.

Labels are compared as vectors whose squared distance says how much two of them disagree, from 0 to
1 (`Scale.vectors`), so that one formula serves nominal, ordinal and multi-label data.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from edokit._types import Bools, Codes, Floats, Ints
from edokit.annotations.core import Annotations
from edokit.annotator_effects import label_shares
from edokit.metrics import headline_metric, item_values
from edokit.metrics.formulas import decisions
from edokit.predictions.core import Predictions
from edokit.rows import sums
from edokit.scales import Scale

WIDTHS = (0.05, 0.1, 0.2, 0.4)
"""Distances, as shares of an ordinal scale, at which a label counts about a third (1/e)."""


def nearness_kernels(scale: Scale, is_used: Bools) -> list[Floats]:
    """How much a label counts for each of the classes in use [C, C].

    In the first kernel, it counts for its class alone; on an ordinal scale, there is one more for
    each of the `WIDTHS`, in which it also counts for near classes.
    """
    kernels = [np.eye(int(is_used.sum()))]
    if scale.span is not None:
        places = np.array(scale.positions)[is_used] / scale.span
        distances = np.abs(places[:, None] - places)
        for width in WIDTHS:
            nearness = np.exp(-distances / width)
            kernels.append(nearness / nearness.sum(axis=1, keepdims=True))
    return kernels


def match_jury(
    predictions: Predictions, annotations: Annotations
) -> tuple[Predictions, Annotations]:
    """Members' predictions and the annotations, with the same items and classes in one order."""
    jury = predictions.annotated(annotations)
    jury = jury.on_scale(annotations.scale, "annotations")
    if set(annotations.classes) < set(jury.classes):
        annotations = annotations.with_classes(jury.classes)
    jury = jury.order_classes(annotations.classes).panel_means()
    return jury.align(annotations.rows), annotations


class HumanLabels:
    """The labels of N items, M in all: of each annotator, only the first one for an item.

    Attributes
    ----------
    annotations : Annotations
    scale : Scale
    n_classes : int
        Number of classes, C.
    shares : Floats
        The labels as distributions over the classes [M, C].
    item_codes, annotator_codes : Ints
        Item and annotator of each label [M].
    counts : Ints
        Number of labels of each item [N].
    """

    def __init__(self, annotations: Annotations) -> None:
        is_first = ~annotations.repeated
        self.annotations = annotations
        self.scale = annotations.scale
        self.n_classes = len(annotations.classes)
        self.shares: Floats = label_shares(annotations, self.n_classes)[is_first]
        self.item_codes: Ints = annotations.item_codes[is_first].astype(np.int64)
        self.annotator_codes: Codes = annotations.annotator_codes[is_first]
        self.counts: Ints = np.bincount(self.item_codes, minlength=len(annotations.items))

    def vectors(self, shares: Floats, *, absolute: bool = True) -> Floats:
        """Distributions [..., C] as vectors [..., D], compared as `Scale.vectors` says."""
        return shares @ self.scale.vectors(self.n_classes, absolute=absolute)

    def single_answers(self, p: Floats) -> Floats:
        """The single answer of each distribution, with all probability on it [N, C]."""
        codes = decisions(p, self.scale)
        return self.scale.indicators(codes, self.n_classes).astype(np.float64)

    def mean_by_item(self, values: Floats) -> Floats:
        """The mean over each item's labels [N] or [N, D] of a value or vector per label [M, …]."""
        totals = sums(values, self.item_codes, len(self.counts))
        counts = self.counts
        if totals.ndim > 1:
            counts = counts[:, None]
        return np.asarray(totals / counts)

    @cached_property
    def soft_labels(self) -> Floats:
        """The mean label of each item [N, C]."""
        return self.mean_by_item(self.shares)

    @cached_property
    def variance(self) -> Floats:
        """The unbiased variance between the annotators of each item [N]; NaN where there is one."""
        vectors = self.vectors(self.shares)
        squares = np.square(vectors - self.mean_by_item(vectors)[self.item_codes]).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.mean_by_item(squares) * self.counts / (self.counts - 1)

    @property
    def are_hard(self) -> bool:
        """Whether every label is a class, or a set of labels, and none a distribution."""
        return bool(((self.shares == 0) | (self.shares == 1)).all())

    @property
    def has_several(self) -> Bools:
        """Whether each item has labels of two annotators or more [N]."""
        return np.asarray(self.counts > 1)

    def disagreement(self, p: Floats) -> Floats:
        """The mean distance between an item's single answer and its labels [N]."""
        single = self.vectors(self.single_answers(p))[self.item_codes]
        return self.mean_by_item(np.square(single - self.vectors(self.shares)).sum(axis=1))

    def losses(self, p: Floats) -> Floats:
        """The headline loss of predictions [N, C] against the soft labels, by item [N]."""
        loss = item_values(self.scale)[headline_metric(self.scale)]
        return loss(p, self.soft_labels, self.scale.hard(self.soft_labels))

    def label_losses(self, p: Floats) -> Floats:
        """The headline loss of predictions [N, C] against single labels, averaged by item [N].

        Unlike the loss against soft labels, its mean does not depend on how many labels items have.
        """
        loss = item_values(self.scale)[headline_metric(self.scale)]
        rows = p[self.item_codes]
        return self.mean_by_item(loss(rows, self.shares, self.scale.hard(self.shares)))
