"""Answers for a metric: what a step gains where it was not fitted."""

import numpy as np
import pytest

from edokit import Annotations, EDOEnsemble, EDOWarning
from edokit.ensemble.answers import find_answer, fit_answers
from edokit.metrics import ce, md
from edokit.scales import NOMINAL, Scale


def votes(n: int, people: int, sharpness: float, seed: int):
    """A pool, and shares of people whose answers are sharper than the pool by this power."""
    rng = np.random.default_rng(seed)
    yes = rng.beta(2, 2, n)
    odds = (yes / (1 - yes)) ** sharpness
    share = rng.binomial(people, odds / (1 + odds)) / people
    q = np.stack([1 - share, share], axis=1)
    return np.stack([1 - yes, yes], axis=1), q, q.argmax(axis=1)


def test_a_step_that_is_needed_gains_on_held_out_items_and_recovers_the_power():
    answer = fit_answers(*votes(4000, 50, 2.0, 0), NOMINAL)["ce"]
    assert answer.temperature == pytest.approx(0.5, abs=0.03)
    assert answer.after <= answer.held_out < answer.before - 0.01


def test_the_fit_data_promise_more_than_held_out_items_keep():
    answers = [fit_answers(*votes(30, 3, 1.0, seed), NOMINAL)["ce"] for seed in range(40)]
    assert all(answer.after <= answer.before + 1e-12 for answer in answers)
    # The pool is right as it is: a step gains on the items that it was fitted on, and only there.
    assert np.mean([answer.held_out - answer.before for answer in answers]) > 0


@pytest.mark.parametrize(("items", "warns"), [(199, True), (200, False)])
def test_a_step_fitted_on_few_items_is_used_with_a_warning(items, warns, recwarn):
    answers = fit_answers(*votes(items, 5, 1.5, 0), NOMINAL)
    if warns:
        with pytest.warns(EDOWarning, match=r"199 items.*held out"):
            find_answer("md", answers, NOMINAL)
    else:
        find_answer("md", answers, NOMINAL)
    find_answer("f1", answers, NOMINAL)  # the mode is not fitted


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
