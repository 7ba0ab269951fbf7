"""Coverage, class balance, agreement, annotators and groups, as plain values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from edokit._errors import EDOWarning, InputError, option
from edokit._names import class_order
from edokit._types import Floats, Ints
from edokit.analysis.diagnose.vectors import finite, label_sums, peer_agreement, squares
from edokit.annotations.core import Annotations, find_attribute
from edokit.datasets.info import class_ratio


def coverage(annotations: Annotations) -> dict[str, Any]:
    """Labels per item and per annotator, and gaps."""
    per_item = annotations.annotations_per_item
    per_annotator = annotations.annotations_per_annotator
    labelled = ~annotations.repeated
    return {
        "per_item": _ends(per_item),
        "per_annotator": _ends(per_annotator[per_annotator > 0]),
        "filled": float(labelled.sum() / (len(per_annotator) * len(per_item))),
        "single": int((per_item == 1).sum()),
        "silent": [str(name) for name in annotations.annotators[per_annotator == 0]],
        "repeated": int(annotations.repeated.sum()),
    }


def _ends(counts: Ints) -> dict[str, float]:
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
    """The mean entropy of items in nats, the largest possible, and the share of unanimous items."""
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
    """Shares of the classes [C], and the mean on a scale; None without labels (NaN)."""
    if np.isnan(shares[0]):
        return {"shares": None, "mean": None}
    positions = annotations.scale.positions
    mean = None
    if positions:
        mean = float(shares @ np.array(positions))
    return {"shares": _by_class(annotations, shares), "mean": mean}


def agreement(annotations: Annotations) -> dict[str, Any]:
    """Krippendorff's alpha, how much two labels of an item agree (0 to 1), and how much by chance.

    Classes agree if they are the same, multi-label answers by the share of labels that are, and
    points of a scale by their distance relative to the range (``distance`` has it in units of the
    scale). Probabilities agree by their expectation. Alpha of a scale is at the interval level;
    alpha of multi-label data is the mean over the labels (``by_label``).
    """
    several = annotations.annotations_per_item >= 2
    label = only_answer(annotations)
    alpha: float | None = None
    by_label: dict[str, float | None] | None = None
    reason: str | None = None
    if not several.any():
        reason = "no item has two labels"
    elif label is not None:
        reason = f"all labels are {label}"
    elif _are_probabilities(annotations):
        reason = "the labels are probabilities; alpha is for classes"
    else:
        alphas = _alphas(annotations.take(several))
        varying = [value for value in alphas if value is not None]
        if varying:
            alpha = float(np.mean(varying))
        if len(alphas) > 1:
            by_label = dict(zip(annotations.classes, alphas, strict=False))
    vectors, lengths = _label_vectors(annotations)
    pairwise: float | None = None
    if several.any():
        agreeing, _ = peer_agreement(annotations.item_codes, vectors, lengths)
        peers = annotations.annotations_per_item[annotations.item_codes] - 1
        pairwise = float(np.nansum(agreeing * peers) / peers.sum())
    mean = vectors.mean(axis=0)
    by_chance = float(1 - 2 * (lengths.mean() - mean @ mean))
    span = annotations.scale.span
    distance: dict[str, float] | None = None
    if span is not None and pairwise is not None:
        distance = {"pairwise": (1 - pairwise) * span, "by_chance": (1 - by_chance) * span}
    return {
        "alpha": alpha,
        "level": "nominal" if span is None else "interval",
        "by_label": by_label,
        "pairwise": pairwise,
        "by_chance": by_chance,
        "distance": distance,
        "reason": reason,
    }


def only_answer(annotations: Annotations) -> str | None:
    """The label that all annotations have, in words; None if they differ."""
    shares = label_sums(annotations, np.eye(len(annotations.classes)))
    if (shares != shares[0]).any():
        return None
    names = [name for name, share in zip(annotations.classes, shares[0], strict=True) if share > 0]
    if annotations.scale.is_multi_label:
        if not names:
            return "the empty set"
        return f"the set {{{', '.join(map(repr, names))}}}"
    if len(names) != 1:
        return None
    return repr(names[0])


def _alphas(annotations: Annotations) -> list[float | None]:
    """Krippendorff's alpha, for multi-label data one per label; None for constant labels."""
    scale = annotations.scale
    n = annotations.annotations_per_item[:, None]
    alphas: list[float | None] = []
    for shares in scale.tables(annotations.soft_labels):
        table = shares * n
        distances = 1.0 - np.eye(table.shape[1])
        if scale.span is not None:
            positions = np.array(scale.positions)
            distances = (positions[:, None] - positions) ** 2
        alphas.append(krippendorff_alpha(np.rint(table), distances))
    return alphas


