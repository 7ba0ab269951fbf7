"""Coverage, class balance, agreement, annotators and groups, as plain values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from edokit._errors import EDOWarning, InputError, option
from edokit._names import class_order
from edokit._types import Bools, Floats, Ints
from edokit.analysis.agreement import agreement as measure_agreement
from edokit.analysis.agreement.result import Agreement
from edokit.analysis.diagnose.vectors import finite, label_vectors, peer_agreement, squares
from edokit.annotations.core import Annotations, find_attribute
from edokit.annotator_effects import label_shares
from edokit.datasets.info import class_ratio
from edokit.metrics import Interval


def coverage(annotations: Annotations) -> dict[str, Any]:
    """Numbers of labels per item and per annotator, and what is missing or repeated."""
    per_item = annotations.annotations_per_item
    per_annotator = annotations.annotations_per_annotator
    labelled = ~annotations.repeated
    return {
        "per_item": _range(per_item),
        "per_annotator": _range(per_annotator[per_annotator > 0]),
        "filled": float(labelled.sum() / (len(per_annotator) * len(per_item))),
        "single": int((per_item == 1).sum()),
        "silent": [str(name) for name in annotations.annotators[per_annotator == 0]],
        "repeated": int(annotations.repeated.sum()),
    }


def _range(counts: Ints) -> dict[str, float]:
    """The smallest, the median and the largest of some counts."""
    return {
        "min": int(counts.min()),
        "median": float(np.median(counts)),
        "max": int(counts.max()),
    }


def balance(annotations: Annotations) -> dict[str, Any]:
    """Classes by share of labels (every item counted once) and by hard label."""
    with warnings.catch_warnings():
        # Ties are counted below.
        warnings.simplefilter("ignore", EDOWarning)
        hard = annotations.hard_labels()
    hard = annotations.scale.indicators(hard, len(annotations.classes)).sum(axis=0)
    return {
        "shares": _by_class(annotations, annotations.soft_labels.mean(axis=0)),
        "hard": _by_class(annotations, hard),
        "ratio": class_ratio(hard),
        "ties": int(annotations.evenly_split.sum()),
    }


def entropy(annotations: Annotations) -> dict[str, float]:
    """The mean entropy of items in nats, that of equal shares, and the share of unanimous items.

    Items with a single label are unanimous.
    """
    nats = annotations.entropy
    classes = max(len(annotations.scale.row_classes(annotations.classes)), 2)
    return {
        "mean": float(nats.mean()),
        "largest": float(np.log(classes)),
        "unanimous": float((nats < 1e-12).mean()),
    }


def _by_class(annotations: Annotations, values: Any) -> dict[str, Any]:
    return dict(zip(annotations.classes, values.tolist(), strict=True))


def _base_rates(annotations: Annotations, shares: Floats) -> dict[str, Any]:
    """Shares of the classes [C], and the mean point of an ordinal scale.

    Both are None where the shares are NaN, as those of nobody's labels are.
    """
    if np.isnan(shares[0]):
        return {"shares": None, "mean": None}
    positions = annotations.scale.positions
    mean = None
    if positions:
        mean = float(shares @ np.array(positions))
    return {"shares": _by_class(annotations, shares), "mean": mean}


def agreement(annotations: Annotations, coefficients: Agreement | None = None) -> dict[str, Any]:
    """How much two labels of an item agree (0 to 1), by chance, and coefficients beyond chance.

    Classes agree if they are the same, multi-label answers by the share of labels that are, and
    points of a scale by their distance relative to the range (``distance`` has it in units of the
    scale). Probabilities agree by their expectation. Coefficients on a scale have quadratic
    weights, which is the interval level of alpha; those of multi-label data are means over the
    labels (``by_label`` has alpha of each). The first label of each annotator for an item counts.
    """
    if coefficients is None:
        coefficients = measure_agreement(annotations)
    is_first = ~annotations.repeated
    item_codes = annotations.item_codes[is_first]
    labels_per_item = np.bincount(item_codes, minlength=len(annotations.items))
    several = labels_per_item >= 2
    label = only_answer(annotations)
    alpha = coefficients.krippendorff_alpha.estimate
    by_label: dict[str, float | None] | None = None
    reason: str | None = None
    if not several.any():
        reason = "no item has two labels"
    elif label is not None:
        reason = f"all labels are {label}"
    elif alpha is None:
        reason = coefficients.reason
    elif len(coefficients.alpha_by_label) > 1:
        by_label = dict(zip(annotations.classes, coefficients.alpha_by_label, strict=True))
    vectors, lengths = _vectors_and_lengths(annotations, is_first)
    pairwise: float | None = None
    if several.any():
        agreeing, _ = peer_agreement(item_codes, vectors, lengths)
        peers = labels_per_item[item_codes] - 1
        pairwise = float(np.nansum(agreeing * peers) / peers.sum())
    mean = vectors.mean(axis=0)
    by_chance = float(1 - 2 * (lengths.mean() - mean @ mean))
    span = annotations.scale.span
    distance: dict[str, float] | None = None
    if span is not None and pairwise is not None:
        distance = {"pairwise": (1 - pairwise) * span, "by_chance": (1 - by_chance) * span}
    return {
        "alpha": alpha,
        **coefficients.coefficients(),
        "pairs": coefficients.pairs,
        "weights": coefficients.weights,
        "level": "nominal" if span is None else "interval",
        "by_label": by_label,
        "pairwise": pairwise,
        "by_chance": by_chance,
        "distance": distance,
        "reason": reason,
        "cohen_reason": coefficients.cohen_reason,
    }


def only_answer(annotations: Annotations) -> str | None:
    """The label that all annotations have, in words; None if they differ."""
    shares = label_shares(annotations, len(annotations.classes))
    if (shares != shares[0]).any():
        return None
    names = [name for name, share in zip(annotations.classes, shares[0], strict=True) if share > 0]
    return annotations.scale.answer_in_words(names)


def _vectors_and_lengths(annotations: Annotations, rows: Bools) -> tuple[Floats, Floats]:
    """The labels in these rows as vectors [M, D], and their expected squared lengths [M]."""
    class_vectors = annotations.scale.vectors(len(annotations.classes), absolute=True)
    lengths = label_vectors(annotations, squares(class_vectors)[:, None])
    return label_vectors(annotations, class_vectors)[rows], lengths[rows, 0]


def describe_annotators(
    annotations: Annotations,
    group: Ints | None = None,
    names: Sequence[str] = (),
    coefficients: Agreement | None = None,
) -> list[dict[str, Any]]:
    """Labels, base rates and agreement with the others of each annotator, in the data's order.

    ``expected`` is the mean agreement of two *others* on the same items, where these have labels
    of two others. ``cohen_kappa`` is None without others who share enough items.
    """
    kappas: dict[str, Interval] = {}
    if coefficients is not None:
        for entry in coefficients.per_annotator:
            kappas[entry["annotator"]] = entry["cohen_kappa"]
    is_first = ~annotations.repeated
    vectors, lengths = _vectors_and_lengths(annotations, is_first)
    agreement, expected = peer_agreement(annotations.item_codes[is_first], vectors, lengths)
    labels = label_shares(annotations, len(annotations.classes))
    shares = _means_by_annotator(annotations, labels, np.ones_like(is_first))
    agreements = _means_by_annotator(annotations, agreement[:, None], is_first)[:, 0]
    expectations = _means_by_annotator(annotations, expected[:, None], is_first)[:, 0]
    described = []
    for a in range(len(annotations.annotators)):
        group_name = None
        if group is not None and group[a] >= 0:
            group_name = names[group[a]]
        name = str(annotations.annotators[a])
        kappa = None
        if name in kappas:
            kappa = asdict(kappas[name])
        described.append(
            {
                "annotator": name,
                "annotations": int(annotations.annotations_per_annotator[a]),
                **_base_rates(annotations, shares[a]),
                "agreement": finite(agreements[a]),
                "expected": finite(expectations[a]),
                "cohen_kappa": kappa,
                "group": group_name,
            }
        )
    return described


def _means_by_annotator(annotations: Annotations, values: Floats, rows: Bools) -> Floats:
    """The mean of the values of these rows [M, D] by annotator [A, D]; NaN are left out."""
    by_annotator = pd.DataFrame(values).groupby(annotations.annotator_codes[rows]).mean()
    return by_annotator.reindex(range(len(annotations.annotators))).to_numpy()


def declared_groups(annotations: Annotations, attribute: str) -> tuple[Ints, list[str]]:
    """The group of each annotator [A], -1 for none, and the groups' names.

    The groups are the values of an attribute of the annotators; empty text means none.
    """
    group_of = list(map(str, find_attribute(annotations, attribute)))
    names = list(class_order({name for name in group_of if name}))
    if not names:
        raise InputError(
            f"{option('groups')} assigns no annotator to a group",
            f"leave {option('groups')} out to have them found",
            code="empty-option",
        )
    return pd.Index(names).get_indexer(pd.Index(group_of)).astype(np.int64), names


def describe_groups(
    annotations: Annotations, group: Ints, names: list[str]
) -> list[dict[str, Any]]:
    """Size and base rates of each group; annotators without labels do not count."""
    classes = len(annotations.classes)
    labels = label_shares(annotations, classes)
    label_group = group[annotations.annotator_codes]
    active_group = group[annotations.annotations_per_annotator > 0]
    described = []
    for code, name in enumerate(names):
        group_labels = labels[label_group == code]
        shares = np.full(classes, np.nan)
        if len(group_labels):
            shares = group_labels.mean(axis=0)
        described.append(
            {
                "name": name,
                "annotators": int((active_group == code).sum()),
                "annotations": len(group_labels),
                **_base_rates(annotations, shares),
            }
        )
    return described
