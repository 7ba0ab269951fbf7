"""The explorer's items: named filters mean what they say."""

from __future__ import annotations

import json

import numpy as np
import pytest
from report_cases import people_and_pool, texts_for

from edokit import Annotations, EDOEnsemble, Predictions
from edokit.report import items as items_module
from edokit.report.evaluation import EvaluatedItems, evaluate_items
from edokit.report.items import filters, item_table, minority_lost


def judged_with(answers: list[list[str]], probabilities: list[float]) -> EvaluatedItems:
    """Items with these answers, and a single member that says so much for yes."""
    people = Annotations.from_matrix(np.array(answers, dtype=object), classes=["no", "yes"])
    p = np.array(probabilities)
    pool = Predictions.from_arrays(
        np.stack([1 - p, p], axis=1)[:, None],
        items=people.items,
        classes=["no", "yes"],
        layout="NKC",
    )
    ensemble = EDOEnsemble(ties="random").fit(pool, people)
    return evaluate_items(ensemble, pool, people, name="test items", held_out=True)


def chosen(evaluation: EvaluatedItems, key: str) -> list[int]:
    return np.flatnonzero(filters(evaluation)[key]).tolist()


no = "no"
yes = "yes"


def test_people_disagree_and_the_ensemble_is_sure() -> None:
    evaluation = judged_with(
        [[no, no, yes, yes, no], [no] * 5, [no, yes, no, yes, no], [no, no, no, no, yes]],
        [0.02, 0.02, 0.4, 0.05],
    )
    assert chosen(evaluation, "sure") == [0]
    assert chosen(evaluation, "divided") == [0, 2]


@pytest.mark.parametrize("count", [2, 6, 11])
def test_people_are_divided_however_many_classes_there_are(count: int) -> None:
    classes = [f"c{k}" for k in range(count)]
    rows = [["c0", "c0", "c1"], ["c0"] * 3, ["c0", "c1", classes[-1]]]
    people = Annotations.from_matrix(np.array(rows, dtype=object), classes=classes)
    p = np.full((3, 1, count), 0.05 / (count - 1))
    p[:, :, 0] = 0.95
    p[1] = 1 / count
    pool = Predictions.from_arrays(p, items=people.items, classes=classes, layout="NKC")
    ensemble = EDOEnsemble(ties="random").fit(pool, people)
    evaluation = evaluate_items(ensemble, pool, people, name="test items", held_out=True)
    assert chosen(evaluation, "divided") == [0, 2]
    assert chosen(evaluation, "sure") == [0, 2]
    assert chosen(evaluation, "unsure") == [1]


def test_people_agree_and_the_ensemble_is_unsure() -> None:
    evaluation = judged_with([[no] * 4, [no] * 4, [no, no, yes, yes]], [0.45, 0.1, 0.5])
    assert chosen(evaluation, "unsure") == [0]


def test_a_minority_is_lost_below_half_of_its_share() -> None:
    q = np.array([[0.8, 0.2], [0.8, 0.2], [0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    p = np.array([[0.91, 0.09], [0.89, 0.11], [1.0, 0.0], [0.8, 0.2], [0.05, 0.95]])
    assert minority_lost(p, q).tolist() == [True, False, False, True, True]


def test_another_answer_than_the_majority() -> None:
    evaluation = judged_with([[no, no, yes], [yes, yes, no]], [0.7, 0.7])
    assert chosen(evaluation, "label") == [0]


def test_flags_are_the_filters_bits() -> None:
    people, pool = people_and_pool(80, texts=texts_for(80))
    evaluation = evaluate_items(
        EDOEnsemble(ties="random").fit(pool, people), pool, people, name="x", held_out=True
    )
    table = item_table(evaluation)
    json.dumps(table, allow_nan=False)
    for bit, mask in enumerate(filters(evaluation).values()):
        assert [bool(flag >> bit & 1) for flag in table["flags"]] == mask.tolist()
        assert table["filters"][bit]["count"] == int(mask.sum())
    assert table["texts"][3] == "the trains are late again 3"
    assert "texts" not in item_table(evaluation, texts=False)


def test_of_many_items_the_furthest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(items_module, "MOST", 10)
    people, pool = people_and_pool(80)
    evaluation = evaluate_items(
        EDOEnsemble(ties="random").fit(pool, people), pool, people, name="x", held_out=True
    )
    table = item_table(evaluation)
    assert table["total"] == 80
    assert evaluation.distance is not None
    assert sorted(table["distance"]) == np.round(np.sort(evaluation.distance)[-10:], 4).tolist()


def test_without_people_only_what_is_known_is_shown() -> None:
    people, pool = people_and_pool(30)
    ensemble = EDOEnsemble(ties="random").fit(pool, people)
    evaluation = evaluate_items(ensemble, pool, None, name="given items", held_out=None)
    table = item_table(evaluation)
    assert [group["key"] for group in table["filters"]] == []
    assert "counts" not in table


def test_annotations_may_hold_more_items_than_are_shown() -> None:
    people, pool = people_and_pool(30)
    ensemble = EDOEnsemble(ties="random").fit(pool, people)
    part = pool.take([4, 2])
    evaluation = evaluate_items(ensemble, part, people, name="given items", held_out=None)
    assert evaluation.annotations is not None
    assert evaluation.annotations.items.tolist() == ["item-4", "item-2"]
