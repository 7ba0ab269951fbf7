"""The example of a jury runs against a real model, and its page shows what it runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from language_model import KEY

from edokit import read_annotations
from edokit.members import parse_groups
from example_cases import run_here

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    page = (ROOT / "docs" / "llm-jury.md").read_text(encoding="utf-8")
    page, _, _ = page.partition("## Existing answers")  # another way to begin, with other files
    return [body for name, body in BLOCK.findall(page) if name == language]


def test_the_example_runs_every_command_of_the_tutorial(
    llm_server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", llm_server)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("EDO_CACHE", str(tmp_path / "cache"))
    run_here("llm-jury", tmp_path / "jury", monkeypatch)
    printed = capfd.readouterr().out
    ran = [shlex.split(line[2:]) for line in printed.splitlines() if line.startswith("$ edo")]
    shown = [shlex.split(line) for body in blocks("text") for line in body.splitlines()]
    assert ran == [words for words in shown if words[0] == "edo"]
    answers = (tmp_path / "jury" / "answers.csv").read_text(encoding="utf-8")
    assert answers.count("\n") == 3


def test_the_files_of_the_tutorial_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (votes,) = blocks("csv")
    (jury,) = blocks("toml")
    (tmp_path / "votes.csv").write_text(votes, encoding="utf-8")
    assert len(read_annotations(tmp_path / "votes.csv").items) == 2
    (tmp_path / "jury.toml").write_text(jury, encoding="utf-8")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    names = [group.name for group in parse_groups(str(tmp_path / "jury.toml"))]
    assert len(names) == 6
    assert "jury-qwen3-4b-landlady" in names
