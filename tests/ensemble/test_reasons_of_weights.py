"""A fit says what to do about a bad pool."""

from __future__ import annotations

import numpy as np

from edokit import EDOEnsemble


def two_classes(p: np.ndarray) -> np.ndarray:
    return np.stack([1 - p, p], axis=-1)


def test_a_pool_below_the_constant_names_the_temperature_that_helps() -> None:
    rng = np.random.default_rng(0)
    score = rng.normal(size=300)
    labels = (rng.random((300, 5)) < 1 / (1 + np.exp(-score))[:, None]).astype(int)
    too_sure = two_classes(np.stack([1 / (1 + np.exp(-9 * score))] * 2, axis=1))
    message = EDOEnsemble().fit(too_sure, labels).fitted_.below_constant
    assert message is not None
    assert "does not beat a constant answer" in message
    assert "recalibrate the pool with a temperature" in message
    recalibrated = EDOEnsemble(recalibrate="temperature").fit(too_sure, labels)
    assert recalibrated.fitted_.below_constant is None
