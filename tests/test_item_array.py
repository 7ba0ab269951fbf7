"""Results that belong to items carry their ids: nothing is compared by position."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

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
    evaluation = edokit.evaluate(turned, LABELS, samples=0, ties="random")
    assert evaluation.metrics["ce"] == metrics.ce(BY_ID, LABELS.soft_labels)


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
    ensemble = EDOEnsemble(objective=Objective(f1=0), ties="random").fit(
        members, LABELS.soft_labels
    )
    np.testing.assert_allclose(ensemble.weights_, wanted)


# Item ids that are numbers: only rows in order of the table may pass for them.
NUMBERS = Annotations.from_matrix(
    [[0, 0], [1, 1], [0, 1], [1, 1]] * 10, items=[*range(20, 40), *range(20)]
)
ROWS = np.stack([1 - NUMBERS.shares[:, 1] * 0.8, NUMBERS.shares[:, 1] * 0.8], axis=1)
ARRAY = np.stack([ROWS, ROWS[:, ::-1] * 0.5 + 0.25], axis=1)
NAMED = Predictions.from_arrays(ARRAY, items=NUMBERS.items, layout="NKC")
MATRIX = NUMBERS.labels.reshape(40, 2)


BY_POSITION: dict[str, Any] = {
    "fit an array": lambda **order: EDOEnsemble().fit(ARRAY, NUMBERS, **order),
    "fit with an array of labels": lambda **order: EDOEnsemble().fit(NAMED, MATRIX, **order),
    "fit with soft labels": lambda **order: EDOEnsemble().fit(ARRAY, NUMBERS.soft_labels, **order),
    "the verb fit": lambda **order: edokit.fit(ARRAY, NUMBERS, **order),
    "weights from elsewhere": lambda **order: EDOEnsemble.from_weights(
        [0.5, 0.5], ARRAY, NUMBERS, **order
    ),
    "score": lambda **order: EDOEnsemble().fit(NAMED, NUMBERS).score(ARRAY, NUMBERS, **order),
    "soft_score": lambda **order: (
        EDOEnsemble().fit(NAMED, NUMBERS).soft_score(NAMED, MATRIX, **order)
    ),
    "evaluate": lambda **order: edokit.evaluate(ROWS, NUMBERS, samples=0, **order),
    "evaluate a table without items": lambda **order: edokit.evaluate(
        pd.DataFrame(ROWS, columns=["p_0", "p_1"]), NUMBERS, samples=0, **order
    ),
    "evaluate an ensemble": lambda **order: edokit.evaluate(
        None,
        NUMBERS,
        ensemble=EDOEnsemble().fit(NAMED, NUMBERS),
        predictions=ARRAY,
        samples=0,
        **order,
    ),
    "compare": lambda **order: edokit.compare(
        ARRAY, NUMBERS, methods=["edo"], samples=50, correct="none", **order
    ),
    "compare another pool": lambda **order: edokit.compare(
        NAMED,
        NUMBERS,
        methods=["edo"],
        extra={"other": (ARRAY, ARRAY)},
        samples=50,
        correct="none",
        **order,
    ),
    "search": lambda **order: edokit.search(ARRAY, NUMBERS, trials=10, **order),
    "audit": lambda **order: edokit.audit(ARRAY, NUMBERS, samples=50, **order),
    "plan": lambda **order: edokit.plan(
        NUMBERS, predictions=ARRAY, budget=50, train=False, samples=50, **order
    ),
    "a classifier": lambda **order: edokit.EDOClassifier([("lr", LogisticRegression())], cv=2).fit(
        ROWS, NUMBERS, **order
    ),
    "a classifier's score": lambda **order: (
        edokit.EDOClassifier([("lr", LogisticRegression())], cv=2)
        .fit(ROWS, MATRIX)
        .score(ROWS, NUMBERS, **order)
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("verb", BY_POSITION.values(), ids=BY_POSITION)
def test_no_verb_compares_rows_without_ids_to_rows_with_ids_by_itself(verb: Any) -> None:
    with raises_code("missing-ids", "order='annotations'"):
        verb()
    verb(order="annotations")


@pytest.mark.filterwarnings("ignore")
def test_a_declared_order_gives_what_ids_give() -> None:
    by_id = EDOEnsemble().fit(NAMED, NUMBERS)
    by_order = EDOEnsemble().fit(ARRAY, NUMBERS, order="annotations")
    np.testing.assert_array_equal(by_order.weights_, by_id.weights_)
    assert by_order.score(ARRAY, NUMBERS, order="annotations") == by_id.score(NAMED, NUMBERS)
    with raises_code("unknown-choice", "annotations"):
        EDOEnsemble().fit(ARRAY, NUMBERS, order="items")  # type: ignore[arg-type]
    with raises_code("lengths-differ"):
        EDOEnsemble().fit(ARRAY[:30], NUMBERS, order="annotations")


@pytest.mark.filterwarnings("ignore")
def test_a_table_is_matched_by_its_index_unless_pandas_made_it() -> None:
    frame = pd.DataFrame(ROWS, columns=["p_0", "p_1"])
    mixed = frame.set_axis(NUMBERS.items).sample(frac=1, random_state=0)
    wanted = edokit.evaluate(ROWS, NUMBERS, samples=0, order="annotations").metrics
    assert edokit.evaluate(mixed, NUMBERS, samples=0).metrics["ce"] == pytest.approx(wanted["ce"])
    members = {"a": frame, "b": frame}
    with raises_code("missing-ids"):
        EDOEnsemble().fit(Predictions.from_arrays(members), NUMBERS)
    classifier = edokit.EDOClassifier([("lr", LogisticRegression())], cv=2)
    by_index = classifier.fit(mixed, NUMBERS).soft_score(mixed, NUMBERS)
    assert by_index == pytest.approx(classifier.soft_score(frame, NUMBERS, order="annotations"))


def test_members_and_labels_with_ids_keep_them() -> None:
    swapped = BY_ID[[2, 0, 1]]
    members = Predictions.from_arrays({"one": BY_ID, "other": swapped})
    np.testing.assert_array_equal(members.probabilities[:, 0], members.probabilities[:, 1])
    assert sorted(members.items) == ["a", "b", "c"]
    soft = Annotations.from_soft_labels(LABELS.soft_labels)
    assert soft.items.tolist() == LABELS.items.tolist()
    with raises_code("items-differ", "np.asarray"):
        Predictions.from_arrays([BY_ID], items=["c", "b", "a"])
    with raises_code("missing-ids"):
        Predictions.from_arrays([BY_ID, P])


@pytest.mark.parametrize("layout", [None, "NC"])
def test_index_and_columns_of_a_table_name_its_axes(layout: Any) -> None:
    table = pd.DataFrame([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], ["c", "a", "b"], ["no", "yes"])
    members = Predictions.from_arrays(table, members=["m"], layout=layout)
    assert members.items.tolist() == ["c", "a", "b"]
    assert members.classes == ("no", "yes")
    renamed = Predictions.from_arrays(table, members=["m"], classes=["0", "1"], layout=layout)
    assert renamed.classes == ("0", "1")
    with raises_code("items-differ", "another order"):
        Predictions.from_arrays(table, items=["a", "b", "c"], members=["m"], layout=layout)


def test_columns_follow_the_names_of_the_classes() -> None:
    table = pd.DataFrame(P, ["a", "b", "c"], ["0", "1"])
    for values in ({"m": BY_ID}, {"m": table}, [table]):
        turned = Predictions.from_arrays(values, classes=["1", "0"])
        assert turned.classes == ("1", "0")
        np.testing.assert_array_equal(turned.probabilities[:, 0], P[:, ::-1])
        scaled = Predictions.from_arrays(values, scale="ordinal:1=0,0=1")
        np.testing.assert_array_equal(scaled.probabilities[:, 0], P[:, ::-1])
    with raises_code("classes-differ", "np.asarray"):
        Predictions.from_arrays([BY_ID], classes=["no", "yes"])


def test_members_are_never_exchanged() -> None:
    members = {"m": P, "n": P[::-1]}
    renamed = Predictions.from_arrays(members, members=["x", "y"])
    assert renamed.members == ("x", "y")
    table = pd.DataFrame({"m": P[:, 1], "n": P[::-1, 1]})
    for values, layout in ((members, None), (table, "NK")):
        with raises_code("members-differ", "another order"):
            Predictions.from_arrays(values, members=["n", "m"], layout=layout)


def test_members_keep_the_classes_of_any_of_them() -> None:
    without_classes = ItemArray(P, ["a", "b", "c"])
    for values in ([BY_ID, without_classes], [without_classes, BY_ID]):
        named_predictions = Predictions.from_arrays(
            [values[0], values[1]], annotators=["x", "y", "x"], members=["m", "n"]
        )
        assert named_predictions.classes == ("0", "1")
    other = ItemArray(P[:, ::-1], ["a", "b", "c"], ["yes", "no"])
    named_predictions = Predictions.from_arrays([other, ItemArray(P, ["a", "b", "c"])])
    assert named_predictions.classes == ("yes", "no")


def test_annotators_join_the_items_of_an_array_with_ids() -> None:
    named_predictions = Predictions.from_arrays([BY_ID], annotators=["x", "y", "x"])
    assert named_predictions.items.tolist() == ["a", "b", "c"]
    assert named_predictions.rows.names == ["a · x", "b · y", "c · x"]
    with raises_code("items-differ"):
        Predictions.from_arrays([BY_ID], items=["c", "b", "a"], annotators=["x", "y", "x"])
    pairs = ItemArray(P, named_predictions.rows, ["0", "1"])
    second_predictions = Predictions.from_arrays([pairs], annotators=["x", "y", "x"])
    assert second_predictions.rows.names == named_predictions.rows.names
    with raises_code("items-differ", "annotators"):
        Predictions.from_arrays([pairs], annotators=["y", "x", "x"])


@pytest.mark.filterwarnings("ignore")
def test_columns_of_labels_with_classes_are_matched_by_class() -> None:
    people = Annotations.from_matrix(
        [["yes", "no"], ["no", "no"], ["yes", "yes"]] * 10, items=range(30)
    )
    share = people.shares[:, 1]
    P = np.stack([share, 1 - share], axis=1)[:, None] * 0.9 + 0.05
    turned = Predictions.from_arrays(
        P.repeat(2, axis=1), items=range(30), classes=["yes", "no"], layout="NKC"
    )
    for labels in (people, people.soft_labels, people.hard_labels()):
        assert EDOEnsemble().fit(turned, labels).score(turned, people) == 1


# --- Pandas tables with ids in their index --------------------------------------------------------

ITEMS = [f"i{number}" for number in range(40)]


def table_of_answers() -> pd.DataFrame:
    """Probabilities of 40 items, with their ids and classes."""
    first = np.random.default_rng(0).uniform(0.1, 0.9, len(ITEMS))
    return pd.DataFrame({"no": first, "yes": 1 - first}, index=ITEMS)


def table_of_labels(answers: pd.DataFrame) -> pd.DataFrame:
    """Three annotators' labels, which follow the answers."""
    rng = np.random.default_rng(1)
    columns = {name: (rng.random(len(answers)) < answers["yes"]).astype(int) for name in "abc"}
    return pd.DataFrame(columns, index=answers.index)


