"""The summary: headline, evidence, weights and caveats; the words are in ``assets/summary.txt``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edokit._types import Floats
from edokit.analysis.diagnose.text import render_lines
from edokit.analysis.scores.text import SHARES
from edokit.annotations.core import Annotations
from edokit.datasets.similar_texts import similar_texts_note
from edokit.ensemble.estimator import EDOEnsemble
from edokit.metrics import METRIC
from edokit.report.data import ROLES, ReportData
from edokit.report.evaluation import EvaluatedItems
from edokit.report.formatting import FILTERS, clean
from edokit.report.items import filters
from edokit.report.results import find_headline

# Weights are nearly equal if the largest is less than this many times the smallest.
NEARLY_EQUAL = 1.2
FEW_ANNOTATIONS = 3
# A class is rare if its share is less than this part of an even share: with two classes, less than
# 10 % of the items.
RARE = 0.2
# Answers that are this many times as divided as the annotators are mostly the models' own doubt.
TOO_DIVIDED = 1.25


@dataclass
class PageSummary:
    """Sentences by topic.

    Attributes
    ----------
    lead : str
        The result in plain words.
    evidence : list of str
        What it rests on.
    cautions : list of str
        Where the ensemble is not clearly better than a constant answer.
    caveats : list of str
        The gravest first; the last one holds for every ensemble.
    tiles : list of list of str
        Metric, name, value and note of each number at the top of the page.
    weights : list of str
    """

    lead: str
    evidence: list[str]
    cautions: Sequence[str]
    caveats: list[str]
    tiles: list[list[str]]
    weights: list[str]


def summarize(data: ReportData) -> PageSummary:
    """The summary of whatever is known."""
    evaluation = data.evaluation
    content: dict[str, object] = {"about": None}
    if data.ensemble is not None:
        content |= _about_weights(data.ensemble)
    if evaluation is not None and evaluation.annotations is not None:
        content["about"] = _about_items(evaluation)
    result = find_headline(data.comparison, evaluation)
    cautions: Sequence[str] = ()
    if result is not None:
        cautions = result.cautions
    elif evaluation is not None and evaluation.result is not None:
        cautions = evaluation.result.headline
    lines = render_lines(
        "summary.txt",
        package="edokit.report",
        filters=FILTERS,
        ensemble=data.ensemble,
        evaluation=evaluation,
        search=data.search,
        result=result,
        changed=[
            ROLES.get(role, role).lower()
            for role, state in data.inputs.items()
            if state == "changed"
        ],
        metric=METRIC,
        shares=SHARES,
        **content,
    )
    topics: dict[str, list[str]] = defaultdict(list)
    for topic, text in (line.split(" | ", 1) for line in lines):
        topics[topic].append(text)
    return PageSummary(
        lead=topics["lead"][0],
        evidence=[*topics["evidence"], *data.remarks],
        cautions=cautions,
        caveats=[*_similar_texts(evaluation), *topics["caveats"]],
        tiles=[text.split(" | ") for text in topics["tile"]],
        weights=topics["weights"],
    )


def _similar_texts(evaluation: EvaluatedItems | None) -> list[str]:
    """A caveat where many texts share most of their words."""
    if evaluation is None or evaluation.annotations is None:
        return []
    note = similar_texts_note(evaluation.annotations)
    if note is None:
        return []
    return [note]


def _about_weights(ensemble: EDOEnsemble) -> dict[str, object]:
    """Members or groups, their weights, and the classes."""
    names, weights = ensemble.fitted_.unit_weights
    positive = weights[weights > 0]
    unit = "member"
    if ensemble.group_weights_ is not None:
        unit = "group"
    return {
        "unit": unit,
        "units": len(names),
        "weights": positive.tolist(),
        "classes": [f"“{clean(name, 40)}”" for name in ensemble.classes_],
        "nearly_equal": len(positive) > 1 and positive.max() < NEARLY_EQUAL * positive.min(),
    }


def _about_items(evaluation: EvaluatedItems) -> dict[str, object]:
    """What there is to say about annotated items, and what the ensemble misses there."""
    annotations = evaluation.annotations
    hard = evaluation.hard_labels
    assert annotations is not None
    assert hard is not None
    per_item = float(np.median(annotations.annotations_per_item))
    coarse = per_item < FEW_ANNOTATIONS and annotations.label_codes is not None
    classes = evaluation.pooled.classes
    scale = evaluation.scale
    shares = scale.indicators(hard, len(classes)).mean(axis=0)
    present = np.flatnonzero(shares)
    rarest = 0
    if len(present):
        rarest = int(present[shares[present].argmin()])
    rare = None
    # A rare point of a scale has neighbours that count.
    if scale.span is None and shares[rarest] * len(scale.row_classes(classes)) < RARE:
        rare = clean(classes[rarest], 40)
    masks = filters(evaluation)
    return {
        "members": len(evaluation.predictions.members),
        "per_item": int(per_item),
        "coarse": coarse and not evaluation.are_pairs,
        "rare": rare,
        "rare_share": float(shares[rarest]),
        "sure": int(masks["sure"].sum()),
        "divided": _divided(evaluation, annotations),
    }


def _divided(evaluation: EvaluatedItems, annotations: Annotations) -> dict[str, float] | None:
    """How much two answers to an item differ: two drawn from the ensemble, and two annotators.

    The difference is the share of pairs that differ, or a distance on the scale. None if the
    ensemble is hardly more divided than the annotators, and for pairs of an item and an annotator.
    """
    counts = annotations.annotations_per_item
    has_several = counts > 1
    if annotations.label_codes is None or evaluation.are_pairs or not has_several.any():
        return None
    scale = evaluation.scale
    vectors = scale.vectors(len(evaluation.pooled.classes), absolute=True)

    def differences(p: Floats) -> Floats:
        return np.asarray(2 * (p @ (vectors**2).sum(axis=1) - ((p @ vectors) ** 2).sum(axis=1)))

    expected = differences(evaluation.pooled.probabilities)[has_several].mean()
    # Of n annotators, only pairs of two different ones count.
    unbiased = counts[has_several] / (counts[has_several] - 1)
    observed = (differences(annotations.soft_labels)[has_several] * unbiased).mean()
    if expected <= TOO_DIVIDED * observed:
        return None
    unit = 1.0
    if scale.span is not None:
        unit = scale.span
    return {"expected": float(expected * unit), "observed": float(observed * unit)}
