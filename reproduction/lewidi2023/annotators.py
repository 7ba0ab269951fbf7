"""Members that know who labels: their anonymous answers, and those for the annotators of an item.

Who labelled an item is known in the second case and unknown everywhere else on the page: the two
are never compared as methods, and have columns of their own.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from edokit._io.markup import Cell, Table
from edokit._types import Floats
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


def annotators(study: Study) -> Section:
    """Distributions of items, and the answer of each annotator."""
    rows: list[list[Cell]] = []
    people: list[list[Cell]] = []
    values: dict[str, dict[str, Any]] = {}
    for dataset in DATASETS:
        pool_members = study.pool(dataset, ANNOTATORS + KNOWN)
        if isinstance(pool_members, Missing):
            rows.append([dataset, f"not available: {pool_members.reason}", *[None] * 13])
            continue
        values[dataset] = {"items": {}, "annotators": {}}
        names = [pool + end for pool in POOLS for end in SETTINGS.values()]
        dev = held_out_ce(study, dataset, names, METHODS)
        best_methods = {
            setting: min(
                ((pool + end, method) for pool in POOLS for method in METHODS),
                key=lambda key: dev[key].dev_ce,
            )
            for setting, end in SETTINGS.items()
        }
        for pool, method in product(POOLS, METHODS):
            outcomes = {}
            scores = {}
            for setting, end in SETTINGS.items():
                outcome = method_outcome(study, dataset, pool + end, method)
                assert isinstance(outcome, Outcome)
                outcomes[setting] = outcome
                means = {m: outcome.mean(m) for m in MAIN_METRICS}
                scores[setting] = {"dev_ce": dev[pool + end, method].dev_ce, **means}
            gain = effect(outcomes["known"], outcomes["anonymous"], "ce")
            change = (gain.value, gain.low, gain.high)
            best = [one for one in SETTINGS if best_methods[one] == (pool + SETTINGS[one], method)]
            values[dataset]["items"][f"{method} on {pool}"] = {
                **scores,
                "ce_change": change,
                "chosen": best,
            }
            cells = [value for row_scores in scores.values() for value in row_scores.values()]
            rows.append([dataset, pool, method, *cells, _change(change), ", ".join(best)])
        for whose, row_scores in _each_annotator(study, dataset, pool_members).items():
            values[dataset]["annotators"][whose] = row_scores
            people.append(
                [
                    dataset,
                    whose,
                    *(row_scores[key] for key in _COUNTS),
                    *map(_change, row_scores["changes"]),
                ]
            )
    settings = [f"{name} {head}" for name in SETTINGS for head in _HEADS]
    return Section(
        "annotators",
        "Members that know the annotator",
        {
            "annotators": Table(
                "Annotators unknown, and annotators known (test, mean of the seeds)",
                [
                    "dataset",
                    "members",
                    "method",
                    *settings,
                    "known − anonymous CE",
                    "chosen on dev",
                ],
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
                ["dataset", "labels of", *_COUNTS, *_CHANGES],
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


_HEADS = ("dev CE", *(HEADS[m] for m in MAIN_METRICS))
_COUNTS = ("items", "labels", "anonymous CE", "known CE", "anonymous error", "known error")
_CHANGES = ("known − anonymous CE", "known − anonymous error")


def _each_annotator(study: Study, dataset: str, known: Pool) -> dict[str, dict[str, Any]]:
    """Scores on the labels of all annotators, and of those that have labels to learn from."""
    assert study.predictions is not None
    labels = known.test_labels.annotations.pairs()
    pair_predictions = read_predictions(study.predictions / dataset / ANNOTATORS / "test-pairs.npz")
    pairs = pair_predictions.pairs().align(labels.rows).order_classes(labels.classes)
    soft = np.asarray(labels.soft_labels)
    people = labels.rows.annotator_names
    row_of = {name: row for row, name in enumerate(known.test.items)}
    rows = np.array([row_of[name] for name in labels.items])
    anonymous_members = study.pool(dataset, ANNOTATORS)
    assert isinstance(anonymous_members, Pool)
    answers = {
        "anonymous": np.asarray(anonymous_members.test.uniform)[rows],
        "known": np.asarray(pairs.uniform),
    }
    learned = study.labels(dataset, *(("train", "dev") if known.cross_fitted else ("train",)))
    assert not isinstance(learned, Missing)
    train = learned.annotations
    familiar = set(map(str, train.annotators[np.unique(train.annotator_codes)]))
    assert people is not None
    whose = [str(name) in familiar for name in people]
    scores = {}
    for name, is_counted in (("all annotators", np.ones(len(rows), bool)), ("known ones", whose)):
        at = np.flatnonzero(is_counted)
        if not len(at):
            continue
        member_scores = {
            kind: (
                _by_item(rows[at], ce_items(p[at], soft[at])),
                _by_item(rows[at], p[at].argmax(axis=1) != soft[at].argmax(axis=1)),
            )
            for kind, p in answers.items()
        }
        (ce, errors) = member_scores["anonymous"]
        (own_ce, own_errors) = member_scores["known"]
        means = [float(x.mean()) for x in (ce, own_ce, errors, own_errors)]
        counts = dict(zip(_COUNTS, [len(ce), len(at), *means], strict=True))
        changes = [_paired(own_ce, ce), _paired(own_errors, errors)]
        scores[name] = {**counts, "changes": changes}
    return scores


def _by_item(rows: Any, values: Any) -> Floats:
    """The mean of each item that occurs."""
    _, code = np.unique(rows, return_inverse=True)
    means: Floats = np.bincount(code, weights=values) / np.bincount(code)
    return means


def _paired(a: Floats, b: Floats) -> Interval:
    test = paired_test(a, b, samples=SAMPLES)
    return test.difference, test.low, test.high


def _change(change: Interval) -> str:
    value, low, high = change
    return f"{signed(value)} [{signed(low)}, {signed(high)}]"
