"""How people differ from the pool, in log-odds: persons, attributes, people never seen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax

from edokit import Annotations
from edokit.ensemble.people import PeopleEffects
from tests.errors import raises_code

KINDS = ["nominal", "ordinal", "multi-label"]


def simulated(kind, rng, *, n_people=60, n_labels=40, group_shift=0.0, person_spread=0.8):
    """Answers of a calibrated pool, labels of people in two groups, and each person's truth."""
    n_items = 300
    n_classes = 3
    z = rng.normal(0, 1.2, size=(n_items, n_classes))
    direction = np.linspace(-1, 1, n_classes)
    rows = []
    shifts = rng.normal(0, person_spread, n_people)
    groups = np.arange(n_people) % 2
    shifts = shifts - shifts.mean() + group_shift * (groups - 0.5)
    for a in range(n_people):
        for i in rng.choice(n_items, n_labels, replace=False):
            logits = z[i] + shifts[a] * direction
            if kind == "multi-label":
                labels = np.flatnonzero(rng.random(n_classes) < expit(logits))
                label = ",".join(str(c) for c in labels)
            else:
                label = str(rng.choice(n_classes, p=softmax(logits)))
            rows.append((f"i{i}", f"a{a:02}", label, "fm"[groups[a]]))
    item, annotator, label, group = zip(*rows, strict=True)
    table = {"item": item, "annotator": annotator, "label": label, "group": group}
    scale = {"nominal": None, "ordinal": "ordinal", "multi-label": "multi-label"}[kind]
    if kind == "multi-label":
        chosen = np.array([[str(c) in text.split(",") for c in range(n_classes)] for text in label])
        table["label"] = [[str(c) for c in np.flatnonzero(row)] for row in chosen]
    annotations = Annotations.from_table(table, scale=scale)
    positions = np.array([int(str(name)[1:]) for name in annotations.items])
    pool = expit(z[positions]) if kind == "multi-label" else softmax(z[positions], axis=1)
    truth = z[positions][:, None, :] + shifts[None, :, None] * direction
    probabilities = expit(truth) if kind == "multi-label" else softmax(truth, axis=2)
    return pool, annotations, probabilities


def distance(people, pool, truth, codes):
    """Mean absolute error of the answers for these people, over all items."""
    errors = []
    for code in codes:
        rows = np.full(len(pool), code)
        answers = people.answers(pool, rows)
        place = int(people.annotators[code][1:])
        errors.append(np.abs(answers - truth[:, place]).mean())
    return float(np.mean(errors))


@pytest.mark.parametrize("kind", KINDS)
def test_known_answers_are_closer_to_the_person_than_the_pool_is(kind):
    pool, annotations, truth = simulated(kind, np.random.default_rng(0))
    people = PeopleEffects.fit(pool, annotations)
    codes = range(len(people.annotators))
    known = distance(people, pool, truth, codes)
    anonymous = np.mean([np.abs(pool - truth[:, int(n[1:])]).mean() for n in people.annotators])
    assert known < 0.6 * anonymous


@pytest.mark.parametrize("kind", KINDS)
def test_everybody_together_answers_as_everybody_does(kind):
    pool, annotations, truth = simulated(kind, np.random.default_rng(1))
    people = PeopleEffects.fit(pool, annotations)
    answers = [
        people.answers(pool, np.full(len(pool), code)) for code in range(len(people.annotators))
    ]
    assert np.abs(np.mean(answers, axis=0) - truth.mean(axis=1)).mean() < 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_an_attribute_that_explains_nothing_moves_nobody(kind):
    shares = []
    shifts = []
    for seed in range(6):
        pool, annotations, _ = simulated(kind, np.random.default_rng(seed))
        people = PeopleEffects.fit(pool, annotations)
        shares.append(people.attribute("group").share)
        by_attribute = people.answers_by_attributes(pool, {"group": "m"})
        shifts.append(np.abs(by_attribute - pool).max())
    assert np.median(shares) < 0.05
    assert min(shares) == 0.0
    assert np.count_nonzero(shifts) <= 1
    assert max(shifts) < 0.03


