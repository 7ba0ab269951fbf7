"""Answers for a person rest on the members that know the person."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from member_cases import KIND, RUDE

import edokit
from commands import status
from edokit import Annotations, Bundle, Panel, Predictions
from edokit._io.tables import read_table
from edokit.members import Group, score_members, train_members
from flat_options import flat_ensemble

TEXTS = ["warm tea garden friend", "awful rubbish nonsense late"]
CONTRARIAN = "contrarian"
ANNOTATORS = {"annotators": True}


def rows(n: int = 120) -> Iterator[tuple[str, str, str, str, str]]:
    """Four annotators object to rude texts, one objects to all others."""
    rng = np.random.default_rng(0)
    for i in range(n):
        text = " ".join([*rng.choice(RUDE if i % 2 else KIND, 4), f"word{i}"])
        split = "dev" if i % 3 == 0 else "train"
        for name in ("ann", "ben", "cem", "dia", CONTRARIAN):
            label = str((i + (name == CONTRARIAN)) % 2)
            yield f"item-{i}", name, label, text, split


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of one member that knows annotators and three that do not, learned on items.

    It is fitted without effects of people, as ensembles of earlier versions are.
    """
    folder = tmp_path_factory.mktemp("made")
    columns = ("item", "annotator", "label", "text", "split")
    people = Annotations.from_table(dict(zip(columns, zip(*rows(), strict=True), strict=True)))
    pool = [Group("linear", 3, "crowd"), Group("nearest", 1, "known", "soft", options=ANNOTATORS)]
    trained = train_members(people, pool, out=folder / "members", jobs=1)
    labels = people.split("dev").align(trained.predictions["dev"].items)
    ensemble = flat_ensemble({"lambda_reg": 10.0}).set_params(people=False)
    ensemble.fit(trained.predictions["dev"], labels).save(folder / "ensemble")
    assert (ensemble.weights_ > 0.1).all()
    (folder / "texts.txt").write_text("\n".join(TEXTS))
    return folder


@pytest.fixture(scope="module")
def bundle(made: Path) -> Bundle:
    return Bundle.create(made / "ensemble", made / "members", made / "bundle")


def answers_of(made: Path, *members: str) -> Any:
    """What these members answer for the contrarian, and for nobody [2, C]."""
    names = {str(row): [CONTRARIAN] for row in range(len(TEXTS))}
    scored = score_members(made / "members", TEXTS, members, annotators=names, by_annotator=True)
    return scored.pairs().uniform, scored.anonymous().uniform


def test_who_answers_the_opposite_of_everybody_gets_that_answer(made: Path, bundle: Bundle) -> None:
    known, anonymous = answers_of(made, "known-01")
    assert anonymous.argmax(axis=1).tolist() == [0, 1]
    assert known.argmax(axis=1).tolist() == [1, 0]
    views: list[dict[str, Any]] = [
        {"panel": [CONTRARIAN]},
        {"panel": Panel((CONTRARIAN,))},
        {"annotators": [CONTRARIAN] * 2},
    ]
    for view in views:
        np.testing.assert_allclose(bundle.predict_proba(TEXTS, **view), known, atol=1e-9)
    everybody = bundle.predict_proba(TEXTS)
    assert everybody.argmax(axis=1).tolist() == [0, 1]
    # Who asks for two people gets the mean of both.
    both = bundle.predict_proba(TEXTS, annotators=[[CONTRARIAN, "ann"]] * 2)
    ann = bundle.predict_proba(TEXTS, panel=["ann"])
    np.testing.assert_allclose(both, (known + ann) / 2, atol=1e-9)


@pytest.mark.parametrize("words", [["bundle"], ["ensemble", "--members", "members"]])
def test_the_command_says_the_same(made: Path, bundle: Bundle, words: list[str]) -> None:
    places = [word if word.startswith("-") else made / word for word in words]
    asked = [*places, "--texts", made / "texts.txt", "--as", CONTRARIAN]
    expected = bundle.predict_proba(TEXTS, panel=[CONTRARIAN])[:, 1]
    out = made / f"{len(words)}.parquet"
    assert status("predict", *asked, "--out", out, "--overwrite") == 0
    np.testing.assert_allclose(read_table(out)["p_1"].to_numpy(), expected, atol=1e-9)
    assert status("predict", *asked, "--as", "ann", "--out", out, "--overwrite") == 0
    table = read_table(out).to_pandas().set_index("item").loc[["0", "1"]]
    column = table[f"p_1 (annotator {CONTRARIAN!r})"]
    np.testing.assert_allclose(column, expected, atol=1e-9)


def test_strangers_get_the_answer_for_nobody(bundle: Bundle) -> None:
    with pytest.warns(edokit.EDOWarning, match="1 of 1 annotator"):
        stranger = bundle.predict_proba(TEXTS, panel=["somebody"])
    np.testing.assert_allclose(stranger, bundle.predict_proba(TEXTS), atol=1e-12)


def pairs(**options: Any) -> Predictions:
    """Two items for ann, for ben and for nobody, by a member that knows ann and one that does
    not."""
    known = [[0.9, 0.1], [0.2, 0.8], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4], [0.6, 0.4]]
    unknown = [[0.4, 0.6]] * 3 + [[0.5, 0.5]] * 3
    return Predictions.from_arrays(
        {"known": known, "unknown": unknown},
        items=[*"aaabbb"],
        annotators=["ann", "ben", ""] * 2,
        classes=["no", "yes"],
        **options,
    )


ANN = [0, 3]
OTHERS = [1, 2, 4, 5]
LABELS = Annotations.from_table(
    {
        "item": [*"aabb"],
        "annotator": ["ann", "ben"] * 2,
        "label": ["no", "yes", "yes", "yes"],
    }
)


@pytest.mark.parametrize("pool", ["linear", "log"])
def test_weights_learned_on_items_leave_a_person_to_those_that_know(pool: str) -> None:
    predictions = pairs()
    ensemble = flat_ensemble({"pool": pool, "lambda_reg": 10.0, "ties": "random"})
    ensemble.fit(predictions.anonymous(), LABELS)
    pooled = ensemble.describe(predictions, only_knowing=True)
    np.testing.assert_allclose(pooled.probabilities[ANN], predictions.probabilities[ANN, 0])
    np.testing.assert_allclose(pooled.spread[ANN], 0, atol=1e-12)
    plain = ensemble.describe(predictions)
    np.testing.assert_array_equal(pooled.probabilities[OTHERS], plain.probabilities[OTHERS])
    # Without anonymous answers nobody can tell who knows ann.
    alone = predictions.pairs()
    np.testing.assert_array_equal(
        ensemble.describe(alone, only_knowing=True).probabilities,
        ensemble.describe(alone).probabilities,
    )


def test_weights_of_pairs_stay_as_they_were_learned() -> None:
    predictions = pairs()
    ensemble = flat_ensemble({"lambda_reg": 10.0}).set_params(people=False)
    ensemble.fit(predictions.pairs(), LABELS.pairs())
    np.testing.assert_array_equal(
        ensemble.describe(predictions, only_knowing=True).probabilities,
        ensemble.describe(predictions).probabilities,
    )
