"""One command from a table of annotations to an answer for new text."""

from __future__ import annotations

import itertools
import shlex
import shutil
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import edokit
from commands import answer, assert_one_line, edo
from edokit import EDOWarning, Run, RunOptions, pipeline, simulate
from edokit._errors import OpenDecisionsError
from edokit.analysis.scores.result import Gain
from edokit.analysis.scores.text import result_sentence
from edokit.members import Group
from edokit.members.registry import make_member
from edokit.pipeline.pool import EARLIER_NAMES, Ingredient, default_pool, with_earlier_names
from edokit.pipeline.source import read_source
from edokit.pipeline.text import step_commands
from edokit.report import collect
from tests.errors import raises_code

TEXTS = ["what a lovely day", "such a rude and awful reply"]
pytestmark = pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")


def small_pool(options: RunOptions) -> list[Ingredient]:
    """Three quick groups; the last is wanted of a better quality and needs weights."""
    soft = Group("linear", 1, "soft", "soft")
    drawn = Group("linear", 2, "drawn", "random-select")
    encoder = Group("encoder", 1, options={"model": "nobody/nothing"})
    pool = [Ingredient(soft), Ingredient(drawn)]
    return pool if options.quality == "fast" else [*pool, Ingredient(encoder)]


@pytest.fixture(scope="module")
def votes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spreadsheet with column names of its own, and a test split."""
    people = simulate("two-camps", random_state=0, items=(60, 20, 10)).annotations
    table = people.to_table().to_pandas().astype(str)
    path = tmp_path_factory.mktemp("votes") / "votes.csv"
    table.rename(columns={"item": "post", "text": "comment"}).to_csv(path, index=False)
    return path


COLUMNS = {"item": "post", "text": "comment"}


def cards(folder: Path) -> dict[str, int]:
    """When each finished fit was written."""
    return {
        str(path.relative_to(folder)): path.stat().st_mtime_ns
        for path in folder.rglob("member.json")
        if "bundle" not in path.parts
    }


@pytest.fixture(scope="module")
def finished(
    votes: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Run, dict[str, int], dict[str, int]]:
    """A run that was killed while members trained and run again; fits at both ends."""
    folder = tmp_path_factory.mktemp("run") / "RUN"

    def killed(done: int, total: int, what: str) -> None:
        if total == 15 and done == 7:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "default_pool", small_pool)
        with pytest.raises(KeyboardInterrupt):
            edokit.run(votes, folder, columns=COLUMNS, jobs=1, progress=killed)
        before = cards(folder)
        with raises_code("wrong-folder"):
            Run.load(folder)
        words = ("--column", "item=post", "--column", "text=comment", "--jobs", 1)
        shown = edo("run", votes, "--out", folder, *words)
    assert shown.returncode == 0, shown.stderr
    result = Run.load(folder)
    lines = [result.summary, *result.quality]
    assert all(line in shown.stdout for line in lines)
    assert all(command in shown.stdout for command in result.commands)
    return result, before, cards(folder)


def test_a_killed_run_goes_on_and_repeats_nothing(finished: Any, votes: Path) -> None:
    result, before, after = finished
    assert len(before) == 5 + 7
    assert before.items() < after.items()
    assert len(after) == 5 + 3 * 5
    again = edokit.run(votes, result.folder, columns=COLUMNS, jobs=1)
    assert again.results == result.results
    assert cards(result.folder) == after


def test_a_run_answers_for_texts_at_once(finished: Any) -> None:
    folder = finished[0].folder
    probabilities = finished[0].predict_proba(TEXTS)
    assert probabilities.shape == (2, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    loaded = edokit.load(folder)
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), probabilities)
    whose = loaded.predict_proba(TEXTS, annotators=[loaded.known_annotators[0]] * 2)
    assert not np.allclose(whose, probabilities)


def test_the_leaderboard_ranks_methods_and_members(finished: Any) -> None:
    table = finished[0].leaderboard
    assert list(table["ce"]) == sorted(table["ce"])
    methods = {"constant", "uniform", "soft", "best-single", "greedy", "linear-pool", "edo"}
    assert set(table.index[table["kind"] == "method"]) == methods
    assert table.loc[["soft-01", "drawn-01", "drawn-02"], "weight"].sum() == pytest.approx(1)
    assert (table["low"] <= table["ce"])[table["kind"] == "method"].all()


def test_the_page_and_the_test_items_of_a_run(finished: Any, votes: Path) -> None:
    result = finished[0]
    page = (result.folder / "report.html").read_text(encoding="utf-8")
    assert f"<title>{result.folder.name}: votes.csv · EDO report</title>" in page
    assert f"<code>edo run {shlex.quote(str(votes))} " in page
    assert "started from Python" not in page
    assert result.results["items"] == 80  # train and dev; those of test are left alone


def test_a_page_without_texts(finished: Any, votes: Path, tmp_path: Path) -> None:
    with_texts = finished[0].folder / "report.html"
    text = pd.read_csv(votes).query("split == 'dev'")["comment"].iloc[0]
    assert text in with_texts.read_text(encoding="utf-8")
    copy = shutil.copytree(finished[0].folder, tmp_path / "RUN")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "default_pool", small_pool)
        result = edokit.run(votes, copy, columns=COLUMNS, jobs=1, no_texts=True)
    page = (copy / "report.html").read_text(encoding="utf-8")
    assert not [text for text in pd.read_csv(votes)["comment"].unique() if text in page]
    assert result.commands[-1].endswith(" --no-texts")


def test_the_printed_commands_do_the_same(finished: Any, tmp_path: Path) -> None:
    result = finished[0]
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(result.folder / "pool.toml", copy)
    for command in result.commands:
        name, *words = shlex.split(command.replace(str(result.folder), str(copy)))
        assert name == "edo"
        done = edo(*words)
        assert done.returncode == 0, done.stderr
    ours = result.ensemble
    theirs = edokit.load(copy / "ensemble")
    assert theirs.members_ == ours.members_
    np.testing.assert_array_equal(theirs.weights_, ours.weights_)
    np.testing.assert_array_equal(
        edokit.load(copy).predict_proba(TEXTS), result.predict_proba(TEXTS)
    )
    assert (copy / "report.html").exists()


def test_a_run_keeps_to_its_time_says_what_it_left_out_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "default_pool", small_pool)
    people = simulate("two-camps", items=(40, 10, 10)).annotations
    table = people.split("train").to_table().to_pandas().drop(columns="split")
    clock = SimpleNamespace(monotonic=itertools.count().__next__)  # a second for every look at it
    monkeypatch.setattr(pipeline, "time", clock)
    result = edokit.run(table, tmp_path / "RUN", time="1s", quality="good", jobs=1)
    assert result.ensemble.members_ == ("soft-01",)
    assert any("drawn" in reason and "time" in reason for reason in result.left_out)
    assert any("nobody/nothing" in reason for reason in result.left_out)
    more = edokit.run(table, tmp_path / "RUN", quality="good", jobs=1)
    assert len(more.ensemble.members_) == 3
    with raises_code("other-settings"):
        edokit.run(table[table["item"] != table["item"].iloc[0]], tmp_path / "RUN", jobs=1)


@pytest.mark.parametrize(("seconds_left", "fits"), [(99, False), (101, True)])
def test_a_group_costs_the_time_of_all_its_members(
    seconds_left: float, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first member took 10 seconds: two members of five times its cost need 100."""
    pool = [
        Ingredient(Group("linear", 1, "soft", "soft"), 0.0),
        Ingredient(Group("linear", 2, "pair", "soft"), 5.0),
    ]
    monkeypatch.setattr(pipeline, "default_pool", lambda options: pool)
    run = SimpleNamespace(
        options=RunOptions(jobs=1),
        left_out=[],
        out_of_time=[],
        seconds_left=lambda: seconds_left,
        is_trained=lambda group: False,
        folder=Path("no-run"),
        pool_options=RunOptions,
    )
    groups = pipeline._RunSteps.groups_in_time(run, first_member_seconds=10.0)
    assert [group.name for group in groups] == (["soft", "pair"] if fits else ["soft"])
    assert run.out_of_time == ([] if fits else ["pair"])


