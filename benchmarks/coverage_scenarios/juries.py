"""Intervals and tests of `edo audit`: judges, dropped members, agreement, replacement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import edokit
from coverage_scenarios.coverage_row import CoverageRow
from coverage_scenarios.metrics import LEVEL, Counts
from edokit import Annotations, Predictions

MEMBERS = 6
CORRELATION = 0.5
POPULATION_ITEMS = 20_000
SHARE_OF_RUNS = 2
"""An audit is slow: it has one table for this many of other scenarios."""


def divided(rng: np.random.Generator, n_items: int) -> np.ndarray:
    """Items on which annotators are divided."""
    return rng.uniform(0.3, 0.7, n_items)


def clear(rng: np.random.Generator, n_items: int) -> np.ndarray:
    """Items on which nearly all annotators agree: members are nearly always as good as they."""
    return rng.choice([0.02, 0.98], n_items)


@dataclass(frozen=True)
class People:
    """What share of annotators says yes, and how many there are."""

    name: str
    draw: Callable[[np.random.Generator, int], np.ndarray]
    annotators: int


def draw(n_items: int, people: People, rng: np.random.Generator) -> tuple[Predictions, Annotations]:
    """Members whose errors correlate, and annotators."""
    q = people.draw(rng, n_items)
    shared = np.sqrt(CORRELATION) * rng.normal(0, 0.1, (n_items, 1))
    own_errors = np.sqrt(1 - CORRELATION) * rng.normal(0, 0.1, (n_items, MEMBERS))
    p = np.clip(q[:, None] + shared + own_errors, 0.001, 0.999)
    votes = (rng.random((n_items, people.annotators)) < q[:, None]).astype(int)
    return as_tables(p, votes)


def as_tables(p: np.ndarray, votes: np.ndarray) -> tuple[Predictions, Annotations]:
    """Probabilities of yes [N, K] and votes [N, A] as predictions and annotations."""
    annotations = Annotations.from_matrix(votes, classes=[0, 1])
    predictions = Predictions.from_arrays(
        np.stack([1 - p, p], axis=2),
        items=annotations.items,
        classes=annotations.classes,
        layout="NKC",
    )
    return predictions, annotations


def audit(runs: int, seed: int) -> Iterator[CoverageRow]:
    """What an audit shows of juries whose errors correlate, and the test of a candidate."""
    n_runs = max(runs // SHARE_OF_RUNS, 1)
    for people in (
        People("six members, annotators divided", divided, 5),
        People("six members, annotators agree", clear, 4),
    ):
        audit_result = edokit.audit(
            *draw(POPULATION_ITEMS, people, np.random.default_rng([seed, 1])),
            replace=True,
            samples=50,
        )
        truth = statements(audit_result)
        if people.draw is divided:
            # Nothing is clipped, so the correlation is known.
            truth["number of judges"] = MEMBERS / (1 + (MEMBERS - 1) * CORRELATION)
        counts = Counts(people.name)
        for n_items in (50, 200):
            for run in range(n_runs):
                rng = np.random.default_rng([seed, n_items, run])
                small_audit = edokit.audit(
                    *draw(n_items, people, rng), replace=True, level=LEVEL, random_state=run
                )
                for quantity, (low, high) in intervals(small_audit).items():
                    if quantity in truth:
                        counts.add(quantity, n_items, bool(low <= truth[quantity] <= high))
        yield from counts.rows()
    yield from replacement(n_runs, seed)


def statements(found: edokit.Audit) -> dict[str, float]:
    """The estimates of an audit, by what is shown; of large data, the truth."""
    uniform = next(row for row in found.replacement if row["candidate"] == "uniform")
    overall = next(row for row in found.strata if row["stratum"] == "all")
    first_member = next(row for row in found.members if row["member"] == "0")
    return {
        "CE lost without a member": first_member["uniform"]["difference"],
        "agreement, jury less person": overall["above_human"],
        "advantage of the uniform mean": uniform["advantage"],
    }


def intervals(found: edokit.Audit) -> dict[str, tuple[float, float]]:
    """The intervals of an audit, by what is shown."""
    uniform = next(row for row in found.replacement if row["candidate"] == "uniform")
    overall = next(row for row in found.strata if row["stratum"] == "all")
    first_member = next(row for row in found.members if row["member"] == "0")
    quantities = {
        "CE lost without a member": first_member["uniform"]["interval"],
        "agreement, jury less person": overall["interval"],
        "advantage of the uniform mean": uniform["interval"],
    }
    if found.judges is not None and found.judges.estimate is not None:
        quantities["number of judges"] = (found.judges.low, found.judges.high)
    return quantities


def replacement(runs: int, seed: int) -> Iterator[CoverageRow]:
    """A candidate that answers like the annotators wins against none of them, with ε = 0."""
    counts = Counts("six annotators, the candidate like them")
    for n_items in (50, 200):
        for run in range(runs):
            rng = np.random.default_rng([seed, 4, n_items, run])
            q = rng.uniform(0.1, 0.9, (n_items, 1))
            votes = (rng.random((n_items, 7)) < q).astype(int)
            audit_result = edokit.audit(
                *as_tables(votes[:, 6:].astype(float), votes[:, :6]),
                replace=True,
                epsilon=0.0,
                samples=50,
                level=LEVEL,
            )
            candidate = next(row for row in audit_result.replacement if row["candidate"] == "0")
            wins = candidate["winning_rate"] > 0
            counts.add("wins against an annotator, ε 0", n_items, wins, "false alarms")
    yield from counts.rows()
