"""The items of the explorer: what people said, what the pool says, and where they part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._types import Floats
from edokit.report.evaluation import Evaluation
from edokit.report.formatting import rounded

Mask = npt.NDArray[np.bool_]

MOST = 20_000
"""Items that a page holds; of more, those that tell most are kept."""
LONGEST = 2_000
"""Characters of a text that a page holds."""
DIVIDED, SURE, UNSURE = 0.7, 0.5, 0.8
"""Shares of the largest entropy: 4 against 1 is divided; p = 0.89 is sure."""
MINORITY = 0.2
"""The share of annotators from which a view counts as a minority's."""
TOP = 0.9
"""The quantile above which members, or pool and people, count as far apart."""


@dataclass(frozen=True, eq=False)
class Filter:
    """Items that have something in common, with a name and a meaning in words."""

    key: str
    name: str
    meaning: str
    mask: Mask
    """[N]"""


def filters(evaluation: Evaluation) -> list[Filter]:
    """The named filters, whether or not any item falls under them."""
    far = _top(evaluation.pooled.spread)
    apart = Filter(
        "spread",
        "Members far apart",
        "The tenth of the items in which the members’ answers differ most.",
        far,
    )
    if evaluation.people is None or evaluation.hard is None:
        return [apart]
    p, q = evaluation.pooled.probabilities, evaluation.people.soft_labels
    human = evaluation.people.entropy / evaluation.fullest
    ours = evaluation.predicted_entropy / evaluation.fullest
    distance = evaluation.distance
    assert distance is not None
    return [
        Filter(
            "sure",
            "People disagree, the ensemble is sure",
            "The people’s entropy is at least 70 % of the largest there can be (4 against 1 is"
            " enough), the ensemble’s at most 50 % (a probability of about 0.89).",
            (human >= DIVIDED) & (ours <= SURE),
        ),
        Filter(
            "unsure",
            "People agree, the ensemble is unsure",
            "All annotators gave one answer; the ensemble’s entropy is at least 80 % of the"
            " largest there can be.",
            (human <= 1e-9) & (ours >= UNSURE),
        ),
        Filter(
            "minority",
            "Minority view lost",
            "At least a fifth of the annotators, but not the most, chose a class to which the"
            " ensemble gives less than half of their share.",
            minority_lost(p, q),
        ),
        Filter(
            "label",
            "Another answer than the majority’s",
            "The ensemble’s likeliest class is not the item's hard label.",
            p.argmax(axis=1) != evaluation.hard,
        ),
        Filter(
            "divided",
            "People divided",
            "The people’s entropy is at least 70 % of the largest there can be.",
            human >= DIVIDED,
        ),
        apart,
        Filter(
            "far",
            "Far from the people",
            "The tenth of the items with the largest distance (MD) between the ensemble’s"
            " probabilities and the people’s shares.",
            _top(distance),
        ),
    ]


def minority_lost(p: Floats, q: Floats) -> Mask:
    """Where a sizeable minority's class gets less than half of its share [N]."""
    # An evenly split item has no majority: then every view but the first counts.
    most = np.zeros_like(q, dtype=bool)
    most[np.arange(len(q)), q.argmax(axis=1)] = True
    lost: Mask = ((q >= MINORITY - 1e-9) & ~most & (p < q / 2)).any(axis=1)
    return lost


def item_table(evaluation: Evaluation, texts: bool = True) -> dict[str, Any]:
    """Columns for the explorer, ready for JSON; ``flags`` holds a bit per filter."""
    named = filters(evaluation)
    chosen = _most_telling(evaluation)
    people = evaluation.people
    flags = np.zeros(len(evaluation.pooled.items), dtype=np.int64)
    for bit, group in enumerate(named):
        flags |= group.mask.astype(np.int64) << bit
    table: dict[str, Any] = {
        "classes": list(evaluation.pooled.classes),
        "total": len(evaluation.pooled.items),
        "items": [str(name) for name in evaluation.pooled.items[chosen]],
        "p": rounded(evaluation.pooled.probabilities[chosen]),
        "entropy": rounded(evaluation.predicted_entropy[chosen]),
        "spread": rounded(evaluation.pooled.spread[chosen]),
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
    if people is not None:
        distance = evaluation.distance
        assert distance is not None
        table["counts"] = rounded(people.counts[chosen], 2)
        table["human"] = rounded(people.entropy[chosen])
        table["md"] = rounded(distance[chosen])
        if texts and people.texts is not None:
            table["texts"] = [shortened(text) for text in people.texts[chosen]]
    return table


def _most_telling(evaluation: Evaluation) -> npt.NDArray[np.int64]:
    """Positions of the items to hold, in the order of the data."""
    count = len(evaluation.pooled.items)
    if count <= MOST:
        return np.arange(count, dtype=np.int64)
    score = evaluation.distance if evaluation.distance is not None else evaluation.pooled.spread
    order = np.argsort(-score, kind="stable")[:MOST]
    return np.sort(order).astype(np.int64)


def _top(values: Floats) -> Mask:
    """The upper tenth, none where all are alike."""
    if len(values) == 0 or float(values.max()) <= float(values.min()):
        return np.zeros(len(values), dtype=bool)
    mask: Mask = values > np.quantile(values, TOP)
    return mask


def shortened(text: object) -> str:
    """A text as long as a page holds."""
    if text is None:
        return ""
    words = str(text)
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"
