"""The compiled sums are the plain ones, only faster."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

from edokit.objective import Summaries
from edokit.objective import kernels as one_pass


def sums(compiled: bool, *arrays: Any, dtype: type | None = None) -> Summaries:
    kernels = one_pass.compiled()
    assert kernels is not None
    with (
        mock.patch.object(one_pass, "_WORTH_COMPILING", 0),
        mock.patch.object(one_pass, "compiled", return_value=kernels if compiled else None),
    ):
        return Summaries.from_arrays(*arrays, dtype=dtype)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("members", [1, 4, 7, 11])  # with and without a rest of four, and of five
@pytest.mark.parametrize("annotators", [None, 5])  # soft labels that differ, and that repeat
def test_compiled_and_plain_sums_agree(
    classes: int, dtype: type, members: int, annotators: int | None
) -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(classes), size=(70_001, members)).astype(dtype)
    P[:100, :, 1:], P[:100, :, 0] = 0, 1  # logarithms of nothing but EPSILON
    q = rng.dirichlet(np.ones(classes), size=70_001)
    if annotators:
        q = rng.multinomial(annotators, q) / annotators
    y = rng.integers(0, classes, size=70_001)
    wanted = sums(False, P.astype(np.float64), q, y)
    # float32 may be added up as such in blocks of items, or, as for shards, in float64.
    for kind, close in ((None, 1e-5 if dtype == np.float32 else 1e-12), (np.float64, 1e-12)):
        found = sums(True, P, q, y, dtype=kind)
        np.testing.assert_array_equal(found.class_counts, wanted.class_counts)
        for name in ("soft_counts", "hits", "distances", "log_losses"):
            one, other = getattr(found, name), getattr(wanted, name)
            np.testing.assert_allclose(one, other, rtol=close, err_msg=name)


@pytest.mark.parametrize("wrong", [-0.1, np.nan, np.inf])
def test_compiled_sums_refuse_what_is_no_probability(wrong: float) -> None:
    P = np.full((200, 2, 2), 0.5)
    P[100:150, 1, 1] = wrong  # an even number: negative factors must not hide each other
    with pytest.raises(ValueError, match="finite and not negative"):
        sums(True, P, np.full((200, 2), 0.5), np.zeros(200, dtype=int))


def test_small_shards_of_many_items_are_compiled() -> None:
    P = np.full((10, 2, 2), 0.5)
    with mock.patch.object(one_pass, "compiled", return_value=None) as asked:
        Summaries.from_arrays(P, P[:, 0], np.zeros(10, dtype=int))
        assert not asked.called
        Summaries.from_arrays(P, P[:, 0], np.zeros(10, dtype=int), total=10**9)
        assert asked.called


def test_codes_outside_the_classes_are_still_refused() -> None:
    P = np.full((100, 2, 2), 0.5)
    with (
        mock.patch.object(one_pass, "_WORTH_COMPILING", 0),
        pytest.raises(ValueError, match="hard label codes"),
    ):
        Summaries.from_arrays(P, P[:, 0], np.full(100, 5))
