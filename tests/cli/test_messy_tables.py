"""A newcomer's table: one message asks for everything, and its command is the second and last."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from commands import Done, assert_one_line, edo
from edokit import InputError
from edokit.pipeline.source import read_source
from edokit.predict import PredictOptions
from tests.errors import raises_code

TEXTS = ["Tea is ready when you are", "The train was late again", "We walked home slowly", ""]


def rows() -> list[list[str]]:
    """Ratings of four texts, one of them empty, with a typing error, a gap and a duplicate."""
    ratings = iter(["1", "2", "3", "4", "5", "44", "1", "2", "3", "5", "1", "4", "2"])
    cells = [
        [f"c{number}", text, person, next(ratings)]
        for number, text in enumerate(TEXTS)
        for person in ("Ann", "Ben", "Cem")
    ]
    cells[7][3] = ""
    return [*cells, cells[0]]


def write(path: Path, header: str, *above: str) -> Path:
    lines = [*above, header, *(",".join(row) for row in rows())]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def command_in(done: Done) -> list[str]:
    """The words of the command that the last line of a message ends in."""
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]
    return shlex.split(line[line.index("edo ") :])[1:]


def test_one_message_asks_for_all_and_its_command_reads_the_table(tmp_path: Path) -> None:
    path = write(tmp_path / "votes.csv", "comment_id,comment,rater,rating", "Study,,,")
    refused = edo("run", path, "--out", tmp_path / "run", "--seed", 3)
    lines = [line for line in refused.stderr.splitlines() if line[:2] in ("1.", "2.", "3.", "4.")]
    for line, cause in zip(lines, ("'Study'", "row 10", "row 15", "1, 2, 3, 4, 5"), strict=True):
        assert cause in line
    assert "label '44' (row 8)" in refused.stderr
    command = command_in(refused)
    assert command[:6] == ["run", str(path), "--out", str(tmp_path / "run"), "--seed", "3"]
    flags = "--skip-rows 1 --empty drop --duplicates first --scale ordinal --drop-label 44"
    assert command[6:] == flags.split()
    shown = edo("data", "info", path, *command[6:])
    assert shown.returncode == 0
    assert "3 by --empty drop (items without comment)" in shown.stderr


def test_columns_with_other_names_are_proposed_with_all_else(tmp_path: Path) -> None:
    path = write(tmp_path / "votes.csv", "Nr,Beitrag,Wer,Urteil")
    command = command_in(edo("run", path, "--out", tmp_path / "run"))
    for flag in ("item=Nr", "annotator=Wer", "label=Urteil", "text=Beitrag"):
        assert command[command.index(flag) - 1] == "--column"
    assert edo("data", "info", path, *command[4:]).returncode == 0


def test_a_wrong_flag_is_replaced_in_the_command(tmp_path: Path) -> None:
    path = write(tmp_path / "votes.csv", "Nr.,Beitrag,Wer,Urteil")
    for wrong in (["--column", "item=Nr"], ["--column=item=Nr"]):
        command = command_in(edo("data", "info", path, *wrong, "--column", "text=Beitrag"))
        assert sorted(word for word in command if "=" in word) == [
            "annotator=Wer",
            "item=Nr.",
            "label=Urteil",
            "text=Beitrag",
        ]


def test_a_single_decision_is_one_line_that_ends_in_the_command(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,annotator,label\na,x,no\na,x,no\nb,x,yes\n", encoding="utf-8")
    command = f"edo data info {path} --duplicates first"
    assert_one_line(edo("data", "info", path), command)


def test_a_name_that_only_people_know_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,label\na,no\nb,yes\n", encoding="utf-8")
    assert_one_line(edo("data", "info", path), "--column annotator=NAME")


def test_in_python_the_same_are_arguments(tmp_path: Path) -> None:
    path = write(tmp_path / "votes.csv", "item,text,annotator,label")
    with pytest.raises(InputError) as refused:
        read_source(path, tmp_path, {"columns": {"group": "item"}})
    last = str(refused.value).splitlines()[-1]
    words = "empty='drop', duplicates='first', scale='ordinal', drop_label=['44']"
    assert last == f"With the first choice of each: {words}"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--time", "10"], "--time 10 has no unit"),
        (["--time", "10x"], "--time 10x is not a time of at least one second"),
        (["--scale", "1-5"], "--scale ordinal:1,2,3,4,5"),
        (["--colum", "item=Nr"], "did you mean --column?"),
        (["--by", "gendre"], "did you mean 'Gender'?"),
    ],
)
def test_a_slip_gets_the_words_that_are_meant(words: list[str], hint: str, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    lines = [
        f"{number},tea and cake {number},{person},{label},{gender}"
        for number in range(4)
        for person, label, gender in (("Ann", "ok", "w"), ("Ben", "no", "m"), ("Cem", "ok", "w"))
    ]
    path.write_text("\n".join(["item,text,annotator,label,Gender", *lines]), encoding="utf-8")
    assert_one_line(edo("run", path, "--out", tmp_path / "run", *words), hint)


def test_texts_alone_for_a_folder_without_a_bundle_name_the_command_that_makes_one(
    tmp_path: Path,
) -> None:
    texts = tmp_path / "new.csv"
    texts.write_text("item,text\na,A short note.\n", encoding="utf-8")
    options = PredictOptions(texts=texts)
    run = tmp_path / "run"
    (run / "ensemble").mkdir(parents=True)
    (run / "members").mkdir()
    with raises_code("conflicting-options", "no bundle of an ensemble and its members"):
        options.check(run, bundled=False)
    (run / "members" / "manifest.json").write_text("{}", encoding="utf-8")
    with raises_code("conflicting-options", f"edo bundle {run} --members {run / 'members'}"):
        options.check(run, bundled=False)
