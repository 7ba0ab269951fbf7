"""The items of the explorer, and the named filters."""

from __future__ import annotations

from typing import Any

import numpy as np

from edokit._names import PAIR
from edokit._types import Bools, Floats
from edokit.metrics import METRIC
from edokit.report.evaluation import Evaluation
from edokit.report.formatting import rounded
from edokit.scales import NOMINAL, Scale, ScaleKind

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
WIDE, NARROW = 0.25, 0.125
"""Standard deviation of ratings as a share of the range (at most a half): from the first on people
are divided and an ensemble is uncertain, up to the second it is confident."""
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
        "The tenth of the items with the largest distance between the ensemble and the"
        " annotations.",
    ),
}
"""Name and meaning of each filter."""
MEANINGS: dict[ScaleKind, dict[str, str]] = {
    "nominal": {},
    "ordinal": {
        "sure": "The ratings' standard deviation is a quarter of the scale or more; that of the"
        " ensemble is an eighth or less.",
        "unsure": "All annotations, two or more, are the same; the ensemble's standard deviation is"
        " a quarter of the scale or more.",
        "minority": "At least a fifth of the annotators, but not most, rate above (or below) some"
        " point of the scale, where the ensemble has less than half of their share.",
        "divided": "The ratings' standard deviation is a quarter of the scale or more.",
    },
    "multi-label": {
        "sure": "At most two thirds of the annotators agree on a label, chosen or not; the ensemble"
        " gives it a probability of 0.9 or more, or of 0.1 or less.",
        "unsure": "All annotations, two or more, are the same set; the ensemble gives some label a"
        " probability between 1/3 and 2/3.",
        "minority": "A label that at least a fifth of the annotators, but not most, chose (or left"
        " out) gets less than half of their share.",
        "label": "The labels above one half are not those that most annotators chose.",
        "divided": "At most two thirds of the annotators agree on some label, chosen or not.",
    },
}
"""Meanings that differ on other scales."""


def filters(evaluation: Evaluation) -> dict[str, Bools]:
    """The items [N] that pass each filter; without annotations, there is only the spread."""
    spread = _top(evaluation.pooled.spread)
    annotations, distance = evaluation.annotations, evaluation.distance
    hard, scale = evaluation.hard_labels, evaluation.scale
    if annotations is None or distance is None or hard is None:
        return {"spread": spread}
    p, q = evaluation.pooled.probabilities, annotations.soft_labels
    n = len(p)
    if scale.span is None:
        most, likeliest = (scale.rows(each).max(axis=1) for each in (q, p))
        split, same = most <= DIVIDED + 1e-9, most >= 1 - 1e-9
        sure, open_ = split & (likeliest >= SURE), likeliest <= DIVIDED
    else:
        ratings, predicted = (scale.deviations(each) / scale.span for each in (q, p))
        split, same = ratings >= WIDE - 1e-9, ratings <= 1e-9
        sure, open_ = split & (predicted <= NARROW), predicted >= WIDE
    unanimous = (scale.per_item(same, n) == 1) & (annotations.annotations_per_item > 1)
    wrong = scale.per_item(scale.row_codes(scale.hard(p)) != scale.row_codes(hard), n)
    return {
        "sure": scale.per_item(sure, n) > 0,
        "unsure": unanimous & (scale.per_item(open_, n) > 0),
        "minority": minority_lost(p, q, scale),
        "label": wrong > 0,
        "divided": scale.per_item(split, n) > 0,
        "spread": spread,
        "far": _top(distance),
    }


def minority_lost(p: Floats, q: Floats, scale: Scale = NOMINAL) -> Bools:
    """Where a sizeable minority gets less than half of its share [N]: those who chose a class,
    chose or left out a label, or rated above or below a point of the scale."""
    if scale.span is not None:
        # Whether a rating is above each point is a set, too.
        p, q = (1 - np.cumsum(each, axis=1)[:, :-1] for each in (p, q))
        scale = Scale("multi-label")
    items = len(q)
    p, q = scale.rows(p), scale.rows(q)
    # An evenly split item has no majority: every class but the first counts.
    most = np.arange(q.shape[1]) == q.argmax(axis=1)[:, None]
    lost = ((q >= MINORITY - 1e-9) & ~most & (p < q / 2)).any(axis=1)
    found: Bools = scale.per_item(lost, items) > 0
    return found


def minority_by_chance(evaluation: Evaluation) -> tuple[float, float]:
    """How many items would pass the filter of minorities if labels were drawn from the ensemble.

    Mean and standard deviation: few labels on many classes often fall on an unlikely one.
    """
    if evaluation.annotations is None:
        return 0.0, 0.0
    p, scale = evaluation.pooled.probabilities, evaluation.scale
    n = np.maximum(evaluation.annotations.annotations_per_item, 1)
    n = np.repeat(n, scale.rows_per_item(evaluation.pooled.classes))
    rows = scale.rows(p)
    rows = rows / rows.sum(axis=1, keepdims=True)
    rng, passing = np.random.default_rng(0), []
    for _ in range(DRAWS):
        shares = scale.from_rows(rng.multinomial(n, rows) / n[:, None], p.shape[1])
        passing.append(minority_lost(p, shares, scale).sum())
    return float(np.mean(passing)), float(np.std(passing))


def item_table(evaluation: Evaluation, texts: bool = True) -> dict[str, Any]:
    """Columns for the explorer, ready for JSON; ``flags`` has a bit per filter."""
    masks = filters(evaluation)
    pooled, annotations, scale = evaluation.pooled, evaluation.annotations, evaluation.scale
    distance = evaluation.distance
    chosen = np.arange(len(pooled.items), dtype=np.int64)
    if len(chosen) > MOST:
        score = pooled.spread if distance is None else distance
        chosen = np.sort(np.argsort(-score, kind="stable")[:MOST])
    flags = sum(mask.astype(np.int64) << bit for bit, mask in enumerate(masks.values()))
    described = []
    for key, mask in masks.items():
        name, meaning = FILTERS[key]
        meaning = MEANINGS[scale.kind].get(key, meaning)
        passing = int(mask[chosen].sum())
        described.append({"key": key, "name": name, "meaning": meaning, "count": passing})
    uncertain = pooled.entropy
    if scale.span is not None:
        uncertain = scale.deviations(pooled.probabilities)
    table: dict[str, Any] = {
        "kind": scale.kind,
        "positions": scale.positions,
        "classes": list(pooled.classes),
        "total": len(pooled.items),
        "items": [str(name).replace(PAIR, " · ") for name in pooled.items[chosen]],
        "p": rounded(pooled.probabilities[chosen]),
        "entropy": rounded(uncertain[chosen]),
        "spread": rounded(pooled.spread[chosen]),
        "flags": np.asarray(flags)[chosen].tolist(),
        "filters": described,
    }
    if annotations is not None and distance is not None:
        measure = annotations.entropy
        if scale.span is not None:
            measure = scale.deviations(annotations.soft_labels)
        table["counts"] = rounded(annotations.counts[chosen], 2)
        table["annotators"] = annotations.annotations_per_item[chosen].tolist()
        table["annotated"] = rounded(measure[chosen])
        table["distance"] = rounded(distance[chosen])
        table["metric"] = METRIC[evaluation.distance_metric].short
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
