"""The items of the simulator: features of posts, and texts that show part of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from edokit._types import Bools, Floats, Ints

_WORDS: dict[str, Any] = json.loads(files(__package__).joinpath("words.json").read_text("utf-8"))
"""Parts of texts: events and targets by topic, verdicts by heat, and words for their gaps.

Heat ranges from praise to hostility. In each list, the first entries are the most frequent.
"""

TARGETS: tuple[str, ...] = ("nobody", "person", "people", "reader")
"""Target of a post: nobody (a thing), one person, a kind of people, or the reader."""

TOPICS: tuple[str, ...] = tuple(_WORDS["topics"])
"""Topics of posts."""

VIEW_NAMES: tuple[str, ...] = ("hostility", "irony", *TARGETS[1:], *TOPICS)
"""The sides of a post that annotators may weigh differently, in the order of `Features.sides`."""

# Rates of calm posts, then of hostile posts, which are more often ironic and aimed at someone.
_IRONY_RATE = np.array([0.12, 0.30])
_TARGET_RATES = np.array([[0.45, 0.25, 0.20, 0.10], [0.16, 0.34, 0.32, 0.18]])

# The text shows only part of the features, so that no model can learn the rest.
_HEAT_BLUR = 0.4  # largest difference of the hostility of a clause from that of the post
_TARGET_HIDDEN = 0.12  # probability that the text does not show the target
_IRONY_SHOWN = 0.6  # probability that an ironic text has a mark of irony
_IRONY_FALSE = 0.06  # probability that any other text has one
_IRONY_PRAISES = 0.35  # probability that an ironic text is worded as praise
_DRAWS_PER_POST = 48


@dataclass(frozen=True)
class Features:
    """The features of N posts.

    Attributes
    ----------
    topic : Ints
        The topic of each post [N], as a position in `TOPICS`.
    hostility : Floats
        From 0 to 1 [N].
    irony : Bools
        Whether each post is ironic [N].
    target : Ints
        The target of each post [N], as a position in `TARGETS`.
    """

    topic: Ints
    hostility: Floats
    irony: Bools
    target: Ints

    def __len__(self) -> int:
        return len(self.topic)

    def sides(self) -> Floats:
        """The sides of posts to which annotators react [N, V], in the order of `VIEW_NAMES`."""
        # Irony, target and topic matter in proportion to the hostility of the post.
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
        """How severe a post is for everybody, without the views of annotators [N]."""
        aimed = np.array([0.0, 0.15, 0.25, 0.20])[self.target]
        return self.hostility * (1.0 + aimed - 0.25 * self.irony)

    def take(self, rows: Ints) -> Features:
        """The posts at these positions."""
        return Features(
            topic=self.topic[rows],
            hostility=self.hostility[rows],
            irony=self.irony[rows],
            target=self.target[rows],
        )

    @staticmethod
    def join(parts: Sequence[Features]) -> Features:
        """The posts of several parts, one part after another."""
        return Features(
            topic=np.concatenate([part.topic for part in parts]),
            hostility=np.concatenate([part.hostility for part in parts]),
            irony=np.concatenate([part.irony for part in parts]),
            target=np.concatenate([part.target for part in parts]),
        )


def draw_features(rng: np.random.Generator, n: int, hostile_share: float) -> Features:
    """Draw n posts; about the share ``hostile_share`` of them is hostile."""
    # One row of draws per post, so that more posts do not change the first ones.
    u = rng.random((n, 5))
    hostile = (u[:, 0] < hostile_share).astype(np.int64)
    # The hostility of calm posts is from Beta(1, 3), near 0; of hostile ones from Beta(3, 1).
    hostility = np.where(hostile == 1, np.cbrt(u[:, 1]), 1.0 - np.cbrt(u[:, 1]))
    limits = np.cumsum(_TARGET_RATES, axis=1)[:, :-1]
    return Features(
        topic=(u[:, 2] * len(TOPICS)).astype(np.int64),
        hostility=hostility,
        irony=u[:, 3] < _IRONY_RATE[hostile],
        target=np.sum(u[:, 4, None] >= limits[hostile], axis=1),
    )


def write_posts(rng: np.random.Generator, features: Features) -> list[str]:
    """A short English text per post, which shows part of its features."""
    draws = rng.random((len(features), _DRAWS_PER_POST)).tolist()
    texts = []
    for position, row in enumerate(draws):
        text = _write(
            topic=int(features.topic[position]),
            hostility=float(features.hostility[position]),
            irony=bool(features.irony[position]),
            target=int(features.target[position]),
            draws=row,
        )
        texts.append(text)
    return texts


def _write(topic: int, hostility: float, irony: bool, target: int, draws: list[float]) -> str:
    """The text of a post; ``draws`` are random numbers from 0 to 1, used one after another."""
    dice = iter(draws)
    lexicon = _WORDS["topics"][TOPICS[topic]]
    mark_rate = _IRONY_FALSE
    if irony:
        mark_rate = _IRONY_SHOWN
    is_marked = next(dice) < mark_rate
    praises = next(dice) < _IRONY_PRAISES and irony
    if next(dice) < _TARGET_HIDDEN:
        target = 0
    targets = (lexicon["things"], lexicon["persons"], lexicon["people"], _WORDS["readers"])[target]

    clauses = []
    n_verdicts = 1
    if next(dice) < 0.55:
        n_verdicts = 2
    for _ in range(n_verdicts):
        blur = _HEAT_BLUR * (next(dice) + next(dice) - 1.0)
        heat = min(max(int(5 * (hostility + blur)), 0), 4)
        if praises:
            heat = 0
        clauses.append(_verdict(heat, _pick(dice, targets), target >= 2, dice))
    shape = next(dice)
    if shape < 0.85:
        gaps = {name: _pick(dice, options) for name, options in _WORDS["fillers"].items()}
        event = _pick(dice, lexicon["events"]).format(**gaps)
        if shape < 0.5:
            clauses.insert(0, event)
        else:
            clauses.append(event)
    if next(dice) < 0.3:
        clauses[0] = f"{_pick(dice, _WORDS['openings'])} {clauses[0]}"
    if is_marked:
        clauses.insert(1 + int(next(dice) * len(clauses)), _pick(dice, _WORDS["irony_marks"]))
    if next(dice) < 0.35:
        clauses.append(_pick(dice, _WORDS["closings"]))
    return _punctuate(clauses, next(dice))


def _pick(dice: Iterator[float], options: Sequence[str]) -> str:
    """One of the options; like words in real texts, the last ones are rare."""
    return options[int(len(options) * next(dice) ** 1.5)]


def _verdict(heat: int, who: str, plural: bool, dice: Iterator[float]) -> str:
    """A sentence about ``who``."""
    # The gaps for verbs have the names of their forms in the singular.
    gaps = {"is": "is", "was": "was", "does": "does", "s": "s", "es": "es"}
    if plural:
        gaps = {"is": "are", "was": "were", "does": "do", "s": "", "es": ""}
    gaps["who"] = who
    words = _WORDS["words"]
    for name, options in words.items():
        gaps[name] = _pick(dice, options)
    for name in ("poor", "bad"):
        gaps[f"{name}2"] = _pick(dice, words[name])
    return _pick(dice, _WORDS["verdicts"][heat]).format(**gaps)


def _punctuate(clauses: list[str], style: float) -> str:
    """The clauses as a text; ``style`` from 0 to 1 chooses the punctuation."""
    if style < 0.2:
        return ", ".join(clauses)
    if style < 0.35:
        return " ... ".join(clauses)
    end = "."
    if style > 0.9:
        end = "!"
    sentences = []
    for clause in clauses:
        sentence = clause[0].upper() + clause[1:]
        if sentence[-1] not in "?!.:":
            sentence += end
        sentences.append(sentence)
    return " ".join(sentences)
