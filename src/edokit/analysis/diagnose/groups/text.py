"""Sentences made of a comparison of groups."""

from __future__ import annotations

from edokit._errors import counted
from edokit.analysis.diagnose.groups.result import (
    AnswerPoint,
    DividingItem,
    GroupComparison,
    LevelComparison,
    value_of,
)
from edokit.annotations.people import few_people_sentence

_ITEMS_LISTED = 3


def group_lines(comparison: GroupComparison) -> list[str]:
    """Return the comparison line by line."""
    lines = [f"Do groups differ? ({method_sentence(comparison)})"]
    for attribute in comparison.attributes:
        lines.append(f"  {attribute}{attribute_note(comparison, attribute)}")
        lines += [
            f"    {level_sentence(comparison, level)}" for level in comparison.levels_of(attribute)
        ]
        lines += [f"    {line}" for line in _item_lines(comparison, attribute)]
    small = [level.name for level in comparison.levels if level.few_people]
    if small:
        lines.append(f"  {few_people_sentence(small)}")
    lines.append(f"  {LIMITS}")
    return lines


LIMITS = (
    "Differences are between these annotators, compared on the same items; they say nothing of"
    " causes, and attributes that go together are not separated."
)


def method_sentence(comparison: GroupComparison) -> str:
    """How levels were compared, in a few words."""
    words = "levels against the others on the same items; 95 % intervals over people and items"
    if comparison.tests:
        words += (
            f"; p by permuting people, Holm's correction for {counted(comparison.tests, 'test')}"
        )
    return words


def attribute_note(comparison: GroupComparison, attribute: str) -> str:
    """How values became levels, and how many annotators are left out; empty if there is neither."""
    words = []
    if attribute in comparison.notes:
        words.append(comparison.notes[attribute])
    if comparison.unknown[attribute]:
        words.append(f"unknown for {counted(comparison.unknown[attribute], 'annotator')}, left out")
    return f" ({'; '.join(words)})" if words else ""


def level_sentence(comparison: GroupComparison, level: LevelComparison) -> str:
    """Return one level: people, mean, difference with its interval, and the verdict."""
    people = f"{level.level}: {counted(level.people, 'person')}"
    if level.few_people:
        people = f"{level.level}: only {counted(level.people, 'person')}"
    people = people.replace("persons", "people")
    if level.mean is None:
        return f"{people}, no labels"
    class_name = shown_class(comparison, level)
    mean = f"{_named(class_name)}{form_value(comparison, value_of(level.mean, class_name))}"
    if level.difference is None:
        return f"{people}, {mean}; not compared: {level.reason}"
    difference = form_change(comparison, value_of(level.difference, class_name))
    if level.differs != "yes" and _is_whole_scale(comparison, level, class_name):
        sentence = f"{people}, {mean}, {difference}: too few people to tell"
        if _p_values(level):
            sentence += f" ({_p_values(level)})"
        return sentence
    low = form_change(comparison, value_of(level.low, class_name))
    high = form_change(comparison, value_of(level.high, class_name))
    return f"{people}, {mean}, {difference} [{low}, {high}]{verdict_words(comparison, level)}"


def _is_whole_scale(comparison: GroupComparison, level: LevelComparison, class_name: str) -> bool:
    """Whether the interval excludes no difference that the scale allows."""
    low = value_of(level.low, class_name)
    high = value_of(level.high, class_name)
    if low is None or high is None:
        return False
    if comparison.has_points:
        # An interval is symmetric about a difference other than 0 only if both ends are cut, at
        # minus and plus the length of the scale.
        return low == -high and value_of(level.difference, class_name) != 0
    return low <= -1.0 and high >= 1.0


def _p_values(level: LevelComparison) -> str:
    """The p-value and the corrected one; empty without a test."""
    if level.p is None or level.p_adjusted is None:
        return ""
    return f"p = {level.p:.2g}, corrected {level.p_adjusted:.2g}"