def test_groups_of_the_default_pool_have_names_and_can_be_made() -> None:
    options = RunOptions(quality="best", encoder="nobody/nothing")
    groups = [ingredient.group for ingredient in default_pool(options)]
    assert len({group.name for group in groups} - {""}) == len(groups)
    for group in groups:
        if "model" not in group.options:
            make_member(group.recipe, 3, group.options)
    fast = [ingredient.group for ingredient in default_pool(RunOptions(quality="fast"))]
    assert all(group in groups for group in fast)


def test_a_folder_of_an_earlier_version_keeps_the_names_of_its_members(tmp_path: Path) -> None:
    pool = default_pool(RunOptions(quality="good", encoder="nobody/nothing"))
    names = [ingredient.group.name for ingredient in pool]
    assert "tfidf-strong" in names
    assert not set(names) & set(EARLIER_NAMES.values())
    assert with_earlier_names(pool, tmp_path) == pool
    (tmp_path / "bold-01").mkdir()
    earlier = with_earlier_names(pool, tmp_path)
    assert [ingredient.group.name for ingredient in earlier] == [
        EARLIER_NAMES.get(name, name) for name in names
    ]
    assert [part.group.options for part in earlier] == [part.group.options for part in pool]


# What it asks for


def test_a_run_on_other_data_or_read_otherwise_is_not_mistaken_for_this_one(
    finished: Any, votes: Path
) -> None:
    run, _, _ = finished
    with raises_code("other-settings"):
        edokit.run(votes, run.folder, columns=COLUMNS, drop_annotator=["ann-1"], jobs=1)
    assert Run.load(run.folder).summary == run.summary


