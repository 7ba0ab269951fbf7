"""Simulates a regime: posts, annotators and labels, with the true label distributions."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edokit._errors import check_seed, one_of
from edokit._names import as_names
from edokit._types import Codes, Floats, Ints, Strings
from edokit.annotations.core import Annotations
from edokit.annotations.long_table import from_long_table
from edokit.datasets.simulate.annotators import (
    Population,
    answer_probabilities,
    assign_idle,
    choose_annotators,
    draw_population,
    solve_thresholds,
)
from edokit.datasets.simulate.posts import Features, draw_features, write_posts
from edokit.datasets.simulate.regimes import REGIMES, Regime

SPLITS: tuple[str, ...] = ("train", "dev", "test")


class _SplitStreams(NamedTuple):
    """Independent random numbers for each step of simulating a split."""

    features: np.random.Generator
    wording: np.random.Generator
    coverage: np.random.Generator
    labels: np.random.Generator
    ties: np.random.Generator


@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulated annotations of N items, with the facts that are unknown of real ones.

    The truth is the label distribution of all A annotators, each counted once, however active.

    Attributes
    ----------
    regime : Regime
        The regime, with the numbers of items that were used.
    annotations : Annotations
        The annotations, with texts, splits, hard labels and the `group` of each annotator.
    annotators : Strings
        All annotators of the population [A], including those without an annotation.
    groups : Strings
        The groups of these annotators [A].
    features : Features
        The features of the posts.
    population : Population
        The views and the noise of the annotators.
    thresholds : Floats
        The severity from which a post is in each class above the first [C - 1]; for multi-label
        data, the clearness from which each label is chosen [L].
    """

    regime: Regime
    annotations: Annotations
    annotators: Strings
    groups: Strings
    features: Features
    population: Population
    thresholds: Floats

    @cached_property
    def truth(self) -> Floats:
        """The share of the population that would choose each class or label [N, C]."""
        truth: Floats = self.annotator_probabilities().mean(axis=1)
        return truth

    def rows(self, split: str | None = None) -> Ints:
        """The positions of the items of a split, or of all items."""
        if split is None:
            return np.arange(len(self.features))
        one_of("split", split, SPLITS)
        return np.flatnonzero(self.annotations.splits == split)

    def annotator_probabilities(self, rows: npt.ArrayLike | None = None) -> Floats:
        """The probability that each annotator chooses each class or label [n, A, C].

        ``rows`` are the positions of items; None means all items.
        """
        selected = self.rows()
        if rows is not None:
            selected = np.asarray(rows)
        scores = self.population.scores(self.features.take(selected))
        sets = bool(self.regime.labels)
        return answer_probabilities(scores, self.population.noise, self.thresholds, sets)


def _draw(rng: np.random.Generator, p: Floats, regime: Regime) -> Codes:
    """Labels drawn from probabilities [n, m, C]: codes [n, m]; for labels, 0 or 1 [n, m, L]."""
    if regime.labels:
        return (rng.random(p.shape) < p).astype(np.int32)
    limits = np.cumsum(p, axis=-1)[..., :-1]
    codes: Codes = np.sum(rng.random(p.shape[:-1])[..., None] >= limits, axis=-1, dtype=np.int32)
    return codes


