"""A pool is written in a word, in a line or in a TOML file."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from edokit.members import Group, parse_groups
from edokit.members.groups import check_groups
from tests.errors import raises_code

DOCS = Path(__file__).parents[2] / "docs" / "members.md"

TOML = """
[[group]]
name = "words"
recipe = "linear"
members = 3
options = { strength = 2, words = 1.0 }

[[group]]
recipe = "sklearn"
members = 2
supervision = "majority"
options.estimator = "sklearn.naive_bayes.ComplementNB()"
"""


def test_one_recipe_has_ten_members_unless_told() -> None:
    assert [group.members for group in parse_groups("linear")] == [10]
    assert [group.members for group in parse_groups("linear", members=3)] == [3]


def test_recipes_stand_side_by_side_with_their_numbers() -> None:
    pool = parse_groups("linear:5, transformer:2", supervision="soft")
    assert [(g.name, g.members, g.supervision) for g in pool] == [
        ("linear", 5, "soft"),
        ("transformer", 2, "soft"),
    ]


def test_a_recipe_of_ones_own_may_have_a_number() -> None:
    pool = parse_groups("member_cases:PriorMember:4")
    assert (pool[0].name, pool[0].members) == ("PriorMember", 4)
    assert parse_groups("member_cases:PriorMember")[0].members == 10


def test_a_file_says_everything_and_the_rest_is_filled_in(tmp_path: Path) -> None:
    (tmp_path / "pool.toml").write_text(TOML)
    words, bayes = parse_groups(str(tmp_path / "pool.toml"), supervision="soft")
    assert words == Group("linear", 3, "words", "soft", "once", {"strength": 2.0, "words": 1.0})
    assert (bayes.name, bayes.supervision) == ("sklearn", "majority")


def test_targets_are_drawn_every_epoch_where_there_are_epochs() -> None:
    assert [group.draw for group in parse_groups("linear:1,transformer:1")] == ["once", "epoch"]
    assert parse_groups("transformer", draw="once")[0].draw == "once"


def test_an_option_goes_to_the_groups_that_have_it() -> None:
    given = {"strength": "2", "encoder.context": "0.1"}
    linear, encoder = parse_groups("linear:1,encoder:1", options=given)
    assert linear.options == {"strength": 2.0}
    assert encoder.options == {"strength": 2.0, "context": 0.1}


@pytest.mark.parametrize(
    ("text", "given", "code", "fact"),
    [
        ("linear:5", {"members": 3}, "conflicting-options", "members=3"),
        ("linear,encoder", {"members": 3}, "conflicting-options", "members=3"),
        ("linear:0", {}, "invalid-number", "members is 0"),
        ("linear", {"members": -2}, "invalid-number", "members is -2"),
        ("linear:2,linear:3", {}, "duplicate-name", "'linear'"),
        ("linear", {"supervision": "vote"}, "unknown-choice", "supervision"),
        ("linear", {"draw": "often"}, "unknown-choice", "draw"),
        ("linear", {"draw": "epoch"}, "unknown-choice", "draw"),
        ("", {}, "unknown-recipe", "''"),
        ("encoder:2:3", {}, "unknown-recipe", "encoder:10"),
        ("linear", {"options": {"depth": "3"}}, "unknown-option", "'depth'"),
        ("linear", {"options": {"encoder.context": "3"}}, "unknown-option", "'encoder.context'"),
        ("nowhere.toml", {}, "missing-file", "nowhere.toml"),
    ],
)
def test_what_does_not_make_a_pool_is_refused(
    text: str, given: dict[str, object], code: str, fact: str
) -> None:
    with raises_code(code, fact):
        parse_groups(text, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("toml", "code", "fact"),
    [
        ("[[group]]\nrecipe = ", "invalid-toml", "pool.toml"),
        ("[group]\nrecipe = 'linear'", "wrong-content", "[[group]]"),
        ("", "empty-file", "pool.toml"),
        ("seed = 1\n[[group]]\nrecipe = 'linear'", "wrong-content", "seed"),
        ("[[group]]\nmembers = 3", "wrong-content", "group[0].recipe"),
        ("[[group]]\nrecipe = 'linear'\nmember = 3", "wrong-content", "group[0].member "),
        ("[[group]]\nrecipe = 'linear'\nmembers = '3'", "wrong-content", "group[0].members is '3'"),
        ("[[group]]\nrecipe = 'linear'\nname = 'a/b'", "invalid-name", "'a/b'"),
    ],
)
def test_what_does_not_make_a_file_is_refused(
    tmp_path: Path, toml: str, code: str, fact: str
) -> None:
    (tmp_path / "pool.toml").write_text(toml)
    with raises_code(code, fact):
        parse_groups(str(tmp_path / "pool.toml"))


def test_a_pool_needs_a_group() -> None:
    with raises_code("empty-option"):
        check_groups([])


@pytest.mark.parametrize(
    ("group", "named"),
    [
        ("recipe = 'planted:Member'", "pool.toml has recipe = 'planted:Member'"),
        (
            "recipe = 'sklearn'\noptions = { estimator = 'planted.X()', allow = 'planted' }",
            "pool.toml has allow = 'planted'",
        ),
    ],
)
def test_a_file_can_not_have_code_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, named: str
) -> None:
    (tmp_path / "planted.py").write_text("open('ran', 'w').close()")
    monkeypatch.delitem(sys.modules, "planted", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pool.toml").write_text(f"[[group]]\n{group}\n")
    with raises_code("untrusted-code", named):
        parse_groups("pool.toml")
    assert not (tmp_path / "ran").exists()
    with raises_code("failed-import"):  # a person may name it; there is no class
        parse_groups("planted:Member")
    assert (tmp_path / "ran").exists()


def test_what_a_file_may_not_allow_the_command_line_may(tmp_path: Path) -> None:
    path = tmp_path / "pool.toml"
    estimator = "member_cases.ForeignClassifier()"
    path.write_text(f"[[group]]\nrecipe = 'sklearn'\noptions.estimator = '{estimator}'\n")
    (group,) = parse_groups(str(path), options={"allow": "member_cases"})
    assert group.options == {"estimator": estimator, "allow": "member_cases"}


def test_the_documented_jury_is_three_models_with_two_personas(tmp_path: Path) -> None:
    _, example = re.findall(r"```toml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "jury.toml").write_text(example)
    jury = parse_groups(str(tmp_path / "jury.toml"))
    assert len(jury) == 6
    assert [group.name for group in jury[:2]] == ["jury-qwen3-4b-teacher", "jury-qwen3-4b-student"]
    assert {group.members for group in jury} == {1}
    assert len({(group.options["model"], group.options["persona"]) for group in jury}) == 6


def test_an_option_with_several_values_makes_a_group_for_each() -> None:
    groups = parse_groups("linear", members=2, options={"strength": ["1", "5"], "words": "0.3"})
    assert [(g.name, g.options["strength"]) for g in groups] == [("linear-1", 1), ("linear-5", 5)]
    assert all(group.options["words"] == 0.3 for group in groups)
    personas = {"persona": ["You are a cook.", "You are a pilot."], "model": "m"}
    named = [group.name for group in parse_groups("llm", options=personas)]
    assert named == ["llm-persona-1", "llm-persona-2"]
    with raises_code("identical-members", "members=2"):
        parse_groups("llm:2", options={"model": "m"})
    assert parse_groups("llm:2", options={"model": "m", "examples": "4"})[0].members == 2
    with raises_code("repeated-option", "'0.3'"):
        parse_groups("linear", options={"words": ["0.3", "0.3"]})
    with raises_code("empty-option"):
        parse_groups("linear", options={"strength": []})


def test_the_documented_file_is_accepted(tmp_path: Path) -> None:
    example, _ = re.findall(r"```toml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "pool.toml").write_text(example)
    pool = parse_groups(str(tmp_path / "pool.toml"))
    assert [(g.name, g.members) for g in pool] == [("linear", 5), ("bayes", 3), ("transformer", 10)]
