"""A diagnosis ends in the commands to run next, whose view first where annotators differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from edokit import Annotations, diagnose, simulate
from edokit.analysis.diagnose.result import Diagnosis


@pytest.fixture(scope="module")
def annotations() -> Annotations:
    return simulate("two-camps", random_state=0, items=(200, 1, 1)).annotations


@pytest.fixture(scope="module")
def diagnosis(annotations: Annotations) -> Diagnosis:
    return diagnose(annotations, permutations=39)


def test_where_annotators_differ_whose_view_comes_first(diagnosis: Diagnosis) -> None:
    run, view, *_, audit = [entry["command"] for entry in diagnosis.commands]
    assert run == "edo run ANNOTATIONS --out run"
    assert view.startswith("edo predict run --texts ANNOTATIONS --as ")
    assert audit.startswith("edo audit --predictions run/members/predictions/fit.npz")
    assert str(diagnosis).endswith(audit)


def test_where_nothing_is_shown_there_is_nothing_about_views(annotations: Annotations) -> None:
    commands = diagnose(annotations, permutations=0).commands
    assert [entry["command"] for entry in commands] == [
        "edo plan ANNOTATIONS",
        "edo run ANNOTATIONS --out run",
        "edo audit --predictions run/members/predictions/fit.npz --annotations ANNOTATIONS"
        " --split train,dev",
    ]


def test_without_texts_the_plan_and_the_audit_still_apply() -> None:
    bare = Annotations.from_matrix([["no", "yes", "no"], ["no", "no", "yes"]] * 20)
    commands = [entry["command"] for entry in diagnose(bare, permutations=0).commands]
    assert commands == [
        "edo plan ANNOTATIONS",
        "edo audit --predictions PREDICTIONS --annotations ANNOTATIONS",
    ]
    single_annotations = Annotations.from_matrix([["no"], ["yes"]] * 20)
    assert diagnose(single_annotations, permutations=0).commands == []


def test_commands_name_the_file_and_first_write_what_was_read_with_flags(
    diagnosis: Diagnosis,
) -> None:
    plain = diagnosis.with_source("my votes.csv").commands
    assert plain[0]["command"].startswith("edo run 'my votes.csv'")
    first, second, *_ = diagnosis.with_source("votes.csv", ["--empty", "drop"]).commands
    assert first["command"] == "edo data convert votes.csv annotations.csv --empty drop"
    assert second["command"].startswith("edo run annotations.csv")


def test_commands_after_a_run_use_it_and_make_no_other_one(diagnosis: Diagnosis) -> None:
    of_run = diagnosis.with_source("votes.csv", run=Path("my run"))
    commands = [entry["command"] for entry in of_run.commands]
    assert commands[0].startswith("edo predict 'my run' --texts votes.csv")
    assert "--predictions 'my run/members/predictions/fit.npz'" in commands[-1]
    assert not any(command.startswith("edo run") for command in commands)


def test_the_diagnosis_says_which_splits_it_is_about(
    annotations: Annotations, diagnosis: Diagnosis
) -> None:
    assert "Coverage (splits train, dev, test)" in diagnosis.lines()
    part = diagnose(annotations.split("train"), permutations=0)
    assert part.splits == ["train"]
    assert "Coverage (split train)" in part.lines()
