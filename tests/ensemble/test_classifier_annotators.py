"""EDOClassifier that knows annotators."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from edokit import Annotations, EDOClassifier
from edokit._errors import EDOWarning, InputError

MEMBERS = [("lr", LogisticRegression()), ("constant", DummyClassifier())]


def people(items: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Four annotators with gaps: the last answers yes far more often than the others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(items, 2))
    logits = 2 * X[:, :1] + np.array([-0.5, -0.5, -0.5, 2.5])
    labels = (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)
    labels[np.arange(items), rng.integers(0, 4, items)] = np.nan
    return X, labels


def test_answers_for_annotators_are_nearer_to_theirs_and_anonymous_ones_stay():
    X, labels = people()
    new, truth = people(seed=1)
    plain = EDOClassifier(MEMBERS).fit(X, labels)
    model = EDOClassifier(MEMBERS, annotators=True).fit(X, labels)
    anonymous = model.predict_proba(new)
    np.testing.assert_array_equal(anonymous, plain.predict_proba(new))
    assert model.annotators_.tolist() == ["0", "1", "2", "3"]

    def error(p: np.ndarray, who: int) -> float:
        own = ~np.isnan(truth[:, who])
        return float(-np.log(p[own, truth[own, who].astype(int)]).mean())

    for who in range(4):
        assert error(model.predict_proba(new, annotators=who), who) < error(anonymous, who)
    each = [model.predict_proba(new, annotators=who) for who in range(4)]
    mixed = model.predict_proba(new, annotators=np.arange(len(new)) % 4)
    np.testing.assert_array_equal(mixed[3::4], each[3][3::4])


def test_an_unseen_annotator_gets_exactly_the_anonymous_answer_and_is_named():
    X, labels = people()
    model = EDOClassifier(MEMBERS, annotators=True).fit(X, labels)
    with pytest.warns(EDOWarning, match="1 of 1 annotator is unknown.*'nobody'"):
        found = model.predict_proba(X, annotators="nobody")
    np.testing.assert_array_equal(found, model.predict_proba(X))


def test_names_are_those_of_columns_or_annotations_and_order_never_matters(tmp_path: Path):
    X, labels = people()
    named = pd.DataFrame(labels, columns=["ann", "ben", "cat", "dan"])
    model = EDOClassifier(MEMBERS, annotators=True).fit(X, named)
    dan = model.predict_proba(X, annotators="dan")
    reordered = EDOClassifier(MEMBERS, annotators=True).fit(X, named[["dan", "cat", "ben", "ann"]])
    np.testing.assert_allclose(reordered.predict_proba(X, annotators="dan"), dan, atol=1e-6)
    given = Annotations.from_matrix(labels, annotators=list(named))
    same = EDOClassifier(MEMBERS, annotators=True).fit(X, given)
    np.testing.assert_allclose(same.predict_proba(X, annotators="dan"), dan, atol=1e-6)
    model.save(tmp_path / "m")
    again = EDOClassifier.load(tmp_path / "m")
    np.testing.assert_allclose(again.predict_proba(X, annotators="dan"), dan)
    assert clone(again).annotators is True
    panel = model.predict_proba(X, annotators=[["ann", "dan"]] * len(X))
    assert panel.shape == dan.shape


def test_what_can_not_be_answered_is_refused():
    X, labels = people()
    with pytest.raises(InputError, match="annotators=True"):
        EDOClassifier(MEMBERS).fit(X, labels).predict_proba(X, annotators=0)
    with pytest.raises(InputError, match="who gave which label"):
        EDOClassifier(MEMBERS, annotators=True).fit(X, (X[:, 0] > 0).astype(int))
    model = EDOClassifier(MEMBERS, annotators=True).fit(X, labels)
    with pytest.raises(InputError, match="2 entries for 300 items"):
        model.predict_proba(X, annotators=[0, 1])
