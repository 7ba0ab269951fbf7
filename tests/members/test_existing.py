"""Models from elsewhere are members like any other; members of several folders work together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops.io
from member_cases import small_people
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from test_hub import classifier

import edokit
from commands import printed, status
from edokit import Bundle, EDOEnsemble, EDOError
from edokit.members import parse_groups, score_members, score_models, train_members
from edokit.members.existing import ExistingModel
from tests.errors import raises_code

PEOPLE = small_people()
TEXTS = ["sunny tea in the garden", "awful nonsense", "late and noisy bread"]
LABELS = {"fine": "0", "rude": "1"}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fitted pipeline of scikit-learn, with other names for the classes, saved by skops."""
    train = PEOPLE.split("train")
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    model.fit(list(train.texts), np.array(["fine", "rude"])[train.hard_labels()])
    path = tmp_path_factory.mktemp("pipeline") / "mine.skops"
    skops.io.dump(model, path)
    return path


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, pipeline: Path) -> tuple[Path, Path]:
    """A folder of trained members, and one of a model from elsewhere, its classes turned round."""
    root = tmp_path_factory.mktemp("folders")
    train_members(PEOPLE, parse_groups("linear:2"), out=root / "trained", jobs=1)
    words = ("--name", "mine", "--model", pipeline, "--classes", "1,0", "--json")
    labels = ("--label", "fine=0", "--label", "rude=1")
    content = json.loads(printed("members", "add", root / "mine", *words, *labels))
    assert content["labels"] == LABELS
    return root / "trained", root / "mine"


def test_a_pipeline_predicts_as_it_did_before(folders: tuple[Path, Path], pipeline: Path) -> None:
    scored = score_members(folders[1], TEXTS)
    expected = skops.io.load(pipeline).predict_proba(TEXTS)
    assert scored.classes == ("1", "0")
    np.testing.assert_allclose(scored.probabilities[:, 0], expected[:, ::-1])


def test_a_model_is_replaced_only_if_that_is_asked_for(pipeline: Path, tmp_path: Path) -> None:
    edokit.add_member(tmp_path, "mine", pipeline, labels=LABELS)
    first = score_members(tmp_path, TEXTS).probabilities
    edokit.add_member(tmp_path, "mine", pipeline, labels={"fine": "1", "rude": "0"}, overwrite=True)
    np.testing.assert_allclose(score_members(tmp_path, TEXTS).probabilities, first[:, :, ::-1])


