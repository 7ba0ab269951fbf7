"""`edo train --end-to-end`: from annotations to a folder with members and their weights."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from member_cases import small_people
from tiny_transformer import texts_and_classes, tiny_model

from commands import printed
from edokit._errors import EDOWarning, InputError, MissingExtraError
from edokit._io.tables import write_table
from edokit.annotations import Annotations
from edokit.ensemble import EDOEnsemble
from edokit.members import (
    Group,
    Texts,
    Trained,
    TrainingData,
    TrainingPlan,
    parse_groups,
    score_members,
    train_end_to_end,
    train_members,
)
from edokit.members.jobs import member_data
from edokit.members.recipe import make_member
from edokit.members.recipes._end_to_end import EndToEndMembers
from edokit.members.train import plan_end_to_end
from edokit.predictions import read_predictions

K = 3


def people(classes: tuple[str, ...] = ("0", "1")) -> Annotations:
    """Three annotators who mostly agree on which texts are rude."""
    rng = np.random.default_rng(3)
    rows: dict[str, list[str]] = {n: [] for n in ("item", "annotator", "label", "text", "split")}
    for seed, (split, n) in enumerate((("train", 64), ("dev", 24), ("test", 16))):
        for i, (text, label) in enumerate(zip(*texts_and_classes(n, seed), strict=True)):
            for who in range(3):
                said = int(label) if rng.random() < 0.9 else 1 - int(label)
                values = (f"{split}-{i}", f"person-{who}", str(said), text, split)
                for name, value in zip(rows, values, strict=True):
                    rows[name].append(value)
    return Annotations.from_table(rows, classes=list(classes))


PEOPLE = people()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def how(model: str) -> dict[str, Any]:
    options = {"model": model, "epochs": 5, "learning_rate": "2e-2", "joint_learning_rate": 5e-2}
    return {"members": K, "options": options, "device": "cpu"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("joint")


@pytest.fixture(scope="module")
def trained(folder: Path, how: dict[str, Any]) -> Trained:
    return train_end_to_end(PEOPLE, out=folder, **how)


def stand_still(*_: object, **__: object) -> None:
    raise AssertionError("nothing should be trained here")


def test_the_folder_holds_model_predictions_ensemble_and_manifest(
    trained: Trained, folder: Path
) -> None:
    assert {path.name for path in folder.iterdir()} == {
        "end-to-end",
        "predictions",
        "ensemble",
        "manifest.json",
    }
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest == trained.manifest
    assert [member["name"] for member in manifest["members"]] == ["head-01", "head-02", "head-03"]
    test = read_predictions(folder / "predictions" / "test.npz")
    assert (test.shape, test.members) == ((16, K, 2), ("head-01", "head-02", "head-03"))
    assert not any(path.suffix in (".pkl", ".bin", ".pt") for path in folder.rglob("*"))


def test_the_pool_learns(trained: Trained) -> None:
    dev = PEOPLE.split("dev")
    share = PEOPLE.split("train").soft_labels.mean(axis=0)
    constant = -float((dev.soft_labels @ np.log(share)).mean())
    assert trained.manifest["pool"]["dev"]["ce"] < 0.7 * constant
    assert set(trained.manifest["pool"]) == {"dev", "test"}


def test_the_ensemble_carries_what_was_learned_with_the_members(
    trained: Trained, folder: Path
) -> None:
    ensemble = EDOEnsemble.load(folder / "ensemble")
    members = EndToEndMembers.load(folder / "end-to-end", device="cpu")
    assert ensemble.weights_.tolist() == members.weights_
    assert ensemble.size_ == members.size_ == np.count_nonzero(ensemble.weights_)
    assert len(set(members.weights_)) == K
    # Measured on dev, as the best epoch was.
    best = members.history_[members.best_epoch_ - 1]  # type: ignore[operator]
    assert ensemble.metrics_["ce"] == pytest.approx(best["dev_ce"], abs=1e-5)
    assert (ensemble.n_items_, ensemble.settings_["solver"]) == (24, "given")
    assert members.joint_learning_rate == 5e-2


def test_started_again_it_finds_everything_done(
    trained: Trained, folder: Path, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EndToEndMembers, "fit", stand_still)
    before = (folder / "ensemble" / "ensemble.json").read_bytes()
    # As if it had been killed after the model was kept.
    for lost in ("manifest.json", "predictions/dev.npz", "ensemble/ensemble.json"):
        (folder / lost).unlink()
    again = train_end_to_end(PEOPLE, out=folder, **how)
    assert again.manifest == trained.manifest
    assert (folder / "ensemble" / "ensemble.json").read_bytes() == before
    assert (folder / "manifest.json").is_file()


@pytest.mark.parametrize(
    "other",
    [
        {"random_state": 1},
        {"members": 2},
        {"supervision": "soft"},
        {"preset": "paper-fixed"},
        {"pairs": 1},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_plan_is_refused(
    trained: Trained, folder: Path, how: dict[str, Any], other: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match=r"with other settings.*overwrite"):
        train_end_to_end(PEOPLE, out=folder, **{**how, **other})
    assert (folder / "manifest.json").is_file()


def test_heads_score_new_texts_as_they_scored_the_splits(trained: Trained, folder: Path) -> None:
    test = PEOPLE.split("test")
    assert test.texts is not None
    asked = Texts(tuple(map(str, test.items)), tuple(test.texts))
    scored = score_members(folder, asked, ["head-03", "head-01"], device="cpu")
    assert scored.members == ("head-03", "head-01")
    kept = trained.predictions["test"].probabilities[:, [2, 0]]
    np.testing.assert_allclose(scored.probabilities, kept, atol=1e-6)
    with pytest.warns(EDOWarning, match="3 of 3 members know no annotators"):
        score_members(folder, asked, device="cpu", annotators=dict.fromkeys(asked.items, ("p",)))


@pytest.fixture
def quick(how: dict[str, Any]) -> dict[str, Any]:
    """Enough to be trained at all."""
    return {**how, "members": 2, "options": {**how["options"], "epochs": 1}}


def interrupt(event: dict[str, Any]) -> None:
    raise KeyboardInterrupt


def test_what_is_finished_stays_until_its_successor_is(
    quick: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        train_end_to_end(PEOPLE, out=tmp_path, **quick, step=interrupt)
    assert list(tmp_path.iterdir()) == []
    train_end_to_end(PEOPLE, out=tmp_path, **quick)
    with pytest.raises(KeyboardInterrupt):
        train_end_to_end(
            PEOPLE, out=tmp_path, **quick, random_state=1, overwrite=True, step=interrupt
        )
    assert score_members(tmp_path, ["rude"], device="cpu").shape == (1, 2, 2)
    replaced = train_end_to_end(
        PEOPLE, out=tmp_path, **quick, preset="paper-fixed", supervision="majority", overwrite=True
    )
    assert replaced.manifest["end_to_end"]["preset"] == "paper-fixed"
    assert replaced.ensemble.settings_["lambda_div"] == 1.0


def test_members_of_both_kinds_do_not_share_a_folder(quick: dict[str, Any], tmp_path: Path) -> None:
    one_by_one = parse_groups("linear:1")
    train_members(PEOPLE, one_by_one, out=tmp_path, jobs=1)
    with pytest.raises(InputError, match=r"trained one by one; .*overwrite"):
        train_end_to_end(PEOPLE, out=tmp_path, **quick)
    train_end_to_end(PEOPLE, out=tmp_path, **quick, overwrite=True)
    assert not (tmp_path / "members").exists()
    with pytest.raises(InputError, match=r"trained end to end; .*overwrite"):
        train_members(PEOPLE, one_by_one, out=tmp_path, jobs=1)
    train_members(PEOPLE, one_by_one, out=tmp_path, jobs=1, overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {"members", "predictions", "manifest.json"}


def plan(preset: str = "default", random_state: int = 0, **changes: Any) -> TrainingPlan:
    heads = replace(Group("transformer", K, "head", draw="epoch"), **changes)
    data = TrainingData.from_annotations(PEOPLE)
    return plan_end_to_end(data, heads, preset=preset, random_state=random_state)[0]


def targets_of(**given: Any) -> Callable[[int], np.ndarray]:
    made = plan(**given)
    rows = made.rows(made.jobs[0])
    return member_data(made.data.take(rows.train), made.jobs[0], made.data.take(rows.stop)).targets


def test_every_head_draws_answers_of_its_own() -> None:
    targets = targets_of()
    first = targets(0)
    assert first.shape == (64, K, 2)
    assert (first[:, 0] != first[:, 1]).any()
    assert (first != targets(1)).any()
    soft = PEOPLE.split("train").soft_labels
    mean = np.mean([targets(epoch) for epoch in range(600)], axis=0)
    np.testing.assert_allclose(mean, np.repeat(soft[:, None], K, axis=1), atol=0.1)
    once = targets_of(draw="once")
    np.testing.assert_array_equal(once(0), once(7))


def test_soft_and_majority_are_the_same_for_every_head() -> None:
    train = PEOPLE.split("train")
    soft = targets_of(supervision="soft")(0)
    majority = targets_of(supervision="majority")(0)
    for k in range(K):
        np.testing.assert_array_equal(soft[:, k], train.soft_labels)
        np.testing.assert_array_equal(majority[:, k].argmax(axis=1), train.hard_labels())


def test_the_paper_keeps_ten_members_at_most_and_ours_as_many_as_there_are() -> None:
    for preset, most in (("default", 12), ("paper-fixed", 10)):
        job = plan(members=12, preset=preset).jobs[0]
        members: Any = make_member(job.recipe, 2, job.options)
        assert members.new_weights([0, 1]).size_logits.shape == (most,)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"supervision": "per-annotator"}, "supervision must be one of 'random-select', 'soft'"),
        ({"preset": "paper"}, "preset must be one of 'default', 'paper-fixed'"),
        ({"draw": "daily"}, "draw must be one of"),
        ({"members": 0}, "members is 0, but must be a whole number of at least 1"),
        ({"random_state": -1}, "random_state=-1 is not a whole number"),
        ({"options": {"heads": 3}}, "training end to end has no option 'heads'"),
        ({"options": {"annotators": True}}, "no option 'annotators'"),
        (
            {"options": {"epochs": "many"}},
            "the option epochs is 'many', but must be a whole number",
        ),
        (
            {"options": {"member_weight": -1.0}},
            "member_weight is -1.0, but must be a number of at least 0",
        ),
        ({"device": "cuda:9"}, "device='cuda:9' does not exist"),
        ({"device": "mps"}, "mps"),
    ],
)
def test_bad_input_is_refused(given: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=reason):
        train_end_to_end(PEOPLE, out=tmp_path, **given)
    assert list(tmp_path.iterdir()) == []


def test_data_that_does_not_do_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="chooses its epoch on the split 'dev'"):
        train_end_to_end(PEOPLE.split("train", "test"), out=tmp_path)
    with pytest.raises(InputError, match="in 'train' '2' never is; choose preset='default'"):
        train_end_to_end(people(("0", "1", "2")), out=tmp_path, preset="paper-fixed")
    with pytest.raises(InputError, match="has no items"):
        train_end_to_end(PEOPLE.split("dev", "test"), out=tmp_path)


def test_a_manifest_that_knows_other_heads_is_refused(
    trained: Trained, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "end-to-end").symlink_to(folder / "end-to-end")
    manifest = {**trained.manifest, "members": trained.manifest["members"][:2]}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="holds 3 members, but the manifest lists 2"):
        score_members(tmp_path, ["rude"], device="cpu")


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(MissingExtraError, match=r'pip install "edokit\[transformers\]"'):
        train_end_to_end(PEOPLE, out=tmp_path)


@pytest.fixture
def people_file(tmp_path: Path) -> Path:
    write_table(PEOPLE.to_table(), tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def test_from_texts_to_pooled_answers_on_the_command_line(
    people_file: Path, model: str, tmp_path: Path
) -> None:
    command = (
        *("train", people_file, "--end-to-end", "--out", tmp_path / "o"),
        *("--members", 2, "--option", f"model={model}", "--option", "epochs=1", "--device", "cpu"),
    )
    shown = printed(*command)
    assert "weighted pool" in shown
    assert "dev CE" in shown
    assert "test CE" not in shown
    result = json.loads(printed(*command, "--json"))
    assert result["ensemble"]["weights"].keys() == {"head-01", "head-02"}
    (tmp_path / "new.csv").write_text("item,text\na,nice day\nb,rude bus\n")
    how = ("--members", tmp_path / "o", "--texts", tmp_path / "new.csv")
    printed("predict", tmp_path / "o" / "ensemble", *how, "--out", tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text().count("\n") == 3
    printed("score", *how, "--ensemble", tmp_path / "o" / "ensemble", "--out", tmp_path / "p.npz")
    scored = read_predictions(tmp_path / "p.npz")
    assert list(scored.items) == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (("--recipe", "linear"), "a head per member, but --recipe is linear"),
        (("--cross-fit", "3"), "--cross-fit is for members that are trained one by one"),
        (("--tune", "3"), "--tune is for"),
        (("--jobs", "2"), "--jobs is for"),
    ],
)
def test_what_is_for_members_one_by_one_is_refused(
    people_file: Path, given: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=reason):
        printed("train", people_file, "--end-to-end", "--out", tmp_path / "o", *given)


def test_a_preset_is_for_end_to_end(people_file: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--preset chooses the objective of --end-to-end"):
        printed("train", people_file, "--preset", "default", "--out", tmp_path / "o")


def test_texts_without_splits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no split beside 'train'"):
        train_end_to_end(small_people(splits=False), out=tmp_path)
