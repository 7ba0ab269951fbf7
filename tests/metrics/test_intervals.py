"""Bootstrap intervals: exact where they can be, and right as often as they say."""

from __future__ import annotations

import tracemalloc
from dataclasses import astuple

import numpy as np
import pytest
from metric_cases import Problem, simulated
from scipy import stats

from edokit import metrics
from edokit.metrics import resampling as intervals
from edokit.metrics.paired_metrics import paired_metric_test
from edokit.metrics.resampling import Resampling
from edokit.scales import NOMINAL
from tests.errors import raises_code

POPULATION = simulated(200_000, 3, seed=99)
TRUTH = metrics.compute_metrics(*POPULATION)


def gap_parts(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return metrics.METRIC["ece"].formula(p, q, None, NOMINAL)


def drawn_from(population: Problem, items: int, seed: int) -> Problem:
    chosen = np.random.default_rng(seed).integers(len(population.y), size=items)
    return Problem(*(part[chosen] for part in population))


def test_the_estimate_is_that_of_evaluate() -> None:
    case = simulated(80, 3)
    found = metrics.bootstrap(*case, samples=20)
    assert {name: value.estimate for name, value in found.items()} == pytest.approx(
        metrics.compute_metrics(*case)
    )


@pytest.mark.parametrize("name", ["macro_f1", "entropy_correlation"])
def test_a_resample_is_worth_its_repeated_items(name: str) -> None:
    case = simulated(40, 2)
    counts = next(intervals.resamples(40, 1, np.random.default_rng(5)))[0].astype(int)
    repeated = (np.repeat(part, counts, axis=0) for part in case)
    found = metrics.bootstrap(*case, metrics=[name], samples=1, random_state=5)[name]
    assert found.low == found.high == pytest.approx(metrics.compute_metrics(*repeated)[name])


def test_a_resampled_ece_is_that_of_its_repeated_items() -> None:
    p, q, _ = simulated(40, 4)
    counts = next(intervals.resamples(40, 1, np.random.default_rng(5)))[0]
    repeated = (np.repeat(part, counts.astype(int), axis=0) for part in (p, q))
    gaps = counts @ gap_parts(p, q) / 40
    assert np.abs(gaps).sum() == pytest.approx(metrics.ece(*repeated))


def test_resamples_draw_as_many_items_as_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "COUNTS_PER_BLOCK", 100)
    monkeypatch.setattr(intervals, "FEWEST_RESAMPLES_PER_BLOCK", 3)
    drawn = list(intervals.resamples(30, 11, np.random.default_rng(0)))
    assert [len(counts) for counts in drawn] == [3, 3, 3, 2]
    assert np.all(np.concatenate(drawn).sum(axis=1) == 30)
    assert len({tuple(row) for row in np.concatenate(drawn)}) == 11


def test_the_intervals_are_those_of_drawing_items_one_resample_at_a_time() -> None:
    case = simulated(100, 3)
    names = ["f1", "macro_f1", "ce", "jsd", "entropy_correlation"]  # many items: all alike
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(1500):
        chosen = rng.integers(100, size=100)
        drawn.append(metrics.compute_metrics(*(part[chosen] for part in case), metrics=names))
    found = metrics.bootstrap(*case, metrics=names, samples=1500)
    for name in names:
        low, high = np.quantile([values[name] for values in drawn], [0.025, 0.975])
        assert found[name].low == pytest.approx(low, abs=0.15 * (high - low))
        assert found[name].high == pytest.approx(high, abs=0.15 * (high - low))


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    tries = 150
    covered = dict.fromkeys(metrics.metrics_of(), 0)
    for seed in range(tries):
        case = drawn_from(POPULATION, 200, seed)
        for name, found in metrics.bootstrap(
            *case, samples=200, level=0.9, random_state=seed
        ).items():
            covered[name] += found.low <= TRUTH[name] <= found.high
    shares = {name: count / tries for name, count in covered.items()}
    assert all(0.80 <= share <= 0.98 for share in shares.values()), shares


def test_a_calibrated_prediction_is_rarely_called_uncalibrated() -> None:
    tries = 100
    starts_at_zero = 0
    for seed in range(tries):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.ones(2), 200)
        q = rng.multinomial(5, p) / 5
        found = metrics.bootstrap(
            p, q, p.argmax(axis=1), metrics=["ece"], samples=200, random_state=seed
        )
        starts_at_zero += found["ece"].low == 0
    assert starts_at_zero >= 0.85 * tries


