"""Correlations of parameters and metrics, and their heat map."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest
from search_cases import failed, trial

from edokit._errors import InputError, MissingExtraError
from edokit.search import SearchSpace, correlation_figure, correlations


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
    found = {(c.diversity, c.parameter, c.metric): c for c in correlations(made(), SearchSpace())}
    planted = found["preserve", "lambda_div", "ce"]
    assert planted.rho == pytest.approx(1.0)
    assert planted.significant
    assert planted.trials == 20
    assert not found["suppress", "lambda_div", "ce"].significant
    assert ("preserve", "size", "ce") in found


def test_what_does_not_vary_has_no_correlation() -> None:
    found = correlations(made(), SearchSpace())
    assert not [one for one in found if one.metric == "md"], "every MD is the same"
    assert not [one for one in found if one.parameter == "temperature"], "it never changed"
    assert all(np.isfinite([one.rho, one.p_value]).all() for one in found)


def test_failed_trials_and_lonely_signs_are_left_out() -> None:
    few = [one for one in made() if one.searched["diversity"] == "preserve"] + [failed(90)]
    assert {one.diversity for one in correlations(few, SearchSpace())} == {"preserve"}
    assert correlations(made(4), SearchSpace()) == []


def test_the_heat_map_has_a_panel_per_sign_and_a_star_where_significant() -> None:
    pytest.importorskip("matplotlib")
    figure = correlation_figure(correlations(made(), SearchSpace()))
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in panels] == ["preserve (20 trials)", "suppress (20 trials)"]
    labels = [text.get_text() for text in panels[0].texts]
    assert "1.00*" in labels


def test_no_correlations_make_no_figure() -> None:
    with pytest.raises(InputError, match="needs correlations"):
        correlation_figure([])


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"edokit\[figures\]"):
        correlation_figure(correlations(made(), SearchSpace()))