def verdict_words(comparison: GroupComparison, level: LevelComparison) -> str:
    """Return what the test says of a level, with how much could have been missed."""
    p = _p_values(level)
    if level.differs is None or not p:
        return ""
    if level.differs == "yes":
        return f": differs ({p})"
    size = form_change(comparison, level.missed).lstrip("+")
    missed = (
        f"a difference of up to {size}{_missed_class(comparison, level)} could have been missed"
    )
    if level.differs == "no":
        return f": no difference shown ({p}); {missed}"
    return (
        f": can't tell ({p}, too close to 5 % for {comparison.permutations} permutations); {missed}"
    )


def _missed_class(comparison: GroupComparison, level: LevelComparison) -> str:
    """The class whose interval reaches farthest from zero; of two classes, the shown class."""
    if not isinstance(level.low, dict) or not isinstance(level.high, dict):
        return ""
    name = shown_class(comparison, level)
    if not comparison.is_binary:
        reach = {}
        for class_name, low in level.low.items():
            reach[class_name] = max(abs(low), abs(level.high[class_name]))
        name = max(reach, key=reach.__getitem__)
    return f" in {name!r}"


def shown_class(comparison: GroupComparison, level: LevelComparison) -> str:
    """Return the class to show, the same for all levels of an attribute.

    Of two classes it is the last one, else that with the clearest differences.
    """
    if not isinstance(level.mean, dict):
        return ""
    if comparison.is_binary:
        return comparison.classes[-1]
    return clearest_classes(comparison, level.attribute)[0]


def clearest_classes(comparison: GroupComparison, attribute: str) -> list[str]:
    """All classes, sorted by how clearly levels differ in them, the clearest first."""
    levels = [level for level in comparison.levels_of(attribute) if level.difference is not None]
    clarity = {}
    for name in comparison.classes:
        clarity[name] = max((_clarity(level, name) for level in levels), default=0.0)
    return sorted(clarity, key=lambda name: -clarity[name])


def _clarity(level: LevelComparison, name: str) -> float:
    """The difference in a class, divided by the width of its interval."""
    low = value_of(level.low, name) or 0.0
    high = value_of(level.high, name) or 0.0
    return abs(value_of(level.difference, name) or 0.0) / max(high - low, 1e-12)


def _item_lines(comparison: GroupComparison, attribute: str) -> list[str]:
    """The items that divide the levels of an attribute most."""
    items = [item for item in comparison.items if item.attribute == attribute][:_ITEMS_LISTED]
    if not items:
        return []
    listed = "; ".join(item_sentence(comparison, item) for item in items)
    text = f"items that divide most: {listed}"
    if not comparison.item_spread[attribute]:
        text += " (no more than chance divides them)"
    return [text]


def item_sentence(comparison: GroupComparison, item: DividingItem) -> str:
    """Return what people of a level and the others answered about an item."""
    class_name = shown_item_class(comparison, item)
    inside = form_value(comparison, value_of(item.mean, class_name))
    outside = form_value(comparison, value_of(item.others, class_name))
    return f"{item.item} ({item.level} {_named(class_name)}{inside}, others {outside})"


def shown_item_class(comparison: GroupComparison, item: DividingItem) -> str:
    """Return the class to show: the second of two, else the most divisive class."""
    if not isinstance(item.mean, dict) or not isinstance(item.others, dict):
        return ""
    if comparison.is_binary:
        return comparison.classes[-1]
    distance = {name: abs(share - item.others[name]) for name, share in item.mean.items()}
    return max(distance, key=distance.__getitem__)


def _named(class_name: str) -> str:
    """The name of a class, to precede its share; a point of a scale is called the mean."""
    return f"{class_name!r} " if class_name else "mean "


def form_value(comparison: GroupComparison, value: AnswerPoint) -> str:
    """Return points with two digits, shares in percent."""
    if not isinstance(value, float | int):
        return "–"
    return f"{value:.2f}" if comparison.has_points else f"{value:.0%}"


def form_change(comparison: GroupComparison, value: AnswerPoint) -> str:
    """Return a difference with its sign."""
    if not isinstance(value, float | int):
        return "–"
    return f"{value:+.2f}" if comparison.has_points else f"{100 * value:+.0f} pp"
