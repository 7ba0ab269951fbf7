"""Answers for a metric: what a step gains where it was not fitted."""

import numpy as np
import pytest

from edokit import Annotations, EDOEnsemble, Scale
from edokit.ensemble.answers import (
    FOLDS,
    LOG_TEMPERATURES,
    _fit_step,
    best_temperature,
    fit_answers,
)
from edokit.metrics import ce, md
from edokit.objective.pools import LOWEST_TEMPERATURE, sharpen
from edokit.scales import NOMINAL


def votes(n: int, people: int, sharpness: float, seed: int):
    """A pool, and shares of people whose answers are sharper than the pool by this power."""
    rng = np.random.default_rng(seed)
    yes = rng.beta(2, 2, n)
    odds = (yes / (1 - yes)) ** sharpness
    share = rng.binomial(people, odds / (1 + odds)) / people
    q = np.stack([1 - share, share], axis=1)
    return np.stack([1 - yes, yes], axis=1), q, q.argmax(axis=1)


@pytest.mark.parametrize("sharpness", [1.7, 2.0, 2.4])
def test_a_step_that_is_needed_gains_on_held_out_items_and_recovers_the_power(sharpness):
    p, q, y = votes(4000, 50, sharpness, 0)
    answer = fit_answers(p, q, y, NOMINAL)["ce"]
    assert 0.95 / sharpness < answer.temperature < 1.15 / sharpness
    assert answer.held_out < answer.before - 0.005
    assert answer.after < ce(sharpen(p, 1 / sharpness), q) + 1e-3


def test_a_step_that_is_not_needed_is_rarely_taken_however_few_items_choose():
    answers = [fit_answers(*votes(30, 3, 1.0, seed), NOMINAL)["ce"] for seed in range(40)]
    assert all(answer.after <= answer.before + 1e-12 for answer in answers)
    assert np.mean([answer.temperature != 1 for answer in answers]) < 0.5
    # The lowest loss on 30 items is seldom at 1, where it is on many.
    large = votes(5000, 3, 1.0, 99)
    losses = [md(sharpen(large[0], answer.temperature), large[1]) for answer in answers]
    assert np.mean(np.array(losses) > md(*large[:2]) + 0.01) < 0.2


def test_the_more_items_the_larger_the_step():
    steps = [
        np.mean([fit_answers(*votes(n, 5, 2.0, s), NOMINAL)["md"].temperature for s in range(8)])
        for n in (20, 100, 1000)
    ]
    assert 1 > steps[0] > steps[1] > steps[2]


def test_the_lowest_temperature_is_not_reached_by_chance():
    by_chance = [fit_answers(*votes(200, 3, 1.0, seed), NOMINAL)["md"] for seed in range(20)]
    assert min(answer.temperature for answer in by_chance) > 5 * LOWEST_TEMPERATURE


def test_each_metric_has_its_step():
    p, q, _ = votes(50, 5, 1.5, 0)
    steps = {
        kind: {metric: answer.step for metric, answer in fit_answers(*data, scale).items()}
        for kind, data, scale in (
            ("nominal", (p, q, q.argmax(axis=1)), NOMINAL),
            ("ordinal", (p, q, q.argmax(axis=1)), Scale("ordinal", (0, 1))),
        )
    }
    assert steps["nominal"] == {"ce": "temperature", "md": "temperature", "f1": "mode"}
    assert steps["ordinal"] == {**steps["nominal"], "w1": "cumulative-temperature"}


@pytest.mark.parametrize("recalibrate", [None, "temperature"])
@pytest.mark.parametrize("pool", ["linear", "log"])
def test_steps_are_fitted_on_the_pool_as_it_answers(pool, recalibrate):
    rng = np.random.default_rng(0)
    p, q, _ = votes(300, 5, 2.0, 0)
    odds = np.log(p[:, None, 1:] / p[:, None, :1]) + rng.normal(size=(300, 4, 1))
    P = np.concatenate([1 / (1 + np.exp(odds)), 1 / (1 + np.exp(-odds))], axis=2)
    fitted = EDOEnsemble(pool=pool, recalibrate=recalibrate).fit(P, Annotations.from_soft_labels(q))
    answers = fitted.predict_proba(P)
    before = {name: answer.before for name, answer in fitted.answers_.items()}
    assert before["ce"] == pytest.approx(ce(answers, q))
    assert before["md"] == pytest.approx(md(answers, q))


def test_the_held_out_loss_is_that_of_a_step_that_other_items_chose() -> None:
    folds = np.random.default_rng(0).permutation(200) % FOLDS
    # Each fold has a step of its own without loss, which loses everything on the others.
    losses = np.full((len(LOG_TEMPERATURES), 200), 2.0)
    losses[0] = 0.9
    losses[1 : FOLDS + 1] = folds != np.arange(FOLDS)[:, None]
    assert _fit_step(losses, None)[2] == pytest.approx(1.0)


@pytest.mark.parametrize(("standard_errors", "moves"), [(0.9, False), (1.1, True)])
def test_the_plain_step_stays_within_one_standard_error_of_the_best(standard_errors, moves) -> None:
    """The best step is better by so many standard errors of the difference, item by item."""
    items = 400
    difference = np.random.default_rng(0).normal(size=items)
    difference = (difference - difference.mean()) / difference.std()
    difference += standard_errors / np.sqrt(items)
    losses = np.full((len(LOG_TEMPERATURES), items), 9.0)
    losses[0] = 3.0 + difference
    losses[7] = 3.0
    step = best_temperature(losses)
    assert step == (7 if moves else 0)