def test_a_slight_miscalibration_is_covered_with_few_items() -> None:
    truth = np.random.default_rng(0).dirichlet(np.ones(2), 100_000)
    p = truth**1.2 / (truth**1.2).sum(axis=1, keepdims=True)
    true_ece = metrics.ece(p, truth)
    tries = 100
    covered = 0
    for seed in range(tries):
        rng = np.random.default_rng(seed)
        chosen = rng.integers(len(p), size=150)
        q = rng.multinomial(5, truth[chosen]) / 5
        found = metrics.bootstrap(p[chosen], q, q.argmax(axis=1), metrics=["ece"], samples=200)
        covered += found["ece"].low <= true_ece <= found["ece"].high
    assert covered >= 0.82 * tries


def test_an_uncalibrated_prediction_is_noticed() -> None:
    p, q, y = simulated(2000, 2)
    sharp = p**4 / (p**4).sum(axis=1, keepdims=True)
    found = metrics.bootstrap(sharp, q, y, metrics=["ece"])["ece"]
    assert 0 < found.low < found.estimate < found.high


@pytest.mark.parametrize("items", [1, 2, 9])
def test_fewer_than_ten_items_have_no_interval(items: int) -> None:
    for found in metrics.bootstrap(*simulated(items, 3), samples=200).values():
        assert (found.low, found.high) == (None, None)


