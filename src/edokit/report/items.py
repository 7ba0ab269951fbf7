"""The items of the explorer, and the named filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edokit._types import Bools, Floats
from edokit.report.evaluation import Evaluation
from edokit.report.formatting import rounded

MOST = 20_000
"""Items that a page holds; of more, those with the largest distance are kept."""
LONGEST = 2_000
"""Characters of a text that a page holds."""
DIVIDED, SURE, UNSURE = 0.7, 0.5, 0.8
"""Shares of the maximum entropy: 4 against 1 is divided; p = 0.89 is confident."""
MINORITY = 0.2
"""The share of annotations from which a class counts as a minority's."""
TOP = 0.9
"""The quantile above which spread and distance are high."""


@dataclass(frozen=True, eq=False)
class Filter:
    """Items with a property in common."""

    key: str
    name: str
    meaning: str
    mask: Bools
    """[N]"""


def filters(evaluation: Evaluation) -> list[Filter]:
    """The named filters, whether or not any item passes them."""
    spread = Filter(
        "spread",
        "High member spread",
        "The tenth of the items on which the members differ most.",
        _top(evaluation.pooled.spread),
    )
    annotations, md = evaluation.annotations, evaluation.md
    if annotations is None or md is None or evaluation.hard_labels is None:
        return [spread]
    p, q = evaluation.pooled.probabilities, annotations.soft_labels
    annotated = annotations.entropy / evaluation.max_entropy
    predicted = evaluation.entropy / evaluation.max_entropy
    return [
        Filter(
            "sure",
            "Annotators disagree, ensemble confident",
            "The entropy of the annotations is at least 70 % of the maximum (4 against 1 is"
            " enough), that of the ensemble at most 50 % (a probability of about 0.89).",
            (annotated >= DIVIDED) & (predicted <= SURE),
        ),
        Filter(
            "unsure",
            "Annotators agree, ensemble uncertain",
            "All annotations are the same; the entropy of the ensemble is at least 80 % of the"
            " maximum.",
            (annotated <= 1e-9) & (predicted >= UNSURE),
        ),
        Filter(
            "minority",
            "Minority underestimated",
            "A class chosen by at least a fifth of the annotators, but not by most, gets less"
            " than half of its share.",
            minority_lost(p, q),
        ),
        Filter(
            "label",
            "Label differs from the hard label",
            "The most probable class is not the hard label.",
            p.argmax(axis=1) != evaluation.hard_labels,
        ),
        Filter(
            "divided",
            "Annotators divided",
            "The entropy of the annotations is at least 70 % of the maximum.",
            annotated >= DIVIDED,
        ),
        spread,
        Filter(
            "far",
            "High distance",
            "The tenth of the items with the largest distance (MD) between the ensemble and the"
            " annotations.",
            _top(md),
        ),
    ]


def minority_lost(p: Floats, q: Floats) -> Bools:
    """Where the class of a sizeable minority gets less than half of its share [N]."""
    # An evenly split item has no majority: every class but the first counts.
    most = np.zeros_like(q, dtype=bool)
    most[np.arange(len(q)), q.argmax(axis=1)] = True
    lost: Bools = ((q >= MINORITY - 1e-9) & ~most & (p < q / 2)).any(axis=1)
    return lost


def item_table(evaluation: Evaluation, texts: bool = True) -> dict[str, Any]:
    """Columns for the explorer, ready for JSON; ``flags`` has a bit per filter."""
    named = filters(evaluation)
    pooled, annotations, md = evaluation.pooled, evaluation.annotations, evaluation.md
    chosen = np.arange(len(pooled.items), dtype=np.int64)
    if len(chosen) > MOST:
        score = pooled.spread if md is None else md
        chosen = np.sort(np.argsort(-score, kind="stable")[:MOST])
    flags = np.zeros(len(pooled.items), dtype=np.int64)
    for bit, group in enumerate(named):
        flags |= group.mask.astype(np.int64) << bit
    table: dict[str, Any] = {
        "classes": list(pooled.classes),
        "total": len(pooled.items),
        "items": [str(name) for name in pooled.items[chosen]],
        "p": rounded(pooled.probabilities[chosen]),
        "entropy": rounded(evaluation.entropy[chosen]),
        "spread": rounded(pooled.spread[chosen]),
        "flags": flags[chosen].tolist(),
        "filters": [
            {
                "key": group.key,
                "name": group.name,
                "meaning": group.meaning,
                "count": int(group.mask[chosen].sum()),
            }
            for group in named
        ],
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
    if len(values) == 0 or float(values.max()) <= float(values.min()):
        return np.zeros(len(values), dtype=bool)
    mask: Bools = values > np.quantile(values, TOP)
    return mask


def shortened(text: object) -> str:
    """A text cut to what a page holds."""
    if text is None:
        return ""
    content = str(text)
    return content if len(content) <= LONGEST else content[: LONGEST - 1] + "…"
