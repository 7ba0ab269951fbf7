"""The front holds what nothing beats, and each rule picks what it says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from search_cases import trial

from edokit.analysis.search.result import ParetoFront
from edokit.analysis.search.statistics import non_dominated

# F1 rises with CE: the cheapest, a bend, and the dearest; the last is beaten by the second.
TRIALS = [
    trial(0.80, 0.30, 0.20, number=0, ce_se=0.02),
    trial(0.88, 0.31, 0.21, number=1, ce_se=0.02),
    trial(0.90, 0.40, 0.40, number=2, ce_se=0.02),
    trial(0.87, 0.32, 0.22, number=3, ce_se=0.02),
]


def test_a_beaten_trial_is_not_on_the_front() -> None:
    assert [one.number for one in ParetoFront.from_trials(TRIALS)] == [0, 1, 2]


@given(
    arrays(float, st.tuples(st.integers(1, 12), st.just(3)), elements=st.sampled_from([0, 1, 2]))
)
def test_the_front_is_what_the_definition_says(points: np.ndarray) -> None:
    def beats(a: np.ndarray, b: np.ndarray) -> bool:
        return bool((a <= b).all() and (a < b).any())

    expected = [not any(beats(other, point) for other in points) for point in points]
    kept = non_dominated(points)
    assert kept.tolist() == expected
    assert kept.any(), "something is always left"


def test_the_papers_choice_is_the_lowest_ce() -> None:
    front = ParetoFront.from_trials(TRIALS)
    assert front.chosen.number == 0
    assert front.chosen.ce == min(trial.ce for trial in TRIALS)
