"""The paired test: right level without a difference, power with one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from edokit import metrics
from edokit.metrics import resampling as intervals
from edokit.metrics.resampling import Resampling, intervals_and_tests
from tests.errors import raises_code


def two_methods(items: int, seed: int, gain: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Skewed losses of two methods that share the difficulty of the items."""
    rng = np.random.default_rng(seed)
    difficulty = rng.exponential(size=items)
    return difficulty + rng.exponential(size=items), difficulty + rng.exponential(size=items) + gain


def test_the_p_value_is_the_exact_one_of_all_sign_flips() -> None:
    a, b = two_methods(9, seed=4, gain=0.6)
    exact = stats.permutation_test(
        (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf
    ).pvalue
    found = metrics.paired_test(a, b, samples=20_000)
    assert 0.01 < exact < 0.5
    assert found.p_value == pytest.approx(exact, abs=0.015)
    assert found.difference == pytest.approx(np.mean(a) - np.mean(b))
    assert found.n == 9


def test_without_a_difference_it_rejects_as_rarely_as_it_says() -> None:
    tries = 300
    p_values = np.array(
        [
            metrics.paired_test(*two_methods(40, seed), samples=199, random_state=seed).p_value
            for seed in range(tries)
        ]
    )
    for level in (0.05, 0.2):
        rejected = np.mean(p_values <= level)
        margin = 4 * np.sqrt(level * (1 - level) / tries)
        assert level - margin <= rejected <= level + margin
        assert rejected > 0


def test_its_interval_covers_the_true_difference() -> None:
    tries = 200
    covered = 0
    for seed in range(tries):
        a, b = two_methods(80, seed, gain=0.3)
        found = metrics.paired_test(a, b, samples=199, level=0.9, random_state=seed)
        covered += found.low <= -0.3 <= found.high
    assert 0.82 <= covered / tries <= 0.97


def test_a_clear_difference_is_found() -> None:
    found = metrics.paired_test(*two_methods(200, seed=0, gain=0.6), samples=2000)
    assert found.difference < 0
    assert found.high < 0
    assert found.p_value < 0.01


def test_pairing_finds_what_unpaired_methods_would_miss() -> None:
    rng = np.random.default_rng(0)
    difficulty = rng.exponential(size=100) * 10
    a = difficulty + rng.normal(size=100)
    b = difficulty + rng.normal(size=100) + 1
    assert stats.ttest_ind(a, b).pvalue > 0.05
    assert metrics.paired_test(a, b, samples=999).p_value < 0.01


def test_exchanging_the_methods_mirrors_the_result() -> None:
    a, b = two_methods(50, seed=1, gain=0.2)
    one = metrics.paired_test(a, b, samples=500)
    other = metrics.paired_test(b, a, samples=500)
    assert other.difference == pytest.approx(-one.difference)
    assert (other.low, other.high) == pytest.approx((-one.high, -one.low))
    assert other.p_value == one.p_value


def test_equal_methods_are_never_told_apart() -> None:
    a, _ = two_methods(20, seed=0)
    found = metrics.paired_test(a, a, samples=100)
    assert (found.difference, found.low, found.high, found.p_value) == (0.0, 0.0, 0.0, 1.0)
    assert (found.ratio_low, found.ratio_high) == (1.0, 1.0)


def test_one_item_proves_nothing() -> None:
    assert metrics.paired_test([0.1], [5.0], samples=100).p_value == 1


def test_chance_is_never_ruled_out() -> None:
    found = metrics.paired_test(np.zeros(300), np.ones(300), samples=99)
    assert found.p_value == 1 / 100


def test_equal_sums_count_as_equally_extreme_despite_rounding() -> None:
    gaps = np.array([0.1, 0.2, -0.3, 0.1])  # total 0.1 on paper; every sum of signs is ≥ 0.1
    assert metrics.paired_test(gaps, np.zeros(4), samples=500).p_value == 1


def test_the_seed_decides_and_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = two_methods(16, seed=2, gain=0.4)
    whole = metrics.paired_test(a, b, samples=5000, random_state=7)
    assert whole == metrics.paired_test(a, b, samples=5000, random_state=7)
    assert whole != metrics.paired_test(a, b, samples=5000, random_state=8)
    monkeypatch.setattr(intervals, "FLIPS_PER_BLOCK", 1000)
    parts = metrics.paired_test(a, b, samples=5000, random_state=7)
    assert parts.p_value == pytest.approx(whole.p_value, abs=0.03)
    assert parts.low == pytest.approx(whole.low, abs=0.1)


def test_pairs_tested_together_come_out_as_each_alone() -> None:
    pairs = [two_methods(50, seed=seed, gain=0.2 * seed) for seed in range(3)]
    losses = {(seed, side): pair[side] for seed, pair in enumerate(pairs) for side in (0, 1)}
    names = [((seed, 0), (seed, 1)) for seed in range(3)]
    _, tests = intervals_and_tests(losses, names, Resampling(200, random_state=3))
    for pair, together in zip(pairs, tests, strict=True):
        alone = metrics.paired_test(*pair, samples=400, random_state=3)
        assert together.p_value == alone.p_value
        assert (together.low, together.high) == pytest.approx((alone.low, alone.high))


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        ([1.0, 2.0], [1.0], {}, ("lengths-differ", "2 losses")),
        ([], [], {}, ("wrong-shape", "[0]")),
        ([1.0, np.nan], [1.0, 2.0], {}, ("invalid-number", "a[1]")),
        ([[1.0]], [1.0], {}, ("wrong-shape", "[1, 1]", "[N]")),
        ([1.0], ["x"], {}, ("not-numbers",)),
        ([1.0], [1.0], {"samples": 0}, ("invalid-number", "samples")),
        ([1.0], [1.0], {"level": 1.0}, ("invalid-number", "level", "1.0")),
    ],
)
def test_bad_losses_are_refused(
    a: list[float], b: list[float], options: dict[str, object], message: tuple[str, ...]
) -> None:
    with raises_code(*message) as refused:
        metrics.paired_test(a, b, **options)
    assert refused.value.hint


def test_a_ratio_is_one_where_the_difference_is_zero() -> None:
    """Whether 0 is in the interval of the difference and 1 in that of the ratio: always both."""
    excluded = 0
    for seed in range(200):
        a, b = two_methods(30, seed, gain=0.3)
        found = metrics.paired_test(a, b, samples=1)
        difference_excludes = found.low > 0 or found.high < 0
        ratio_excludes = found.ratio_low > 1 or found.ratio_high < 1
        assert difference_excludes == ratio_excludes
        assert found.ratio_low < found.ratio < found.ratio_high
        excluded += difference_excludes
    assert 20 < excluded < 180


def test_a_ratio_of_losses_is_never_negative() -> None:
    """A gain is at most 100 %: the denominator has an error, too."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        a = rng.exponential(size=12) ** 3
        b = rng.exponential(size=12) ** 3
        found = metrics.paired_test(a, b, samples=1)
        assert 0 <= found.ratio_low <= found.ratio <= found.ratio_high


def test_shares_that_do_not_differ_in_the_sample_may_differ() -> None:
    right = np.ones(30)
    found = metrics.paired_test(right, right, samples=10)
    assert found.difference == 0
    assert found.low == pytest.approx(-found.high)
    assert 0.03 < found.high < 0.12
