"""The section "Whose view?": groups of people, their tests in words, and items that divide them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from edokit._errors import listed
from edokit.analysis.diagnose.groups.result import (
    DividingItem,
    GroupComparison,
    LevelComparison,
    value_of,
)
from edokit.analysis.diagnose.groups.text import (
    LIMITS,
    attribute_note,
    clearest_classes,
    form_value,
    level_sentence,
    method_sentence,
    shown_item_class,
)
from edokit.annotations.people import few_people_sentence
from edokit.report.data import ReportData
from edokit.report.items import LONGEST

MOST_CLASSES = 3
"""Classes of an attribute that are drawn: those with the clearest differences."""


@dataclass(frozen=True)
class DividingRow:
    """A row of the table of items about which groups differ most, as text."""

    item: str
    text: str | None
    level: str
    class_name: str
    mean: str
    others: str
    ensemble: str
    labels: str


@dataclass(frozen=True)
class AttributeView:
    """What the page says of one attribute.

    Attributes
    ----------
    name, note : str
        The attribute, and how its values became levels.
    charts : tuple of str
        Names of its charts.
    findings : tuple of str
        Levels that differ, or may, in words.
    sentences : tuple of str
        Every level in words.
    items : tuple of DividingRow
        Items that divide its levels most.
    by_chance : bool
        Whether these divide no more than chance does.
    side : str
        Whom the ensemble's answer is closer to on these items; empty without its answers.
    """

    name: str
    note: str
    charts: tuple[str, ...]
    findings: tuple[str, ...]
    sentences: tuple[str, ...]
    items: tuple[DividingRow, ...]
    by_chance: bool
    side: str


@dataclass(frozen=True)
class GroupsView:
    """The texts of the section "Whose view?"."""

    method: str
    attributes: tuple[AttributeView, ...]
    few_people: str
    limits: str


def drawn_classes(comparison: GroupComparison, attribute: str) -> list[str]:
    """Classes to draw: all of one or two, else those that show differences most clearly."""
    levels = [level for level in comparison.levels_of(attribute) if level.difference is not None]
    if not levels:
        return []
    if comparison.has_points:
        return [""]
    if comparison.is_binary:
        return [comparison.classes[-1]]
    clearest = clearest_classes(comparison, attribute)[:MOST_CLASSES]
    return [name for name in comparison.classes if name in clearest]


def is_clear(level: LevelComparison, name: str) -> bool:
    """Whether a level differs, and its interval of this class shows where."""
    low = value_of(level.low, name)
    high = value_of(level.high, name)
    if level.differs != "yes" or low is None or high is None:
        return False
    return low > 0 or high < 0


def chart_names(comparison: GroupComparison) -> dict[str, tuple[str, str]]:
    """Attribute and class of each chart, by its name on the page."""
    charts = {}
    for number, attribute in enumerate(comparison.attributes):
        for position, name in enumerate(drawn_classes(comparison, attribute)):
            charts[f"groups-{number}-{position}"] = (attribute, name)
    return charts


def groups_view(data: ReportData, *, texts: bool) -> GroupsView | None:
    """The section, of a run that compared groups."""
    comparison = data.groups
    if comparison is None:
        return None
    charts = chart_names(comparison)
    pooled = _pooled_answers(data, comparison)
    item_texts: dict[str, str] = {}
    if texts:
        item_texts = _texts(data)
    attributes = []
    for attribute in comparison.attributes:
        levels = comparison.levels_of(attribute)
        items = [item for item in comparison.items if item.attribute == attribute]
        rows = [_row(comparison, item, item_texts, pooled) for item in items]
        attributes.append(
            AttributeView(
                name=attribute,
                note=attribute_note(comparison, attribute).strip(" ()"),
                charts=tuple(name for name, parts in charts.items() if parts[0] == attribute),
                findings=tuple(_findings(levels)),
                sentences=tuple(level_sentence(comparison, level) for level in levels),
                items=tuple(rows),
                by_chance=not comparison.item_spread[attribute],
                side=_side(comparison, items, pooled, [level.level for level in levels]),
            )
        )
    small = [level.name for level in comparison.levels if level.few_people]
    few_people = ""
    if small:
        few_people = few_people_sentence(small)
    return GroupsView(
        method=method_sentence(comparison),
        attributes=tuple(attributes),
        few_people=few_people,
        limits=LIMITS,
    )


def _findings(levels: tuple[LevelComparison, ...]) -> list[str]:
    """What the tests of an attribute say, in a sentence or two."""
    tested = [level for level in levels if level.differs is not None]
    if not tested:
        return ["Its levels were not tested."]
    differing = [level.level for level in tested if level.differs == "yes"]
    open_levels = [level.level for level in tested if level.differs == "can't tell"]
    sentences = []
    if len(differing) == 2 and len(levels) == 2:
        sentences.append(f"{differing[0]} and {differing[-1]} answer differently.")
    elif differing:
        answers = "answer"
        if len(differing) == 1:
            answers = "answers"
        sentences.append(f"{listed(differing)} {answers} differently from the others.")
    elif not open_levels:
        sentences.append("No difference is shown; the lines show how large one could have been.")
    if open_levels:
        sentences.append(f"One can't tell for {listed(open_levels)}: p is too close to 5 %.")
    return sentences


def _pooled_answers(data: ReportData, comparison: GroupComparison) -> dict[str, dict[str, float]]:
    """The ensemble's answer to each item by class; the expected point has the name ""."""
    evaluation = data.evaluation
    if evaluation is None or evaluation.pooled.rows.people:
        return {}
    probabilities = evaluation.pooled.probabilities
    positions = evaluation.scale.positions
    if comparison.has_points and positions is not None:
        points = probabilities @ np.array(positions)
        return {
            str(item): {"": float(point)}
            for item, point in zip(evaluation.pooled.items, points, strict=True)
        }
    if tuple(evaluation.pooled.classes) != comparison.classes:
        return {}
    return {
        str(item): dict(zip(comparison.classes, map(float, row), strict=True))
        for item, row in zip(evaluation.pooled.items, probabilities, strict=True)
    }


