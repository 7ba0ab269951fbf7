"""What a set of annotations holds, in figures."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import EDOWarning
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
        ``items``, ``annotators``, ``annotations``, ``classes``, ``scale``, ``columns`` (that
        describe items), ``attributes`` (of the annotators), and ``splits`` with, for
        each split: ``items``, ``annotators``, ``annotations``, ``annotations_per_item`` [fewest,
        most], ``classes`` (items by hard label; for multi-label data, items with each label),
        ``annotations_per_class`` (for probabilities, their sums), ``ratio`` (largest
        class to smallest), ``ties`` (and how many of them lack a published label), ``unanimous``
        (share of items), ``entropy`` (mean, nats) and ``coverage`` (share of the items that an
        annotator labelled). ``item_groups``, where there are some, counts the ``groups`` and the
        ``items`` in them. ``near_duplicates`` counts the items of each split whose text
        is also in the first (train, if there is one): ``verbatim`` but for case, links, mentions
        and punctuation, and ``near``, which includes these.
    """
    parts = {name: annotations.take(part) for name, part in _parts(annotations).items()}
    parts = parts or {"all": annotations}
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
        # Ties are a figure of their own here.
        warnings.simplefilter("ignore", EDOWarning)
        hard = part.hard_labels()
    shares, per_item = part.scale.rows(part.soft_labels), part.annotations_per_item
    # For multi-label data: how many items have each label.
    per_class = hard.sum(axis=0) if hard.ndim > 1 else np.bincount(hard, minlength=shares.shape[1])
    per_label = part.counts.sum(axis=0)
    coverage = part.coverage
    return {
        "items": len(part.items),
        "annotators": len(part.annotators),
        "annotations": len(part),
        "annotations_per_item": [int(per_item.min()), int(per_item.max())],
        "classes": dict(zip(part.classes, per_class.tolist(), strict=True)),
        "annotations_per_class": dict(zip(part.classes, per_label.tolist(), strict=True)),
        "ratio": class_ratio(per_class),
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


def class_ratio(per_class: npt.NDArray[np.int64]) -> float | None:
    """Items of the largest class to those of the smallest; none where there is nothing to weigh."""
    if len(per_class) < 2 or not per_class.min():
        return None
    return float(per_class.max() / per_class.min())


def _describe_duplicates(annotations: Annotations) -> dict[str, object]:
    assert annotations.whole_texts is not None
    duplicates = NearDuplicates.among(annotations.whole_texts)
    sizes = np.bincount(duplicates.groups)
    counted: dict[str, object] = {
        "threshold": THRESHOLD,
        "items": int(sizes[sizes > 1].sum()),
        "groups": int((sizes > 1).sum()),
    }
    parts = _parts(annotations)
    if len(parts) > 1:
        reference = "train" if "train" in parts else next(iter(parts))
        reference_rows = parts[reference]
        verbatim = duplicates.has_match(reference_rows, verbatim=True)
        near = duplicates.has_match(reference_rows)
        counted["also_in"] = reference
        counted["splits"] = {
            name: {"verbatim": int(verbatim[rows].sum()), "near": int(near[rows].sum())}
            for name, rows in parts.items()
            if name != reference
        }
    return counted


def _parts(annotations: Annotations) -> dict[str, npt.NDArray[np.bool_]]:
    """The items of each split as a mask [N]; last those without one, where others have one."""
    names = annotations.split_names
    if annotations.splits is None or not names:
        return {}
    parts = {name: annotations.splits == name for name in names}
    none = annotations.splits == ""
    return {**parts, **({"no split": none} if none.any() else {})}
