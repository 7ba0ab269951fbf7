"""Simulating a regime: posts, annotators and their labels, with the truth behind them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

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


@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulated annotations of N items, and what real ones hide.

    The truth is the label distribution of all A annotators, each counted once, however active.

    Attributes
    ----------
    regime : Regime
        What was simulated, with the sizes that were used.
    annotations : Annotations
        The annotations, with texts, splits, hard labels and the `group` of each annotator.
    annotators : Strings
        Everyone in the population [A], also those without an annotation.
    groups : Strings
        The group of everyone in the population [A].
    features : Features
        What the posts are about.
    population : Population
        How the annotators see posts.
    thresholds : Floats
        How severe a post must be for each class above the first [C - 1]; for multi-label data, how
        clear each label must be [L].
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
        """Share of the population that would choose each class, or each label [N, C]."""
        truth: Floats = self.annotator_probabilities().mean(axis=1)
        return truth

    def rows(self, split: str | None = None) -> Ints:
        """Positions of the items of a split, or of all, in `truth` and `texts`."""
        if split is None:
            return np.arange(len(self.features))
        one_of("split", split, SPLITS)
        return np.flatnonzero(self.annotations.splits == split)

    def annotator_probabilities(self, rows: npt.ArrayLike | None = None) -> Floats:
        """Each annotator's probability of each class, or label, on these items, or on all:
        [n, A, C]."""
        selected = self.rows() if rows is None else np.asarray(rows)
        scores = self.population.scores(self.features.take(selected))
        sets = bool(self.regime.labels)
        return answer_probabilities(scores, self.population.noise, self.thresholds, sets)


def _draw(rng: np.random.Generator, p: Floats, regime: Regime) -> Codes:
    """Labels drawn from probabilities [n, m, C]: codes [n, m], or 0 and 1 [n, m, L]."""
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
    """Simulate annotations of short posts, with the truth behind them known.

    Parameters
    ----------
    regime : str or Regime, default="crowd"
        Who annotates, how often and why they disagree: ``three-voices``, ``partial-panel``,
        ``two-camps`` and ``crowd`` are shaped like the four datasets of LeWiDi 2023,
        ``seven-points`` has an ordinal scale from 1 to 7, ``three-labels`` sets of labels.
    random_state : int, default=0
        Seed; the same seed gives the same data.
    items : tuple of three int, default=None
        Items in train, dev and test; if None, as many as the regime has.

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
    people_stream, *streams = _streams(random_state)
    # Five streams for each split: what posts are about, their words, who annotates, labels, ties.
    topics, wording, coverage, labelling, ties = (streams[k::5] for k in range(5))
    population = draw_population(people_stream, regime)
    features = [
        draw_features(stream, n, regime.hostile_share)
        for stream, n in zip(topics, regime.items, strict=True)
    ]
    panels = [
        choose_annotators(stream, n, regime.per_item, population.activity)
        for stream, n in zip(coverage, regime.items, strict=True)
    ]
    assign_idle(coverage[0], panels[0], len(population))
    thresholds = _thresholds(population, regime, features[0], panels[0])
    parts = zip(features, panels, labelling, ties, strict=True)
    drawn_labels = [_label(population, thresholds, regime, *part) for part in parts]
    labels, published = map(np.concatenate, zip(*drawn_labels, strict=True))
    annotators = as_names(f"ann-{number + 1}" for number in range(len(population)))
    groups = as_names(regime.groups[code].name for code in population.group)
    splits = np.repeat(SPLITS, regime.items)
    numbers = chain.from_iterable(range(1, n + 1) for n in regime.items)
    names = as_names(f"sim-{split}-{n}" for split, n in zip(splits, numbers, strict=True))
    texts = as_names(chain.from_iterable(map(write_posts, wording, features)))
    panel = np.concatenate(panels)
    rows, columns = np.nonzero(panel >= 0)
    people = panel[rows, columns]
    table = {
        "item": names[rows],
        "annotator": annotators[people],
        "label": _names(labels[rows, columns], regime),
        "text": texts[rows],
        "split": splits[rows],
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
    """The classes of codes [M], or the sets of labels [M, L] as JSON."""
    classes = np.array(regime.classes, dtype=object)
    if not regime.labels:
        return classes[codes]
    return as_names(json.dumps(classes[row == 1].tolist()) for row in codes)


def _thresholds(population: Population, regime: Regime, features: Features, panel: Ints) -> Floats:
    """The thresholds between classes that give train its balance, as published figures are; dev
    and test follow it by chance."""
    shares = [(1 - share, share) for share in regime.balance] if regime.labels else [regime.balance]
    scored = zip(population.scores(features), shares, strict=True)
    thresholds = [
        solve_thresholds(scores, population.noise, panel, balance) for scores, balance in scored
    ]
    return np.concatenate(thresholds)


def _label(
    population: Population,
    thresholds: Floats,
    regime: Regime,
    features: Features,
    chosen: Ints,
    labelling: np.random.Generator,
    ties: np.random.Generator,
) -> tuple[Codes, Codes]:
    """Labels [n, most per item], and hard labels [n] with ties drawn at random.

    For multi-label data, whether each label was chosen [n, most per item, L], without hard labels.
    """
    is_asked = chosen >= 0
    scores = tuple(
        np.take_along_axis(of_all, np.where(is_asked, chosen, 0), axis=1)
        for of_all in population.scores(features)
    )
    p = answer_probabilities(scores, population.noise[chosen], thresholds, bool(regime.labels))
    labels = _draw(labelling, p, regime)
    if regime.labels:
        return labels, np.empty(0, dtype=np.int32)
    classes = range(len(regime.balance))
    counts = np.stack([np.sum((labels == c) & is_asked, axis=1) for c in classes], axis=1)
    # Counts are whole numbers, so a draw below one only decides between equal ones.
    return labels, np.argmax(counts + ties.random(counts.shape), axis=1).astype(np.int32)


def _streams(random_state: int) -> Iterator[np.random.Generator]:
    """Independent streams, always in the same order: more test items change nothing else."""
    check_seed(random_state)
    # Only uniform draws are taken from them: those stay the same in every version of numpy.
    sequences = np.random.SeedSequence(int(random_state)).spawn(1 + 5 * len(SPLITS))
    return (np.random.default_rng(sequence) for sequence in sequences)
