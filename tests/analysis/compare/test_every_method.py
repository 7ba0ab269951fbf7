"""What every method keeps to, the baselines and EDO alike."""

from __future__ import annotations

import numpy as np
import pytest
from pool_cases import quick, sample
from sklearn.exceptions import NotFittedError

from edokit import Annotations, InputError, Predictions
from edokit.analysis.compare.method import method_names
from tests.errors import raises_code

pytestmark = [
    # The constant answer does not depend on the members.
    pytest.mark.parametrize("name", [name for name in method_names() if name != "constant"]),
    pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning"),
]


def assert_distributions(p: np.ndarray, shape: tuple[int, int]) -> None:
    assert p.shape == shape
    assert p.dtype == np.float64
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)


@pytest.mark.parametrize("classes", [("no", "yes"), ("calm", "cross", "rude")])
def test_unseen_items_get_distributions_and_classes(name: str, classes: tuple[str, ...]) -> None:
    dev, people = sample(classes=classes)
    test, _ = sample(25, seed=1, classes=classes, prefix="new")
    method = quick(name).fit(dev, people)
    assert_distributions(method.predict_proba(test), (25, len(classes)))
    answers = method.predict(test)
    assert answers.shape == (25,)
    assert set(answers) <= set(classes)


def test_one_item_gets_the_answer_that_it_gets_among_others(name: str) -> None:
    dev, people = sample()
    method = quick(name).fit(dev, people)
    all_of_them = method.predict_proba(dev)
    np.testing.assert_allclose(method.predict_proba(dev.take([7]))[0], all_of_them[7], atol=1e-12)


def test_the_order_of_items_members_and_classes_does_not_matter(name: str) -> None:
    dev, people = sample()
    plain = quick(name).fit(dev, people).predict_proba(dev)
    rng = np.random.default_rng(5)
    rows = rng.permutation(len(dev))
    members = [dev.members[k] for k in rng.permutation(len(dev.members))]
    shuffled = dev.take(rows).select(members).order_classes(("yes", "no"))
    turned = quick(name).fit(shuffled, people.take(rng.permutation(len(rows))))
    # Probabilities stand in the annotations' order of classes, whatever the predictions' order.
    np.testing.assert_allclose(turned.predict_proba(shuffled), plain[rows], atol=1e-6)
    np.testing.assert_allclose(turned.predict_proba(dev), plain, atol=1e-6)


def test_the_same_seed_gives_the_same_answers(name: str) -> None:
    dev, people = sample()
    first, second = (quick(name, seed=3).fit(dev, people).predict_proba(dev) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_single_member_decides_alone(name: str) -> None:
    dev, people = sample()
    alone = dev.select(["fair-1"])
    method = quick(name).fit(alone, people)
    p = method.predict_proba(alone)
    assert_distributions(p, (len(dev), 2))
    # A temperature may soften its answers, but not turn them.
    np.testing.assert_array_equal(p.argmax(axis=1), alone.probabilities[:, 0].argmax(axis=1))
    if getattr(method, "temperature_", 1.0) == 1.0:
        np.testing.assert_allclose(p, opinion(name, alone.probabilities), atol=1e-9)


def test_people_who_all_say_the_same_are_no_obstacle(name: str) -> None:
    dev, _ = sample(30)
    agreed = Annotations.from_matrix(
        np.full((30, 3), "no", dtype=object), items=dev.items, classes=("no", "yes")
    )
    assert_distributions(quick(name).fit(dev, agreed).predict_proba(dev), (30, 2))


def opinion(name: str, P: np.ndarray) -> np.ndarray:
    """What a method makes of one opinion, or of several that are the same."""
    return np.eye(2)[P[:, 0].argmax(axis=1)] if name == "majority" else P[:, 0]


def test_members_of_the_very_same_opinion_are_no_obstacle(name: str) -> None:
    dev, people = sample(30)
    P = np.repeat(dev.probabilities[:, :1], 4, axis=1)
    copies = Predictions.from_arrays(P, items=dev.items, classes=dev.classes, layout="NKC")
    method = quick(name).fit(copies, people)
    if getattr(method, "temperature_", 1.0) == 1.0:
        np.testing.assert_allclose(method.predict_proba(copies), opinion(name, P), atol=1e-9)


def test_members_that_are_certain_and_wrong_are_no_obstacle(name: str) -> None:
    dev, people = sample(30)
    P = np.array(dev.probabilities)
    P[:, 5] = np.eye(2)[1 - people.hard_labels()]
    certain = Predictions.from_arrays(P, items=dev.items, classes=dev.classes, layout="NKC")
    assert_distributions(quick(name).fit(certain, people).predict_proba(certain), (30, 2))


def test_a_missing_member_that_carries_weight_is_named(name: str) -> None:
    dev, people = sample()
    method = quick(name).fit(dev, people)
    heaviest = method.members_[int(np.argmax(method.weights_))]
    rest = dev.select([member for member in dev.members if member != heaviest])
    with raises_code("missing-members", repr(heaviest)):
        method.predict_proba(rest)
    with raises_code("missing-members"):
        method.predict(rest)


def test_weights_lie_on_the_simplex_and_size_counts_them(name: str) -> None:
    dev, people = sample()
    method = quick(name).fit(dev, people)
    assert method.weights_.shape == (6,)
    assert (method.weights_ >= 0).all()
    assert method.weights_.sum() == pytest.approx(1.0)
    assert sorted(method.members_) == sorted(dev.members)
    groups = getattr(method, "groups_", None)
    carrying = {
        group
        for group, w in zip(groups or method.members_, method.weights_, strict=True)
        if w > 1e-9
    }
    assert method.size_ == len(carrying)


def test_bare_arrays_are_named_by_position(name: str) -> None:
    dev, people = sample()
    bare = quick(name).fit(dev.probabilities, np.asarray(people.soft_labels))
    p = bare.predict_proba(dev.probabilities)
    assert_distributions(p, (60, 2))
    with pytest.raises(InputError):
        bare.predict_proba(dev.probabilities[:, :3])


def test_other_items_than_the_people_judged_are_refused(name: str) -> None:
    dev, _ = sample()
    _, others = sample(prefix="other")
    with raises_code("items-differ"):
        quick(name).fit(dev, others)


def test_answers_before_fitting_are_refused(name: str) -> None:
    dev, _ = sample()
    with pytest.raises(NotFittedError):
        quick(name).predict_proba(dev)
    with pytest.raises(NotFittedError):
        quick(name).predict(dev)
