from __future__ import annotations

import literal
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit.objective.pools import effective_weights, softmax
from tests.objective.gradients import effective_weights_vjp, softmax_vjp


@st.composite
def sized(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int, np.random.Generator]:
    members = draw(st.integers(1, 8))
    smallest = draw(st.integers(1, members))
    largest = draw(st.integers(smallest, members))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    theta = rng.normal(scale=draw(st.sampled_from([0.1, 3.0])), size=members)
    return theta, rng.dirichlet(np.ones(largest - smallest + 1)), smallest, rng


@given(sized())
def test_effective_weights_are_those_of_the_formula(sample) -> None:
    theta, sizes, smallest, _ = sample
    expected = [literal.value(x) for x in literal.effective_weights(theta, sizes, smallest)]
    np.testing.assert_allclose(
        effective_weights(theta, sizes, smallest), expected, rtol=1e-9, atol=1e-12
    )


@given(sized())
def test_gradients_flow_back_as_the_formula_says(sample) -> None:
    theta, sizes, smallest, rng = sample
    gradient = rng.normal(size=len(theta))
    in_theta, in_sizes = effective_weights_vjp(theta, sizes, gradient, smallest)

    def loss(theta, sizes):
        v = literal.effective_weights(theta, sizes, smallest)
        return sum(g * x for g, x in zip(gradient, v, strict=True))

    np.testing.assert_allclose(
        in_theta, literal.slope(lambda x: loss(x, sizes), theta), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(
        in_sizes, literal.slope(lambda x: loss(theta, x), sizes), rtol=1e-9, atol=1e-12
    )


@given(sized())
def test_softmax_and_its_gradient_agree(sample) -> None:
    theta, _, _, rng = sample
    gradient = rng.normal(size=len(theta))

    def loss(x):
        powers = [np.exp(value) for value in x]
        return sum(g * power for g, power in zip(gradient, powers, strict=True)) / sum(powers)

    np.testing.assert_allclose(
        softmax_vjp(softmax(theta), gradient), literal.slope(loss, theta), rtol=1e-9, atol=1e-12
    )


def test_a_batch_is_its_rows() -> None:
    rng = np.random.default_rng(0)
    theta, gradient = rng.normal(size=(2, 5, 6))
    sizes = rng.dirichlet(np.ones(4), size=5)
    v = effective_weights(theta, sizes, 2)
    in_theta, in_sizes = effective_weights_vjp(theta, sizes, gradient, 2)
    for t in range(5):
        np.testing.assert_allclose(v[t], effective_weights(theta[t], sizes[t], 2))
        one = effective_weights_vjp(theta[t], sizes[t], gradient[t], 2)
        np.testing.assert_allclose(in_theta[t], one[0])
        np.testing.assert_allclose(in_sizes[t], one[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1.0, 100.0, 1e4]))
def test_weights_stay_on_the_simplex_however_far_the_logits_run(
    dtype: type, seed: int, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    theta = (scale * rng.normal(size=7)).astype(dtype)
    sizes = rng.dirichlet(np.ones(7)).astype(dtype)
    v = effective_weights(theta, sizes)
    assert v.dtype == dtype
    assert (v >= 0).all()
    assert v.sum() == pytest.approx(1.0, abs=1e-5 if dtype == np.float32 else 1e-12)
    for part in effective_weights_vjp(theta, sizes, rng.normal(size=7).astype(dtype)):
        assert np.isfinite(part).all()


def test_a_certain_size_keeps_its_first_members_renormalised() -> None:
    theta = np.log([4.0, 2.0, 1.0, 1.0])
    np.testing.assert_allclose(
        effective_weights(theta, np.array([0.0, 1.0, 0.0])), [2 / 3, 1 / 3, 0.0, 0.0]
    )
