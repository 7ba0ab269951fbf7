"""The compiled sums are the plain ones, only faster."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from edokit.objective import Summaries
from edokit.objective import kernels as one_pass


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("members", [1, 4, 7, 11])  # with and without a rest of four, and of five
def test_compiled_and_plain_sums_agree(classes: int, dtype: type, members: int) -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(classes), size=(70_001, members)).astype(dtype)
    q = rng.dirichlet(np.ones(classes), size=70_001)
    y = rng.integers(0, classes, size=70_001)
    assert one_pass.overlap_kernel() is not None
    with mock.patch.object(one_pass, "_WORTH_COMPILING", 0):
        compiled = Summaries.from_arrays(P, q, y)
    with mock.patch.object(one_pass, "overlap_kernel", return_value=None):
        plain = Summaries.from_arrays(P, q, y)
    close = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_array_equal(compiled.class_counts, plain.class_counts)
    np.testing.assert_allclose(compiled.hits, plain.hits, rtol=close)
    np.testing.assert_allclose(compiled.distances, plain.distances, rtol=close)
    np.testing.assert_array_equal(compiled.log_losses, plain.log_losses)


def test_codes_outside_the_classes_are_still_refused() -> None:
    P = np.full((100, 2, 2), 0.5)
    with (
        mock.patch.object(one_pass, "_WORTH_COMPILING", 0),
        pytest.raises(ValueError, match="hard label codes"),
    ):
        Summaries.from_arrays(P, P[:, 0], np.full(100, 5))
