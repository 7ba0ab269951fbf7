"""Results that belong to items carry their ids: nothing is compared by position."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import edokit
from edokit import (
    Annotations,
    EDOEnsemble,
    ItemArray,
    Objective,
    Predictions,
    metrics,
    simulate,
)
from edokit.demo import train_quick_members
from tests.errors import raises_code

LABELS = Annotations.from_matrix([[0, 0], [1, 1], [0, 1]], items=["c", "a", "b"])
P = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
BY_ID = ItemArray(P, ["a", "b", "c"], ["0", "1"])


def test_predictions_sorted_by_id_are_matched_with_a_table_that_is_not() -> None:
    people = simulate("three-voices", random_state=0, items=(200, 60, 60)).annotations
    members = train_quick_members(people, members=3, random_state=0)
    ensemble = EDOEnsemble().fit(members["dev"], people.split("dev"))
    test = people.split("test")
    wanted = edokit.evaluate(
        ensemble.describe(members["test"]).to_table(), test, samples=0, ties="random"
    ).metrics
    in_id_order = members["test"].take(np.argsort(members["test"].items))
    mixed = test.take(np.random.default_rng(0).permutation(len(test.items)))
    p = ensemble.predict_proba(in_id_order)
    hard = mixed.hard_labels(ties="random")
    assert list(in_id_order.items) != list(mixed.items)
    by_id = metrics.compute_metrics(p, mixed.soft_labels, hard)
    assert by_id["ce"] == pytest.approx(wanted["ce"])
    assert by_id["md"] == pytest.approx(wanted["md"])
    assert metrics.compute_metrics(p, mixed, hard) == by_id
    assert metrics.compute_metrics(ensemble.describe(in_id_order), mixed, hard) == by_id
    for answers in (p, ensemble.describe(in_id_order)):
        found = edokit.evaluate(answers, mixed, samples=0, ties="random").metrics
        assert found["ce"] == pytest.approx(wanted["ce"])
    with raises_code("missing-ids"):
        metrics.compute_metrics(np.asarray(p), mixed.soft_labels, hard)
    with raises_code("missing-ids", "order='annotations'"):
        edokit.evaluate(np.asarray(p), mixed)
    # By position, as before, the answer was wrong without a word.
    wrong = metrics.compute_metrics(np.asarray(p), mixed.soft_labels, hard, order="annotations")
    assert wrong["ce"] > wanted["ce"] + 0.02


@pytest.mark.parametrize(
    "measure",
    [
        *(metrics.ce, metrics.md, metrics.bs, metrics.jsd, metrics.w1, metrics.rps, metrics.ece),
        lambda p, q: metrics.f1(p, LABELS.hard_labels(ties="random")),
        lambda p, q: metrics.reliability_curve(p, q).ece,
        lambda p, q: metrics.bootstrap(p, q, LABELS.hard_labels(ties="random"))["ce"].estimate,
    ],
)
def test_every_function_of_metrics_matches_by_id(measure: Any) -> None:
    in_order = ItemArray(P[[2, 0, 1]], LABELS.items)
    assert measure(BY_ID, LABELS.soft_labels) == measure(in_order, LABELS.soft_labels)
    with raises_code("missing-ids"):
        measure(P, LABELS.soft_labels)
    with raises_code("items-differ", "'c'"):
        measure(BY_ID[:2], LABELS.soft_labels)


def test_losses_of_two_methods_are_matched_by_id() -> None:
    items = [f"i{k}" for k in range(20)]
    rng = np.random.default_rng(0)
    first, second, shares = rng.dirichlet([1, 1], size=(3, 20))
    q = ItemArray(shares, items)
    one = metrics.ce_items(ItemArray(first, items), q)
    mixed = rng.permutation(20)
    other = metrics.ce_items(ItemArray(second, items)[mixed], q[mixed])
    wanted = metrics.ce(first, shares) - metrics.ce(second, shares)
    assert metrics.paired_test(one, other).difference == pytest.approx(wanted)
    with raises_code("missing-ids"):
        metrics.paired_test(one, np.asarray(other))


def test_columns_are_matched_by_class() -> None:
    turned = ItemArray(P[:, ::-1], ["a", "b", "c"], ["1", "0"])
    assert metrics.ce(turned, LABELS.soft_labels) == metrics.ce(BY_ID, LABELS.soft_labels)
    other = ItemArray(P, ["a", "b", "c"], ["no", "yes"])
    with raises_code("classes-differ", "'no', 'yes'", "'0', '1'"):
        metrics.ce(other, LABELS.soft_labels)
    found = edokit.evaluate(turned, LABELS, samples=0, ties="random")
    assert found.metrics["ce"] == metrics.ce(BY_ID, LABELS.soft_labels)


def test_ids_follow_selected_rows_and_nothing_else() -> None:
    assert BY_ID[1:].rows.names == ["b", "c"]
    assert BY_ID[np.array([True, False, True])].rows.names == ["a", "c"]
    assert BY_ID[[2, 0]][1:].rows.names == ["a"]
    assert BY_ID[[0, 0]].rows.names == ["a", "a"]
    others = [BY_ID[:, 0], BY_ID.T, BY_ID.copy(), BY_ID * 2, np.sort(BY_ID, axis=0), BY_ID[None]]
    others += [BY_ID.sum(axis=0), BY_ID.argmax(axis=1), np.concatenate([BY_ID, BY_ID])]
    for other in others:
        assert getattr(other, "rows", None) is None
    for change in (lambda p: p.sort(axis=0), lambda p: np.random.default_rng(0).shuffle(p)):
        with pytest.raises(ValueError, match="read-only"):
            change(BY_ID[:])
    assert type(BY_ID * 2) is np.ndarray
    assert repr(BY_ID) == repr(P)
    again = pickle.loads(pickle.dumps(BY_ID[1:]))
    assert (again.rows.names, again.classes) == (["b", "c"], ("0", "1"))
    with raises_code("lengths-differ", "2 items", "(3, 2)"):
        ItemArray(P, ["a", "b"])


def test_items_without_ids_need_no_order() -> None:
    votes = Annotations.from_matrix([[0, 0], [0, 1], [1, 1]])
    assert type(votes.soft_labels) is np.ndarray
    bare = metrics.compute_metrics(P, votes, [0, 1, 1])
    assert bare == metrics.compute_metrics(P, votes.soft_labels, [0, 1, 1])
    ensemble = EDOEnsemble().fit(np.stack([P, P], axis=1), [[0, 0], [1, 1], [1, 1]])
    assert type(ensemble.predict_proba(np.stack([P, P], axis=1))) is np.ndarray


def test_pairs_are_matched_by_item_and_annotator() -> None:
    pairs = LABELS.pairs()
    positions = np.random.default_rng(0).permutation(len(pairs.rows))
    p = ItemArray(pairs.soft_labels, pairs.rows)[positions]
    assert metrics.md(p, pairs.soft_labels) == 0
    with raises_code("pairs-for-items"):
        metrics.md(p, LABELS.soft_labels)


def test_members_alone_are_matched_by_id() -> None:
    members = Predictions.from_arrays({"m": pd.DataFrame(P, ["a", "b", "c"], ["0", "1"])})
    assert metrics.ce(members.uniform, LABELS.soft_labels) == metrics.ce(BY_ID, LABELS.soft_labels)


def test_a_fit_matches_soft_labels_by_id() -> None:
    members = Predictions.from_arrays(
        np.stack([P, P[::-1]], axis=1), layout="NKC", items=["a", "b", "c"]
    )
    wanted = EDOEnsemble(objective=Objective(f1=0), ties="random").fit(members, LABELS).weights_
    found = EDOEnsemble(objective=Objective(f1=0), ties="random").fit(members, LABELS.soft_labels)
    np.testing.assert_allclose(found.weights_, wanted)
