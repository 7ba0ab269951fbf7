"""The promise of `--escalate`, and how often ordinary texts are called unfamiliar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from coverage_scenarios.coverage_row import CoverageRow
from edokit.ensemble.escalation import (
    CONFIDENCE,
    Against,
    Escalation,
    confidence,
    overruled_shares,
)
from edokit.ensemble.held_out import HeldOut
from edokit.members.familiarity import UNFAMILIAR, Familiarity
from edokit.scales import NOMINAL

POPULATION_ITEMS = 100_000
"""Items on which the true share of overruled answers is computed."""
SIZES = (100, 300, 1000, 3000)
TEXTS = (100, 1000)


@dataclass(frozen=True)
class Queue:
    """How simulated items, answers and annotators behave.

    The log-odds of a text are normal; answers see them with noise and are too sure by a factor.
    Items of a group share log-odds and noise.
    """

    name: str
    mean: float = -2.0
    deviation: float = 3.0
    noise: float = 0.5
    slope: float = 1.0
    votes: int = 5
    group_size: int = 1

    def draw(self, n_items: int, rng: np.random.Generator) -> HeldOut:
        """Answers and votes; groups are named where there are some."""
        n_groups = -(-n_items // self.group_size)
        repeats = self.group_size
        truth = rng.normal(self.mean, self.deviation, n_groups).repeat(repeats)[:n_items]
        noise = rng.normal(0, self.noise, n_groups).repeat(repeats)[:n_items]
        yes = 1 / (1 + np.exp(-self.slope * (truth + noise)))
        votes = rng.binomial(self.votes, 1 / (1 + np.exp(-truth))) / self.votes
        groups = None
        if self.group_size > 1:
            groups = np.arange(n_items) // self.group_size
        answers = np.stack([1 - yes, yes], axis=1)
        return HeldOut(answers, np.stack([1 - votes, votes], axis=1), groups)


PLAIN = Queue("two classes, 5 votes an item")
SURE = Queue("answers far too sure", noise=2.0, slope=3.0)
GROUPED = Queue("in groups of five", group_size=5)
QUEUES = (PLAIN, SURE, GROUPED)
LIMITS: dict[Against, float] = {"majority": 0.05, "annotator": 0.1}


def predict(runs: int, seed: int) -> Iterator[CoverageRow]:
    """What `edo predict` promises and flags."""
    yield from escalation_rows(runs, seed)
    yield from unfamiliar_rows(runs, seed)


def escalation_rows(runs: int, seed: int) -> Iterator[CoverageRow]:
    """How often at most the stated share of answered items would be overruled."""
    rng = np.random.default_rng(seed)
    for queue in QUEUES:
        population = queue.draw(POPULATION_ITEMS, rng)
        for against, limit in LIMITS.items():
            losses = overruled_shares(population.answers, population.shares, NOMINAL, against)
            sureness = confidence(population.answers, NOMINAL, against)
            for size in SIZES:
                n_kept = 0
                for _ in range(runs):
                    held_out = queue.draw(size, rng)
                    escalation = Escalation.fit(held_out, NOMINAL, limit, against)
                    n_kept += _is_kept(escalation, sureness, losses)
                yield CoverageRow(
                    shown=f"at most {limit:.0%} overruled by {_judges(against)}",
                    data=queue.name,
                    promise="kept",
                    nominal=CONFIDENCE,
                    count=n_kept,
                    runs=runs,
                    size=f"{size} items",
                )


def _is_kept(chosen: Escalation, sureness: np.ndarray, losses: np.ndarray) -> bool:
    """Whether few enough of the answered items of a population are overruled."""
    if chosen.threshold is None:
        return True
    is_answered = sureness > chosen.threshold
    if not is_answered.any():
        return True
    return bool(losses[is_answered].mean() <= chosen.limit)


def _judges(against: Against) -> str:
    if against == "majority":
        return "a majority"
    return "an annotator"


def unfamiliar_rows(runs: int, seed: int) -> Iterator[CoverageRow]:
    """How often one new text, of the same kind as those of the fit, is called unfamiliar."""
    rng = np.random.default_rng(seed)
    syllables = [start + end for start, end in product("bcdfglmnprst", ("a", "e", "in", "or"))]
    words = np.array(["".join(rng.choice(syllables, rng.integers(1, 4))) for _ in range(2000)])
    frequency = 1 / np.arange(1, len(words) + 1)
    frequency /= frequency.sum()

    def text() -> str:
        return " ".join(rng.choice(words, rng.integers(3, 25), p=frequency))

    for size in TEXTS:
        flagged = 0
        for _ in range(runs):
            familiarity = Familiarity.fit([text() for _ in range(size)])
            flagged += int(familiarity.rank([text()]).unfamiliar[0])
        yield CoverageRow(
            shown="the flag unfamiliar",
            data="new texts of the same kind",
            promise="false alarms",
            nominal=UNFAMILIAR,
            count=flagged,
            runs=runs,
            size=f"{size} texts",
        )
