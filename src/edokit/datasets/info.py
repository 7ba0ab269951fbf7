"""Counts that describe annotations: items, annotators, labels, near-duplicates."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import EDOWarning
from edokit._types import Bools
from edokit.annotations.core import Annotations
from edokit.datasets.near_duplicates import THRESHOLD, NearDuplicates


def describe_annotations(
    annotations: Annotations, *, near_duplicates: bool = True
) -> dict[str, Any]:
    """Count items, annotators, labels and near-duplicates, overall and by split, ready for JSON.

    Parameters
    ----------
    annotations : Annotations
    near_duplicates : bool, default=True
        Count near-duplicate texts.

    Returns
    -------
    dict
        ``items``, ``annotators``, ``annotations``, ``classes``, ``scale``, ``columns`` (those that
        describe items), ``attributes`` (of the annotators) and ``splits``, with these entries for
        each split: ``items``, ``annotators``, ``annotations``, ``annotations_per_item`` [fewest,
        most], ``classes`` (items by hard label; for multi-label data, items with each label),
        ``annotations_per_class`` (if annotators gave probabilities, their sums), ``ratio`` (items
        of the largest class to those of the smallest), ``ties`` (tied ``items``, and those of them
        ``without_published_label``), ``unanimous`` (share of items), ``entropy`` (mean, in nats)
        and ``coverage`` (``min``, ``median`` and ``max`` of the share of the items that an
        annotator labelled). If there are item groups, ``item_groups`` counts the ``groups`` and
        their ``items``. If there are texts, ``near_duplicates`` counts the ``items`` that have
        near-duplicates and their ``groups``, and for each of the other ``splits`` the items that
        have one in the split ``also_in`` (train, or the first split): ``near``, and among these
        ``verbatim``, whose texts differ only in case, links, mentions and punctuation.
    """
    parts = {}
    for name, is_inside in _split_masks(annotations).items():
        parts[name] = annotations.take(is_inside)
    if not parts:
        parts = {"all": annotations}
    described: dict[str, object] = {
        "items": len(annotations.items),
        "annotators": len(annotations.annotators),
        "annotations": len(annotations),
        "classes": list(annotations.classes),
        "scale": annotations.scale.to_text(annotations.classes),
        "columns": sorted(annotations.item_columns),
        "attributes": sorted(annotations.attributes),
        "splits": {name: _describe_split(part) for name, part in parts.items()},
    }
    if annotations.item_groups is not None:
        group_names = annotations.item_groups[annotations.item_groups != ""]
        described["item_groups"] = {
            "items": len(group_names),
            "groups": len(set(group_names.tolist())),
        }
    if annotations.texts is not None and near_duplicates:
        described["near_duplicates"] = _describe_duplicates(annotations)
    return described


def _describe_split(part: Annotations) -> dict[str, object]:
    with warnings.catch_warnings():
        # Ties are counted below instead.
        warnings.simplefilter("ignore", EDOWarning)
        hard_labels = part.hard_labels()
    if part.scale.is_multi_label:
        items_per_class = hard_labels.sum(axis=0)
    else:
        items_per_class = np.bincount(hard_labels, minlength=len(part.classes))
    annotations_per_class = part.counts.sum(axis=0)
    per_item = part.annotations_per_item
    coverage = part.coverage
    return {
        "items": len(part.items),
        "annotators": len(part.annotators),
        "annotations": len(part),
        "annotations_per_item": [int(per_item.min()), int(per_item.max())],
        "classes": dict(zip(part.classes, items_per_class.tolist(), strict=True)),
        "annotations_per_class": dict(
            zip(part.classes, annotations_per_class.tolist(), strict=True)
        ),
        "ratio": class_ratio(items_per_class),
        "ties": {
            "items": int(part.evenly_split.sum()),
            "without_published_label": int(part.tied.sum()),
        },
        "unanimous": float((part.entropy < 1e-12).mean()),
        "entropy": float(part.entropy.mean()),
        "coverage": {
            "min": float(coverage.min()),
            "median": float(np.median(coverage)),
            "max": float(coverage.max()),
        },
    }


def class_ratio(items_per_class: npt.NDArray[np.int64]) -> float | None:
    """The ratio of the largest class to the smallest; None for one class or an empty class."""
    if len(items_per_class) < 2 or not items_per_class.min():
        return None
    return float(items_per_class.max() / items_per_class.min())


def _describe_duplicates(annotations: Annotations) -> dict[str, object]:
    """The counts of near-duplicates, overall and between splits."""
    assert annotations.whole_texts is not None
    duplicates = NearDuplicates.among(annotations.whole_texts)
    sizes = np.bincount(duplicates.groups)
    counted: dict[str, object] = {
        "threshold": THRESHOLD,
        "items": int(sizes[sizes > 1].sum()),
        "groups": int((sizes > 1).sum()),
    }
    masks = _split_masks(annotations)
    if len(masks) > 1:
        reference = next(iter(masks))
        if "train" in masks:
            reference = "train"
        verbatim = duplicates.has_match(masks[reference], verbatim=True)
        near = duplicates.has_match(masks[reference])
        by_split = {}
        for name, is_inside in masks.items():
            if name != reference:
                by_split[name] = {
                    "verbatim": int(verbatim[is_inside].sum()),
                    "near": int(near[is_inside].sum()),
                }
        counted["also_in"] = reference
        counted["splits"] = by_split
    return counted


def _split_masks(annotations: Annotations) -> dict[str, Bools]:
    """Which items are in each split [N]; empty without splits.

    If only some items are in a split, the last entry is that of the others.
    """
    names = annotations.split_names
    if annotations.splits is None or not names:
        return {}
    masks: dict[str, Bools] = {name: annotations.splits == name for name in names}
    has_none = annotations.splits == ""
    if has_none.any():
        masks["no split"] = has_none
    return masks
