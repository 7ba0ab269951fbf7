"""Two annotators who always disagree are shown apart, or said not to be."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from edokit import Annotations, EDOEnsemble, EDOWarning, Predictions
from edokit.ensemble.opposites import opposite_pairs

# Half of the annotators' labels tie everywhere.
pytestmark = pytest.mark.filterwarnings("always::edokit.EDOWarning")
N_ITEMS = 80


def opposite_labels(seed: int) -> tuple[np.ndarray, Annotations]:
    """What ann answers [N], and the annotations of ann and of ben, who answers the opposite."""
    labels = np.random.default_rng(seed).integers(2, size=N_ITEMS)
    both = np.column_stack([labels, 1 - labels])
    return labels, Annotations.from_matrix(both, annotators=["ann", "ben"])


def fitted(probabilities: np.ndarray, annotations: Annotations) -> EDOEnsemble:
    """An ensemble of two members with about these probabilities of the second class [N]."""
    noise = np.random.default_rng(9).normal(0, 0.005, (2, N_ITEMS))
    p = np.clip(probabilities + noise, 0.01, 0.99)
    predictions = Predictions.from_arrays(
        np.stack([1 - p, p], axis=2), items=annotations.items, layout="KNC"
    )
    return EDOEnsemble().fit(predictions, annotations)


def test_a_pool_that_knows_nothing_is_said_not_to_tell_them_apart() -> None:
    _, annotations = opposite_labels(0)
    with pytest.warns(EDOWarning, match="'ann' and 'ben'"):
        fitted(np.full(N_ITEMS, 0.5), annotations)


def test_slopes_of_their_own_tell_them_apart_where_the_pool_knows_something() -> None:
    labels, annotations = opposite_labels(1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ensemble = fitted(0.45 + 0.1 * labels, annotations)
    assert not any("told apart" in str(warning.message) for warning in caught)
    people = ensemble.fitted_.people
    assert people is not None
    slopes = people.person_totals()[:, -1]
    assert slopes[0] > 0 > slopes[1]
    anonymous = np.column_stack([0.55 - 0.1 * labels, 0.45 + 0.1 * labels])
    of_ann = people.answers(anonymous, np.zeros(N_ITEMS, dtype=int)).argmax(axis=1)
    assert (of_ann == labels).mean() > 0.9


@pytest.mark.parametrize("second", ["alike", "random", "always the same"])
def test_others_are_not_called_opposite(second: str) -> None:
    rng = np.random.default_rng(2)
    labels = (rng.random(N_ITEMS) < 0.5).astype(int)
    answers = {
        "alike": labels,
        "random": rng.integers(2, size=N_ITEMS),
        "always the same": np.ones(N_ITEMS, dtype=int),
    }
    both = np.column_stack([labels, answers[second]])
    assert opposite_pairs(Annotations.from_matrix(both)) == []