def test_people_never_seen_get_the_answer_of_their_attributes_else_that_of_the_pool():
    pool, annotations, truth = simulated("nominal", np.random.default_rng(2), group_shift=2.0)
    people = PeopleEffects.fit(pool, annotations)
    assert people.attribute("group").share > 0.1
    group_truth = truth[:, 1::2].mean(axis=1)
    by_attribute = people.answers_by_attributes(pool, {"group": "m"})
    assert np.abs(by_attribute - group_truth).mean() < 0.5 * np.abs(pool - group_truth).mean()
    np.testing.assert_array_equal(people.answers_by_attributes(pool, {"group": "x"}), pool)
    unseen = people.person_codes(["somebody"])
    np.testing.assert_array_equal(unseen, [-1])
    np.testing.assert_array_equal(people.answers(pool[:1], unseen), pool[:1])


def test_few_labels_move_an_answer_less_than_many():
    rng = np.random.default_rng(3)
    labels = np.full((200, 12), np.nan)
    labels[:, :10] = rng.integers(0, 2, size=(200, 10))
    labels[:, 10] = 1
    labels[:3, 11] = 1
    pool = np.full((200, 2), 0.5)
    people = PeopleEffects.fit(pool, Annotations.from_matrix(labels))
    many, few = people.answers(pool[:2], np.array([10, 11]))[:, 1]
    assert 0.5 < few < many


def test_a_slope_tells_apart_two_people_who_follow_the_text_in_opposite_ways():
    rng = np.random.default_rng(4)
    z = rng.normal(0, 2, 400)
    follows = (rng.random((400, 6)) < expit(z)[:, None]).astype(int)
    opposes = (rng.random((400, 1)) < expit(-z)[:, None]).astype(int)
    pool = np.column_stack([1 - expit(z), expit(z)])
    people = PeopleEffects.fit(pool, Annotations.from_matrix(np.hstack([follows, opposes])))
    sure = np.array([[0.05, 0.95]])
    assert people.answers(sure, np.array([0]))[0, 1] > 0.8
    assert people.answers(sure, np.array([6]))[0, 1] < 0.3


def test_unknown_attributes_and_levels_are_named_in_one_line():
    pool, annotations, _ = simulated("nominal", np.random.default_rng(5))
    with raises_code("unknown-attribute"):
        PeopleEffects.fit(pool, annotations, ["gender"])
    people = PeopleEffects.fit(pool, annotations)
    with raises_code("unknown-choice", "'f'", "'m'"):
        people.people_with("group", ["women"])
    assert len(people.people_with("group", ["f", "m"])) == len(people.annotators)


def test_a_name_is_no_attribute_and_is_refused_where_it_is_asked_for():
    count = 51
    table = {
        "item": ["i"] * count,
        "annotator": [f"a{k}" for k in range(count)],
        "label": ["yes", "no"] * (count // 2) + ["no"],
        "name": [f"name {k}" for k in range(count)],
    }
    annotations = Annotations.from_table(table)
    pool = np.array([[0.5, 0.5]])
    assert PeopleEffects.fit(pool, annotations).attributes == ()
    with raises_code("unusable-attribute", "'name'"):
        PeopleEffects.fit(pool, annotations, ["name"])


def test_attributes_of_four_people_do_not_hide_how_they_differ():
    """Each has levels of their own, so that attributes could explain everything."""
    rng = np.random.default_rng(0)
    n_items = 300
    n_classes = 9
    z = rng.normal(0, 1, (n_items, n_classes))
    offsets = rng.normal(0, 1, (4, n_classes))
    truth = softmax(z[:, None, :] + offsets, axis=2)
    codes = (rng.random((n_items, 4, 1)) > truth.cumsum(axis=2)).sum(axis=2)
    table = {
        "item": np.repeat([f"i{i:03}" for i in range(n_items)], 4),
        "annotator": np.tile(["a0", "a1", "a2", "a3"], n_items),
        "label": (codes.ravel() + 1).astype(str),
        "gender": np.tile(["f", "f", "m", "m"], n_items),
        "age": np.tile(["20", "30", "40", "20"], n_items),
    }
    annotations = Annotations.from_table(table, scale="ordinal:1,2,3,4,5,6,7,8,9")
    pool = softmax(z, axis=1)
    people = PeopleEffects.fit(pool, annotations)
    unmoved = np.abs(pool[:, None] - truth).mean()
    assert distance(people, pool, truth, range(4)) < 0.25 * unmoved
    assert 0.3 < np.diag(people.covariance)[:-1].mean() < 6
