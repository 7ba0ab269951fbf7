"""Ensembles with weights that were learned elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edokit import EDOEnsemble, Objective
from flat_options import flat_ensemble
from tests.errors import raises_code

RNG = np.random.default_rng(0)
P = RNG.dirichlet([1, 1, 1], (40, 4))
Q = RNG.dirichlet([2, 2, 2], 40)


@pytest.mark.parametrize(
    "how",
    [{}, {"preset": "paper-fixed", "solver": "exact"}, {"pool": "log"}, {"ce": "all"}],
    ids=str,
)
def test_given_the_weights_of_a_fit_it_is_that_ensemble(how: dict[str, str]) -> None:
    fitted = flat_ensemble(how).fit(P, Q)
    penalty = fitted.settings_["lambda_reg"]
    asked = flat_ensemble({"lambda_reg": penalty, **how}).get_params(deep=False)
    ensemble = EDOEnsemble.from_weights(fitted.weights_, P, Q, **asked)
    np.testing.assert_array_equal(ensemble.predict_proba(P), fitted.predict_proba(P))
    assert ensemble.size_ == fitted.size_
    assert ensemble.metrics_ == pytest.approx(fitted.metrics_)
    assert ensemble.objective_ == pytest.approx(fitted.objective_)
    assert ensemble.certificate_ is None


def test_nothing_is_drawn_when_members_are_judged() -> None:
    weights = [0.1, 0.2, 0.3, 0.4]
    ensemble = EDOEnsemble.from_weights(
        weights, P, Q, objective=Objective(ce="random"), solver="gumbel"
    )
    assert ensemble.objective_["ce"] == pytest.approx(float(ensemble.member_ce_ @ weights))
    assert ensemble.objective_["reg"] == pytest.approx(0.3)


def test_it_is_kept_like_any_other_and_its_card_says_where_weights_came_from(
    tmp_path: Path,
) -> None:
    EDOEnsemble.from_weights([0.5, 0.5, 0.0, 0.0], P, Q).save(tmp_path)
    loaded = EDOEnsemble.load(tmp_path)
    assert loaded.needed_members() == ["0", "1"]
    assert (loaded.size_, loaded.settings_["solver"]) == (2, "given")
    card = (tmp_path / "README.md").read_text()
    assert "Its weights were given; evaluated on 40 items" in card
    assert "Learned from" not in card


@pytest.mark.parametrize("weights", [[1.0], [0.5, 0.5, 0.5, -0.5], [0.3] * 4, [np.nan, 1, 0, 0]])
def test_what_are_no_weights_of_these_members_is_refused(weights: list[float]) -> None:
    with raises_code("invalid-weights", "4"):
        EDOEnsemble.from_weights(weights, P, Q)


def test_groups_and_temperatures_have_no_place_here() -> None:
    for how in ({"groups": True}, {"recalibrate": "temperature"}):
        with raises_code("conflicting-options", next(iter(how))):
            EDOEnsemble.from_weights([0.25] * 4, P, Q, **how)