def krippendorff_alpha(counts: Floats, distances: Floats) -> float | None:
    """Krippendorff's alpha: one minus the observed disagreement over that expected by chance.

    Parameters
    ----------
    counts : array of shape (N, C)
        How many annotators gave item i the label c.
    distances : array of shape (C, C)
        The disagreement of two labels: 0 for the same one.

    Returns
    -------
    float or None
        None where all labels of the items with two labels or more are the same.
    """
    # Items with one label form no pair.
    counts = counts[counts.sum(axis=1) >= 2]
    # Pairs of labels of one item (o_ck), each item weighing as many labels as it has.
    weighted = counts / (counts.sum(axis=1, keepdims=True) - 1)
    pairs = weighted.T @ counts - np.diag(weighted.sum(axis=0))
    totals = counts.sum(axis=0)
    chance_pairs = float(totals @ distances @ totals)
    if chance_pairs == 0:
        return None
    expected = chance_pairs / float(totals.sum() - 1)
    return 1.0 - float((pairs * distances).sum()) / expected


def _are_probabilities(annotations: Annotations) -> bool:
    """Whether some annotator gave probabilities instead of a class or a set."""
    shares = annotations.label_probabilities
    return shares is not None and bool(((shares > 0) & (shares < 1)).any())


def _label_vectors(annotations: Annotations) -> tuple[Floats, Floats]:
    """Each label as a vector [M, D], and its expected squared length [M]."""
    of_classes = annotations.scale.vectors(len(annotations.classes), absolute=True)
    lengths = label_sums(annotations, squares(of_classes)[:, None])
    return label_sums(annotations, of_classes), lengths[:, 0]


def describe_annotators(
    annotations: Annotations, group: Ints | None = None, names: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Labels, base rates and agreement with the others of each annotator, in the data's order.

    ``expected`` is the mean agreement of two *others* on the same items, as far as these have two.
    """
    vectors, lengths = _label_vectors(annotations)
    peers = peer_agreement(annotations.item_codes, vectors, lengths)
    labels = label_sums(annotations, np.eye(len(annotations.classes)))
    columns = pd.DataFrame(np.column_stack([labels, *peers]))
    by_annotator = columns.groupby(annotations.annotator_codes).mean()
    means = by_annotator.reindex(range(len(annotations.annotators))).to_numpy()
    described = []
    for a, row in enumerate(means):
        group_name = None
        if group is not None and group[a] >= 0:
            group_name = names[group[a]]
        described.append(
            {
                "annotator": str(annotations.annotators[a]),
                "annotations": int(annotations.annotations_per_annotator[a]),
                **_base_rates(annotations, row[:-2]),
                "agreement": finite(row[-2]),
                "expected": finite(row[-1]),
                "group": group_name,
            }
        )
    return described


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
        )
    return pd.Index(names).get_indexer(pd.Index(group_of)).astype(np.int64), names


def describe_groups(
    annotations: Annotations, group: Ints, names: list[str]
) -> list[dict[str, Any]]:
    """Size and base rates, group by group."""
    classes = len(annotations.classes)
    rows = label_sums(annotations, np.eye(classes))
    label_group = group[annotations.annotator_codes]
    described = []
    for code, name in enumerate(names):
        group_rows = rows[label_group == code]
        shares = group_rows.mean(axis=0) if len(group_rows) else np.full(classes, np.nan)
        described.append(
            {
                "name": name,
                "annotators": int((group == code).sum()),
                "annotations": len(group_rows),
                **_base_rates(annotations, shares),
            }
        )
    return described