def test_metrics_match_tables_by_the_ids_in_their_index() -> None:
    answers = table_of_answers()
    labels = table_of_labels(answers)
    shares = pd.DataFrame({"no": 1 - labels.mean(axis=1), "yes": labels.mean(axis=1)})
    hard = (labels.mean(axis=1) > 0.5).astype(int)
    wanted = metrics.compute_metrics(answers.to_numpy(), shares.to_numpy(), hard.to_numpy())
    mixed = answers.sample(frac=1, random_state=0)[["yes", "no"]]
    assert metrics.compute_metrics(mixed, shares, hard[::-1]) == pytest.approx(wanted)
    named = ItemArray(shares.to_numpy(), ITEMS, ["no", "yes"])
    assert metrics.ce(mixed, named) == pytest.approx(wanted["ce"])
    with raises_code("missing-ids"):
        metrics.ce(mixed, shares.to_numpy())
    with raises_code("items-differ"):
        metrics.ce(mixed[1:], shares)


def test_a_fit_matches_a_table_of_labels_by_the_ids_in_its_index() -> None:
    answers = table_of_answers()
    labels = table_of_labels(answers)
    noise = np.random.default_rng(2).uniform(0.2, 0.8, len(ITEMS))
    P = np.stack([answers.to_numpy(), np.stack([noise, 1 - noise], axis=1)], axis=1)
    named = Predictions.from_arrays(P, items=ITEMS, layout="NKC", classes=["0", "1"])
    wanted = EDOEnsemble().fit(P, labels.to_numpy()).weights_
    assert wanted[0] > 0.6
    mixed = labels.sample(frac=1, random_state=0)
    assert EDOEnsemble().fit(named, mixed).weights_ == pytest.approx(wanted)
    with raises_code("missing-ids", "order='annotations'"):
        EDOEnsemble().fit(P, mixed)
    declared = EDOEnsemble().fit(P, labels, order="annotations")
    assert declared.weights_ == pytest.approx(wanted)
    shares = pd.DataFrame({"1": mixed.mean(axis=1), "0": 1 - mixed.mean(axis=1)})
    assert EDOEnsemble().fit(named, shares).weights_[0] > 0.6


