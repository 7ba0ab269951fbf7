"""Flags without values ask for what the verbs do by default."""

from __future__ import annotations

from pathlib import Path

from edokit import EDOEnsemble, RunOptions, SearchOptions
from edokit.analysis.compare.options import CompareOptions
from edokit.analysis.evaluate.options import EvaluateOptions
from edokit.analysis.plan.options import PlanOptions
from edokit.cli.compare import CompareFlags
from edokit.cli.evaluate import EvaluateFlags
from edokit.cli.fit import FitFlags
from edokit.cli.plan import PlanFlags
from edokit.cli.predictions import JoinedFile, JoinFlags
from edokit.cli.run import RunFlags
from edokit.cli.search import SearchFlags
from edokit.cli.train import TrainingFlags
from edokit.members import TrainingOptions
from edokit.predictions.join import JoinOptions


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
