"""Answers of people and panels: the pool's answers, shifted by the effects of people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from edokit._errors import InputError, are, examples, option, warn
from edokit.ensemble.answers import Answer
from edokit.ensemble.people import PeopleEffects
from edokit.ensemble.pooled import Pooled
from edokit.panels import Panel
from edokit.rows import NOBODY, Rows

AttributeLevels = Mapping[str, str | Sequence[str]]
"""Levels of attributes, as in ``{"race": "Black", "age": ["18-24", "25-29"]}``."""
PanelLike = Panel | AttributeLevels | Sequence[str]
"""A panel, or what `make_panel` makes one of: levels of attributes, or names of annotators."""


def make_panel(panel: PanelLike, people: PeopleEffects | None) -> Panel:
    """Return a panel from names of annotators or levels of attributes.

    Parameters
    ----------
    panel : Panel, mapping or sequence of str
        A panel is returned unchanged. A sequence names the annotators. A mapping has levels of
        attributes: the panel is all people who have one of the levels of each attribute.
    people : PeopleEffects or None
        The people whom the ensemble knows.
    """
    if isinstance(panel, Panel):
        return panel
    if isinstance(panel, str):
        raise InputError(
            "the annotators of the panel are one string, not names",
            "name each of them, as in ('ann', 'ben')",
            code="single-value",
        )
    if not isinstance(panel, Mapping):
        return Panel(tuple(panel))
    return panel_of_levels(panel, people)


def panel_of_levels(attributes: AttributeLevels, people: PeopleEffects | None) -> Panel:
    """Return the panel of all people who have one of these levels of each attribute."""
    people = _with_attributes(people)
    if not attributes:
        raise InputError(
            "the panel names no attribute", "name one, as in race=Black", code="empty-panel"
        )
    conditions = []
    is_in_panel = np.ones(len(people.annotators), dtype=bool)
    for name, levels in attributes.items():
        if isinstance(levels, str):
            level_names = [levels]
        else:
            level_names = list(levels)
        has_level = np.zeros(len(people.annotators), dtype=bool)
        has_level[people.people_with(name, level_names)] = True
        is_in_panel &= has_level
        conditions.append(f"{name}={','.join(level_names)}")
    title = ";".join(conditions)
    if not is_in_panel.any():
        raise InputError(
            f"nobody is in the panel {title}",
            "ask for fewer attributes at a time",
            code="empty-panel",
        )
    names = tuple(people.annotators[code] for code in np.flatnonzero(is_in_panel))
    return Panel(names, name=title)


def parse_levels(text: str) -> dict[str, list[str]]:
    """Parse levels of attributes from a text such as ``race=Black`` or ``age=18-24,25-29``.

    Semicolons separate attributes.
    """
    levels: dict[str, list[str]] = {}
    for part in text.split(";"):
        name, sign, values = part.partition("=")
        if not sign or not name.strip() or not values.strip():
            raise InputError(
                f"{text!r} does not name levels of attributes",
                f"write {option('panel', 'race=Black')} or {option('panel', 'age=18-24,25-29')}",
                code="malformed-option",
            )
        levels[name.strip()] = [value.strip() for value in values.split(",")]
    return levels


def level_panels(attribute: str, people: PeopleEffects | None) -> list[Panel]:
    """Return a panel for each level of an attribute."""
    people = _with_attributes(people)
    levels = people.attribute(attribute).levels
    return [panel_of_levels({attribute: level}, people) for level in levels]


def _with_attributes(people: PeopleEffects | None) -> PeopleEffects:
    """Return the people unchanged; refuse them if no attribute of them is known."""
    if people is None or not people.attributes:
        raise InputError(
            "the ensemble knows no attributes of people",
            "fit it on annotations with a column for each attribute, such as gender or age",
            code="missing-people",
        )
    return people


def warn_of_unknown(annotators: Iterable[str], people: PeopleEffects) -> None:
    """Warn of annotators whom the ensemble does not know: they get the anonymous answer."""
    names = [name for name in dict.fromkeys(annotators) if name]
    unknown = [name for name in names if name not in people.annotators]
    if unknown:
        warn(
            f"{are(len(unknown), len(names), noun='annotator')} unknown to the ensemble, so the"
            f" anonymous answer is given: {examples(unknown)}; known are"
            f" {examples(people.annotators)}"
        )


def answer_for_panel(
    pooled: Pooled, people: PeopleEffects, panel: Panel, step: Answer | None = None
) -> Pooled:
    """Return what a panel would answer: the weighted mean of its people's answers.

    Parameters
    ----------
    pooled : Pooled
        The anonymous answers, one row per item.
    people : PeopleEffects
        How people differ from the pool. People never seen get the anonymous answer.
    panel : Panel
        Whose answer.
    step : Answer, default=None
        The step for a metric, which is applied to each person's distribution.
    """
    warn_of_unknown(panel.annotators, people)
    codes = people.person_codes(panel.annotators)
    n_items, n_classes = pooled.probabilities.shape
    n_people = len(codes)
    anonymous_by_person = np.repeat(pooled.probabilities, n_people, axis=0)
    votes = people.answers(anonymous_by_person, np.tile(codes, n_items))
    shape = (n_items, n_people, n_classes)
    mean = panel.weighted_mean(votes.reshape(shape))
    metric_mean = None
    if step is not None:
        votes = step.apply(votes, pooled.scale)
        metric_mean = panel.weighted_mean(votes.reshape(shape))
    panel_pooled = replace(pooled, probabilities=mean, answers=metric_mean, is_panel=True)
    if n_people == 1 and panel.size is None:  # one person has one vote, and no share of votes
        return replace(panel_pooled, low=None, high=None)
    intervals = panel.answer_votes(pooled.rows, votes.reshape(shape))
    return replace(panel_pooled, low=intervals.low, high=intervals.high)


def answer_for_annotators(
    pooled: Pooled,
    people: PeopleEffects,
    annotators: Mapping[str, Iterable[str]],
    step: Answer | None = None,
) -> Pooled:
    """Return a row for each annotator of each item, and one per item for the anonymous answer.

    Parameters
    ----------
    pooled : Pooled
        The anonymous answers, one row per item.
    people : PeopleEffects
        How people differ from the pool. People never seen get the anonymous answer.
    annotators : mapping of str to iterable of str
        The annotators of each item.
    step : Answer, default=None
        The step that makes answers for a metric.
    """
    positions = []
    names = []
    for position, item in enumerate(pooled.items):
        for name in (*annotators.get(str(item), ()), NOBODY):
            positions.append(position)
            names.append(str(name))
    warn_of_unknown(names, people)
    probabilities = people.answers(pooled.probabilities[positions], people.person_codes(names))
    answers = None
    if step is not None:
        answers = step.apply(probabilities, pooled.scale)
    return replace(
        pooled,
        rows=Rows.from_names([str(pooled.items[position]) for position in positions], names),
        probabilities=probabilities,
        spread=pooled.spread[positions],
        answers=answers,
    )
