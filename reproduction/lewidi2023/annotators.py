"""Members that learned annotators: anonymous answers, and answers for the annotators of an item.

Only in the second case is it known who labelled an item. The two cases are never compared as
methods, and have columns of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from edokit._io.markup import Cell, Table
from edokit._types import Bools, Floats, Ints
from edokit.metrics import MAIN_METRICS, ce_items, paired_test
from edokit.predictions.shards import read_predictions
from reproduction.lewidi2023.methods import held_out_ce, method_outcome
from reproduction.lewidi2023.study import (
    ANNOTATORS,
    DATASETS,
    KNOWN,
    WITH_ANNOTATORS,
    Missing,
    Pool,
    Study,
)
from reproduction.outcomes import HEADS, SAMPLES, Outcome, effect
from reproduction.section import Section, signed

POOLS = (ANNOTATORS, WITH_ANNOTATORS)
METHODS = ("uniform", "edo")
SETTINGS = {"anonymous": "", "known": KNOWN}
"""How the names of pools end."""
Interval = tuple[float, float, float]


@dataclass(frozen=True)
class LabelScores:
    """Scores on the labels of single annotators, without and with knowing who labels."""

    items: int
    labels: int
    anonymous_ce: float
    known_ce: float
    anonymous_error: float
    known_error: float
    ce_change: Interval
    """CE known less CE anonymous, with its interval over items."""
    error_change: Interval

    @property
    def counts(self) -> dict[str, float]:
        """The figures by their columns."""
        return {
            "items": self.items,
            "labels": self.labels,
            "anonymous CE": self.anonymous_ce,
            "known CE": self.known_ce,
            "anonymous error": self.anonymous_error,
            "known error": self.known_error,
        }

    def to_dict(self) -> dict[str, object]:
        """Ready for JSON."""
        return {**self.counts, "changes": [self.ce_change, self.error_change]}


def annotators(study: Study) -> Section:
    """Distributions of items, and the answers for single annotators."""
    rows: list[list[Cell]] = []
    people: list[list[Cell]] = []
    values = {}
    for dataset in DATASETS:
        known_members = study.pool(dataset, ANNOTATORS + KNOWN)
        if isinstance(known_members, Missing):
            rows.append([dataset, known_members.note, *[None] * 13])
            continue
        dataset_rows, item_values = _item_rows(study, dataset)
        rows += dataset_rows
        scores_by_annotators = _each_annotator(study, dataset, known_members)
        for whose, scores in scores_by_annotators.items():
            changes = [_change(scores.ce_change), _change(scores.error_change)]
            people.append([dataset, whose, *scores.counts.values(), *changes])
        values[dataset] = {
            "items": item_values,
            "annotators": {
                whose: scores.to_dict() for whose, scores in scores_by_annotators.items()
            },
        }
    header = ["dataset", "members", "method"]
    for setting in SETTINGS:
        header += [f"{setting} dev CE", *(f"{setting} {HEADS[metric]}" for metric in MAIN_METRICS)]
    header += ["known − anonymous CE", "chosen on dev"]
    return Section(
        "annotators",
        "Members that know the annotator",
        {
            "annotators": Table(
                "Annotators unknown, and annotators known (test, mean of the seeds)",
                header,
                rows,
                notes=[
                    f"`{WITH_ANNOTATORS}`: these members and those of all other pools. Anonymous:"
                    " answers for nobody in particular. Known: the mean of the answers for the"
                    " annotators who labelled the item; joined, they are further members beside the"
                    " anonymous ones. dev CE is of held-out fifths of dev, and chosen is the lowest"
                    " one of each setting. In brackets 95 % intervals over test items. Who labels"
                    " is rarely known in advance: known answers are a setting of their own and"
                    " never compared with the paper's.",
                ],
            ),
            "annotators-people": Table(
                "What each annotator answers (test, uniform mean of the members)",
                [
                    "dataset",
                    "labels of",
                    "items",
                    "labels",
                    "anonymous CE",
                    "known CE",
                    "anonymous error",
                    "known error",
                    "known − anonymous CE",
                    "known − anonymous error",
                ],
                people,
                notes=[
                    "Means over items of the mean over their annotators. CE is of the one label"
                    " that an annotator gave, error the share that the likeliest class misses."
                    " Annotators without a label in train get the anonymous answer exactly.",
                ],
            ),
        },
        values={"annotators": values},
    )


def _item_rows(study: Study, dataset: str) -> tuple[list[list[Cell]], dict[str, object]]:
    """The rows of a dataset about distributions of items, and their values for JSON."""
    names = [pool + ending for pool, ending in product(POOLS, SETTINGS.values())]
    held_out = held_out_ce(study, dataset, names, METHODS)
    best_by_setting = {}
    for setting, ending in SETTINGS.items():
        candidates = [(pool + ending, method) for pool, method in product(POOLS, METHODS)]
        best_by_setting[setting] = min(candidates, key=lambda key: held_out[key].dev_ce)
    rows: list[list[Cell]] = []
    values: dict[str, object] = {}
    for pool, method in product(POOLS, METHODS):
        outcomes = {}
        scores = {}
        chosen_settings = []
        cells: list[Cell] = [dataset, pool, method]
        for setting, ending in SETTINGS.items():
            outcome = method_outcome(study, dataset, pool + ending, method)
            assert isinstance(outcome, Outcome)
            outcomes[setting] = outcome
            dev_ce = held_out[pool + ending, method].dev_ce
            scores[setting] = {"dev_ce": dev_ce, **outcome.means()}
            cells += scores[setting].values()
            if best_by_setting[setting] == (pool + ending, method):
                chosen_settings.append(setting)
        gain = effect(outcomes["known"], outcomes["anonymous"], "ce")
        change = (gain.value, gain.low, gain.high)
        values[f"{method} on {pool}"] = {
            **scores,
            "ce_change": change,
            "chosen": chosen_settings,
        }
        rows.append([*cells, _change(change), ", ".join(chosen_settings)])
    return rows, values


def _each_annotator(study: Study, dataset: str, known: Pool) -> dict[str, LabelScores]:
    """Scores on the labels of all annotators, and of those that have labels to learn from."""
    assert study.predictions is not None
    labels = known.test_labels.annotations.pairs()
    pair_predictions = read_predictions(study.predictions / dataset / ANNOTATORS / "test-pairs.npz")
    pairs = pair_predictions.pairs().align(labels.rows).order_classes(labels.classes)
    soft = np.asarray(labels.soft_labels)
    people = labels.rows.annotator_names
    assert people is not None
    index_of_item = {name: index for index, name in enumerate(known.test.items)}
    item_codes = np.array([index_of_item[name] for name in labels.items])
    anonymous_members = study.pool(dataset, ANNOTATORS)
    assert isinstance(anonymous_members, Pool)
    anonymous_answers = np.asarray(anonymous_members.test.uniform)[item_codes]
    known_answers = np.asarray(pairs.uniform)
    learned_splits = ("train", "dev") if known.cross_fitted else ("train",)
    learned = study.labels(dataset, *learned_splits)
    assert not isinstance(learned, Missing)
    train = learned.annotations
    familiar = set(map(str, train.annotators[np.unique(train.annotator_codes)]))
    is_familiar = np.array([str(name) in familiar for name in people])
    everybody = np.ones(len(people), dtype=bool)
    scores = {}
    for name, is_counted in (("all annotators", everybody), ("known ones", is_familiar)):
        if not is_counted.any():
            continue
        codes = item_codes[is_counted]
        ce, errors = _label_losses(codes, anonymous_answers[is_counted], soft[is_counted])
        known_ce, known_errors = _label_losses(codes, known_answers[is_counted], soft[is_counted])
        scores[name] = LabelScores(
            items=len(ce),
            labels=int(is_counted.sum()),
            anonymous_ce=float(ce.mean()),
            known_ce=float(known_ce.mean()),
            anonymous_error=float(errors.mean()),
            known_error=float(known_errors.mean()),
            ce_change=_paired(known_ce, ce),
            error_change=_paired(known_errors, errors),
        )
    return scores


def _label_losses(item_codes: Ints, p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """CE and error of labels q [M, C], means over the labels of each item."""
    is_wrong = p.argmax(axis=1) != q.argmax(axis=1)
    return _by_item(item_codes, ce_items(p, q)), _by_item(item_codes, is_wrong)


def _by_item(item_codes: Ints, values: Floats | Bools) -> Floats:
    """The mean of each item that occurs."""
    _, code = np.unique(item_codes, return_inverse=True)
    means: Floats = np.bincount(code, weights=values) / np.bincount(code)
    return means


def _paired(a: Floats, b: Floats) -> Interval:
    test = paired_test(a, b, samples=SAMPLES)
    return test.difference, test.low, test.high


def _change(change: Interval) -> str:
    value, low, high = change
    return f"{signed(value)} [{signed(low)}, {signed(high)}]"