def test_fewer_than_ten_groups_have_no_interval() -> None:
    found = metrics.bootstrap(*simulated(60, 2), clusters=np.arange(60) // 10, samples=50)
    assert found["ce"].low is None


def test_ten_items_have_intervals_that_hold_the_estimate() -> None:
    for name, found in metrics.bootstrap(*simulated(10, 2), samples=200).items():
        if name != "macro_f1":
            assert found.low <= found.estimate <= found.high


def test_macro_f1_has_no_interval_where_a_class_is_rare() -> None:
    p, q, y = simulated(200, 2)
    y = np.zeros_like(y)
    y[:9] = 1
    found = metrics.bootstrap(p, q, y, metrics=["macro_f1", "f1"], samples=50)
    assert found["macro_f1"].low is None
    assert found["f1"].low is not None


def test_an_f1_without_errors_is_not_known_exactly() -> None:
    q = np.tile([0.0, 1.0], (30, 1))
    found = metrics.bootstrap(q, q, np.ones(30, dtype=int), metrics=["f1"])["f1"]
    assert (found.estimate, found.high) == (1.0, 1.0)
    assert 0.8 < found.low < 0.95  # Clopper and Pearson: 0.884


@pytest.mark.parametrize("name", ["ce", "bs", "f1"])
def test_few_skewed_values_are_covered_as_often_as_stated(name: str) -> None:
    """The percentile bootstrap covers 83 to 91 % here."""
    tries = 400
    covered = 0
    for seed in range(tries):
        case = drawn_from(POPULATION, 12, seed)
        found = metrics.bootstrap(*case, metrics=[name])[name]
        covered += found.low <= TRUTH[name] <= found.high
    assert covered >= 0.925 * tries


def test_an_undefined_correlation_has_no_interval() -> None:
    _, q, y = simulated(30, 2)
    found = metrics.bootstrap(np.full(q.shape, 0.5), q, y, samples=20)
    assert found["entropy_correlation"] == metrics.Interval(None, None, None)


def test_more_confidence_takes_more_room() -> None:
    case = simulated(100, 3)
    some = metrics.bootstrap(*case, level=0.8)
    more = metrics.bootstrap(*case, level=0.99)
    for name in metrics.metrics_of():
        assert more[name].low < some[name].low
        assert more[name].high > some[name].high


@pytest.mark.parametrize(("items", "by_item"), [(61, False), (3000, False), (3000, True)])
def test_the_plain_way_gives_the_same_intervals_and_tests(items: int, by_item: bool) -> None:
    """One resample at a time, each by what it draws; several blocks and chunks of items."""
    case = simulated(items, 3)
    rng = np.random.default_rng(7)
    clusters = np.sort(rng.integers(items // 3, size=items)) if by_item else np.arange(items)
    clusters = np.unique(clusters, return_inverse=True)[1]
    drawn = clusters.max() + 1
    members = np.split(np.argsort(clusters, kind="stable"), np.cumsum(np.bincount(clusters))[:-1])
    how = {"clusters": clusters if by_item else None, "samples": 60, "random_state": 3}
    losses = {"a": rng.random(items), "b": rng.random(items) ** 1.1}
    rng = np.random.default_rng(3)
    rows = []
    gap = losses["a"] - losses["b"]
    for _ in range(60):
        taken = np.concatenate([members[one] for one in rng.integers(drawn, size=drawn)])
        rows.append(metrics.compute_metrics(*(part[taken] for part in case)))
    found = metrics.bootstrap(*case, **how)
    student = stats.t.ppf(0.975, drawn - 1) * np.sqrt(drawn / (drawn - 1))
    tail = stats.norm.cdf(-student)
    for name in ("macro_f1", "entropy_correlation"):
        ends = np.quantile([row[name] for row in rows], [tail, 1 - tail])
        assert (found[name].low, found[name].high) == pytest.approx(tuple(ends), abs=1e-12)
    resampling = intervals.Resampling(**how)
    ends, (test,) = intervals.intervals_and_tests(losses, [("a", "b")], resampling)
    rng = np.random.default_rng(3)
    signs = np.bincount(clusters, gap)
    flips = rng.bytes(120 * -(-drawn // 8))
    bits = np.unpackbits(np.frombuffer(flips, np.uint8).reshape(120, -1), axis=1, count=drawn)
    extreme = np.abs(signs.sum() - 2 * bits.astype(float) @ signs) >= np.abs(signs.sum()) - 1e-9
    assert test.p_value == (1 + extreme.sum()) / 121
    alone = metrics.paired_test(
        losses["a"], losses["b"], samples=120, clusters=how["clusters"], random_state=3
    )
    assert astuple(alone) == pytest.approx(astuple(test), abs=1e-12)


def test_the_same_seed_gives_the_same_interval() -> None:
    case = simulated(60, 2)
    first = metrics.bootstrap(*case, samples=50, random_state=3)
    assert first == metrics.bootstrap(*case, samples=50, random_state=3)
    assert first != metrics.bootstrap(*case, samples=50, random_state=4)
    alone = metrics.bootstrap(*case, metrics=["ce"], samples=50, random_state=3)["ce"]
    assert astuple(alone) == pytest.approx(astuple(first["ce"]), abs=1e-12)


def test_memory_does_not_grow_with_the_samples() -> None:
    case = simulated(50_000, 2)

    def peak(samples: int) -> int:
        tracemalloc.start()
        metrics.bootstrap(*case, samples=samples)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(120) < 1.2 * peak(30)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, ("invalid-number", "samples")),
        ({"samples": 10.5}, ("invalid-number", "samples", "10.5")),
        ({"level": 95}, ("invalid-number", "level", "95")),
        ({"level": "high"}, ("invalid-number", "level", "'high'")),
        ({"random_state": -1}, ("invalid-number", "random_state")),
        ({"random_state": None}, ("invalid-number", "random_state")),
        ({"metrics": ["r2"]}, ("unknown-choice",)),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: tuple[str, ...]) -> None:
    with raises_code(*message) as refused:
        metrics.bootstrap(*simulated(5, 2), **options)
    assert refused.value.hint


def test_pairs_of_an_item_are_resampled_together() -> None:
    """Three annotators who always agree say no more than one of them."""
    rng = np.random.default_rng(5)
    p = rng.dirichlet([1, 1], 30)
    q = rng.dirichlet([1, 1], 30)
    y = np.arange(30) % 2
    clusters = np.repeat(np.arange(30), 3)
    for name, found in metrics.bootstrap(p, q, y, samples=200).items():
        three = metrics.bootstrap(*(np.repeat(x, 3, axis=0) for x in (p, q, y)), clusters=clusters,
                          metrics=[name], samples=200)[name]  # fmt: skip
        assert (three.low, three.high) == pytest.approx((found.low, found.high), abs=1e-12)
    a = rng.random(30)
    b = rng.random(30)
    one = metrics.paired_test(a, b, samples=300)
    three = metrics.paired_test(np.repeat(a, 3), np.repeat(b, 3), clusters=clusters, samples=300)
    assert (three.low, three.high) == pytest.approx((one.low, one.high))
    assert three.p_value == one.p_value
    apart = metrics.paired_test(np.repeat(a, 3), np.repeat(b, 3), samples=300)
    assert apart.high - apart.low < 0.75 * (one.high - one.low)


def test_gaps_in_the_codes_of_clusters_change_nothing() -> None:
    """Codes 0, 5, 10, … say the same as 0, 1, 2, …; no unit stands for a code in between."""
    rng = np.random.default_rng(6)
    p = rng.dirichlet([1, 1], 90)
    q = rng.dirichlet([1, 1], 90)
    y = q.argmax(axis=1)
    codes = np.repeat(np.arange(30), 3)
    a = rng.random(90)
    b = rng.random(90)
    for gapped in (5 * codes, 5 * codes + 7):
        found = metrics.bootstrap(p, q, y, clusters=gapped, samples=200)
        assert found == metrics.bootstrap(p, q, y, clusters=codes, samples=200)
        test = metrics.paired_test(a, b, clusters=gapped, samples=300)
        assert test == metrics.paired_test(a, b, clusters=codes, samples=300)
        for metric in ("macro_f1", "ece", "entropy_correlation", "icm_soft"):
            tests = [
                paired_metric_test(
                    metric, p, q, q, y, NOMINAL, Resampling(samples=200, clusters=clusters)
                )
                for clusters in (codes, gapped)
            ]
            assert tests[0] is not None
            assert tests[0] == tests[1]
