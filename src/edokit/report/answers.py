"""What the ensemble answers: how its answers spread, and three example texts from low to high."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from edokit._errors import listed
from edokit._types import Floats, Ints
from edokit.report.evaluation import EvaluatedItems
from edokit.report.formatting import clean, number, percent
from edokit.report.items import LONGEST, shortened

EXAMPLES = {"low": 0.05, "middle": 0.5, "high": 0.95}
"""Example texts, and the share of the items that lie below them."""
MOST_BARS = 7
"""Classes of an example that are drawn: those with the largest shares."""
MOST_NAMED = 3
"""Classes that the sentence on labels names."""
SpreadKind = Literal["expected point", "number of labels", "probability", "confidence"]


@dataclass(frozen=True)
class ClassBar:
    """The share of one class in the answer to a text.

    Attributes
    ----------
    name : str
        The class.
    share : float
        What the ensemble answers.
    annotated : float or None
        The share of the annotators; None without annotations.
    """

    name: str
    share: float
    annotated: float | None


@dataclass(frozen=True)
class Example:
    """A text with its answer.

    Attributes
    ----------
    place : str
        Where it lies among all items: ``low``, ``middle`` or ``high``.
    item : str
    text : str or None
        None if the page does not show texts.
    value : str
        What the items are ordered by, in words.
    bars : tuple of ClassBar
    annotators : int or None
    """

    place: str
    item: str
    text: str | None
    value: str
    bars: tuple[ClassBar, ...]
    annotators: int | None


@dataclass(frozen=True)
class AnswersView:
    """The texts of the section "What it answers".

    Attributes
    ----------
    sentence : str
        How the answers spread.
    chart_note : str
        How to read the chart.
    order : str
        What the examples are ordered by.
    examples : tuple of Example
    """

    sentence: str
    chart_note: str
    order: str
    examples: tuple[Example, ...]


def spread_kind(evaluation: EvaluatedItems) -> SpreadKind:
    """What the answers are ordered by, which depends on the scale."""
    if evaluation.scale.span is not None:
        return "expected point"
    if evaluation.scale.is_multi_label:
        return "number of labels"
    if len(evaluation.pooled.classes) == 2:
        return "probability"
    return "confidence"


def spread_values(evaluation: EvaluatedItems) -> Floats:
    """Expected points, expected numbers of labels, or probabilities [N]."""
    p = evaluation.pooled.probabilities
    kind = spread_kind(evaluation)
    if kind == "expected point":
        return evaluation.scale.expected(p)
    if kind == "number of labels":
        return np.asarray(p.sum(axis=1))
    if kind == "probability":
        return np.asarray(p[:, -1])
    return np.asarray(p.max(axis=1))


def spread_name(evaluation: EvaluatedItems) -> str:
    """What the answers are ordered by, in words."""
    kind = spread_kind(evaluation)
    if kind == "probability":
        return f"probability of “{clean(evaluation.pooled.classes[-1], 40)}”"
    if kind == "number of labels":
        return "expected number of labels"
    if kind == "confidence":
        return "probability of the likeliest class"
    return kind


def label_shares(evaluation: EvaluatedItems) -> Floats:
    """The share of the items that get each label [C]."""
    classes = evaluation.pooled.classes
    labels = evaluation.scale.hard(evaluation.pooled.probabilities)
    return np.asarray(evaluation.scale.indicators(labels, len(classes)).mean(axis=0))


def answers_view(evaluation: EvaluatedItems | None, *, texts: bool) -> AnswersView | None:
    """The texts of the section; None without items."""
    if evaluation is None or not len(evaluation.pooled.items):
        return None
    kind = spread_kind(evaluation)
    chart_note = f"Height: the share of the {noun_of(evaluation)} in each interval."
    if kind == "expected point":
        sentence = _points_sentence(evaluation)
    elif kind == "probability":
        sentence = _probability_sentence(evaluation)
    else:
        sentence = _labels_sentence(evaluation)
        chart_note = f"Bars: the share of the {noun_of(evaluation)} with each label."
        if evaluation.annotations is not None:
            chart_note += " Dots: the annotators’ mean share of it."
    return AnswersView(
        sentence=sentence,
        chart_note=chart_note,
        order=spread_name(evaluation),
        examples=tuple(_examples(evaluation, texts=texts)),
    )


def noun_of(evaluation: EvaluatedItems) -> str:
    """``items``, or ``pairs`` of an item and an annotator."""
    return evaluation.name.rpartition(" ")[2]


def _points_sentence(evaluation: EvaluatedItems) -> str:
    """Where half of the expected points lie, and half of the annotators' means."""
    noun = noun_of(evaluation)
    low, high = _middle_half(spread_values(evaluation))
    sentence = (
        f"Half of the {noun} get an expected point between {number(low, 2)} and {number(high, 2)}"
    )
    if evaluation.annotations is None:
        return f"{sentence}."
    low, high = _middle_half(evaluation.scale.expected(evaluation.annotations.soft_labels))
    return (
        f"{sentence}; half of the annotators’ means are between {number(low, 2)} and"
        f" {number(high, 2)}."
    )


