"""What there is: coverage, class balance, entropy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from edokit._errors import EDOWarning
from edokit.annotations import Annotations
from edokit.datasets.info import class_ratio

_BINS = 20


def coverage(annotations: Annotations) -> dict[str, Any]:
    """Items, annotators, answers per item and per annotator, gaps, and who meets whom."""
    per_item, per_person = annotations.annotations_per_item, annotations.annotations_per_annotator
    counts, items = np.unique(per_item, return_counts=True)
    busy = per_person[per_person > 0]
    cells = len(annotations.items) * len(annotations.annotators)
    return {
        "per_item": {
            "min": int(per_item.min()),
            "median": float(np.median(per_item)),
            "mean": float(per_item.mean()),
            "max": int(per_item.max()),
        },
        "items_by_annotations": {
            str(count): int(number) for count, number in zip(counts, items, strict=True)
        },
        "per_annotator": {
            "min": int(busy.min()),
            "median": float(np.median(busy)),
            "max": int(busy.max()),
        },
        "filled": float((~annotations.repeated).sum() / cells),
        "single": int((per_item == 1).sum()),
        "silent": [str(name) for name in annotations.annotators[per_person == 0]],
        "repeated": int(annotations.repeated.sum()),
        "pairs": _pairs(annotations),
    }


def _pairs(annotations: Annotations) -> dict[str, Any]:
    """How many pairs of annotators share an item, and how many items those share."""
    people = len(annotations.annotators)
    first = ~annotations.repeated
    shape = (people, len(annotations.items))
    where = (annotations.annotator_codes[first], annotations.item_codes[first])
    asked = sparse.csr_matrix((np.ones(int(first.sum()), dtype=np.int32), where), shape)
    met: Any = sparse.triu(asked @ asked.T, k=1, format="csr")
    shared = met.data
    return {
        "possible": people * (people - 1) // 2,
        "meeting": len(shared),
        "median_shared": float(np.median(shared)) if len(shared) else None,
    }


def balance(annotations: Annotations) -> dict[str, Any]:
    """Classes by share of answers (every item counted once) and by hard label."""
    with warnings.catch_warnings():
        # Ties are a figure of their own here.
        warnings.simplefilter("ignore", EDOWarning)
        hard = np.bincount(annotations.hard_labels(), minlength=len(annotations.classes))
    counts = annotations.counts
    tied = (counts >= counts.max(axis=1, keepdims=True) * (1 - 1e-12)).sum(axis=1) > 1
    return {
        "shares": _by_class(annotations, annotations.soft_labels.mean(axis=0).tolist()),
        "hard": _by_class(annotations, hard.tolist()),
        "ratio": class_ratio(hard),
        "ties": int(tied.sum()),
    }


def entropy(annotations: Annotations) -> dict[str, Any]:
    """The distribution of item entropy in nats: mean and histogram."""
    nats = annotations.entropy
    largest = float(np.log(max(len(annotations.classes), 2)))
    counts, edges = np.histogram(np.minimum(nats, largest), bins=_BINS, range=(0.0, largest))
    return {
        "mean": float(nats.mean()),
        "largest": largest,
        "unanimous": float((nats < 1e-12).mean()),
        "edges": edges.tolist(),
        "counts": counts.tolist(),
    }


def _by_class(annotations: Annotations, values: list[Any]) -> dict[str, Any]:
    return dict(zip(annotations.classes, values, strict=True))