def simulate(
    regime: str | Regime = "crowd",
    *,
    random_state: int = 0,
    items: tuple[int, int, int] | None = None,
) -> Simulation:
    """Simulate annotations of short posts whose true label distributions are known.

    Parameters
    ----------
    regime : str or Regime, default="crowd"
        Who annotates, how often, and why they disagree. ``three-voices``, ``partial-panel``,
        ``two-camps`` and ``crowd`` resemble the four datasets of LeWiDi 2023, ``seven-points`` has
        an ordinal scale from 1 to 7, and ``three-labels`` is multi-label.
    random_state : int, default=0
        Seed; the same seed gives the same data.
    items : tuple of three int, default=None
        Numbers of items in train, dev and test; None means those of the regime.

    Returns
    -------
    Simulation
        The annotations, with texts and splits, and the true label distribution of each item.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Examples
    --------
    >>> from edokit import simulate
    >>> simulation = simulate("two-camps", items=(60, 20, 20))
    >>> len(simulation.annotations.items), len(simulation.annotations.annotators)
    (100, 6)
    >>> simulation.truth.shape
    (100, 2)
    """
    if isinstance(regime, str):
        one_of("regime", regime, REGIMES)
        regime = REGIMES[regime]
    if items is not None:
        regime = replace(regime, items=items)
    people_stream, split_streams = _streams(random_state)
    population = draw_population(people_stream, regime)
    features = []
    person_parts = []
    for streams, n in zip(split_streams, regime.items, strict=True):
        features.append(draw_features(streams.features, n, regime.hostile_share))
        person_parts.append(
            choose_annotators(streams.coverage, n, regime.per_item, population.activity)
        )
    train_features = features[0]
    train_chosen = person_parts[0]
    assign_idle(split_streams[0].coverage, train_chosen, len(population))
    thresholds = _thresholds(population, regime, train_features, train_chosen)
    label_parts = []
    published_parts = []
    texts: list[str] = []
    names = []
    parts = zip(SPLITS, split_streams, features, person_parts, strict=True)
    for split, streams, part_features, part_chosen in parts:
        part_labels, part_published = _label(
            population, thresholds, regime, part_features, part_chosen, streams
        )
        label_parts.append(part_labels)
        published_parts.append(part_published)
        texts += write_posts(streams.wording, part_features)
        names += [f"sim-{split}-{number + 1}" for number in range(len(part_features))]
    annotators = as_names(f"ann-{number + 1}" for number in range(len(population)))
    groups = as_names(regime.groups[code].name for code in population.group)
    labels = np.concatenate(label_parts)
    published = np.concatenate(published_parts)
    person_codes = np.concatenate(person_parts)
    # A row of the table for each annotator of an item.
    rows, columns = np.nonzero(person_codes >= 0)
    people = person_codes[rows, columns]
    table = {
        "item": as_names(names)[rows],
        "annotator": annotators[people],
        "label": _names(labels[rows, columns], regime),
        "text": as_names(texts)[rows],
        "split": np.repeat(SPLITS, regime.items)[rows],
        "group": groups[people],
    }
    if not regime.labels:
        table["hard_label"] = _names(published[rows], regime)
    return Simulation(
        regime=regime,
        annotations=from_long_table(
            table, classes=regime.classes, scale=regime.scale, attributes=["group"]
        ),
        annotators=annotators,
        groups=groups,
        features=Features.join(features),
        population=population,
        thresholds=thresholds,
    )


def _names(codes: Codes, regime: Regime) -> Strings:
    """The classes of codes [M]; for rows of 0 and 1 [M, L], the chosen labels as JSON lists."""
    classes = np.array(regime.classes, dtype=object)
    if not regime.labels:
        return classes[codes]
    return as_names(json.dumps(classes[row == 1].tolist()) for row in codes)


def _thresholds(population: Population, regime: Regime, features: Features, chosen: Ints) -> Floats:
    """The thresholds that give train the balance of the regime; dev and test follow by chance."""
    balances = [regime.balance]
    if regime.labels:
        # A label is like two classes: not chosen, and chosen.
        balances = [(1 - share, share) for share in regime.balance]
    thresholds = []
    for scores, balance in zip(population.scores(features), balances, strict=True):
        thresholds.append(solve_thresholds(scores, population.noise, chosen, balance))
    return np.concatenate(thresholds)


def _label(
    population: Population,
    thresholds: Floats,
    regime: Regime,
    features: Features,
    chosen: Ints,
    streams: _SplitStreams,
) -> tuple[Codes, Codes]:
    """Draw labels [n, most per item], and hard labels [n] with random choices between ties.

    For multi-label data, labels are 0 or 1 [n, most per item, L], and there are no hard labels.
    """
    is_asked = chosen >= 0
    asked_scores = []
    for scores in population.scores(features):
        asked_scores.append(np.take_along_axis(scores, np.where(is_asked, chosen, 0), axis=1))
    p = answer_probabilities(
        tuple(asked_scores), population.noise[chosen], thresholds, bool(regime.labels)
    )
    labels = _draw(streams.labels, p, regime)
    if regime.labels:
        return labels, np.empty(0, dtype=np.int32)
    classes = range(len(regime.balance))
    counts = np.stack([np.sum((labels == c) & is_asked, axis=1) for c in classes], axis=1)
    # Counts are whole numbers, so adding a draw below 1 only decides between equal counts.
    hard_labels = np.argmax(counts + streams.ties.random(counts.shape), axis=1)
    return labels, hard_labels.astype(np.int32)


def _streams(random_state: int) -> tuple[np.random.Generator, list[_SplitStreams]]:
    """The random numbers for the annotators, and those for each split.

    Each has a stream of its own, so that more items in one split change nothing else.
    """
    check_seed(random_state)
    # Only uniform numbers are drawn: they are the same in every version of numpy.
    sequences = np.random.SeedSequence(int(random_state)).spawn(1 + 5 * len(SPLITS))
    people_stream, *streams = map(np.random.default_rng, sequences)
    split_streams = []
    for start in range(0, len(streams), 5):
        split_streams.append(_SplitStreams(*streams[start : start + 5]))
    return people_stream, split_streams