def test_a_model_that_cannot_be_saved_leaves_the_one_that_it_would_replace(
    pipeline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(member: ExistingModel, folder: Path) -> None:
        raise OSError("no space left on device")

    edokit.add_member(tmp_path, "mine", pipeline, labels=LABELS)
    first = score_members(tmp_path, TEXTS).probabilities
    monkeypatch.setattr(ExistingModel, "save", fail)
    with pytest.raises(EDOError):
        edokit.add_member(tmp_path, "mine", pipeline, labels=LABELS, overwrite=True)
    np.testing.assert_array_equal(score_members(tmp_path, TEXTS).probabilities, first)


def test_members_of_several_folders_are_scored_pooled_and_bundled(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    dev = PEOPLE.split("dev")
    data = tmp_path / "data.csv"
    edokit.write_annotations(PEOPLE, data)
    both = [word for folder in folders for word in ("--members", folder)]
    out = tmp_path / "dev.npz"
    assert status("score", *both, "--texts", data, "--split", "dev", "--out", out) == 0
    predictions = edokit.read_predictions(out)
    assert predictions.members == ("linear-01", "linear-02", "mine")
    alone = [score_members(folder, list(dev.texts)) for folder in folders]
    np.testing.assert_allclose(predictions.probabilities[:, :2], alone[0].probabilities)
    np.testing.assert_allclose(predictions.probabilities[:, 2], alone[1].probabilities[:, 0, ::-1])
    EDOEnsemble().fit(predictions, dev).save(tmp_path / "ensemble")
    bundle = Bundle.create(tmp_path / "ensemble", folders, tmp_path / "bundle")
    texts = tmp_path / "new.txt"
    texts.write_text("\n".join(TEXTS))
    pooled = tmp_path / "pooled.csv"
    words = ("--texts", texts, "--out", pooled, "--json")
    assert status("predict", tmp_path / "ensemble", *both, *words) == 0
    expected = np.loadtxt(pooled, delimiter=",", skiprows=1, usecols=(1, 2))
    np.testing.assert_allclose(bundle.predict_proba(TEXTS), expected, atol=1e-6)
    again = edokit.load(tmp_path / "bundle")
    np.testing.assert_array_equal(again.predict_proba(TEXTS), bundle.predict_proba(TEXTS))


def test_a_text_classification_model_joins_trained_members(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    model = classifier(tmp_path / "model", ["fine", "rude"])
    assert edokit.add_member(tmp_path / "added", "bert", model, labels=LABELS) == LABELS
    scored = score_members([folders[0], tmp_path / "added"], TEXTS, device="cpu")
    assert scored.members == ("linear-01", "linear-02", "bert")
    alone, _ = score_models({"alone": model}, TEXTS, device="cpu")
    np.testing.assert_allclose(scored.probabilities[:, 2], alone.probabilities[:, 0], atol=1e-6)


def test_trained_members_and_added_models_have_folders_of_their_own(
    folders: tuple[Path, Path], pipeline: Path
) -> None:
    trained, added = folders
    before = [(folder / "manifest.json").read_bytes() for folder in folders]
    with raises_code("wrong-folder", str(trained)):
        edokit.add_member(trained, "mine", pipeline, labels=LABELS)
    with raises_code("existing-file", "'mine'"):
        train_members(PEOPLE, parse_groups("linear:1"), out=added, overwrite=True, jobs=1)
    assert [(folder / "manifest.json").read_bytes() for folder in folders] == before


def test_a_name_that_two_folders_have_is_one_clear_message(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    train_members(PEOPLE, parse_groups("linear:1"), out=tmp_path, jobs=1)
    with raises_code("duplicate-name", "'linear-01'"):
        score_members([folders[0], tmp_path], TEXTS)


@pytest.mark.parametrize(
    ("changes", "code", "fact"),
    [
        ({"name": "mine"}, "taken-name", "'mine'"),
        ({"name": "../mine"}, "invalid-name", "'../mine'"),
        ({"labels": {"fine": "0"}}, "unknown-label", "'fine', 'rude'"),
        ({"labels": LABELS, "classes": ["a", "b"]}, "classes-differ", "'1', '0'"),
        ({"model": "nowhere.skops/x/y"}, "unknown-model", "nowhere.skops/x/y"),
    ],
)
def test_what_can_be_no_member_is_refused(
    folders: tuple[Path, Path], pipeline: Path, changes: dict[str, Any], code: str, fact: str
) -> None:
    before = (folders[1] / "manifest.json").read_bytes()
    with raises_code(code, fact):
        edokit.add_member(folders[1], **{"name": "other", "model": pipeline, **changes})
    assert (folders[1] / "manifest.json").read_bytes() == before


def test_members_with_and_without_context_work_together(tmp_path: Path) -> None:
    from dataclasses import replace

    people = replace(PEOPLE, contexts=np.array([f"post {i}" for i in range(72)], dtype=object))
    train_members(people, parse_groups("linear:1"), out=tmp_path / "with", jobs=1)
    groups = parse_groups("sklearn:1", options={"estimator": "sklearn.naive_bayes.ComplementNB"})
    train_members(PEOPLE, groups, out=tmp_path / "without", jobs=1)
    pairs = [(text, "post 1") for text in TEXTS]
    both = score_members([tmp_path / "without", tmp_path / "with"], pairs)
    expected = score_members(tmp_path / "without", TEXTS).probabilities[:, 0]
    np.testing.assert_array_equal(both.probabilities[:, 0], expected)
    with raises_code("contexts-differ", "text 1"):
        score_members([tmp_path / "without", tmp_path / "with"], TEXTS)