def test_a_run_on_other_data_is_replaced_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "default_pool", small_pool)
    first, second = (simulate("two-camps", random_state=k, items=(40, 10, 1)) for k in (0, 1))
    edokit.run(first.annotations, tmp_path / "RUN", quality="fast", jobs=1)
    edokit.run(second.annotations, tmp_path / "RUN", quality="fast", jobs=1, overwrite=True)
    again = edokit.run(second.annotations, tmp_path / "RUN", quality="fast", jobs=1)
    assert again.results["items"] == 50


def test_a_decision_is_said_once_whichever_step_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "default_pool", small_pool)
    table = simulate("two-camps", items=(150, 50, 0)).annotations.to_table().to_pandas()
    columns = ["item", "annotator", "label", "text"]
    with pytest.warns(EDOWarning) as given:
        edokit.run(table[columns], tmp_path / "RUN", quality="fast", jobs=1)
    texts = [str(warning.message) for warning in given]
    assert len([text for text in texts if "tied" in text]) == 1
    assert len(texts) == len(set(texts))


def test_a_label_that_next_to_nobody_chose_is_named(tmp_path: Path) -> None:
    table = simulate("two-camps", items=(150, 1, 1)).annotations.to_table().to_pandas().astype(str)
    table.loc[7, "label"] = "mocking"
    with pytest.warns(EDOWarning, match="chose 'mocking'; .*label_map"):
        read_source(table, tmp_path, {})


def test_labels_that_may_be_misspelt_are_asked_about(tmp_path: Path) -> None:
    table = simulate("two-camps", items=(150, 1, 1)).annotations.to_table().to_pandas().astype(str)
    table.loc[7, "label"] = "ofensive"
    table.loc[9, "label"] = "fine."
    with pytest.raises(OpenDecisionsError) as refused:
        read_source(table, tmp_path, {})
    remedy = {"label_map": {"ofensive": "offensive", "fine.": "fine"}}
    assert refused.value.code == "doubtful-spelling"
    assert refused.value.remedy == remedy
    assert read_source(table, tmp_path, remedy).annotations.classes == ("fine", "offensive")


def test_labels_in_capitals_may_be_misspelt_too(tmp_path: Path) -> None:
    table = simulate("two-camps", items=(150, 1, 1)).annotations.to_table().to_pandas().astype(str)
    for column in ("label", "hard_label"):
        if column in table:
            table[column] = table[column].str.upper()
    table.loc[7, "label"] = "OFENSIVE"
    with pytest.raises(OpenDecisionsError) as refused:
        read_source(table, tmp_path, {})
    assert refused.value.code == "doubtful-spelling"
    assert refused.value.remedy == {"label_map": {"OFENSIVE": "OFFENSIVE"}}


def test_the_copy_of_a_table_in_memory_is_read_with_the_same_attributes(tmp_path: Path) -> None:
    table = simulate("two-camps", items=(150, 1, 1)).annotations.to_table().to_pandas().astype(str)
    annotations = edokit.Annotations.from_table(table)
    for source, reading in (
        (table, {}),
        (table, {"attributes": []}),
        (annotations.with_attributes([]), {}),
    ):
        file = read_source(source, tmp_path, reading)
        copy = edokit.read_annotations(file.path, **file.reading)
        assert copy.people.names == file.annotations.people.names
    assert file.annotations.people.names == ()


