from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from edokit import Gumbel, Objective, SearchSpace
from edokit.objective.settings import CE, LARGEST, PRESETS, Diversity, Pool, preset_objective
from flat_options import flat_ensemble
from tests.errors import raises_code

RNG = np.random.default_rng(0)
P = RNG.dirichlet([1, 1, 1], size=(40, 4))
VOTES = RNG.integers(0, 3, size=40)


def test_modes_may_be_strings_and_become_enums() -> None:
    chosen = Objective(diversity="suppress", ce="all").resolve("log")
    assert chosen.diversity is Diversity.SUPPRESS
    assert chosen.ce is CE.ALL
    assert chosen.pool is Pool.LOG
    assert str(chosen.ce) == chosen.ce == "all"
    assert replace(chosen, ce=CE.MEAN).ce is CE.MEAN


def test_preserve_is_minus_one_and_suppress_plus_one() -> None:
    assert (Diversity.PRESERVE.sign, Diversity.SUPPRESS.sign) == (-1.0, 1.0)


def test_settings_go_to_json_and_back() -> None:
    chosen = Objective(div=0.3, diversity="suppress", class_weights=True)
    assert Objective(**json.loads(json.dumps(asdict(chosen)))) == chosen


def test_a_penalty_of_none_is_chosen_by_the_fit() -> None:
    assert Objective(reg=None) == Objective(reg="auto") == Objective()
    assert Gumbel(epochs=None) == Gumbel(epochs="auto") == Gumbel()


def test_the_paper_fixed_preset_has_the_numbers_of_the_ablations() -> None:
    chosen = preset_objective("paper-fixed")
    assert (chosen.f1, chosen.ce_weight, chosen.div) == (1.0, 1.0, 1.0)
    assert chosen.reg == 1e-3
    assert chosen.class_weights


def test_presets_go_by_name() -> None:
    assert set(PRESETS) == {"default", "paper-fixed"}
    assert preset_objective("default") == Objective()
    assert not preset_objective("default").class_weights
    with raises_code("unknown-choice", "preset", "'default'"):
        preset_objective("best")


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf")])
def test_a_weight_of_a_term_is_never_negative_nor_infinite(value: float) -> None:
    with raises_code("invalid-number", "div"):
        Objective(div=value).resolve()


@pytest.mark.parametrize("name", ["lambda_f1", "lambda_ce", "lambda_div", "lambda_reg"])
def test_a_term_that_would_overflow_is_refused_and_the_largest_is_solved(name: str) -> None:
    with raises_code("invalid-number", f"{name} is 1e+308", "1000000000"):
        flat_ensemble({name: 1e308}).fit(P, VOTES)
    with raises_code("invalid-number", f"{name} is 1e+308"):
        SearchSpace(**{name: (1e-3, 1e308)})
    for solver in ("exact", "gumbel"):
        fitted = flat_ensemble({"solver": solver, name: LARGEST}).fit(P, VOTES)
        assert fitted.weights_.sum() == pytest.approx(1.0)
        if fitted.certificate_ is not None:
            assert fitted.certificate_.global_optimum


@pytest.mark.parametrize("name", ["learning_rate", "temperature", "temperature_decay"])
def test_steps_of_gumbel_that_would_overflow_are_refused(name: str) -> None:
    with raises_code("invalid-number", f"{name} is 1e+308", "1000000000"):
        Gumbel(**{name: 1e308})


def test_an_unknown_mode_is_refused_with_the_known_ones() -> None:
    with raises_code("unknown-choice", "ce", "'mean', 'all', 'random'"):
        Objective(ce="median").resolve()