def _texts(data: ReportData) -> dict[str, str]:
    """The text of each item."""
    evaluation = data.evaluation
    if evaluation is None or evaluation.annotations is None:
        return {}
    labels = evaluation.annotations
    texts = labels.whole_texts
    if texts is None:
        return {}
    return {str(item): str(text)[:LONGEST] for item, text in zip(labels.items, texts, strict=True)}


def _row(
    comparison: GroupComparison,
    item: DividingItem,
    texts: dict[str, str],
    pooled: dict[str, dict[str, float]],
) -> DividingRow:
    """An item in words."""
    name = shown_item_class(comparison, item)
    return DividingRow(
        item=item.item,
        text=texts.get(item.item),
        level=item.level,
        class_name=name,
        mean=form_value(comparison, value_of(item.mean, name)),
        others=form_value(comparison, value_of(item.others, name)),
        ensemble=form_value(comparison, pooled.get(item.item, {}).get(name)),
        labels=f"{item.labels} and {item.other_labels}",
    )


def _side(
    comparison: GroupComparison,
    items: list[DividingItem],
    pooled: dict[str, dict[str, float]],
    levels: list[str],
) -> str:
    """Whom the anonymous answer is closer to on the items that divide most."""
    compared: Counter[str] = Counter()
    closer_to_level: Counter[str] = Counter()
    closer_to_rest: Counter[str] = Counter()
    for item in items:
        name = shown_item_class(comparison, item)
        answer = pooled.get(item.item, {}).get(name)
        mean = value_of(item.mean, name)
        mean_of_rest = value_of(item.others, name)
        if answer is None or mean is None or mean_of_rest is None:
            continue
        compared[item.level] += 1
        distance_to_level = abs(answer - mean)
        distance_to_rest = abs(answer - mean_of_rest)
        if distance_to_level < distance_to_rest:
            closer_to_level[item.level] += 1
        elif distance_to_rest < distance_to_level:
            closer_to_rest[item.level] += 1
    if not compared:
        return ""
    if len(levels) == 2:
        # The rest of one level are the people of the other one.
        first_level, second_level = levels
        n_first = closer_to_level[first_level] + closer_to_rest[second_level]
        n_second = closer_to_level[second_level] + closer_to_rest[first_level]
        return (
            f"The anonymous answer is closer to {first_level} on {n_first} of them, to"
            f" {second_level} on {n_second}."
        )
    parts = [
        f"than to {level} on {closer_to_rest[level]} of {n_items}"
        for level, n_items in compared.items()
    ]
    return f"The anonymous answer is closer to the others {', '.join(parts)} items."
