"""What people and panels would answer: the pool's answers, shifted by the effects of people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from edokit._errors import InputError, are, examples, one_of, option, warn
from edokit.ensemble.answers import Answer
from edokit.ensemble.people import PeopleEffects
from edokit.ensemble.pooled import Pooled
from edokit.panels import Panel
from edokit.rows import Rows

AttributeLevels = Mapping[str, str | Sequence[str]]
"""Levels of attributes, as in ``{"race": "Black", "age": ["18-24", "25-29"]}``."""
PanelLike = Panel | AttributeLevels | Sequence[str]
"""A panel, levels of attributes that its people have, or their names."""


def make_panel(panel: PanelLike, people: PeopleEffects | None) -> Panel:
    """Return a panel: unchanged, of these names, or of all people with these levels.

    Parameters
    ----------
    panel : Panel, mapping or sequence of str
        A mapping names levels of attributes; people must have one of the levels of each.
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
    parts = []
    is_member = np.ones(len(people.annotators), dtype=bool)
    for name, levels in attributes.items():
        level_names = [levels] if isinstance(levels, str) else list(levels)
        has_level = np.zeros(len(people.annotators), dtype=bool)
        has_level[people.people_with(name, level_names)] = True
        is_member &= has_level
        parts.append(f"{name}={','.join(level_names)}")
    title = ";".join(parts)
    if not is_member.any():
        raise InputError(
            f"nobody is in the panel {title}",
            "ask for fewer attributes at a time",
            code="empty-panel",
        )
    names = tuple(people.annotators[code] for code in np.flatnonzero(is_member))
    return Panel(names, name=title)


def parse_levels(text: str) -> dict[str, list[str]]:
    """Return the levels that a text such as ``race=Black`` or ``age=18-24,25-29`` names.

    Several attributes are separated by semicolons.
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
    known_people = _with_attributes(people)
    one_of("attribute", attribute, [effects.name for effects in known_people.attributes])
    levels = known_people.attribute(attribute).levels
    return [panel_of_levels({attribute: level}, known_people) for level in levels]


def _with_attributes(people: PeopleEffects | None) -> PeopleEffects:
    """The people; those of whom no attribute is known are refused."""
    if people is None or not people.attributes:
        raise InputError(
            "the ensemble knows no attributes of people",
            "fit it on annotations with a column for each attribute, such as gender or age",
            code="missing-people",
        )
    return people


def warn_of_unknown(annotators: Iterable[str], people: PeopleEffects) -> None:
    """Warn of people whom the ensemble does not know: they get the anonymous answer."""
    names = [name for name in dict.fromkeys(annotators) if name]
    unknown = [name for name in names if name not in people.annotators]
    if unknown:
        warn(
            f"{are(len(unknown), len(names), noun='annotator')} unknown to the ensemble and gets"
            f" the anonymous answer: {examples(unknown)}; known are {examples(people.annotators)}"
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
        The step that makes answers for a metric of each person's distribution.
    """
    warn_of_unknown(panel.annotators, people)
    codes = people.person_codes(panel.annotators)
    n_items, n_classes = pooled.probabilities.shape
    n_people = len(codes)
    rows = np.repeat(pooled.probabilities, n_people, axis=0)
    votes = people.answers(rows, np.tile(codes, n_items))
    mean = panel.weighted_mean(votes.reshape(n_items, n_people, n_classes))
    answers = None
    if step is not None:
        votes = step.apply(votes, pooled.scale)
        answers = panel.weighted_mean(votes.reshape(n_items, n_people, n_classes))
    answer = panel.answer_votes(pooled.rows, votes.reshape(n_items, n_people, n_classes))
    shifted = replace(pooled, probabilities=mean, answers=answers, is_panel=True)
    if n_people == 1 and panel.size is None:  # one person has one vote, and no share of votes
        return replace(shifted, low=None, high=None)
    return replace(shifted, low=answer.low, high=answer.high)


def answer_for_annotators(
    pooled: Pooled,
    people: PeopleEffects,
    annotators: Mapping[str, Iterable[str]],
    step: Answer | None = None,
) -> Pooled:
    """Return a row for each item and annotator, and one without annotator: the anonymous answer.

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
        for name in (*annotators.get(str(item), ()), ""):
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
