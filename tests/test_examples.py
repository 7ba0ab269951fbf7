"""The examples run as they stand, and give what their pages promise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from example_cases import EXAMPLES, run_here

# Scripts call `edo` as people do; it lies beside this Python.
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def run(example: str, folder: Path) -> str:
    """What the script of an example prints."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example / "run.py"), str(folder)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=folder.parent,
        env={**os.environ, "PATH": PATH, "COLUMNS": "120", "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_a_page_and_a_script() -> None:
    folders = sorted(path.name for path in EXAMPLES.iterdir() if (path / "README.md").exists())
    assert folders == [
        "content-moderation",
        "end-to-end",
        "llm-jury",
        "mixed-members",
        "other-tools",
        "serving",
        "sklearn-pool",
    ]
    overview = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for name in folders:
        assert f"({name}/README.md)" in overview
        assert f"examples/{name}/run.py" in (EXAMPLES / name / "README.md").read_text()


def test_content_moderation_ends_in_tasks_for_label_studio(tmp_path: Path) -> None:
    printed = run("content-moderation", tmp_path / "kept")
    assert "600 posts, 8 moderators" in printed  # the cancelled annotation is nobody's
    tasks = json.loads((tmp_path / "kept" / "review.json").read_text(encoding="utf-8"))
    assert len(tasks) == 10
    assert all(task["data"]["text"] for task in tasks)
    assert "<Choices" in (tmp_path / "kept" / "review.xml").read_text(encoding="utf-8")


def test_members_of_different_kinds_are_joined_and_weighed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here("mixed-members", tmp_path / "mixed", monkeypatch)
    saved = json.loads((tmp_path / "mixed" / "ensemble" / "ensemble.json").read_text())
    assert {"llm", "encoder", "classic"} <= set(saved["groups"])
    assert (tmp_path / "mixed" / "pooled.csv").read_text().count("\n") == 301


def test_members_and_weights_are_trained_together_and_beat_a_constant_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="needs the extra transformers")
    run_here("end-to-end", tmp_path / "joint", monkeypatch)
    printed = capfd.readouterr().out
    constant, ensemble = (float(line.split()[-1]) for line in printed.splitlines()[-2:])
    assert ensemble < constant - 0.1
    saved = json.loads((tmp_path / "joint" / "ensemble" / "ensemble.json").read_text())
    assert sum(saved["weights"]) == pytest.approx(1)


def test_a_pool_of_scikit_learn_comes_closer_to_people_than_a_majority_vote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run_here("sklearn-pool", tmp_path / "unused", monkeypatch)
    printed = capfd.readouterr().out
    found = [float(line.rsplit(" ", 1)[1]) for line in printed.splitlines()[-2:]]
    majority, edo = found
    assert edo < majority


def test_a_bundle_answers_the_same_in_python_from_parquet_and_over_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fastapi", reason="needs the extra serve")
    monkeypatch.setenv("PATH", PATH)
    run_here("serving", tmp_path / "served", monkeypatch)
    printed = capfd.readouterr().out
    assert "counted: edo_texts_total 3.0" in printed
    assert "the same three times: True" in printed
    assert sys.platform == "win32" or "exit status of the server: 0" in printed