def test_the_commands_of_a_run_without_people_leave_them_out(tmp_path: Path) -> None:
    arguments = (tmp_path / "RUN", tmp_path / "votes.csv", {}, [], ["edo"], 5, 0)
    with_people = [" --no-people" in command for command in step_commands(*arguments)]
    assert not any(with_people)
    commands = step_commands(*arguments, people=False)
    assert [command for command in commands if "--no-people" in command] == [commands[2]]
    assert commands[2].startswith("edo fit ")


def test_a_label_that_seldom_is_a_class_is_named(tmp_path: Path) -> None:
    table = simulate("two-camps", items=(150, 1, 1)).annotations.to_table().to_pandas().astype(str)
    table.loc[:20, "label"] = "unsure"
    with pytest.warns(EDOWarning, match="'unsure'.*drop_label"):
        read_source(table, tmp_path, {})


def test_numbers_in_a_row_are_asked_about(tmp_path: Path) -> None:
    rows = [(f"p{i}", f"a{j}", (i + j) % 5, f"text {i}") for i in range(20) for j in range(3)]
    table = pd.DataFrame(rows, columns=["item", "annotator", "label", "text"])
    table.to_csv(tmp_path / "ratings.csv", index=False)
    refused = edo("run", tmp_path / "ratings.csv", "--out", tmp_path / "RUN")
    assert_one_line(refused, "0, 1, 2, 3, 4", "--scale ordinal", "--scale nominal")
    assert not (tmp_path / "RUN").exists()


def test_columns_that_are_missing_are_named_with_their_flag(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("post,who,vote\n1,a,yes\n", encoding="utf-8")
    refused = edo("run", tmp_path / "votes.csv", "--out", tmp_path / "RUN")
    assert_one_line(refused, "item", "annotator", "label", "--column", "vote")
    (tmp_path / "votes.csv").write_text("item,annotator,label\n1,a,yes\n1,b,no\n", encoding="utf-8")
    refused = edo("run", tmp_path / "votes.csv", "--out", tmp_path / "RUN")
    assert_one_line(refused, "text", "--column text=NAME")


def test_times_and_qualities_are_checked() -> None:
    assert RunOptions(time="1h30m").seconds == 5400
    for time in ("ten", "0s", "10", ""):
        with raises_code("invalid-number"):
            RunOptions(time=time)
    with raises_code("unknown-choice", "quality"):
        RunOptions(quality="excellent")  # type: ignore[arg-type]


# The last sentence

BETTER = Gain(0.04, 0.02, 0.06)
EQUAL = Gain(0.001, -0.01, 0.01)
WORSE = Gain(-0.02, -0.03, -0.01)


def test_the_sentence_says_what_the_intervals_say() -> None:
    text = result_sentence({"uniform": BETTER, "greedy": EQUAL, "constant": BETTER})
    assert text == (
        "Matches your annotators clearly better than a plain average of the same models (+4 %, +2"
        " to +6 %); not clearly better than greedy selection (+0.1 %, −1 to +1 %)."
    )
    text = result_sentence({"uniform": EQUAL, "soft": WORSE, "constant": BETTER})
    assert "clearly better than the same answer for every text (+4 %, +2 to +6 %)" in text
    assert "clearly worse than one model trained on the shares of answers (−2 %," in text
    assert "not clearly better than a plain average" in text
    text = result_sentence({"uniform": BETTER, "constant": EQUAL})
    assert text == "Not clearly better than the same answer for every text (+0.1 %, −1 to +1 %)."
    text = result_sentence({"uniform": BETTER, "constant": WORSE})
    assert text == "Clearly worse than the same answer for every text (−2 %, −3 to −1 %)."


def test_the_page_has_the_sentence_of_the_terminal(finished: Any) -> None:
    page = (finished[0].folder / "report.html").read_text(encoding="utf-8")
    assert finished[0].summary in page
    gains = collect(finished[0].folder).comparison.gains
    assert {name: asdict(gain) for name, gain in gains.items()} == Run.load(
        finished[0].folder
    ).results["gains"]


def test_json_has_the_sentence_and_the_commands(finished: Any, votes: Path) -> None:
    columns = ("--column", "item=post", "--column", "text=comment")
    shown = answer("run", votes, "--out", finished[0].folder, "--jobs", 1, *columns)
    assert shown["summary"] == finished[0].summary
    assert shown["commands"] == finished[0].commands
