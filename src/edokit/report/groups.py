"""The section "Whose view?": groups of people, their tests in words, and items that divide them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edokit.analysis.diagnose.groups.result import (
    DividingItem,
    GroupComparison,
    LevelComparison,
    value_of,
)
from edokit.analysis.diagnose.groups.text import (
    LIMITS,
    attribute_note,
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
    """An item as the page shows it."""

    item: str
    text: str | None
    level: str
    about: str
    mean: str
    others: str
    ensemble: str
    labels: str


@dataclass(frozen=True)
class AttributeView:
    """An attribute as the page shows it.

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
    """The section as the page shows it."""

    method: str
    attributes: tuple[AttributeView, ...]
    few_people: str
    limits: str


def drawn_classes(found: GroupComparison, attribute: str) -> list[str]:
    """Classes to draw: all of one or two, else those that show differences most clearly."""
    levels = [level for level in found.levels_of(attribute) if level.difference is not None]
    if not levels:
        return []
    if found.scale == "ordinal":
        return [""]
    if found.scale == "nominal" and len(found.classes) == 2:
        return [found.classes[-1]]
    clearest = clearest_classes(found, attribute)[:MOST_CLASSES]
    return [name for name in found.classes if name in clearest]


def clearest_classes(found: GroupComparison, attribute: str) -> list[str]:
    """All classes, those first that show differences between levels most clearly."""
    levels = [level for level in found.levels_of(attribute) if level.difference is not None]
    clarity = {}
    for name in found.classes:
        clarity[name] = max((_clarity(level, name) for level in levels), default=0.0)
    return sorted(clarity, key=lambda name: -clarity[name])


def _clarity(level: LevelComparison, name: str) -> float:
    """A difference in widths of its interval."""
    low = value_of(level.low, name) or 0.0
    high = value_of(level.high, name) or 0.0
    return abs(value_of(level.difference, name) or 0.0) / max(high - low, 1e-12)


def is_clear(level: LevelComparison, name: str) -> bool:
    """Whether a level differs, and its interval of this class shows where."""
    low = value_of(level.low, name)
    high = value_of(level.high, name)
    if level.differs != "yes" or low is None or high is None:
        return False
    return low > 0 or high < 0


def chart_names(found: GroupComparison) -> dict[str, tuple[str, str]]:
    """Attribute and class of each chart, by its name on the page."""
    charts = {}
    for number, attribute in enumerate(found.attributes):
        for position, name in enumerate(drawn_classes(found, attribute)):
            charts[f"groups-{number}-{position}"] = (attribute, name)
    return charts


def groups_view(data: ReportData, *, texts: bool) -> GroupsView | None:
    """The section, of a run that compared groups."""
    found = data.groups
    if found is None:
        return None
    charts = chart_names(found)
    pooled = _pooled_answers(data, found)
    item_texts = _texts(data) if texts else {}
    attributes = []
    for attribute in found.attributes:
        levels = found.levels_of(attribute)
        items = [item for item in found.items if item.attribute == attribute]
        rows = [_row(found, item, item_texts, pooled) for item in items]
        attributes.append(
            AttributeView(
                name=attribute,
                note=attribute_note(found, attribute).strip(" ()"),
                charts=tuple(name for name, about in charts.items() if about[0] == attribute),
                findings=tuple(_findings(levels)),
                sentences=tuple(level_sentence(found, level) for level in levels),
                items=tuple(rows),
                by_chance=not found.item_spread[attribute],
                side=_side(found, items, pooled, [level.level for level in levels]),
            )
        )
    small = [level.name for level in found.levels if level.few_people]
    few_people = ""
    if small:
        few_people = f"{few_people_sentence(small)} Their lines may end at the edge of the chart."
    return GroupsView(
        method=method_sentence(found),
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
    if differing and len(tested) == 2:
        sentences.append(f"{differing[0]} and {differing[-1]} answer differently.")
    elif differing:
        answers = "answers" if len(differing) == 1 else "answer"
        sentences.append(f"{_listed(differing)} {answers} differently from the others.")
    elif not open_levels:
        sentences.append("No difference is shown; the lines show how large one could have been.")
    if open_levels:
        sentences.append(f"One can't tell for {_listed(open_levels)}: p is too close to 5 %.")
    return sentences


def _listed(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _pooled_answers(data: ReportData, found: GroupComparison) -> dict[str, dict[str, float]]:
    """The ensemble's answer to each item by class; the expected point has the name ""."""
    evaluation = data.evaluation
    if evaluation is None or evaluation.pooled.rows.people:
        return {}
    probabilities = evaluation.pooled.probabilities
    positions = evaluation.scale.positions
    if found.scale == "ordinal" and positions is not None:
        points = probabilities @ np.array(positions)
        return {
            str(item): {"": float(point)}
            for item, point in zip(evaluation.pooled.items, points, strict=True)
        }
    if tuple(evaluation.pooled.classes) != found.classes:
        return {}
    return {
        str(item): dict(zip(found.classes, map(float, row), strict=True))
        for item, row in zip(evaluation.pooled.items, probabilities, strict=True)
    }


def _texts(data: ReportData) -> dict[str, str]:
    """The text of each item."""
    evaluation = data.evaluation
    if evaluation is None or evaluation.annotations is None:
        return {}
    labels = evaluation.annotations
    words = labels.whole_texts
    if words is None:
        return {}
    return {str(item): str(text)[:LONGEST] for item, text in zip(labels.items, words, strict=True)}


def _row(
    found: GroupComparison,
    item: DividingItem,
    texts: dict[str, str],
    pooled: dict[str, dict[str, float]],
) -> DividingRow:
    """An item in words."""
    name = shown_item_class(found, item)
    return DividingRow(
        item=item.item,
        text=texts.get(item.item),
        level=item.level,
        about=name,
        mean=form_value(found, value_of(item.mean, name)),
        others=form_value(found, value_of(item.others, name)),
        ensemble=form_value(found, pooled.get(item.item, {}).get(name)),
        labels=f"{item.labels} and {item.other_labels}",
    )


def _side(
    found: GroupComparison,
    items: list[DividingItem],
    pooled: dict[str, dict[str, float]],
    levels: list[str],
) -> str:
    """Whom the anonymous answer is closer to on the items that divide most."""
    closer: dict[str, int] = {}
    asked: dict[str, int] = {}
    for item in items:
        name = shown_item_class(found, item)
        answer = pooled.get(item.item, {}).get(name)
        mean = value_of(item.mean, name)
        others = value_of(item.others, name)
        if answer is None or mean is None or others is None:
            continue
        asked[item.level] = asked.get(item.level, 0) + 1
        if abs(answer - mean) < abs(answer - others):
            closer[item.level] = closer.get(item.level, 0) + 1
    if not asked:
        return ""
    if len(levels) == 2:
        # Who is farther from a level is closer to the other one.
        first, second = levels
        near = closer.get(first, 0) + asked.get(second, 0) - closer.get(second, 0)
        rest = sum(asked.values()) - near
        return (
            f"The anonymous answer is closer to {first} on {near} of them, to {second} on {rest}."
        )
    parts = [
        f"than to {level} on {count - closer.get(level, 0)} of {count}"
        for level, count in asked.items()
    ]
    return f"The anonymous answer is closer to the others {', '.join(parts)} items."
