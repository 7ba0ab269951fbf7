"""Members, predictions and a bundle of an earlier version load, resume and predict as they did.

``frozen`` was written by ``edo train``, ``edo fit`` and ``edo bundle`` of commit 50a361e9:
``folds`` with ``--recipe linear:2 --option fewest=4 --cross-fit 2`` on annotations.csv,
``contexts`` with ``--recipe groups.toml`` on contexts.csv, ``bundle`` of the former. ``knowing`` is
a bundle of commit 84278a44, the last one whose recipe linear learned annotators (one of its two
members did), with an ensemble fitted with ``--no-people``.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edokit
from commands import answer
from edokit.members import score_members
from edokit.members.texts import read_texts

FROZEN = Path(__file__).parent / "frozen"
EXPECTED: dict[str, Any] = json.loads((FROZEN / "expected.json").read_text(encoding="utf-8"))
TEXTS = {"folds": "new.csv", "contexts": "new_contexts.csv"}
TRAINING = {
    "folds": ["annotations.csv", "--recipe", "linear:2", "--option", "fewest=4", "--cross-fit=2"],
    "contexts": ["contexts.csv", "--recipe", str(FROZEN / "groups.toml")],
}


def assert_same(probabilities: Any, name: str) -> None:
    """Compare with the probabilities of the version that wrote the files."""
    np.testing.assert_allclose(probabilities, EXPECTED["probabilities"][name], rtol=0, atol=1e-12)


def rounded(value: Any) -> Any:
    """Plain values whose numbers are compared to nine digits: sums differ between machines."""
    return json.loads(json.dumps(value), parse_float=lambda number: round(float(number), 9))


@pytest.mark.parametrize("name", TEXTS)
def test_trained_members_predict_the_same_probabilities(name: str) -> None:
    predictions = score_members(FROZEN / name, read_texts(FROZEN / TEXTS[name]))
    assert_same(predictions.probabilities, name)


def test_members_trained_on_one_annotator_each_predict_for_these_annotators() -> None:
    texts = read_texts(FROZEN / "new_contexts.csv")
    annotators = {"n1": ["ann", "bob"], "n2": ["ann"]}
    predictions = score_members(
        FROZEN / "contexts", texts, annotators=annotators, by_annotator=True
    )
    expected = EXPECTED["probabilities"]["contexts_by_annotator"]
    np.testing.assert_allclose(predictions.probabilities[:2], expected[:2], rtol=0, atol=1e-12)
    np.testing.assert_allclose(predictions.probabilities[3:], expected[3:], rtol=0, atol=1e-12)


def test_a_bundle_answers_the_same() -> None:
    bundle = edokit.load(FROZEN / "bundle")
    texts = list(read_texts(FROZEN / "new.csv").texts)
    assert_same(bundle.predict_proba(texts), "bundle")


def test_a_member_that_learned_annotators_answers_for_them_as_it_did() -> None:
    bundle = edokit.load(FROZEN / "knowing")
    texts = list(read_texts(FROZEN / "new.csv").texts)
    assert_same(bundle.predict_proba(texts), "knowing")
    expected = EXPECTED["probabilities"]["knowing_by_annotator"]
    assert bundle.known_annotators == tuple(expected)
    for annotator, probabilities in expected.items():
        answers = bundle.predict_proba(texts, annotators=[annotator] * len(texts))
        np.testing.assert_allclose(answers, probabilities, rtol=0, atol=1e-12)
        assert np.abs(answers - bundle.predict_proba(texts)).max() > 0.01


@pytest.mark.parametrize("name", TRAINING)
def test_a_training_resumes_without_training_again(name: str, tmp_path: Path) -> None:
    out = tmp_path / name
    shutil.copytree(FROZEN / name, out)
    data, *options = TRAINING[name]
    printed = answer("train", str(FROZEN / data), *options, "--out", str(out))
    expected = {**EXPECTED["train"][name], "out": str(out)}
    for group in expected["groups"]:
        group["options"].pop("annotators", None)  # which `linear` no longer has
    assert rounded(printed) == rounded(expected)
    for card in (FROZEN / name).rglob("member.json"):
        copied = out / card.relative_to(FROZEN / name)
        assert copied.read_bytes() == card.read_bytes()


@pytest.mark.parametrize("name", TRAINING)
def test_training_anew_gives_the_same_members(name: str, tmp_path: Path) -> None:
    out = tmp_path / name
    data, *options = TRAINING[name]
    answer("train", str(FROZEN / data), *options, "--out", str(out))
    predictions = score_members(out, read_texts(FROZEN / TEXTS[name]))
    np.testing.assert_allclose(
        predictions.probabilities, EXPECTED["probabilities"][name], rtol=0, atol=1e-6
    )
    for card in (FROZEN / name).rglob("member.json"):
        frozen = json.loads(card.read_text(encoding="utf-8"))
        trained = json.loads((out / card.relative_to(FROZEN / name)).read_text(encoding="utf-8"))
        assert list(trained) == list(frozen)
        for key in frozen:
            if key not in ("seconds", "versions", "sha256"):
                assert trained[key] == frozen[key], key


@pytest.mark.parametrize("name", TEXTS)
def test_scoring_prints_the_same(name: str, tmp_path: Path) -> None:
    texts = str(FROZEN / TEXTS[name])
    out = str(tmp_path / "scores.npz")
    printed = answer("score", "--members", str(FROZEN / name), "--texts", texts, "--out", out)
    assert printed == {**EXPECTED["score"][name], "out": out}
