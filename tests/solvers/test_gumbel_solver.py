"""The Gumbel solver called again and again on the same data: nothing of it shows in the results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gumbel_cases import fit, random_pool, solve_by_seed, step_by_step

from edokit import Objective
from edokit.objective.loss import JointObjective
from edokit.objective.settings import CE, GumbelSteps
from edokit.objective.summaries import Problem, Summaries, rank_members
from edokit.solvers import batches
from edokit.solvers import descent as cross_entropies
from edokit.solvers.gumbel import solve_gumbel

SETTINGS = Objective(f1=0.5, ce_weight=1.0, div=0.3, reg=0.1).resolve()
QUICK = GumbelSteps(epochs=3, batch_size=16, learning_rate=0.05)
KINDS = [replace(SETTINGS, ce=CE(ce)) for ce in ("mean", "all", "random")]


def weights(solutions: list) -> np.ndarray:
    return np.stack([solution.weights for solution in solutions])


def test_distances_that_are_too_many_to_keep_are_the_same(monkeypatch):
    data = random_pool()
    usual = solve_gumbel(fit(data), KINDS, QUICK)
    monkeypatch.setattr(batches, "_KEPT_DISTANCES", 0)
    second_solution = solve_gumbel(fit(data), KINDS, QUICK)
    np.testing.assert_allclose(weights(second_solution), weights(usual), rtol=0, atol=1e-12)


def test_without_a_trajectory_nothing_else_changes():
    data = fit(random_pool())
    with_one, without = (
        solve_gumbel(data, KINDS, QUICK, trajectory=wanted) for wanted in (True, False)
    )
    for a, b in zip(with_one, without, strict=True):
        assert a.trajectory is not None
        assert b.trajectory is None
        np.testing.assert_array_equal(a.weights, b.weights)
        assert (a.size, a.terms) == (b.size, b.terms)


@pytest.mark.parametrize("temperature", [0.3, 0.06, 0.04, 0.001])
def test_one_member_per_item_is_drawn_right_at_any_temperature(temperature):
    """Powers where it is warm enough, scores where powers would leave the range of numbers."""
    data = random_pool()
    data = data._replace(P=data.P[:, rank_members(Summaries.from_arrays(*data))])
    # The size is fixed: so cold, its logits would learn from rounding alone.
    options = replace(QUICK, temperature=temperature, min_temperature=temperature, min_members=5)
    options = replace(options, max_members=5)
    settings = replace(SETTINGS, ce=CE.RANDOM)
    found = solve_gumbel(fit(data), settings, options, random_state=1)[0]
    expected = step_by_step(data, settings, options, seed=1)
    np.testing.assert_allclose(found.weights, expected, rtol=0, atol=1e-10)


def test_powers_and_scores_agree(monkeypatch):
    data = random_pool()
    settings = replace(SETTINGS, ce=CE.RANDOM)
    by_powers = solve_by_seed(data, settings, QUICK, range(3))
    monkeypatch.setattr(cross_entropies, "_COLD", 99.0)
    by_scores = solve_by_seed(data, settings, QUICK, range(3))
    np.testing.assert_allclose(weights(by_powers), weights(by_scores), rtol=0, atol=1e-12)


@pytest.mark.parametrize("rate", [5.0, 500.0])
def test_far_from_zero_logits_are_handled_as_everywhere(rate, monkeypatch):
    """Where exponentials would overflow, the careful way is taken; elsewhere both are the same."""
    from edokit.solvers import descent

    data = random_pool()
    options = replace(QUICK, learning_rate=rate)
    usual = solve_gumbel(fit(data), KINDS, options)
    monkeypatch.setattr(descent, "_TAME", 0.0)
    careful = solve_gumbel(fit(data), KINDS, options)
    assert np.isfinite(weights(usual)).all()
    np.testing.assert_allclose(weights(usual), weights(careful), rtol=0, atol=1e-9)


def test_the_items_are_summed_up_once(monkeypatch):
    made = []
    from_arrays = Summaries.from_arrays.__func__

    def counted(cls, *arrays, **options):
        made.append(1)
        return from_arrays(cls, *arrays, **options)

    monkeypatch.setattr(Summaries, "from_arrays", classmethod(counted))
    data = fit(random_pool())
    solve_gumbel(data, KINDS, QUICK)
    solve_gumbel(data, KINDS, replace(QUICK, epochs=2))
    assert len(made) == 1


def test_the_gradient_of_the_cross_entropy_comes_with_each_solution():
    data = random_pool()
    for settings, found in zip(KINDS, solve_gumbel(fit(data), KINDS, QUICK), strict=True):
        settings = replace(settings, ce=CE.ALL) if settings.ce == "random" else settings
        objective = JointObjective(Problem.from_arrays(*data), settings)
        _, slope = objective.ce.at(found.weights)
        np.testing.assert_allclose(found.ce_gradient, slope, rtol=1e-9)
