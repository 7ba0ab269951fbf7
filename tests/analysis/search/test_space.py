"""The search space: the paper's by default, narrowed and widened by name, checked at once."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution

from edokit import SearchSpace
from edokit.analysis.search.space import GUMBEL_PARAMETERS, OBJECTIVE_FIELDS, trial_settings
from edokit.objective.settings import AUTO_OPTIONS, FLAT_NAMES, TERMS
from tests.errors import raises_code


def test_the_papers_space_is_a_name_away() -> None:
    assert SearchSpace.named("paper") == SearchSpace.paper()
    space = SearchSpace.paper().to_dict()
    for name in ("lambda_f1", "lambda_ce", "lambda_div"):
        assert space[name] == {"low": 0.0, "high": 1.0, "log": False}
    assert space["lambda_reg"] == {"low": 1e-5, "high": 1e-2, "log": True}
    assert space["learning_rate"] == {"low": 1e-5, "high": 1e-3, "log": True}
    assert space["temperature"] == {"low": 0.1, "high": 1.0, "log": False}
    assert space["temperature_decay"] == {"low": 0.01, "high": 0.2, "log": False}
    assert space["diversity"] == ["preserve", "suppress"]
    assert space["ce"] == ["mean", "all", "random"]
    assert (space["max_members"], space["epochs"], space["class_weights"]) == (10, 10, True)


def test_the_default_takes_the_steps_that_the_items_need() -> None:
    space = SearchSpace.named("thorough")
    assert space == SearchSpace()
    assert set(AUTO_OPTIONS).isdisjoint(space.searched)
    point = {name: getattr(SearchSpace.paper(), name) for name in space.searched}
    point = {
        name: value.choices[0] if isinstance(value, CategoricalDistribution) else value.high
        for name, value in point.items()
    }
    few, many = (space.fit_config(point, items).solver for items in (64, 64_000))
    assert (few.epochs, many.epochs) == (1000, 10)
    assert few.temperature * math.exp(-few.temperature_decay * (few.epochs - 1)) == pytest.approx(
        few.min_temperature
    )
    assert space.with_(epochs=3).fit_config(point, 64).solver.epochs == 3, "what is given stays"


def test_every_choice_of_objective_and_solver_can_be_searched() -> None:
    names = {field.name for field in fields(SearchSpace)}
    assert names <= {*OBJECTIVE_FIELDS, *GUMBEL_PARAMETERS}
    # Terms may be left out: they then keep their defaults.
    assert {*OBJECTIVE_FIELDS, *GUMBEL_PARAMETERS} - names <= {
        term.flat_name for term in TERMS.values()
    }


def test_a_term_that_the_space_does_not_name_keeps_its_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(FLAT_NAMES, "added", "lambda_added")
    space = SearchSpace(lambda_f1=0.5, lambda_ce=1.0)
    chosen = {name: getattr(SearchSpace.paper(), name) for name in space.searched}
    point = {
        name: value.choices[0] if isinstance(value, CategoricalDistribution) else value.high
        for name, value in chosen.items()
    }
    assert space.fit_config(point, 64).objective.f1 == 0.5


def test_a_space_can_be_narrowed_and_widened() -> None:
    space = SearchSpace().with_(
        lambda_div=0.0, ce=["mean"], lambda_reg=(1e-4, 1.0), epochs=[10, 20], pool=["linear", "log"]
    )
    assert space.lambda_div == 0.0
    assert space.ce == "mean"
    assert space.lambda_reg == FloatDistribution(1e-4, 1.0, log=True), (
        "a pair keeps the parameter's scale"
    )
    assert space.epochs == CategoricalDistribution((10, 20)), (
        "two numbers in a list are two choices"
    )
    assert space.with_(lambda_f1=0).epochs == CategoricalDistribution((10, 20)), "and stay so"
    assert {"lambda_div", "ce"}.isdisjoint(space.searched)
    assert {"lambda_reg", "epochs", "pool"} <= set(space.searched)
    assert SearchSpace().lambda_div == FloatDistribution(0.0, 1.0), "the first one is as it was"


def test_exact_searches_the_trade_off_alone() -> None:
    exact = SearchSpace().for_solver("exact")
    assert set(exact.searched) == {
        "lambda_f1",
        "lambda_ce",
        "lambda_div",
        "lambda_reg",
        "diversity",
        "ce",
    }
    assert exact.ce == CategoricalDistribution(("mean", "all")), "random is all in expectation"
    assert SearchSpace(ce="random").for_solver("exact").ce == "all"
    assert SearchSpace().for_solver("gumbel") == SearchSpace()


@given(st.data())
def test_every_point_of_the_space_is_a_configuration(data: st.DataObject) -> None:
    space = SearchSpace(epochs=(1, 20), min_members=[1, 2], class_weights=[True, False])
    point: dict[str, Any] = {}
    for name in space.searched:
        value = getattr(space, name)
        if isinstance(value, CategoricalDistribution):
            point[name] = data.draw(st.sampled_from(value.choices))
        elif name == "epochs":
            point[name] = data.draw(st.integers(int(value.low), int(value.high)))
        else:
            point[name] = data.draw(st.floats(value.low, value.high))
    config = space.fit_config(point, items=100)
    for name, value in point.items():
        part = config.objective if name in OBJECTIVE_FIELDS else config.solver
        assert getattr(part, OBJECTIVE_FIELDS.get(name, name)) == value
    assert trial_settings(config).keys() >= point.keys()


@pytest.mark.parametrize(
    ("change", "code", "fact"),
    [
        ({"lambda_f1": (1.0, 0.0)}, "invalid-range", "lambda_f1"),
        ({"lambda_f1": (0.5, 0.5)}, "invalid-range", "lambda_f1"),
        ({"lambda_f1": (-1.0, 1.0)}, "invalid-number", "lambda_f1 is -1.0"),
        ({"lambda_reg": (0.0, 1.0)}, "invalid-range", "lambda_reg"),
        ({"learning_rate": 0}, "invalid-number", "learning_rate is 0"),
        ({"epochs": (0, 5)}, "invalid-number", "epochs is 0"),
        ({"epochs": 2.5}, "invalid-number", "epochs is 2.5"),
        ({"ce": ["mean", "some"]}, "unknown-choice", "'some'"),
        ({"ce": []}, "empty-option", "ce"),
        ({"diversity": (0.0, 1.0)}, "invalid-range", "diversity"),
        ({"class_weights": "yes"}, "invalid-option", "class_weights is 'yes'"),
        ({"lambda_ce": "much"}, "invalid-number", "lambda_ce is 'much'"),
        ({"lambda_ce": float("nan")}, "invalid-number", "lambda_ce is nan"),
        ({"lambda": 1.0}, "unknown-choice", "'lambda'"),
        ({"min_members": 11}, "invalid-range", "min_members"),
        ({f"lambda_{t}": 0 for t in ("f1", "ce", "div", "reg")}, "no-objective", "lambda_reg"),
    ],
)
def test_a_space_that_makes_no_sense_is_refused_by_name(change: Any, code: str, fact: str) -> None:
    with raises_code(code, fact):
        SearchSpace().with_(**change)
