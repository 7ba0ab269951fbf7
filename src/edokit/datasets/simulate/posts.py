"""Items of the simulator: what a post is about (features), and how it reads (text)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from edokit._types import Bools, Floats, Ints

_WORDS: dict[str, Any] = json.loads(files(__package__).joinpath("words.json").read_text("utf-8"))
"""Events and targets by topic, verdicts by heat (from praise to hostility), and what fills their
gaps; in each list the first words are the common ones."""

TARGETS: tuple[str, ...] = ("nobody", "person", "people", "reader")
"""Whom a post is aimed at: a thing, one person, a kind of people, or whoever reads it."""

TOPICS: tuple[str, ...] = tuple(_WORDS["topics"])
"""What posts are about."""

VIEW_NAMES: tuple[str, ...] = ("hostility", "irony", *TARGETS[1:], *TOPICS)
"""The sides of a post that annotators may weigh differently, in the order of `Features.sides`."""

# Given calm, given hostile: hostile posts are more often ironic and more often aimed at someone.
_IRONY_RATE = np.array([0.12, 0.30])
_TARGET_RATES = np.array([[0.45, 0.25, 0.20, 0.10], [0.16, 0.34, 0.32, 0.18]])

# The text shows only part of the features; the rest nobody can learn from it.
_HEAT_BLUR = 0.4
_TARGET_HIDDEN = 0.12
_IRONY_SHOWN = 0.6
_IRONY_FALSE = 0.06
_IRONY_PRAISES = 0.35
_DRAWS_PER_POST = 48


@dataclass(frozen=True)
class Features:
    """What N posts are about: `hostility` in [0, 1], `irony`, and codes into TOPICS and TARGETS."""

    topic: Ints
    hostility: Floats
    irony: Bools
    target: Ints

    def __len__(self) -> int:
        return len(self.topic)

    def sides(self) -> Floats:
        """What annotators react to, one column per VIEW_NAMES: [N, V]."""
        # Irony, target and topic matter in proportion to how hostile the post is.
        heat = self.hostility[:, None]
        return np.hstack(
            [
                heat,
                heat * self.irony[:, None],
                heat * (self.target[:, None] == np.arange(1, len(TARGETS))),
                heat * (self.topic[:, None] == np.arange(len(TOPICS))),
            ]
        )

    def severity(self) -> Floats:
        """How bad a post is in everybody's eyes, before anyone's own view: [N]."""
        aimed = np.array([0.0, 0.15, 0.25, 0.20])[self.target]
        return self.hostility * (1.0 + aimed - 0.25 * self.irony)

    def take(self, rows: Ints) -> Features:
        """The posts at these positions."""
        return Features(*(column[rows] for column in vars(self).values()))

    @staticmethod
    def join(parts: Sequence[Features]) -> Features:
        """The posts of several parts, one after the other."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return Features(*map(np.concatenate, columns))


def draw_features(rng: np.random.Generator, n: int, hostile_share: float) -> Features:
    """N random posts; about `hostile_share` of them are written in anger."""
    # One row of draws per post: asking for more posts leaves the first ones as they were.
    u = rng.random((n, 5))
    hostile = (u[:, 0] < hostile_share).astype(np.int64)
    # Calm posts lie towards 0, hostile ones towards 1: Beta(1, 3) and Beta(3, 1).
    hostility = np.where(hostile == 1, np.cbrt(u[:, 1]), 1.0 - np.cbrt(u[:, 1]))
    limits = np.cumsum(_TARGET_RATES, axis=1)[:, :-1]
    return Features(
        topic=(u[:, 2] * len(TOPICS)).astype(np.int64),
        hostility=hostility,
        irony=u[:, 3] < _IRONY_RATE[hostile],
        target=np.sum(u[:, 4, None] >= limits[hostile], axis=1),
    )


def write_posts(rng: np.random.Generator, features: Features) -> list[str]:
    """One short English text per post, showing part of its features."""
    draws = rng.random((len(features), _DRAWS_PER_POST)).tolist()
    columns = (column.tolist() for column in vars(features).values())
    return [_write(*row) for row in zip(*columns, draws, strict=True)]


def _write(topic: int, hostility: float, irony: bool, target: int, row: list[float]) -> str:
    dice = iter(row)
    lexicon = _WORDS["topics"][TOPICS[topic]]
    marked = next(dice) < (_IRONY_SHOWN if irony else _IRONY_FALSE)
    praises = next(dice) < _IRONY_PRAISES and irony
    if next(dice) < _TARGET_HIDDEN:
        target = 0
    targets = (lexicon["things"], lexicon["persons"], lexicon["people"], _WORDS["readers"])[target]

    clauses = []
    for _ in range(1 + (next(dice) < 0.55)):
        blur = _HEAT_BLUR * (next(dice) + next(dice) - 1.0)
        heat = 0 if praises else min(max(int(5 * (hostility + blur)), 0), 4)
        clauses.append(_verdict(heat, _pick(dice, targets), target >= 2, dice))
    shape = next(dice)
    if shape < 0.85:
        gaps = {name: _pick(dice, options) for name, options in _WORDS["fillers"].items()}
        event = _pick(dice, lexicon["events"]).format(**gaps)
        clauses.insert(0 if shape < 0.5 else len(clauses), event)
    if next(dice) < 0.3:
        clauses[0] = f"{_pick(dice, _WORDS['openings'])} {clauses[0]}"
    if marked:
        clauses.insert(1 + int(next(dice) * len(clauses)), _pick(dice, _WORDS["irony_marks"]))
    if next(dice) < 0.35:
        clauses.append(_pick(dice, _WORDS["closings"]))
    return _punctuate(clauses, next(dice))


def _pick(dice: Iterator[float], options: Sequence[str]) -> str:
    # Skewed towards the first options, as words are: the last ones are too rare to learn well.
    return options[int(len(options) * next(dice) ** 1.5)]


def _verdict(heat: int, who: str, plural: bool, dice: Iterator[float]) -> str:
    # The verb agrees with {who}.
    verbs = ("are", "were", "do", "", "") if plural else ("is", "was", "does", "s", "es")
    gaps = dict(zip(("is", "was", "does", "s", "es"), verbs, strict=True), who=who)
    words = _WORDS["words"]
    gaps |= {name: _pick(dice, options) for name, options in words.items()}
    gaps |= {f"{name}2": _pick(dice, words[name]) for name in ("poor", "bad")}
    return _pick(dice, _WORDS["verdicts"][heat]).format(**gaps)


def _punctuate(clauses: list[str], style: float) -> str:
    if style < 0.2:
        return ", ".join(clauses)
    if style < 0.35:
        return " ... ".join(clauses)
    stop = "!" if style > 0.9 else "."
    sentences = (clause[0].upper() + clause[1:] for clause in clauses)
    return " ".join(s if s[-1] in "?!.:" else s + stop for s in sentences)
