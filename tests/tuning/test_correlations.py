"""Correlations of parameters and metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from search_cases import trial

from edokit.tuning.space import SearchSpace
from edokit.tuning.trials import correlations


def made(count: int = 40) -> list[Any]:
    """λ_Div raises CE where disagreement is kept, and does nothing where it is not."""
    rng = np.random.default_rng(0)
    trials = []
    for number in range(count):
        sign = "preserve" if number % 2 else "suppress"
        weight = rng.random()
        loss = 0.3 + (0.2 * weight if sign == "preserve" else 0.2 * rng.random())
        searched = {"diversity": sign, "lambda_div": weight, "lambda_f1": rng.random()}
        trials.append(
            trial(rng.random(), loss, 0.2, number=number, size=number % 7, searched=searched)
        )
    return trials


def test_a_planted_relation_is_found_under_its_sign_alone() -> None:
    several = correlations(made(), SearchSpace.paper())
    found = {(c.diversity, c.parameter, c.metric): c for c in several}
    planted = found["preserve", "lambda_div", "ce"]
    assert planted.rho == pytest.approx(1.0)
    assert planted.significant
    assert planted.trials == 20
    assert not found["suppress", "lambda_div", "ce"].significant
    assert ("preserve", "size", "ce") in found


def test_what_does_not_vary_has_no_correlation() -> None:
    found = correlations(made(), SearchSpace.paper())
    assert not [one for one in found if one.metric == "md"], "every MD is the same"
    assert not [one for one in found if one.parameter == "temperature"], "it never changed"
    assert all(np.isfinite([one.rho, one.p_value]).all() for one in found)


def test_lonely_signs_are_left_out() -> None:
    few = [one for one in made() if one.searched["diversity"] == "preserve"]
    assert {one.diversity for one in correlations(few, SearchSpace.paper())} == {"preserve"}
    assert correlations(made(4), SearchSpace.paper()) == []
