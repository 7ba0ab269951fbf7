"""What was run is kept beside its results, without secrets, and read again as it was."""

from __future__ import annotations

import json
import platform
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import edokit
from edokit._io.digests import digest_input
from edokit.runs.citations import citations
from edokit.runs.inputs import Input
from edokit.runs.record import RunRecord, begin_run, command_text
from tests.errors import raises_code


def rows(path: Path) -> Path:
    path.write_text(
        "item,annotator,label,split\n1,a,no,dev\n1,b,yes,dev\n2,a,no,test\n3,b,no,train\n"
    )
    return path


def test_a_record_survives_saving(tmp_path: Path) -> None:
    record = RunRecord("search", {"annotations": Input("people.csv", "abc", {"split": "dev"})}, 3)
    record.save(tmp_path)
    saved = RunRecord.load(tmp_path)
    assert replace(saved, python="", platform="", commit="") == record
    assert saved.python == platform.python_version()
    assert saved.platform == platform.platform()
    is_checkout = (Path(edokit.__file__).resolve().parents[2] / ".git").exists()
    assert bool(re.fullmatch(r"[0-9a-f]{40}(-dirty)?", saved.commit)) == is_checkout


def test_what_an_interrupted_writer_left_does_not_change_the_digest_of_a_folder(
    tmp_path: Path,
) -> None:
    rows(tmp_path / "a.csv")
    before = digest_input(tmp_path)
    hidden = tmp_path / ".edo-unfinished-abcd1234" / "shards"
    hidden.mkdir(parents=True)
    rows(hidden / "b.csv")
    assert digest_input(tmp_path) == before
    rows(tmp_path / "b.csv")
    assert digest_input(tmp_path) != before


def test_a_run_is_cited_with_what_it_used(tmp_path: Path) -> None:
    RunRecord("search", {}).save(tmp_path)
    members = [
        {"recipe": "linear"},
        {"recipe": "encoder", "options": {"model": "sentence-transformers/all-MiniLM-L6-v2"}},
    ]
    (tmp_path / "members").mkdir()
    (tmp_path / "members" / "manifest.json").write_text(json.dumps({"members": members}))
    keys = [reference.key for reference in citations(tmp_path)]
    assert keys[:2] == ["edokit", "cui2026edo"]
    used = {"akiba2019optuna", "pedregosa2011scikit", "reimers2019sentence", "wang2020minilm"}
    assert used <= set(keys)
    assert "song2020mpnet" not in keys
    for reference in citations(tmp_path):
        entry = reference.to_bibtex()
        assert entry.startswith(f"@{reference.kind}{{{reference.key},")
        assert entry.count("{") == entry.count("}")


def test_a_folder_without_a_run_is_not_cited(tmp_path: Path) -> None:
    with raises_code("wrong-folder"):
        citations(tmp_path)


def test_annotations_are_read_again_as_the_run_read_them(tmp_path: Path) -> None:
    rows(tmp_path / "people.csv")
    one = RunRecord("fit", {"annotations": Input("people.csv", None, {"split": "dev"})})
    two = RunRecord("fit", {"annotations": Input("people.csv", None, {"splits": ["dev", "test"]})})
    people = one.annotations("annotations", tmp_path)
    both = two.annotations("annotations", tmp_path)
    assert people is not None
    assert both is not None
    assert list(people.items) == ["1"]
    assert list(both.items) == ["1", "2"]
    assert one.predictions("test_predictions", tmp_path) is None


def test_the_digest_of_a_folder_knows_names_and_bytes(tmp_path: Path) -> None:
    first = tmp_path / "a"
    second = tmp_path / "b"
    for folder, name in ((first, "x"), (second, "y")):
        folder.mkdir()
        (folder / name).write_text("same")
    assert digest_input(first) != digest_input(second)
    (second / "y").rename(second / "x")
    assert digest_input(first) == digest_input(second)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:secret@host/study",
        "postgresql://ann:sec/ret@host/study",
        "postgresql://ann:sec@ret@host/study",
        "postgresql://host/study?user=ann&password=secret",
        "postgresql://host/study?sslpassword=secret&x=1",
    ],
)
def test_a_command_is_shown_without_credentials(url: str) -> None:
    shown = command_text(["edo", "search", "--storage", url])
    assert shown.startswith("edo search --storage ")
    assert "sec" not in shown
    assert "ret@" not in shown
    assert "host/study" in shown


def test_a_damaged_record_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"kind": "fit"}')
    with raises_code("wrong-content", "record"):
        RunRecord.load(tmp_path)


def test_new_results_withdraw_the_record_of_those_they_replace(tmp_path: Path) -> None:
    RunRecord("search", {}).save(tmp_path)
    begin_run(tmp_path)
    assert list(tmp_path.iterdir()) == []
    begin_run(tmp_path)


def test_what_an_interrupted_writer_left_is_no_part_of_an_input(tmp_path: Path) -> None:
    rows(tmp_path / "part-0.csv")
    before = digest_input(tmp_path)
    (tmp_path / ".edo-unfinished-abcdefgh.csv").write_text("item,ann", encoding="utf-8")
    assert digest_input(tmp_path) == before


@pytest.mark.parametrize("verb", [edokit.search, edokit.compare])
def test_a_mistyped_parameter_is_not_swallowed(verb: Any) -> None:
    P = [[[0.9, 0.1], [0.6, 0.4]], [[0.2, 0.8], [0.4, 0.6]]]
    test = (P, [0, 1]) if verb is edokit.compare else ()
    with raises_code("unknown-option", "'seed'", "'random_state'"):
        verb(P, [0, 1], *test, seed=3)