def test_a_split_of_numbered_labels_beside_an_array_is_matched_by_position() -> None:
    answers = table_of_answers()
    labels = table_of_labels(answers).reset_index(drop=True)
    P = np.stack([answers.to_numpy(), np.full((len(ITEMS), 2), 0.5)], axis=1)
    by_position = cross_val_score(EDOEnsemble(), P, labels.to_numpy(), cv=3)
    assert np.isfinite(by_position).all()
    assert cross_val_score(EDOEnsemble(), P, labels, cv=3) == pytest.approx(by_position)


def test_a_classifier_matches_tables_by_the_ids_in_both() -> None:
    answers = table_of_answers()
    labels = table_of_labels(answers)
    X = answers[["no"]]
    pool = [("weak", LogisticRegression(C=0.01)), ("strong", LogisticRegression())]
    wanted = edokit.EDOClassifier(pool).fit(X, labels).predict_proba(X)
    mixed = labels.sample(frac=1, random_state=0)
    fitted = edokit.EDOClassifier(pool).fit(X, mixed)
    assert np.asarray(fitted.predict_proba(X)) == pytest.approx(np.asarray(wanted))
    assert fitted.score(X, mixed) == fitted.score(X, labels)
    numbers = [*range(5, 45)]
    by_number = edokit.EDOClassifier(pool).fit(
        X.set_axis(numbers), labels.set_axis(numbers).sample(frac=1, random_state=0)
    )
    assert np.asarray(by_number.predict_proba(X)) == pytest.approx(np.asarray(wanted))
    # Another index, such as what a split of other data left, is no statement about these items.
    numbered = labels.set_axis(range(7, 47))
    other = edokit.EDOClassifier(pool).fit(X, numbered).predict_proba(X)
    assert np.asarray(other) == pytest.approx(np.asarray(wanted))