def _probability_sentence(evaluation: EvaluatedItems) -> str:
    """How often the second class is likely, how often hardly possible, and how often chosen."""
    values = spread_values(evaluation)
    name = spread_name(evaluation)
    noun = noun_of(evaluation)
    likely = percent(float((values > 0.5).mean()))
    rare = percent(float((values < 0.1).mean()))
    sentence = f"The {name} is above 50 % for {likely} of the {noun}, and below 10 % for {rare}"
    if evaluation.annotations is None:
        return f"{sentence}."
    majority_share = percent(float((evaluation.annotations.soft_labels[:, -1] > 0.5).mean()))
    return f"{sentence}; more than half of the annotators chose it for {majority_share}."


def _middle_half(values: Floats) -> tuple[float, float]:
    """The quartiles between which half of the values lie."""
    low, high = np.quantile(values, [0.25, 0.75])
    return float(low), float(high)


def _value_text(value: float, is_share: bool) -> str:
    """A share in percent; a point or a number of labels with two digits."""
    if is_share:
        return percent(value)
    return number(value, 2)


def _labels_sentence(evaluation: EvaluatedItems) -> str:
    """How often the most frequent labels are given."""
    shares = label_shares(evaluation)
    order = np.argsort(-shares, kind="stable")
    frequent = [c for c in order[:MOST_NAMED] if shares[c] > 0]
    if not frequent:
        return f"None of the {noun_of(evaluation)} gets a label."
    parts = [
        f"“{clean(evaluation.pooled.classes[c], 40)}” to {percent(float(shares[c]))}"
        for c in frequent
    ]
    sentence = f"It gives the label {listed(parts)} of the {noun_of(evaluation)}"
    n_rare = int((shares > 0).sum()) - len(frequent)
    if n_rare:
        sentence += f", and {n_rare} more"
    return f"{sentence}."


def _examples(evaluation: EvaluatedItems, *, texts: bool) -> list[Example]:
    """The items at the places of `EXAMPLES`; fewer where two places are the same item."""
    pooled = evaluation.pooled
    values = spread_values(evaluation)
    order = np.argsort(values, kind="stable")
    item_texts = None
    if texts and evaluation.annotations is not None:
        item_texts = evaluation.annotations.texts
    if item_texts is not None:
        has_text = np.array([bool(shortened(text).strip()) for text in item_texts])
        if has_text.any():
            order = order[has_text[order]]
    place_by_row: dict[int, str] = {}
    for place, share_below in EXAMPLES.items():
        position = round(share_below * (len(order) - 1))
        place_by_row.setdefault(int(order[position]), place)
    is_share = spread_kind(evaluation) in ("probability", "confidence")
    examples: list[Example] = []
    for row, place in place_by_row.items():
        text = None
        if item_texts is not None:
            text = shortened(item_texts[row])
        annotators = None
        if evaluation.annotations is not None:
            annotators = int(evaluation.annotations.annotations_per_item[row])
        examples.append(
            Example(
                place=place,
                item=str(pooled.items[row]),
                text=text,
                value=_value_text(float(values[row]), is_share),
                bars=_bars(evaluation, row),
                annotators=annotators,
            )
        )
    return examples


def _bars(evaluation: EvaluatedItems, row: int) -> tuple[ClassBar, ...]:
    """The classes with the largest shares, in class order."""
    p = evaluation.pooled.probabilities[row]
    most_likely: Ints = np.sort(np.argsort(-p, kind="stable")[:MOST_BARS])
    annotated = None
    if evaluation.annotations is not None:
        annotated = evaluation.annotations.soft_labels[row]
    bars: list[ClassBar] = []
    for c in most_likely:
        observed = None
        if annotated is not None:
            observed = float(annotated[c])
        name = clean(evaluation.pooled.classes[c], LONGEST)
        bars.append(ClassBar(name, float(p[c]), observed))
    return tuple(bars)
