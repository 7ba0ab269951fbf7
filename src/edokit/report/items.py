"""The items of the explorer, and the named filters."""

from __future__ import annotations

from typing import Any

import numpy as np

from edokit._io.documents import parse_json
from edokit._types import Bools, Floats
from edokit.metrics import METRIC
from edokit.report.evaluation import EvaluatedItems
from edokit.report.formatting import asset
from edokit.scales import NOMINAL, Scale

# Items that a page holds; of more, those with the largest distance are kept.
MOST = 20_000
# Characters of a text that a page holds.
LONGEST = 2_000
# Largest share of a class: up to the first people are divided and an ensemble is uncertain, from
# the second on it is confident, however many classes there are.
DIVIDED = 2 / 3
SURE = 0.9
# The share of annotations from which a class counts as a minority's.
MINORITY = 0.2
# Standard deviation of ratings as a share of the range (at most a half): from the first on people
# are divided and an ensemble is uncertain, up to the second it is confident.
WIDE = 0.25
NARROW = 0.125


def filters(evaluation: EvaluatedItems) -> dict[str, Bools]:
    """The items [N] that pass each filter; without annotations, there are none."""
    annotations = evaluation.annotations
    hard = evaluation.hard_labels
    scale = evaluation.scale
    if annotations is None or hard is None:
        return {}
    p = evaluation.pooled.probabilities
    q = annotations.soft_labels
    n = len(p)
    if scale.span is None:
        majority = scale.rows(q).max(axis=1)
        likeliest = scale.rows(p).max(axis=1)
        is_divided = majority <= DIVIDED + 1e-9
        is_unanimous = majority >= 1 - 1e-9
        is_sure = likeliest >= SURE
        is_unsure = likeliest <= DIVIDED
    else:
        ratings = scale.deviations(q) / scale.span
        predicted = scale.deviations(p) / scale.span
        is_divided = ratings >= WIDE - 1e-9
        is_unanimous = ratings <= 1e-9
        is_sure = predicted <= NARROW
        is_unsure = predicted >= WIDE
    unanimous = (scale.per_item(is_unanimous, n) == 1) & (annotations.annotations_per_item > 1)
    wrong = scale.per_item(scale.row_codes(scale.hard(p)) != scale.row_codes(hard), n)
    return {
        "sure": scale.per_item(is_divided & is_sure, n) > 0,
        "unsure": unanimous & (scale.per_item(is_unsure, n) > 0),
        "minority": minority_lost(p, q, scale),
        "label": wrong > 0,
        "divided": scale.per_item(is_divided, n) > 0,
    }


def minority_lost(p: Floats, q: Floats, scale: Scale = NOMINAL) -> Bools:
    """Where a sizeable minority gets less than half of its share [N].

    A minority are those who chose a class, chose or left out a label, or rated above or below a
    point of the scale.
    """
    if scale.span is not None:
        # Whether a rating is above each point is a label of its own.
        p = 1 - np.cumsum(p, axis=1)[:, :-1]
        q = 1 - np.cumsum(q, axis=1)[:, :-1]
        scale = Scale("multi-label")
    items = len(q)
    p = scale.rows(p)
    q = scale.rows(q)
    # For an evenly split item, the first class counts as the majority.
    majority = np.arange(q.shape[1]) == q.argmax(axis=1)[:, None]
    lost = ((q >= MINORITY - 1e-9) & ~majority & (p < q / 2)).any(axis=1)
    mask: Bools = scale.per_item(lost, items) > 0
    return mask


def item_table(evaluation: EvaluatedItems, texts: bool = True) -> dict[str, Any]:
    """Columns for the explorer, ready for JSON; ``flags`` has a bit per filter."""
    masks = filters(evaluation)
    pooled = evaluation.pooled
    annotations = evaluation.annotations
    scale = evaluation.scale
    distance = evaluation.distance
    rows = np.arange(len(pooled.items), dtype=np.int64)
    if len(rows) > MOST:
        score = pooled.spread
        if distance is not None:
            score = distance
        rows = np.sort(np.argsort(-score, kind="stable")[:MOST])
    flags = np.zeros(len(pooled.items), dtype=np.int64)
    for bit, mask in enumerate(masks.values()):
        flags |= mask.astype(np.int64) << bit
    filter_texts = parse_json(asset("filters.json"), "filters.json")
    described_filters: list[dict[str, Any]] = []
    for key, mask in masks.items():
        described_filters.append(
            {
                "key": key,
                "name": filter_texts[key]["name"],
                "meaning": filter_texts[key]["meaning"][scale.kind],
                "count": int(mask[rows].sum()),
            }
        )
    uncertain = pooled.entropy
    if scale.span is not None:
        uncertain = scale.deviations(pooled.probabilities)
    table: dict[str, object] = {
        "kind": scale.kind,
        "positions": scale.positions,
        "classes": list(pooled.classes),
        "total": len(pooled.items),
        "items": pooled.rows.take(rows).names,
        "p": pooled.probabilities[rows].round(4).tolist(),
        "entropy": uncertain[rows].round(4).tolist(),
        "spread": pooled.spread[rows].round(4).tolist(),
        "flags": flags[rows].tolist(),
        "filters": described_filters,
    }
    if annotations is not None and distance is not None:
        measure = annotations.entropy
        if scale.span is not None:
            measure = scale.deviations(annotations.soft_labels)
        table["counts"] = annotations.counts[rows].round(2).tolist()
        table["annotators"] = annotations.annotations_per_item[rows].tolist()
        table["annotated"] = measure[rows].round(4).tolist()
        table["distance"] = distance[rows].round(4).tolist()
        table["metric"] = METRIC[evaluation.distance_metric].short
        if texts and annotations.texts is not None:
            table["texts"] = [shortened(text) for text in annotations.texts[rows]]
    return table


def shortened(text: object) -> str:
    """A text cut to what a page holds."""
    if text is None:
        return ""
    content = str(text)
    if len(content) > LONGEST:
        return content[: LONGEST - 1] + "…"
    return content
