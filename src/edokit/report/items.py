"""The items of the explorer, and the named filters."""

from __future__ import annotations

from typing import Any

import numpy as np

from edokit._types import Bools, Floats
from edokit.report.evaluation import Evaluation
from edokit.report.formatting import rounded

MOST = 20_000
"""Items that a page holds; of more, those with the largest distance are kept."""
LONGEST = 2_000
"""Characters of a text that a page holds."""
DIVIDED, SURE = 2 / 3, 0.9
"""Largest share of a class: up to the first people are divided and an ensemble is uncertain, from
the second on it is confident, however many classes there are."""
MINORITY = 0.2
"""The share of annotations from which a class counts as a minority's."""
DRAWS = 20
"""Draws of labels from the ensemble, for what chance explains."""
TOP = 0.9
"""The quantile above which spread and distance are high."""
FILTERS = {
    "sure": (
        "Annotators divided, ensemble confident",
        "No class was chosen by more than two thirds of the annotators; the ensemble gives one a"
        " probability of 0.9 or more.",
    ),
    "unsure": (
        "Annotators agree, ensemble uncertain",
        "All annotations, two or more, are the same; the ensemble gives no class more than 2/3.",
    ),
    "minority": (
        "Minority underestimated",
        "A class chosen by at least a fifth of the annotators, other than the most frequent one,"
        " gets less than half of its share.",
    ),
    "label": (
        "Label differs from the hard label",
        "The most probable class is not the hard label.",
    ),
    "divided": (
        "Annotators divided",
        "No class was chosen by more than two thirds of the annotators.",
    ),
    "spread": (
        "High member spread",
        "The tenth of the items on which the members differ most.",
    ),
    "far": (
        "High distance",
        "The tenth of the items with the largest distance (MD) between the ensemble and the"
        " annotations.",
    ),
}
"""Name and meaning of each filter."""


def filters(evaluation: Evaluation) -> dict[str, Bools]:
    """The items [N] that pass each filter; without annotations, there is only the spread."""
    spread = _top(evaluation.pooled.spread)
    annotations, md = evaluation.annotations, evaluation.md
    if annotations is None or md is None or evaluation.hard_labels is None:
        return {"spread": spread}
    p, q = evaluation.pooled.probabilities, annotations.soft_labels
    most, likeliest = q.max(axis=1), p.max(axis=1)
    divided = most <= DIVIDED + 1e-9
    same = (most >= 1 - 1e-9) & (annotations.annotations_per_item > 1)
    return {
        "sure": divided & (likeliest >= SURE),
        "unsure": same & (likeliest <= DIVIDED),
        "minority": minority_lost(p, q),
        "label": p.argmax(axis=1) != evaluation.hard_labels,
        "divided": divided,
        "spread": spread,
        "far": _top(md),
    }


def minority_lost(p: Floats, q: Floats) -> Bools:
    """Where the class of a sizeable minority gets less than half of its share [N]."""
    # An evenly split item has no majority: every class but the first counts.
    most = np.arange(q.shape[1]) == q.argmax(axis=1)[:, None]
    lost: Bools = ((q >= MINORITY - 1e-9) & ~most & (p < q / 2)).any(axis=1)
    return lost


def minority_by_chance(evaluation: Evaluation) -> tuple[float, float]:
    """How many items would pass the filter of minorities if labels were drawn from the ensemble.

    Mean and standard deviation: few labels on many classes often fall on an unlikely one.
    """
    if evaluation.annotations is None:
        return 0.0, 0.0
    n = np.maximum(evaluation.annotations.annotations_per_item, 1)
    p = evaluation.pooled.probabilities
    p = p / p.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    passing = [minority_lost(p, rng.multinomial(n, p) / n[:, None]).sum() for _ in range(DRAWS)]
    return float(np.mean(passing)), float(np.std(passing))


def item_table(evaluation: Evaluation, texts: bool = True) -> dict[str, Any]:
    """Columns for the explorer, ready for JSON; ``flags`` has a bit per filter."""
    masks = filters(evaluation)
    pooled, annotations, md = evaluation.pooled, evaluation.annotations, evaluation.md
    chosen = np.arange(len(pooled.items), dtype=np.int64)
    if len(chosen) > MOST:
        score = pooled.spread if md is None else md
        chosen = np.sort(np.argsort(-score, kind="stable")[:MOST])
    flags = sum(mask.astype(np.int64) << bit for bit, mask in enumerate(masks.values()))
    described = []
    for key, mask in masks.items():
        name, meaning = FILTERS[key]
        passing = int(mask[chosen].sum())
        described.append({"key": key, "name": name, "meaning": meaning, "count": passing})
    table: dict[str, Any] = {
        "classes": list(pooled.classes),
        "total": len(pooled.items),
        "items": [str(name) for name in pooled.items[chosen]],
        "p": rounded(pooled.probabilities[chosen]),
        "entropy": rounded(pooled.entropy[chosen]),
        "spread": rounded(pooled.spread[chosen]),
        "flags": np.asarray(flags)[chosen].tolist(),
        "filters": described,
    }
    if annotations is not None and md is not None:
        table["counts"] = rounded(annotations.counts[chosen], 2)
        table["annotated"] = rounded(annotations.entropy[chosen])
        table["md"] = rounded(md[chosen])
        if texts and annotations.texts is not None:
            table["texts"] = [shortened(text) for text in annotations.texts[chosen]]
    return table


def _top(values: Floats) -> Bools:
    """The upper tenth, none where all are equal."""
    mask: Bools = values > (np.quantile(values, TOP) if len(values) else 0.0)
    return mask


def shortened(text: object) -> str:
    """A text cut to what a page holds."""
    content = "" if text is None else str(text)
    return content if len(content) <= LONGEST else content[: LONGEST - 1] + "…"
