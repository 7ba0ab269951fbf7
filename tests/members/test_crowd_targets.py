"""Targets from models of the annotators, by the real crowd-kit."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from edokit import Annotations
from edokit._errors import InputError, MissingExtraError
from edokit.members.supervision import MODELS, crowd_targets


def crowd(items: int = 60) -> tuple[Annotations, np.ndarray]:
    """Three careful annotators and three who guess; and the right answers."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, size=items)
    wrong = rng.random((items, 6)) < np.array([0.05, 0.05, 0.1, 0.5, 0.5, 0.5])
    answers = np.array(["no", "yes"], dtype=object)[
        np.where(wrong, 1 - truth[:, None], truth[:, None])
    ]
    table: dict[str, list[object]] = {"item": [], "annotator": [], "label": [], "split": []}
    for i in range(items):
        for a in range(6):
            table["item"].append(f"i{i}")
            table["annotator"].append(f"a{a}")
            table["label"].append(answers[i, a])
            table["split"].append("train" if i < items - 10 else "dev")
    return Annotations.from_table(table), truth


@pytest.mark.parametrize("model", MODELS)
def test_careful_annotators_count_more_than_those_who_guess(model: str) -> None:
    people, truth = crowd(40)
    changed = crowd_targets(people, model, restarts=1)
    train = np.flatnonzero(people.splits == "train")
    posterior = changed.soft_labels[train]
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
    right = truth[train]
    believed = posterior[np.arange(len(train)), right].mean()
    said = people.soft_labels[train, right].mean()
    assert believed > said + 0.1
    assert (posterior.argmax(axis=1) == right).mean() > 0.9


def test_other_splits_keep_what_the_people_said() -> None:
    people, _ = crowd()
    changed = crowd_targets(people)
    dev = people.splits == "dev"
    np.testing.assert_allclose(changed.soft_labels[dev], people.soft_labels[dev])
    assert not np.allclose(changed.soft_labels[~dev], people.soft_labels[~dev])
    assert list(changed.items) == list(people.items)
    everything = crowd_targets(people, splits=None)
    assert not np.allclose(everything.soft_labels[dev], people.soft_labels[dev])


def test_a_class_that_nobody_chose_gets_nothing() -> None:
    people, _ = crowd(20)
    wider = people.with_classes(["no", "maybe", "yes"])
    assert (crowd_targets(wider, splits=None).soft_labels[:, 1] == 0).all()


def test_what_the_models_cannot_take_is_refused() -> None:
    people, _ = crowd(20)
    with pytest.raises(InputError, match="'dawid-skene', 'mace'"):
        crowd_targets(people, "majority")
    with pytest.raises(InputError, match="none in holdout"):
        crowd_targets(people, splits=["holdout"])
    soft = Annotations.from_soft_labels(people.soft_labels)
    with pytest.raises(InputError, match="gave probabilities"):
        crowd_targets(soft)


def test_without_crowd_kit_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    people, _ = crowd(20)
    monkeypatch.setitem(sys.modules, "crowdkit", None)
    with pytest.raises(MissingExtraError, match=r"edokit\[crowds\]"):
        crowd_targets(people)
