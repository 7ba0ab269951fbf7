"""What a join refuses, counts and shows, so that one can mend it."""

from __future__ import annotations

from pathlib import Path

import pytest

from edokit import EDOWarning
from edokit.predictions.join import join_models
from tests.errors import raises_code


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_logits_that_are_large_are_logits(tmp_path: Path) -> None:
    path = write(tmp_path / "bert.csv", "item,p_no,p_yes", "a,-30,89.7", "b,60,40")
    assert join_models([path], logits=True).members == ("bert",)


def test_notes_count_the_items_that_are_kept(tmp_path: Path) -> None:
    bert = write(tmp_path / "bert.csv", "item,p_no,p_yes", "a,1,0", "b,1,0", "c,1,0", "d,1,0")
    tree = write(tmp_path / "tree.csv", "item,p_no,p_yes", "a,1,0", "b,1,0")
    with pytest.warns(EDOWarning, match=r"1 of 3 items .*'c'"):
        joined = join_models([bert, tree], missing="drop", items=["a", "b", "c"])
    assert joined.items.tolist() == ["a", "b"]


def test_answers_that_are_no_class_are_shown_so_that_they_can_be_mapped(tmp_path: Path) -> None:
    lines = ["item,answer", "a,I think it is fine", "b,fine", "c,rude", f"d,{'very ' * 30}"]
    path = write(tmp_path / "llm.csv", *lines)
    facts = ("2 of 4", "'I think it is fine' (1)", "text of 150", "{'I think it is fine': ")
    with raises_code("unparsed-answer", *facts):
        join_models([path], classes=["fine", "rude"])
    with pytest.warns(EDOWarning) as notes:
        join_models(
            [path],
            classes=["fine", "rude"],
            label_map={"I think it is fine": "fine"},
            unparsed="drop",
            missing="drop",
        )
    assert "1 of 4 answers" in str(notes[0].message)
