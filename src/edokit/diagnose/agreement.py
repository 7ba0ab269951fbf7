"""How far annotators agree: Krippendorff's alpha, pairs, and each one with the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from edokit._types import Floats, Ints
from edokit.annotations import Annotations
from edokit.diagnose.answers import products, squares, totals

LARGEST_MATRIX = 40
"""Annotators up to whom a table of all pairs is made."""


def agreement(annotations: Annotations) -> dict[str, Any]:
    """Alpha (nominal), the share of pairs of answers to an item that agree, and that by chance.

    Probabilities agree by their expected agreement; alpha is for classes alone.
    """
    several = annotations.annotations_per_item >= 2
    used = annotations.counts.sum(axis=0)
    alpha: float | None = None
    reason = None
    if not several.any():
        reason = "no item has two answers"
    elif (used > 0).sum() < 2:
        reason = f"all answers are {annotations.classes[int(used.argmax())]!r}"
    elif annotations.label_codes is None:
        reason = "annotators answered in probabilities; alpha is for classes"
    else:
        import krippendorff

        alpha = float(
            krippendorff.alpha(
                value_counts=annotations.counts[several].astype(np.int64),
                level_of_measurement="nominal",
            )
        )
    shares = used / used.sum()
    pairwise = None
    if several.any():
        agreeing, pairs = _pairs_by_item(annotations)
        pairwise = float(agreeing[several].sum() / pairs[several].sum())
    return {
        "alpha": alpha,
        "pairwise": pairwise,
        "by_chance": float(np.sum(shares**2)),
        "reason": reason,
    }


def people(annotations: Annotations) -> list[dict[str, Any]]:
    """Each annotator's answers, base rates and agreement with the others, in the data's order.

    ``expected`` is what two others agree on the same items on average: below it someone stands
    apart.
    """
    count = len(annotations.annotators)
    person, item = annotations.annotator_codes, annotations.item_codes
    rows = _rows(annotations)
    answered = np.bincount(person, minlength=count)
    shares = (
        np.stack([totals(person, column, count) for column in rows.T], axis=1)
        / np.maximum(answered, 1)[:, None]
    )
    others = annotations.annotations_per_item[item] - 1
    met = others > 0
    with_rest = products(rows, annotations.counts[item] - rows)
    with_rest = with_rest / np.maximum(others, 1)
    agreeing, pairs = _pairs_by_item(annotations)
    usual = (agreeing / np.maximum(pairs, 1))[item]
    number = np.bincount(person[met], minlength=count)

    def mean(values: Floats, a: int) -> float | None:
        return float(values[a] / number[a]) if number[a] else None

    rest = totals(person[met], with_rest[met], count)
    base = totals(person[met], usual[met], count)
    return [
        {
            "annotator": str(name),
            "annotations": int(answered[a]),
            "shares": dict(zip(annotations.classes, shares[a].tolist(), strict=True))
            if answered[a]
            else None,
            "agreement": mean(rest, a),
            "expected": mean(base, a),
            "group": None,
        }
        for a, name in enumerate(annotations.annotators)
    ]


def matrix(annotations: Annotations, group: Ints) -> dict[str, Any] | None:
    """Agreement of all pairs, groups side by side; None where there are too many annotators."""
    count = len(annotations.annotators)
    if count > LARGEST_MATRIX:
        return None
    n = len(annotations.items)
    asked = np.zeros((count, n))
    answers = np.zeros((count, n, len(annotations.classes)))
    first = ~annotations.repeated
    where = (annotations.annotator_codes[first], annotations.item_codes[first])
    asked[where] = 1.0
    answers[where] = _rows(annotations)[first]
    shared = asked @ asked.T
    flat = answers.reshape(count, -1)
    agreed = flat @ flat.T
    order = np.argsort(np.where(group < 0, count, group), kind="stable")
    return {
        "annotators": [str(annotations.annotators[a]) for a in order],
        "agreement": [
            [float(agreed[a, b] / shared[a, b]) if a != b and shared[a, b] else None for b in order]
            for a in order
        ],
        "shared": [[int(shared[a, b]) for b in order] for a in order],
    }


def _rows(annotations: Annotations) -> Floats:
    """Each answer as probabilities [M, C]."""
    if annotations.label_probabilities is not None:
        return annotations.label_probabilities
    rows: Floats = np.eye(len(annotations.classes))[annotations.answers]
    return rows


def _pairs_by_item(annotations: Annotations) -> tuple[Floats, Floats]:
    """Ordered pairs of answers that agree, and all of them, for each item [N]."""
    rows = _rows(annotations)
    own = totals(annotations.item_codes, squares(rows), len(annotations.items))
    n = annotations.annotations_per_item.astype(np.float64)
    return squares(annotations.counts) - own, n * (n - 1)
