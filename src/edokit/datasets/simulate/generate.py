"""Simulating a regime: posts, people, who answers what, and the answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from edokit._errors import InputError, one_of
from edokit._names import as_names
from edokit._types import Codes, Floats, Strings
from edokit.annotations import Annotations
from edokit.datasets.simulate.coverage import (
    Chosen,
    choose_annotators,
    give_everyone_work,
    solve_thresholds,
)
from edokit.datasets.simulate.people import People, class_probabilities, draw_people
from edokit.datasets.simulate.posts import Features, draw_features, write_posts
from edokit.datasets.simulate.presets import REGIMES
from edokit.datasets.simulate.regimes import Regime
from edokit.datasets.simulate.simulation import SPLITS, Simulation, draw_answers


def simulate(
    regime: str | Regime = "crowd",
    *,
    seed: int = 0,
    items: tuple[int, int, int] | float | None = None,
    n_classes: int | None = None,
    structured: float | None = None,
) -> Simulation:
    """Simulate a regime, by its name or your own. The same seed gives the same data.

    items: counts (train, dev, test), or a fraction of the regime's. n_classes: how many classes,
    mildest first. structured: the lasting part of the disagreement, from 0 (pure noise) to 1
    (pure structure).
    """
    settings = _settings(regime)
    settings = settings if items is None else settings.sized(items)
    settings = settings if n_classes is None else settings.with_classes(n_classes)
    settings = settings if structured is None else replace(settings, structured=structured)

    streams = _streams(seed)
    people = draw_people(next(streams), settings)
    parts = [
        _ask(streams, settings, people, n, split == "train")
        for split, n in zip(SPLITS, settings.items, strict=True)
    ]
    # The balance is that of train, as published figures are; dev and test follow it by chance.
    train = parts[0]
    thresholds = solve_thresholds(
        people.scores(train.features), people.noise, train.chosen, settings.balance
    )
    annotators = as_names(f"ann-{number + 1}" for number in range(len(people)))
    groups = as_names(settings.groups[code].name for code in people.group)
    return Simulation(
        regime=settings,
        seed=seed,
        annotations=_annotations(parts, people, thresholds, annotators, groups),
        annotators=annotators,
        groups=groups,
        features=Features.join([part.features for part in parts]),
        people=people,
        thresholds=thresholds,
    )


@dataclass(frozen=True)
class _Part:
    """One split before anyone has answered; the draws decide the answers and the ties."""

    features: Features
    texts: list[str]
    chosen: Chosen
    answer_draws: Floats
    tie_draws: Floats


def _ask(
    streams: Iterator[np.random.Generator], regime: Regime, people: People, n: int, first: bool
) -> _Part:
    about, wording, coverage, answers, ties = (next(streams) for _ in range(5))
    features = draw_features(about, n, 1.0 - regime.balance[0])
    chosen = choose_annotators(coverage, n, regime.per_item, people.activity)
    if first:
        give_everyone_work(coverage, chosen, len(people))
    return _Part(
        features=features,
        texts=write_posts(wording, features),
        chosen=chosen,
        answer_draws=answers.random(chosen.shape),
        tie_draws=ties.random((n, len(regime.balance))),
    )


def _annotations(
    parts: list[_Part], people: People, thresholds: Floats, annotators: Strings, groups: Strings
) -> Annotations:
    labels, published = zip(*(_answers(part, people, thresholds) for part in parts), strict=True)
    chosen = np.concatenate([part.chosen for part in parts])
    items, places = np.nonzero(chosen >= 0)
    persons = chosen[items, places]
    # Those who answered, in order of their first answer, as a table would be read.
    present, first = np.unique(persons, return_index=True)
    present = present[np.argsort(first)]
    codes = np.empty(len(annotators), dtype=np.int32)
    codes[present] = np.arange(len(present), dtype=np.int32)
    sizes = [(name, len(part.texts)) for name, part in zip(SPLITS, parts, strict=True)]
    return Annotations(
        items=as_names(f"sim-{name}-{number + 1}" for name, n in sizes for number in range(n)),
        annotators=annotators[present],
        classes=tuple(str(c) for c in range(len(thresholds) + 1)),
        item_codes=items.astype(np.int32),
        annotator_codes=codes[persons],
        label_codes=np.concatenate(labels)[items, places],
        published=np.concatenate(published),
        texts=as_names(text for part in parts for text in part.texts),
        splits=as_names(name for name, n in sizes for _ in range(n)),
        attributes={"group": groups[present]},
    )


def _answers(part: _Part, people: People, thresholds: Floats) -> tuple[Codes, Codes]:
    """Labels [n, most per item] and hard labels [n], ties drawn at random."""
    answers = part.chosen >= 0
    scores = np.take_along_axis(
        people.scores(part.features), np.where(answers, part.chosen, 0), axis=1
    )
    p = class_probabilities(scores, people.noise[part.chosen], thresholds)
    labels = draw_answers(part.answer_draws, p)
    counts = np.stack(
        [np.sum((labels == c) & answers, axis=1) for c in range(len(thresholds) + 1)], axis=1
    )
    # Counts are whole numbers, so a draw below one only decides between equal ones.
    return labels, np.argmax(counts + part.tie_draws, axis=1).astype(np.int32)


def _settings(regime: str | Regime) -> Regime:
    if isinstance(regime, Regime):
        return regime
    one_of("regime", regime, REGIMES)
    return REGIMES[regime]


def _streams(seed: int) -> Iterator[np.random.Generator]:
    """Independent streams, always in the same order: more test items change nothing else."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number >= 0, but got {seed!r}", "use seed=0")
    # Only uniform draws are taken from them: those stay the same in every version of numpy.
    sequences = np.random.SeedSequence(int(seed)).spawn(1 + 5 * len(SPLITS))
    return (np.random.default_rng(sequence) for sequence in sequences)
