"""Comparisons and evaluations of ordinal answers and of sets: headline metric, tables, slices."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import edokit
from edokit import Annotations, Predictions, Scale, compare, metrics
from edokit.analysis.compare.method import make_method, method_names
from edokit.analysis.compare.result import Comparison
from edokit.objective.pools import pool as weighted
from edokit.objective.settings import Pool
from edokit.rows import Rows
from edokit.scales import NOMINAL
from tests.errors import raises_code

SETS = Scale("multi-label")
POINTS = Scale("ordinal", (1, 2, 3, 4))
SIMPLE = (
    "uniform",
    "best-single",
    "top-5",
    "wel",
    "wel-ce",
    "greedy",
    "linear-pool",
    "log-pool",
)
METHODS = ["majority", "best-single", "top-5", "greedy", "linear-pool", "log-pool", "edo"]


def sample(scale: Scale, split: str, items: int = 60) -> tuple[Predictions, Annotations]:
    """Six members that know more or less of what five annotators answer."""
    rng = np.random.default_rng([len(split), scale.is_multi_label, items])
    ids = [f"{split}-{k}" for k in range(items)]
    lang = rng.choice(["en", "it"], items)
    if scale.is_multi_label:
        classes = ["a", "b", "c"]
        truth = rng.beta(0.6, 0.9, (items, 3))
        votes = rng.random((items, 5, 3)) < truth[:, None]
        labels = [",".join(np.array(classes)[one]) or "[]" for item in votes for one in item]
        noisy = [np.clip(truth + rng.normal(0, s, truth.shape), 0.02, 0.98) for s in NOISE]
    else:
        classes = ["1", "2", "3", "4"]
        middle = rng.uniform(1, 4, items)
        answers = np.clip(np.round(middle[:, None] + rng.normal(0, 0.7, (items, 5))), 1, 4)
        labels = [str(int(one)) for one in answers.reshape(-1)]
        places = np.arange(1, 5)
        shifted = [middle + rng.normal(0, 2 * s, items) for s in NOISE]
        noisy = [np.exp(-((places - each[:, None]) ** 2)) + 0.01 for each in shifted]
        noisy = [each / each.sum(axis=1, keepdims=True) for each in noisy]
    rows = {
        "item": np.repeat(ids, 5),
        "annotator": [f"ann{k}" for _ in ids for k in range(5)],
        "label": labels,
        "lang": np.repeat(lang, 5),
    }
    declared = f"{scale.kind}:{','.join(classes)}" if scale != NOMINAL else "nominal"
    people = Annotations.from_table(rows, scale=declared, classes=classes)
    named_predictions = Predictions.from_arrays(
        noisy, items=ids, classes=classes, layout="KNC", scale=declared
    )
    return named_predictions, people


NOISE = (0.05, 0.1, 0.1, 0.2, 0.4, 0.6)


@pytest.fixture(scope="module", params=[POINTS, SETS], ids=["ordinal", "multi-label"])
def compared(request: pytest.FixtureRequest) -> tuple[Scale, Comparison]:
    scale = request.param
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dev = sample(scale, "dev")
        test = sample(scale, "test")
        return scale, compare(*dev, *test, methods=METHODS, samples=100)


def test_every_method_is_scored_with_the_main_metrics_of_the_scale(
    compared: tuple[Scale, Comparison],
) -> None:
    scale, found = compared
    assert found.skipped == {}
    assert [score.name for score in found.scores] == ["constant", "uniform", *METHODS]
    _, people = sample(scale, "test")
    y = None
    if not scale.is_multi_label:
        y = np.asarray(people.hard_labels(ties="random"))
    for k, score in enumerate(found.scores):
        assert tuple(score.metrics) == metrics.main_metrics(scale)
        p = found.test_predictions.probabilities[:, k]
        wanted = metrics.compute_metrics(
            p, np.asarray(people.soft_labels), scale.hard(p) if y is None else y, scale=scale
        )
        for name in ("ce", "md", "rps", "w1"):
            if name in score.metrics:
                assert score.metrics[name] == pytest.approx(wanted[name]), (score.name, name)
    assert found["edo"].ce < found["constant"].ce
    assert found.test_predictions.scale == scale


def test_the_headline_metric_ranks_methods_and_names_columns(
    compared: tuple[Scale, Comparison], tmp_path: Path
) -> None:
    scale, found = compared
    headline = metrics.headline_metric(scale)
    short = metrics.METRIC[headline].short
    assert found.lowest.metrics[headline] == min(score.metrics[headline] for score in found.scores)
    assert found.lowest.within_noise
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert written["headline_metric"] == headline
    assert written[f"lowest_{headline}"] == found.lowest.name
    assert f"against_lowest_{headline}" in written["methods"][0]
    assert written["scale"].startswith(scale.kind)
    table = found.markdown()
    for metric in metrics.main_metrics(scale):
        assert metrics.METRIC[metric].label in table
    assert "Δ constant" in table
    assert f"Δ: the {short} less that of uniform" in table
    assert f"the lowest {short}" in table
    found.save(tmp_path / "comparison")
    assert edokit.read_predictions(tmp_path / "comparison/compare/test.npz").scale == scale


def test_the_constant_of_sets_has_a_share_and_a_label_for_each(
    compared: tuple[Scale, Comparison],
) -> None:
    scale, found = compared
    dev, test = (sample(scale, split)[1] for split in ("dev", "test"))
    constant: Any = found.fitted["constant"]
    assert constant.constant_.shares == pytest.approx(dev.soft_labels.mean(axis=0))
    hard = constant.predict(test.items)
    if scale.is_multi_label:
        most = dev.hard_labels(ties="random").mean(axis=0) > 0.5
        assert hard.shape == (60, 3)
        assert (hard == most).all()
    else:
        assert set(hard) <= set(dev.classes)


@pytest.mark.parametrize("name", [name for name in method_names() if name in SIMPLE])
def test_weights_of_sets_are_those_of_their_rows(name: str) -> None:
    dev, people = sample(SETS, "dev", 20)
    method: Any = make_method(name)
    if name.startswith("wel"):
        method.trials = 2
        method.generations = 2
    fitted = method.fit(dev, people)
    assert fitted.predict(dev).shape == fitted.predict_proba(dev).shape == (20, 3)
    # A label of an item is an item with two classes; both are in the order of the items.
    by_name = sorted(dev.items)
    P = SETS.rows(dev.align(by_name).probabilities)
    people = people.align(by_name)
    q = SETS.rows(people.soft_labels)
    y = people.hard_labels().reshape(-1)
    assert fitted.weights_.tolist() == method.find_weights(P, q, y).tolist()
    pooled = fitted.predict_proba(dev.align(by_name))
    pool = Pool(method.pool)
    assert pooled == pytest.approx(weighted(P, fitted.weights_, pool)[:, 1].reshape(20, 3))


def test_the_majority_votes_on_each_label_of_a_set_and_on_points_of_a_scale() -> None:
    dev, people = sample(SETS, "dev", 20)
    voted = make_method("majority").fit(dev, people).predict_proba(dev)
    assert voted == pytest.approx((dev.probabilities > 0.5).mean(axis=1))
    dev, people = sample(POINTS, "dev", 20)
    voted = make_method("majority", ties="random").fit(dev, people).predict_proba(dev)
    likeliest = dev.probabilities.argmax(axis=2)
    literal = [(likeliest == c).mean(axis=1) for c in range(dev.shape[2])]
    assert voted == pytest.approx(np.stack(literal, axis=1))


def test_scales_do_not_mix() -> None:
    dev = sample(POINTS, "dev")
    test = sample(SETS, "test")
    with raises_code("scales-differ", "ordinal", "multi-label"):
        compare(*dev, *test, methods=["greedy"], samples=0)


def test_no_better_than_a_constant_names_the_metric_of_the_scale() -> None:
    _, people = sample(POINTS, "test")
    rng = np.random.default_rng(0)
    noise = rng.dirichlet(np.ones(4), 60)
    evaluation = edokit.evaluate(noise, people, samples=100, ties="random", order="annotations")
    assert "worse than a constant answer" in evaluation.headline[0]
    assert "in RPS (" in evaluation.headline[0]
    assert "CE" not in evaluation.headline[0]
    _, sets = sample(SETS, "test")
    none = edokit.evaluate(
        np.full((60, 3), 0.01), sets, samples=100, ties="random", order="annotations"
    )
    assert "labels all 60 items 'none'" in none.headline[0]
    assert any("in CE (" in line for line in none.headline)


@pytest.mark.parametrize("scale", [POINTS, SETS], ids=["ordinal", "multi-label"])
def test_evaluate_has_value_interval_best_and_constant_of_every_metric(
    scale: Scale, tmp_path: Path
) -> None:
    members, people = sample(scale, "test")
    p = members.probabilities[:, 0]
    evaluation = edokit.evaluate(
        p, people, samples=50, ties="random", by="lang", order="annotations"
    )
    q = np.asarray(people.soft_labels)
    y = np.asarray(people.hard_labels(ties="random"))
    assert list(evaluation.metrics) == list(metrics.metrics_of(scale))
    assert evaluation.metrics == metrics.compute_metrics(p, q, y, scale=scale)
    assert evaluation.best_possible == metrics.best_possible(q, y, scale=scale)
    assert evaluation.intervals == metrics.bootstrap(p, q, y, scale=scale, samples=50)
    assert evaluation.constant_metrics.keys() == evaluation.metrics.keys()
    for name in metrics.main_metrics(scale):
        assert evaluation.constant_metrics[name] == pytest.approx(
            evaluation.scores[-1].metrics[name]
        )
    written = json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))
    assert written["best_possible"].keys() == written["constant"]["metrics"].keys()
    assert written["scale"] == scale.kind
    columns = {f"p_{name}": p[:, k] for k, name in enumerate(people.classes)}
    table = pd.DataFrame({"item": people.items, **columns}).sample(frac=1, random_state=0)
    table.to_csv(tmp_path / "p.csv", index=False)
    read = edokit.evaluate(tmp_path / "p.csv", people, samples=0, ties="random")
    assert read.metrics == pytest.approx(evaluation.metrics)


def test_a_named_scale_keeps_its_order_and_numbers_may_widen_one() -> None:
    rows = {"item": ["x", "x", "y"], "annotator": ["1", "2", "1"], "label": ["low", "high", "mid"]}
    people = Annotations.from_table(rows, scale="ordinal:low=0,mid=1,high=5")
    table = {"item": ["x", "y"], "p_low": [1.0, 0.0], "p_mid": [0.0, 1.0], "p_high": [0.0, 0.0]}
    assert edokit.evaluate(table, people, samples=0, ties="random").metrics["w1"] == 1.25
    noted = {**table, "answer_scale": ["ordinal:low=0,mid=2,high=5"] * 2}
    with raises_code("scales-differ", "0", "2", "5", "1"):
        edokit.evaluate(noted, people, samples=0, ties="random")
    stars = Annotations.from_matrix([[1, 2], [2, 2]], items=["x", "y"], scale="ordinal")
    wider = {"item": ["x", "y"], "p_1": [0, 0], "p_2": [0, 0], "p_3": [1.0, 1.0]}
    assert edokit.evaluate(wider, stars, samples=0, ties="random").metrics["w1"] == 1.25


@pytest.mark.parametrize("scale", [POINTS, SETS], ids=["ordinal", "multi-label"])
@pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
def test_bare_arrays_take_the_scale_of_the_annotations(scale: Scale) -> None:
    dev, people = sample(scale, "dev")
    test, others = sample(scale, "test")
    comparison = compare(dev, people, test, others, methods=["greedy", "log-pool"], samples=0)
    people, others = (replace(each, rows=Rows.from_names(range(60))) for each in (people, others))
    others = replace(others, rows=Rows.from_names(range(60, 120)))
    named_predictions = Predictions.from_arrays(
        test.probabilities, items=others.items, classes=test.classes, layout="NKC", scale=scale
    )
    second_comparison = compare(
        dev.probabilities,
        people,
        named_predictions,
        others,
        methods=["greedy", "log-pool"],
        samples=0,
        order="annotations",
    )
    for name in ("uniform", "greedy", "log-pool"):
        assert second_comparison[name].metrics == pytest.approx(comparison[name].metrics)


def test_a_declared_scale_holds_for_predictions_without_one(tmp_path: Path) -> None:
    files = {}
    for split in ("dev", "test"):
        members, people = sample(POINTS, split)
        edokit.write_predictions(replace(members, scale=NOMINAL), tmp_path / f"{split}.npz")
        edokit.write_annotations(replace(people, scale=NOMINAL), tmp_path / f"{split}.csv")
        files[split] = tmp_path / f"{split}.npz", tmp_path / f"{split}.csv"
    comparison = compare(
        *files["dev"],
        *files["test"],
        methods=["greedy"],
        extra={"again": (files["dev"][0], files["test"][0])},
        scale="ordinal",
        ties="random",
        samples=0,
    )
    assert comparison.lowest.headline_metric == "rps"
    assert comparison["again"].metrics == comparison["uniform"].metrics
