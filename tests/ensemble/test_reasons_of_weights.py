"""A fit says why a member that is bad alone is heavy, and what to do about a bad pool."""

from __future__ import annotations

import numpy as np

from edokit import EDOEnsemble


def two_classes(p: np.ndarray) -> np.ndarray:
    return np.stack([1 - p, p], axis=-1)


def test_a_heavy_member_of_low_rank_has_what_the_pool_would_lose() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 400))
    share = 1 / (1 + np.exp(-first - second))
    alike = [1 / (1 + np.exp(-first - 0.2 * rng.normal(size=400))) for _ in range(3)]
    other = 1 / (1 + np.exp(-0.8 * second))
    labels = (rng.random((400, 7)) < share[:, None]).astype(int)
    fitted = EDOEnsemble().fit(two_classes(np.stack([*alike, other], axis=1)), labels)
    reasons = {reason.member: reason for reason in fitted.explain()}
    assert reasons["3"].rank >= 3
    assert reasons["3"].weight > 0.25
    gain = reasons["3"].gain
    assert gain is not None
    assert gain > 0
    assert f"without it the pool's would be {gain:.4f} higher" in str(reasons["3"])
    assert all(reason.gain is None for name, reason in reasons.items() if reason.rank == 1)


def test_a_pool_below_the_constant_names_the_temperature_that_helps() -> None:
    rng = np.random.default_rng(0)
    score = rng.normal(size=300)
    labels = (rng.random((300, 5)) < 1 / (1 + np.exp(-score))[:, None]).astype(int)
    too_sure = two_classes(np.stack([1 / (1 + np.exp(-9 * score))] * 2, axis=1))
    message = EDOEnsemble().fit(too_sure, labels).fitted_.below_constant
    assert message is not None
    assert "no better than a constant answer" in message
    assert "is better: add --recalibrate temperature" in message
    recalibrated = EDOEnsemble(recalibrate="temperature").fit(too_sure, labels)
    assert recalibrated.fitted_.below_constant is None
