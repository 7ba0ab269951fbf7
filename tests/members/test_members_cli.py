"""`edo train` and `edo score` on files, from data to predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from member_cases import small_people

from commands import invoke, printed
from edokit import EDOEnsemble, InputError, read_predictions
from edokit._io.tables import write_table
from tests.errors import raises_code


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_table(small_people().to_table(), tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def trained(data: Path, out: Path, *more: object) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(
        printed("train", data, "--out", out, "--jobs", 1, "--json", *more)
    )
    return result


def test_training_writes_a_folder_and_prints_one_json_object(data: Path, tmp_path: Path) -> None:
    result = trained(data, tmp_path / "m", "--members", 2)
    assert [member["name"] for member in result["members"]] == ["linear-01", "linear-02"]
    assert set(result["mean"]["dev"]) == {"f1", "ce", "md", "bs"}
    assert read_predictions(tmp_path / "m" / "predictions" / "test.npz").shape == (18, 2, 2)
    assert (tmp_path / "m" / "manifest.json").is_file()


def test_people_see_a_table(data: Path, tmp_path: Path) -> None:
    output = printed("train", data, "--out", tmp_path / "m", "--jobs", 1, "--recipe", "linear:1")
    assert "linear-01" in output
    assert "mean of all" in output


def test_quality_is_shown_on_dev_and_test_is_left_alone(data: Path, tmp_path: Path) -> None:
    command = ("train", data, "--out", tmp_path / "m", "--jobs", 1, "--recipe", "linear:1")
    output = printed(*command)
    assert "dev CE" in output
    assert "test CE" not in output
    assert "Not looked at here: test" in output
    content = json.loads((tmp_path / "m" / "manifest.json").read_text())
    assert set(content["members"][0]["metrics"]) == {"dev", "test"}
    folds = printed(*command[:3], tmp_path / "f", *command[4:], "--cross-fit", 2)
    assert "fit CE" in folds
    assert "test CE" not in folds


def test_options_and_folds_reach_the_members(data: Path, tmp_path: Path) -> None:
    result = trained(
        data,
        tmp_path / "m",
        *("--recipe", "linear:1", "--option", "strength=2", "--cross-fit", 2),
        *("--supervision", "soft"),
    )
    assert result["groups"][0]["options"]["strength"] == 2.0
    assert result["cross_fit"] == 2
    assert result["predictions"] == {"fit": "predictions/fit.npz", "test": "predictions/test.npz"}


def test_a_failed_member_is_an_error_after_all_is_saved(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "members"
    command = ("train", data, "--out", out, "--recipe", "member_cases:FailingMember:6")
    done = invoke(*command, "--jobs", 1, "--json")
    assert isinstance(done.exception, InputError)
    assert "the dog ate the weights" in str(done.exception)
    result = json.loads(done.stdout)
    assert len(result["members"]) + len(result["failed"]) == 6
    assert len(read_predictions(out / "predictions" / "dev.npz").members) < 6


def test_trained_members_score_a_table(data: Path, tmp_path: Path) -> None:
    trained(data, tmp_path / "m", "--members", 3)
    (tmp_path / "new.csv").write_text("item,text\na,warm tea\nb,awful noisy nonsense\n")
    result = json.loads(
        printed(
            *("score", "--members", tmp_path / "m"),
            *("--texts", tmp_path / "new.csv", "--out", tmp_path / "p.npz", "--json"),
        )
    )
    assert result["members"] == ["linear-01", "linear-02", "linear-03"]
    predictions = read_predictions(tmp_path / "p.npz")
    assert list(predictions.items) == ["a", "b"]
    assert (predictions.probabilities[1, :, 1] > predictions.probabilities[0, :, 1]).all()


def test_a_file_that_predictions_are_not_written_to_is_refused_first(tmp_path: Path) -> None:
    with raises_code("unknown-ending"):
        printed(
            *("score", "--members", tmp_path / "none", "--texts", tmp_path / "none.csv"),
            *("--out", tmp_path / "p.csv"),
        )


def test_only_the_members_of_an_ensemble_score(data: Path, tmp_path: Path) -> None:
    trained(data, tmp_path / "m", "--members", 3)
    dev = read_predictions(tmp_path / "m" / "predictions" / "dev.npz")
    chosen = dev.select(["linear-03", "linear-01"])
    ensemble = EDOEnsemble(solver="exact").fit(chosen, small_people().split("dev"))
    ensemble.save(tmp_path / "e")
    (tmp_path / "new.txt").write_text("warm tea\n")
    result = json.loads(
        printed(
            *("score", "--members", tmp_path / "m", "--ensemble", tmp_path / "e", "--json"),
            *("--texts", tmp_path / "new.txt", "--out", tmp_path / "p.npz"),
        )
    )
    assert set(result["members"]) == {"linear-01", "linear-03"}


def test_models_score_texts_and_show_their_labels(tmp_path: Path) -> None:
    from test_hub import classifier

    model = classifier(tmp_path / "model", ["LABEL_0", "LABEL_1"])
    (tmp_path / "new.txt").write_text("lovely day\nrude\n")
    output = printed(
        *("score", "--model", f"mine={model}", "--texts", tmp_path / "new.txt"),
        *("--classes", "no,yes", "--out", tmp_path / "p.parquet"),
    )
    assert "mine: LABEL_0 → no, LABEL_1 → yes" in output
    assert read_predictions(tmp_path / "p.parquet").classes == ("no", "yes")


def test_who_judges_must_be_said_once(data: Path, tmp_path: Path) -> None:
    with raises_code("missing-option", "--members", "--model"):
        printed("score", "--texts", data, "--out", tmp_path / "p.npz")
    with raises_code("conflicting-options", "--members", "--model"):
        printed("score", "--texts", data, "--out", "p.npz", "--members", tmp_path, "--model", "x")


@pytest.mark.parametrize(
    "words",
    [
        ("--members", "m", "--label", "toxic=1"),
        ("--members", "m", "--classes", "no,yes"),
        ("--model", "x", "--ensemble", "e"),
        ("--model", "x", "--trust", "xgboost"),
        ("--model", "x", "--budget", "3"),
    ],
)
def test_no_option_of_the_other_kind_of_models_is_ignored(
    words: tuple[str, ...], data: Path, tmp_path: Path
) -> None:
    with raises_code("inapplicable-option", words[2].lstrip("-")):
        printed("score", "--texts", data, "--out", tmp_path / "p.npz", *words)
