"""Recipes learn points of a scale and sets of labels with every supervision."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from member_cases import on_scale
from sklearn.linear_model import LogisticRegression

from edokit import EDOWarning, Scale
from edokit._names import as_names
from edokit._types import Floats
from edokit.members import Group, MemberData, score_members, train_members
from edokit.members.recipes._regression import Logistic
from edokit.members.recipes.sklearn import _sets_of
from edokit.members.registry import find_recipe, make_member
from edokit.members.supervision import SUPERVISIONS, soft_targets

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*tied"),
    pytest.mark.usefixtures("own_cache"),
]
NAIVE_BAYES = "sklearn.naive_bayes.ComplementNB(alpha=0.3)"
SETS = Scale("multi-label")
POINTS = Scale("ordinal", (0, 1, 3))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))


def fitted(features: Floats, targets: Floats, strength: float, *scale: Any, **how: Any) -> Logistic:

    return Logistic.fit(features, targets, strength, *scale, **how).rounded()


def options_of(recipe: str, model: str) -> dict[str, Any]:
    return {"encoder": {"model": model}, "sklearn": {"estimator": NAIVE_BAYES}}.get(recipe, {})


# Every supervision, scale and recipe


@pytest.mark.parametrize(
    ("supervision", "pairs"), [*((name, False) for name in SUPERVISIONS), ("soft", True)]
)
@pytest.mark.parametrize("kind", ["nominal", "ordinal", "multi-label"])
@pytest.mark.parametrize("recipe", ["linear", "encoder", "sklearn"])
def test_members_are_trained_kept_and_scored(
    recipe: str, kind: str, supervision: str, pairs: bool, model: str, tmp_path: Path
) -> None:
    people = on_scale(kind)
    if pairs:
        people = replace(people, contexts=as_names([f"post {i % 7}" for i in range(72)]))
    group = Group(recipe, 1, supervision=supervision, options=options_of(recipe, model))
    smallest_level = 5
    if supervision == "per-group":
        countries = as_names(["DE", "FR", "FR"])
        people = replace(people, attributes={"country": countries})
        group = replace(group, members=None, attribute="country")
        smallest_level = 1
    out = tmp_path / "members"
    trained = train_members(
        people, [group], out=out, jobs=1, device=None, min_annotators=smallest_level
    )
    found = trained.predictions["dev"]
    assert found.scale == people.scale
    if kind != "multi-label":
        np.testing.assert_allclose(found.probabilities.sum(axis=2), 1, atol=1e-5)
    dev = people.split("dev")
    assert dev.texts is not None
    texts: Any = list(map(str, dev.texts))
    if dev.contexts is not None:
        texts = list(zip(texts, map(str, dev.contexts), strict=True))
    second_predictions = score_members(out, texts)
    np.testing.assert_allclose(second_predictions.probabilities, found.probabilities, atol=1e-5)


@pytest.mark.parametrize("recipe", ["linear", "sklearn"])
def test_a_label_is_likelier_where_it_was_chosen(recipe: str) -> None:
    data = on_scale("multi-label")
    member = make_member(recipe, 3, options_of(recipe, ""))
    member.fit(
        MemberData(data.texts, lambda epoch: soft_targets(data), scale=data.scale), random_state=0
    )
    p = member.predict_proba(data.texts)
    rude = data.soft_labels[:, 0]
    assert np.corrcoef(p[:, 0], rude)[0, 1] > 0.7
    # Nobody chose the last label: as if one of 72 had not.
    np.testing.assert_allclose(p[:, 2], 1 / 74, rtol=1e-3)


@pytest.mark.parametrize("recipe", ["linear", "sklearn"])
def test_one_set_for_all_gives_a_constant_member_and_a_warning(recipe: str, tmp_path: Path) -> None:
    member = make_member(recipe, 2, options_of(recipe, ""))
    data = MemberData(["a", "b", "c"], lambda epoch: np.array([[1.0, 0.0]] * 3), scale=SETS)
    with pytest.warns(EDOWarning, match="3 targets are the same"):
        member.fit(data, random_state=0)
    np.testing.assert_allclose(member.predict_proba(["d"]), [[0.8, 0.2]], rtol=1e-6)
    member.save(tmp_path)
    again = find_recipe(recipe).load(tmp_path)
    np.testing.assert_allclose(again.predict_proba(["d"]), [[0.8, 0.2]], rtol=1e-6)


# Regressions


def test_labels_are_regressions_on_their_own() -> None:
    targets = (X[:, :2] + RNG.normal(size=(60, 2)) > 0).astype(float)
    found = fitted(X, targets, 2.0, SETS).predict(X)
    for k in range(2):
        one = LogisticRegression(C=2.0, tol=1e-8, max_iter=5000).fit(X, targets[:, k])
        np.testing.assert_allclose(found[:, k], one.predict_proba(X)[:, 1], atol=1e-3)


def test_shares_of_labels_become_whole_sets() -> None:
    targets = np.array([[0.2, 0.6], [0.0, 1.0], [0.5, 0.5]])
    rows, sets, weights = _sets_of(targets)
    shares = np.zeros_like(targets)
    np.add.at(shares, rows, weights[:, None] * sets)
    np.testing.assert_allclose(shares, targets)
    np.testing.assert_allclose(np.bincount(rows, weights), 1)
