"""Flags without values ask for what the verbs do by default; no value that is given is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from edokit import EDOEnsemble, RunOptions, SearchOptions
from edokit.analysis.compare.options import CompareOptions
from edokit.analysis.evaluate.options import EvaluateOptions
from edokit.analysis.plan.options import PlanOptions
from edokit.cli.compare import CompareFlags
from edokit.cli.evaluate import EvaluateFlags
from edokit.cli.fit import FitFlags
from edokit.cli.options import split_names, whole_numbers
from edokit.cli.plan import PlanFlags
from edokit.cli.predictions import JoinedFile, JoinFlags
from edokit.cli.run import RunFlags
from edokit.cli.search import SearchFlags
from edokit.cli.train import TrainingFlags
from edokit.members import TrainingOptions
from edokit.predictions.join import JoinOptions
from tests.errors import raises_code


def test_flags_have_the_defaults_of_the_verbs() -> None:
    assert CompareFlags().to_options() == CompareOptions()
    assert EvaluateFlags().to_options("error") == EvaluateOptions()
    assert PlanFlags().to_options() == PlanOptions()
    assert RunFlags().to_options() == RunOptions()
    assert SearchFlags().to_options() == SearchOptions()
    assert TrainingFlags().to_options("a.csv") == TrainingOptions(source="a.csv")
    assert FitFlags().ensemble().get_params() == EDOEnsemble().get_params()


def test_flags_of_a_join_have_its_defaults() -> None:
    files = [JoinedFile("one", Path("a.csv"), False), JoinedFile(None, Path("b.csv"), True)]
    expected = JoinOptions(names=["one", None], logits=[False, True], items=["i"])
    assert JoinFlags().to_options(files, "error", ["i"]) == expected


def test_numbers_of_an_option_given_twice_are_all_kept() -> None:
    assert whole_numbers(["1,3", "5"], "--annotators", "NUMBERS") == (1, 3, 5)


@pytest.mark.parametrize("text", [",", "1.5", "a", "²"])
def test_no_number_at_all_is_not_taken_for_a_list_of_them(text: str) -> None:
    with raises_code("malformed-option", "--annotators"):
        whole_numbers([text], "--annotators", "NUMBERS")


def test_an_empty_list_of_numbers_is_refused() -> None:
    with raises_code("empty-option", "--annotators"):
        whole_numbers([""], "--annotators", "NUMBERS")


def test_a_name_with_a_line_break_is_read_as_it_is() -> None:
    assert split_names("a\nb, c") == ["a\nb", "c"]
