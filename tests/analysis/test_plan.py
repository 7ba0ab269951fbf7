"""`edokit.plan`: what pilots predict beside closed forms and simulations; bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import edokit
from commands import answer, assert_one_line, edo
from edokit import Annotations, Predictions, Scale, write_annotations
from edokit.analysis.human_labels import HumanLabels
from edokit.analysis.plan import best_counts
from edokit.analysis.plan.learning import TrainingRuns, planned_losses, train_on_parts
from edokit.analysis.plan.options import PlanOptions
from edokit.analysis.plan.soft_labels import (
    answers_given_another,
    draw_distributions,
    draw_soft_labels,
    soft_label_errors,
)
from edokit.metrics import item_values
from tests.errors import raises_code

QUICK = {"train": False, "samples": 50}


def pilot_of(q: Any, annotators: int, seed: int = 0, **options: Any) -> Annotations:
    """Annotators who draw their answers from these distributions [N, C]."""
    rng = np.random.default_rng(seed)
    codes = (rng.random((len(q), annotators, 1)) > np.cumsum(q, axis=1)[:, None, :-1]).sum(axis=2)
    return Annotations.from_matrix(codes, classes=range(np.shape(q)[1]), **options)


@pytest.fixture(scope="module")
def truth() -> Any:
    """Distributions of 600 items over two classes."""
    share = np.random.default_rng(1).beta(0.6, 0.9, 600)
    return np.column_stack([1 - share, share])


# --- Soft labels ----------------------------------------------------------------------------------


def test_distributions_are_drawn_from_the_posterior_of_dirichlet_items() -> None:
    prior = np.array([0.5, 1.5, 1.0])
    q = np.random.default_rng(0).dirichlet(prior, 4000)
    counts = np.random.default_rng(1).multinomial(4, q)
    labels = np.full(4000, 4)
    drawn = draw_distributions(counts / 4, labels, Scale(), np.random.default_rng(2))
    unanimous = counts[:, 1] == 4
    assert drawn[unanimous].mean(axis=0) == pytest.approx([0.5 / 7, 5.5 / 7, 1 / 7], abs=0.03)


def test_the_posterior_is_that_of_items_with_few_and_with_many_labels() -> None:
    """Dirichlet(α + labels): one label has its weight, whether an item has two or twenty."""
    prior = np.array([1.0, 2.0])
    q = np.random.default_rng(0).dirichlet(prior, 12_000)
    label_counts = np.repeat([2, 20], 6000)
    counts = np.random.default_rng(1).multinomial(label_counts, q)
    drawn = draw_distributions(
        counts / label_counts[:, None], label_counts, Scale(), np.random.default_rng(2)
    )
    for labels in (2, 20):
        unanimous = (label_counts == labels) & (counts[:, 1] == labels)
        expected = (prior[1] + labels) / (prior.sum() + labels)
        assert drawn[unanimous, 1].mean() == pytest.approx(expected, abs=0.01)
        variance = expected * (1 - expected) / (prior.sum() + labels + 1)
        assert drawn[unanimous, 1].var() == pytest.approx(variance, rel=0.15)


def test_the_error_of_the_soft_label_is_the_variance_within_items_over_annotators(
    truth: Any,
) -> None:
    plan = edokit.plan(pilot_of(truth, 4), annotators=(1, 2, 8), **QUICK)
    within = (1 - np.square(truth).sum(axis=1)).mean()
    for row in plan.curve:
        estimate, low, high = row["soft_label"]["bs"]
        expected = within / row["annotators"]
        assert low <= expected <= high
        assert estimate == pytest.approx(expected, rel=0.1)


def camps(rng: Any, items: int) -> Any:
    """Distributions over two classes, on which annotators are often divided."""
    share = rng.beta(0.5, 0.5, items)
    return np.column_stack([1 - share, share])


def ratings(rng: Any, items: int) -> Any:
    """Normal distributions with standard deviation 0.7, rounded to nine points."""
    means = rng.normal(4, 1.8, (items, 1)).clip(0, 8)
    edges = [-np.inf, *np.arange(8) + 0.5, np.inf]
    return np.diff(norm.cdf((edges - means) / 0.7), axis=1)


def sets(rng: Any, items: int) -> Any:
    """Probabilities that each of two labels is chosen."""
    return rng.beta([0.3, 2], [0.8, 2], (items, 2))


@pytest.mark.parametrize(
    ("scale", "draw", "metrics"),
    [
        (Scale(), camps, ("md", "bs")),
        (Scale("ordinal", tuple(range(9))), ratings, ("rps", "w1")),
        (Scale("multi-label"), sets, ("md",)),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_what_pilots_predict_is_what_other_items_show(
    scale: Scale, draw: Any, metrics: tuple[str, ...]
) -> None:
    """Three labels of 150 items predict the error of one, two and five annotators."""
    inside = []
    ratios = []
    values = item_values(scale)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        q = draw(rng, 3000)
        classes = [str(c) for c in range(q.shape[1])]
        pilot_labels = [draw_soft_labels(q[:150], 1, scale, rng) for _ in range(3)]
        pilot = Annotations.from_table(
            {
                "item": list(range(150)) * 3,
                "annotator": np.repeat(list("xyz"), 150),
                "label": np.hstack([scale.names(scale.hard(x), classes) for x in pilot_labels]),
            },
            scale=f"{scale.kind}:{','.join(classes)}",
        )
        soft = soft_label_errors(HumanLabels(pilot), (1, 2, 5), samples=60, random_state=0)
        for k, count in enumerate((1, 2, 5)):
            drawn = draw_soft_labels(q, count, scale, rng)
            for name in metrics:
                measured = values[name](drawn, q, scale.hard(q)).mean()
                estimate, low, high = soft[name].at(k)
                inside.append(low <= measured <= high)
                ratios.append(estimate / measured)
    assert np.mean(inside) >= 0.85  # the values of a pilot are right or wrong together
    assert np.mean(ratios) == pytest.approx(1, abs=0.06)


def few_kinds(rng: Any, items: int) -> Any:
    """Each item has a clear majority of 70 %: of two labels, many differ, and of ten, few ties."""
    share = rng.choice([0.3, 0.7], items)
    return np.column_stack([1 - share, share])


def rare_splits(rng: Any, items: int) -> Any:
    """All agree but for a few items that divide the annotators in halves."""
    share = rng.choice([0.0, 1.0, 0.5], items, p=[0.5, 0.46, 0.04])
    return np.column_stack([1 - share, share])


@pytest.mark.parametrize(
    ("draw", "items", "annotators"), [(few_kinds, 400, 3), (rare_splits, 60, 2)]
)
def test_intervals_span_the_shapes_that_a_pilot_cannot_tell(
    draw: Any, items: int, annotators: int
) -> None:
    truth = draw(np.random.default_rng(99), 20_000)
    drawn = draw_soft_labels(truth, 5, Scale(), np.random.default_rng(98))
    # A tie, of annotators or of the truth, is broken at random.
    p = truth.max(axis=1)
    expected_f1 = np.where(
        p == 0.5, 0.5, (drawn[np.arange(len(p)), truth.argmax(axis=1)] > 0.5).astype(float)
    ).mean()
    expected_md = np.abs(drawn - truth).sum(axis=1).mean()
    inside = []
    for seed in range(6):
        q = draw(np.random.default_rng(seed), items)
        pilot = HumanLabels(pilot_of(q, annotators, seed))
        errors = soft_label_errors(pilot, (5,), samples=50, random_state=0)
        for name, expected in (("f1", expected_f1), ("md", expected_md)):
            _, low, high = errors[name].at(0)
            inside.append(low <= expected <= high)
    assert np.mean(inside) > 0.8


def test_a_second_annotator_finds_the_majority_no_more_often_than_one(truth: Any) -> None:
    """Two annotators tie where they differ; ties are broken at random, not by the first class."""
    uneven = np.sort(truth, axis=1)[:, ::-1]  # the first class is the majority
    plan = edokit.plan(pilot_of(uneven, 3), annotators=(1, 2, 3, 4, 5), **QUICK)
    f1 = [row["soft_label"]["f1"][0] for row in plan.curve]
    assert f1[1] == pytest.approx(f1[0], abs=0.01)
    assert f1[2] > f1[1] + 0.02
    assert f1[3] == pytest.approx(f1[2], abs=0.01)
    assert f1[4] > f1[3]


def test_pairs_of_annotators_leave_out_those_with_themselves() -> None:
    """Of labels 0, 0, 1, another annotator than one who says 0 says 0 or 1 equally often."""
    given = answers_given_another(np.array([[2 / 3, 1 / 3]]), np.array([[3]]))
    assert given == pytest.approx(np.array([[0.5, 0.5], [1.0, 0.0]]))


@pytest.mark.parametrize(
    ("scale", "metrics"),
    [
        (None, {"f1", "md", "bs"}),
        ("ordinal:0,1,2", {"f1", "rps", "w1"}),
    ],
)
def test_each_scale_has_its_metrics(scale: str | None, metrics: set[str]) -> None:
    q = np.random.default_rng(0).dirichlet([1, 1, 1], 80)
    plan = edokit.plan(pilot_of(q, 3, scale=scale), annotators=(1, 5), **QUICK)
    assert set(plan.curve[0]["soft_label"]) == metrics


def test_sets_of_labels_have_a_plan() -> None:
    rows = {
        "item": np.repeat(np.arange(60), 3),
        "annotator": np.tile(["x", "y", "z"], 60),
        "label": (["[]", '["rude"]', '["rude","mocking"]'] * 60),
    }
    plan = edokit.plan(
        Annotations.from_table(rows, scale="multi-label"), annotators=(1, 9), **QUICK
    )
    first, last = (row["soft_label"]["md"][0] for row in plan.curve)
    assert first > last > 0


def test_neighbouring_points_of_a_scale_belong_together() -> None:
    """An item has two neighbouring points; distances would be far larger over all six."""
    low = np.random.default_rng(0).integers(0, 5, 300)
    q = (np.eye(6)[low] + np.eye(6)[low + 1]) / 2
    scale = Scale("ordinal", (1, 2, 3, 4, 5, 6))
    pilot = pilot_of(q, 3, scale="ordinal:0,1,2,3,4,5")
    drawn = draw_distributions(
        pilot.soft_labels, pilot.annotations_per_item, scale, np.random.default_rng(0)
    )
    upper = q[:, 3:].sum(axis=1)
    assert np.abs(drawn[:, 3:].sum(axis=1) - upper).mean() < 0.12


# --- Comparisons and models -----------------------------------------------------------------------


def test_the_difference_that_shows_follows_between_and_within(truth: Any) -> None:
    pilot = pilot_of(truth, 5)
    p = np.clip(truth[:, 1:] + [[-0.1, 0.15]], 0.05, 0.95)
    jury = Predictions.from_arrays(
        np.stack([1 - p, p], axis=2), items=pilot.items, classes=pilot.classes, layout="NKC"
    )
    plan = edokit.plan(pilot, predictions=jury, budget=1000, annotators=(1, 4), **QUICK)
    logs = np.log(np.stack([1 - p, p], axis=2))
    gain = logs[:, 1] - logs[:, 0]  # of the second model, by class
    means = (truth * gain).sum(axis=1)
    within = ((truth * gain**2).sum(axis=1) - means**2).mean()
    for row in plan.curve:
        spread = np.sqrt(means.var() + within / row["annotators"])
        expected = (1.96 + 0.8416) * spread / np.sqrt(row["items"])
        assert row["comparison"]["ce"][0] == pytest.approx(expected, rel=0.1)
    # Labels are the only cost: one for each of more items is best.
    assert plan.best["comparison"][0] == 1


def test_one_model_is_compared_with_a_constant(truth: Any) -> None:
    pilot = pilot_of(truth, 2)
    jury = Predictions.from_arrays(
        truth[:, None], items=pilot.items, classes=pilot.classes, layout="NKC"
    )
    plan = edokit.plan(pilot, predictions=jury, **QUICK)
    assert plan.compared == ["0", "a constant answer"]
    assert any("a budget of 1200 annotations" in line for line in plan.headline)


def test_a_model_learns_more_from_more_items() -> None:
    simulation = edokit.simulate("partial-panel", random_state=0, items=(160, 1, 1))
    pilot = simulation.annotations.split("train")
    plan = edokit.plan(pilot, budget=2000, annotators=(1, 20), samples=50)
    losses = [row["model"]["ce"][0] for row in plan.curve]
    assert losses[0] < losses[1]  # 2,000 items with one annotator, 100 with twenty
    assert plan.best["model"][0] == 1


def runs_with_losses(sizes: Any, inverse_counts: Any, losses: Any, items: int = 40) -> TrainingRuns:
    """Runs whose loss is the same for all items."""
    return TrainingRuns(sizes, inverse_counts, np.tile(np.reshape(losses, (-1, 1)), items))


def test_a_loss_falls_with_the_fourth_root_of_the_items() -> None:
    sizes = np.array([50, 100, 200] * 2)
    inverse_counts = np.repeat([1.0, 0.25], 3)
    losses = 0.3 + (0.5 + 0.2 * inverse_counts) * sizes**-0.25
    runs = runs_with_losses(sizes, inverse_counts, losses)
    planned = planned_losses(runs, [1600, 800], [1, 2], 20, np.random.default_rng(0))
    expected = [0.3 + 0.7 * 1600**-0.25, 0.3 + 0.6 * 800**-0.25]
    assert planned == pytest.approx(np.tile(expected, (20, 1)), rel=1e-6)


def test_trainings_that_differ_make_a_plan_uncertain() -> None:
    """All items have the same loss, so only the trained models differ."""
    sizes = np.array([50, 100, 200] * 6)
    curve = 0.3 + 0.5 * sizes**-0.25
    noise = np.random.default_rng(0).normal(0, 0.02, len(sizes))
    spreads = []
    for losses in (curve, curve + noise):
        runs = runs_with_losses(sizes, np.ones(len(sizes)), losses)
        planned = planned_losses(runs, [400], [1], 200, np.random.default_rng(0))
        spreads.append(planned.std())
    assert spreads[0] < 1e-9
    assert 0.004 < spreads[1] < 0.1


def pilot_with_texts() -> tuple[Annotations, dict[str, Any]]:
    simulation = edokit.simulate("crowd", random_state=0, items=(120, 1, 1))
    return simulation.annotations.split("train"), {"budget": 600}


def pilot_with_models() -> tuple[Annotations, dict[str, Any]]:
    share = np.random.default_rng(1).beta(0.6, 0.9, 300)
    truth = np.column_stack([1 - share, share])
    pilot = pilot_of(truth, 3)
    p = np.clip(share[:, None] + [[-0.1, 0.15]], 0.05, 0.95)
    jury = Predictions.from_arrays(
        np.stack([1 - p, p], axis=2), items=pilot.items, classes=pilot.classes, layout="NKC"
    )
    return pilot, {"predictions": jury, "budget": 2000, "price": 0.1, "item_price": 0.2}


@pytest.mark.parametrize(
    "make_pilot", [pytest.param(pilot_with_texts, marks=pytest.mark.slow), pilot_with_models]
)
def test_the_first_line_is_the_same_for_ten_seeds(make_pilot: Any) -> None:
    pilot, settings = make_pilot()
    lines = set()
    for seed in range(10):
        plan = edokit.plan(
            pilot, annotators=(1, 2, 3, 5, 10, 20), samples=50, random_state=seed, **settings
        )
        lines.add(plan.headline[0])
    (line,) = lines
    assert "the pilot can't tell" in line.lower()
    if make_pilot is pilot_with_texts:
        assert "smallest number and more items" in line
        assert "1 annotator for each of 600 items" in line
    else:
        assert "annotators for each item" in line


def test_the_loss_of_a_model_is_the_metric_of_evaluate() -> None:
    """On an ordinal scale, too: the RPS to soft labels, not to single labels."""
    q = np.random.default_rng(0).dirichlet([1, 1, 1], 50)
    pilot = pilot_of(q, 4, scale="ordinal:0,1,2")
    p = np.full((50, 3), 1 / 3)
    values = {f"p_{name}": p[:, k] for k, name in enumerate(pilot.classes)}
    probabilities = {"item": list(pilot.items), **values}
    evaluation = edokit.evaluate(probabilities, pilot, samples=0, ties="random")
    assert HumanLabels(pilot).losses(p).mean() == pytest.approx(evaluation.metrics["rps"])


# --- Budget and bad input -------------------------------------------------------------------------


def test_the_budget_buys_items(truth: Any) -> None:
    plan = edokit.plan(
        pilot_of(truth, 2), budget=10, price=0.1, item_price=0.3, annotators=(2, 7, 500), **QUICK
    )
    assert [(row["annotators"], row["items"]) for row in plan.curve] == [(2, 20), (7, 10)]


@pytest.mark.parametrize("scale", [None, "ordinal:0,1,2"])
def test_all_may_agree(scale: str | None) -> None:
    pilot = Annotations.from_matrix([[0, 0, 0], [1, 1, 1]] * 40, scale=scale)
    plan = edokit.plan(pilot, **QUICK)
    for row in plan.curve:
        assert row["soft_label"]["md" if scale is None else "w1"][0] < 0.05
        for estimate, low, high in row["soft_label"].values():
            assert low <= estimate <= high
            assert high - low > 1e-4  # a pilot that agrees does not show that all agree
    # If two annotators differ with probability p, all of 80 items agree with (1 − p)^80 = 0.05.
    assert any("two annotators" in note and "3.7% of the cases" in note for note in plan.notes)


@pytest.mark.parametrize("votes", [[[0], [1]], [[0, None], [None, 1]]], ids=["one", "no overlap"])
def test_one_annotator_an_item_is_refused(votes: list[list[int | None]]) -> None:
    with raises_code("too-few-labels"):
        edokit.plan(Annotations.from_matrix(votes))


def test_a_budget_for_nothing_is_refused(truth: Any) -> None:
    with raises_code("invalid-number", "budget=0.5"):
        edokit.plan(pilot_of(truth, 2), budget=0.5, **QUICK)


@pytest.mark.parametrize(
    "setting", [{"price": 0}, {"annotators": (0,)}, {"samples": 3}, {"power": 1}]
)
def test_settings_out_of_range_are_refused(setting: dict[str, Any]) -> None:
    with raises_code("invalid-number", next(iter(setting))):
        PlanOptions(**setting)


def test_the_command_shows_what_python_finds(truth: Any, tmp_path: Path) -> None:
    pilot = pilot_of(truth[:60], 3)
    write_annotations(pilot, tmp_path / "pilot.csv")
    words = ["plan", tmp_path / "pilot.csv", "--annotators", "1,3", "--bootstrap", "50"]
    done = edo(*words)
    assert done.returncode == 0, done.stderr
    assert "soft label" in done.stdout
    assert "lacks texts" in done.stdout
    plan = edokit.plan(tmp_path / "pilot.csv", annotators=(1, 3), samples=50)
    assert answer(*words) == json.loads(json.dumps(plan.to_dict()))
    assert_one_line(edo(*words[:3], "one"), "--annotators", "whole numbers")


def test_as_good_is_what_the_interval_does_not_put_above_the_lowest() -> None:
    rng = np.random.default_rng(0)
    gaps = np.array([0.5, 0.0, 0.02, 0.5])  # of two, three, five and eight annotators
    noise = 0.1 * rng.normal(size=(500, 4)) * [1, 0, 1, 1]
    assert best_counts(1 + gaps + noise, [2, 3, 5, 8], 0.95) == [3, 5]


def test_repeated_labels_of_one_annotator_show_no_disagreement() -> None:
    columns = {"item": [0, 0, 1, 1], "annotator": ["a", "a", "b", "b"], "label": [0, 1, 0, 0]}
    with raises_code("too-few-labels"):
        edokit.plan(Annotations.from_table(columns, duplicates="all"), **QUICK)


@pytest.mark.parametrize("annotators", [3, 7, 12])
def test_a_unanimous_pilot_is_noted_whatever_its_size(annotators: int) -> None:
    """Of many equal numbers, the mean differs from them by rounding."""
    pilot = Annotations.from_matrix([[code] * annotators for code in (0, 1, 2) * 10])
    assert any("agree in the pilot" in note for note in edokit.plan(pilot, **QUICK).notes)


def test_one_planned_number_of_annotators_is_not_called_the_best() -> None:
    pilot = edokit.simulate("crowd", random_state=0, items=(100, 1, 1)).annotations
    plan = edokit.plan(pilot, budget=300, annotators=(3,), samples=50)
    assert plan.best["model"] == [3]
    assert not any("best" in line for line in plan.headline)


def test_copies_of_items_that_are_kept_together_make_no_pilot_larger() -> None:
    rng = np.random.default_rng(0)
    share = rng.beta(0.7, 0.7, 80)
    votes = (rng.random((80, 4)) < share[:, None]).astype(int)
    answers = {name: np.clip(share + rng.normal(0, 0.15, 80), 0.02, 0.98) for name in ("m", "n")}
    widths = []
    for copies in (1, 5):
        pilot = Annotations.from_matrix(np.repeat(votes, copies, axis=0))
        pilot = replace(pilot, item_groups=np.repeat(np.arange(80), copies).astype(str))
        models = {}
        for name, p in answers.items():
            models[name] = np.repeat(np.column_stack([1 - p, p]), copies, axis=0)
        jury = Predictions.from_arrays(models, items=pilot.items, classes=pilot.classes)
        plan = edokit.plan(pilot, predictions=jury, budget=400, annotators=(1, 3), **QUICK)
        row = plan.curve[1]
        values = (row["soft_label"]["bs"], row["comparison"]["ce"])
        widths.append([high - low for _, low, high in values])
    np.testing.assert_allclose(widths[1], widths[0], rtol=0.35)


def test_models_of_a_plan_are_tested_on_other_groups_than_they_learned_from() -> None:
    crowd = edokit.simulate("crowd", random_state=0, items=(120, 1, 1)).annotations
    groups = np.arange(len(crowd.items)) // 4
    runs = train_on_parts(crowd, HumanLabels(crowd), np.random.default_rng(0), groups)
    assert runs.item_groups is not None
    for losses in runs.losses:
        is_tested = ~np.isnan(losses)
        assert is_tested.any()
        for group in np.unique(runs.item_groups):
            members = is_tested[runs.item_groups == group]
            assert members.all() or not members.any()
