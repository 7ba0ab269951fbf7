"""Items of a group stay together: in folds, in splits, and in intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from edokit import Annotations, EDOEnsemble, Objective, Predictions, compare, evaluate
from edokit.datasets.split import split_items
from edokit.ensemble._fit import choose_lambda_reg
from edokit.fitdata.data import FitData
from edokit.folds import merge_groups
from edokit.members.training_data import TrainingData, fold_numbers
from edokit.metrics import ce_items
from edokit.objective.pools import pool
from edokit.solvers.exact import solve_path
from tests.errors import raises_code

N_GROUPS = 30
SIZE = 4
WORDS = [f"word{number}" for number in range(900)]


def grouped_annotations(*, named: bool = True) -> Annotations:
    """Items with texts of their own, in groups of four, labelled by three people."""
    rng = np.random.default_rng(3)
    n_items = N_GROUPS * SIZE
    groups = rng.permutation(np.repeat(np.arange(N_GROUPS), SIZE))
    labels = rng.integers(2, size=(n_items, 3))
    rows: dict[str, list[str]] = {"item": [], "annotator": [], "label": [], "text": []}
    rows["thread"] = []
    for item in range(n_items):
        text = " ".join(rng.choice(WORDS, 8))
        for annotator in range(3):
            rows["item"].append(f"i{item}")
            rows["annotator"].append(f"a{annotator}")
            rows["label"].append(str(labels[item, annotator]))
            rows["text"].append(text)
            rows["thread"].append(f"t{groups[item]}")
    return Annotations.from_table(rows, columns={"group": "thread"} if named else None)


def noisy_predictions(annotations: Annotations, seed: int = 0) -> Predictions:
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.2, 0.8, (len(annotations.items), 4))
    return Predictions.from_arrays(
        np.stack([1 - p, p], axis=2),
        layout="NKC",
        items=annotations.items,
        classes=annotations.classes,
    )


def folds_per_group(annotations: Annotations, folds: np.ndarray) -> int:
    """The largest number of folds that a group is in."""
    assert annotations.item_groups is not None
    names = annotations.item_groups
    return max(len(set(folds[names == name].tolist())) for name in set(names.tolist()))


def test_groups_that_share_an_item_are_one():
    merged = merge_groups(np.array([0, 0, 1, 2, 3]), np.array([0, 1, 1, 2, 3]))
    assert merged.tolist() == [0, 0, 0, 1, 2]
    groups = np.array([2, 1, 0])
    assert merge_groups(groups, np.arange(3)).tolist() == [2, 1, 0]


def test_cross_fitted_members_see_no_item_of_a_held_out_group():
    annotations = grouped_annotations()
    folds = fold_numbers(TrainingData.from_annotations(annotations), 5, seed=0)
    assert folds_per_group(annotations, folds) == 1
    assert np.bincount(folds).max() <= 1.5 * np.bincount(folds).min()
    alone = grouped_annotations(named=False)
    folds = fold_numbers(TrainingData.from_annotations(alone), 5, seed=0)
    assert folds_per_group(annotations, folds) > 1


def test_members_are_trained_again_where_groups_change():
    data = TrainingData.from_annotations(grouped_annotations())
    alone = TrainingData.from_annotations(grouped_annotations(named=False))
    assert data.digest != alone.digest


def test_splits_keep_groups_together():
    split = split_items(grouped_annotations(), {"train": 0.6, "dev": 0.4})
    assert split.splits is not None
    assert folds_per_group(split, split.splits) == 1


def test_folds_of_a_fit_keep_groups_together():
    annotations = grouped_annotations()
    data = FitData.from_predictions(noisy_predictions(annotations), annotations)
    assert data.n_items == N_GROUPS * SIZE
    folds = np.full(len(data), -1)
    for number, (_, held_out) in enumerate(data.folds(5)):
        assert held_out.positions is not None
        folds[held_out.positions] = number
    assert folds_per_group(annotations, folds) == 1
    with raises_code("too-many-folds", "31 folds", "30 groups"):
        data.folds(31)


def test_penalty_and_steps_are_chosen_on_groups_that_are_held_out():
    annotations = grouped_annotations()
    predictions = noisy_predictions(annotations)
    alone = replace(annotations, item_groups=None)
    grouped = EDOEnsemble().fit(predictions, annotations).fitted_
    by_item = EDOEnsemble().fit(predictions, alone).fitted_
    choices = [fitted.settings["lambda_reg_choice"]["ce"] for fitted in (grouped, by_item)]
    assert choices[0] != choices[1]
    assert grouped.items == by_item.items
    assert grouped.answers["md"].held_out != by_item.answers["md"].held_out


def five_copies(annotations: Annotations) -> Annotations:
    """Every item five times, under names of their own."""
    table = annotations.to_table().to_pandas()
    parts = []
    for copy in range(5):
        parts.append(table.assign(item=table["item"].astype(str) + f"-{copy}"))
    rows = {name: [] for name in table.columns}
    for part in parts:
        for name in rows:
            rows[name] += part[name].astype(str).tolist()
    return Annotations.from_table(rows)


def widths(annotations: Annotations, p: np.ndarray) -> float:
    interval = evaluate(p, annotations, samples=400, order="annotations").intervals["ce"]
    assert interval.low is not None
    assert interval.high is not None
    return interval.high - interval.low


def test_copies_of_a_text_do_not_narrow_an_interval():
    single = replace(grouped_annotations(), item_groups=None)
    copies = five_copies(single)
    p = noisy_predictions(single).probabilities[:, 0]
    width = widths(single, p)
    assert widths(copies, np.tile(p, (5, 1))) == pytest.approx(width, rel=0.25)
    without_texts = replace(copies, texts=None)
    assert widths(without_texts, np.tile(p, (5, 1))) < 0.6 * width
    names = np.array([item.split("-")[0] for item in copies.items], dtype=object)
    grouped = replace(without_texts, item_groups=names)
    assert widths(grouped, np.tile(p, (5, 1))) == pytest.approx(width, rel=0.25)


def test_a_comparison_resamples_groups():
    annotations = grouped_annotations()
    comparison = compare(noisy_predictions(annotations), annotations, methods=["edo"], samples=100)
    assert comparison.clusters is not None
    assert len(np.unique(comparison.clusters)) == N_GROUPS
    assert folds_per_group(annotations, comparison.clusters) == 1
    alone = replace(annotations, item_groups=None)
    assert compare(noisy_predictions(alone), alone, methods=["edo"], samples=100).clusters is None


def threads_of_ten(n_threads: int, label: Callable[[int, int], str]) -> Annotations:
    """Items in threads of ten, each labelled by three people."""
    rows: dict[str, list[str]] = {"item": [], "annotator": [], "label": [], "thread": []}
    for item in range(10 * n_threads):
        for annotator in range(3):
            rows["item"].append(f"i{item}")
            rows["annotator"].append(f"a{annotator}")
            rows["label"].append(label(item, annotator))
            rows["thread"].append(f"t{item // 10}")
    return Annotations.from_table(rows, columns={"group": "thread"})


def test_fewer_groups_than_folds_are_fitted_without_folds():
    annotations = threads_of_ten(3, lambda item, annotator: str(item % 2))
    fitted = EDOEnsemble().fit(noisy_predictions(annotations), annotations).fitted_
    assert fitted.settings["lambda_reg_choice"] == {"items": 30, "folds": None}
    assert fitted.held_out is not None
    assert len(fitted.held_out) == 30


@pytest.mark.parametrize("reg", ["auto", 0.1])
def test_class_weights_need_no_group_that_has_a_class_of_its_own(reg: Any):
    """Without one thread "c" is nobody's majority, though some annotators chose it."""

    def label(item: int, annotator: int) -> str:
        if item < 10 or (annotator == 0 and item % 7 == 0):
            return "c"
        return "ab"[item % 2]

    annotations = threads_of_ten(6, label)
    P = np.random.default_rng(0).dirichlet(np.ones(3), (60, 3))
    predictions = Predictions.from_arrays(
        P, layout="NKC", items=annotations.items, classes=annotations.classes
    )
    objective = Objective(class_weights=True, reg=reg)
    fitted = EDOEnsemble(objective=objective).fit(predictions, annotations).fitted_
    assert fitted.weights.sum() == pytest.approx(1)


def test_the_comparison_with_uniform_weights_counts_a_group_as_one():
    annotations = grouped_annotations()
    data = FitData.from_predictions(noisy_predictions(annotations), annotations)
    settings = Objective().resolve()
    chosen, record = choose_lambda_reg(data, settings)
    excess = []
    groups = []
    for rest, fold in data.draw(len(data)).folds(5):
        P, q, _ = fold.sample
        learned, uniform = solve_path(rest, settings, [chosen, math.inf])
        excess += (ce_items(pool(P, uniform), q) - ce_items(pool(P, learned), q)).tolist()
        groups += fold.layout.groups.tolist()
    deviations = np.array(excess) - np.mean(excess)
    of_groups = [deviations[np.array(groups) == group].sum() for group in set(groups)]
    assert len(of_groups) == N_GROUPS
    error = np.sqrt(np.square(of_groups).sum()) / len(data)
    assert record["uniform_above_error"] == pytest.approx(error)
