"""The summary agrees with the numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_cases import make_run, people_and_pool

from edokit import Annotations, EDOEnsemble, Predictions
from edokit._io import write_json
from edokit.baselines import compare
from edokit.metrics import MAIN_METRICS, Interval, PairedTest
from edokit.report import collect
from edokit.report.data import ReportData
from edokit.report.evaluation import Evaluation, evaluate_items
from edokit.report.summary import Summary, summarize


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    return collect(make_run(tmp_path_factory.mktemp("words"), items=300))


def summary_of(ensemble: EDOEnsemble | None, evaluation: Evaluation | None) -> Summary:
    return summarize(ReportData("run", ensemble=ensemble, evaluation=evaluation))


def with_differences(evaluation: Evaluation, **tests: PairedTest) -> Evaluation:
    """The evaluation with other differences from the uniform mean."""
    edo, *others = evaluation.scores
    changed = replace(edo, against={**edo.against, **tests})
    return replace(evaluation, scores=[changed, *others])


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-0.02, -0.01, "): a significant improvement"),
        (-0.02, 0.01, "): not significant"),
        (0.01, 0.02, "): significantly worse"),
    ],
)
def test_a_gain_is_called_by_its_interval(
    found: ReportData, low: float, high: float, words: str
) -> None:
    assert found.evaluation is not None
    test = PairedTest((low + high) / 2, low, high, 0.5, 300)
    evaluation = with_differences(found.evaluation, ce=test)
    assert words in summary_of(found.ensemble, evaluation).improvement[0]


DOWN = PairedTest(-0.02, -0.03, -0.01, 0.01, 300)
UP = PairedTest(0.02, 0.01, 0.03, 0.01, 300)
LEVEL = PairedTest(0.0, -0.01, 0.01, 0.9, 300)


@pytest.mark.parametrize(
    ("f1", "ce", "md", "bs", "words"),
    [
        (UP, DOWN, DOWN, DOWN, "better than the uniform mean in F1, CE, MD and BS."),
        (DOWN, UP, UP, UP, "worse than the uniform mean in F1, CE, MD and BS."),
        (
            LEVEL,
            LEVEL,
            LEVEL,
            LEVEL,
            "does not differ significantly from the uniform mean in F1, CE",
        ),
        (
            LEVEL,
            DOWN,
            UP,
            LEVEL,
            "better than the uniform mean in CE and worse in MD; no significant difference in F1",
        ),
        (UP, UP, LEVEL, LEVEL, "better than the uniform mean in F1 and worse in CE; no"),
        (
            DOWN,
            LEVEL,
            LEVEL,
            LEVEL,
            "worse than the uniform mean in F1; no significant difference",
        ),
    ],
)
def test_the_lead_names_all_four_metrics_by_their_intervals(
    found: ReportData, f1: PairedTest, ce: PairedTest, md: PairedTest, bs: PairedTest, words: str
) -> None:
    assert found.evaluation is not None
    evaluation = with_differences(found.evaluation, f1=f1, ce=ce, md=md, bs=bs)
    assert words in summary_of(found.ensemble, evaluation).lead


def test_the_lead_says_when_the_items_are_those_of_the_fit(tmp_path: Path) -> None:
    seen = collect(make_run(tmp_path, test=False))
    assert "In-sample (optimistic), on the 60 items of the fit, the" in summarize(seen).lead


def test_a_page_has_the_intervals_of_the_comparison_that_it_shows(tmp_path: Path) -> None:
    people, pool = people_and_pool(60, prefix="dev")
    test_people, test_pool = people_and_pool(60, seed=1, prefix="test")
    run = make_run(tmp_path)
    both = ((pool, people), (test_pool, test_people))
    compared = compare(*both[0], *both[1], methods=["edo"], random_state=7, samples=300, level=0.9)
    ours = compared["edo"]
    write_json(compared.to_dict(), run / "compare" / "methods.json")
    evaluation = collect(run).evaluation
    assert evaluation is not None
    for metric in MAIN_METRICS:
        assert evaluation.scores[0].intervals[metric] == pytest.approx(ours.intervals[metric])
        page, table = evaluation.scores[0].against[metric], ours.against[metric]
        assert (page.low, page.high) == pytest.approx((table.low, table.high))
        assert page.p_value == table.p_value
    assert "(90\u00a0%: " in summary_of(None, evaluation).improvement[0]


def test_an_ensemble_no_better_than_a_constant_is_called_so(found: ReportData) -> None:
    evaluation = found.evaluation
    assert evaluation is not None
    assert found.evaluation.headline == []
    assert "A constant answer" in " ".join(summary_of(found.ensemble, evaluation).improvement)
    edo, *others = evaluation.scores
    level = replace(edo, against_constant={**edo.against_constant, "ce": LEVEL})
    said = replace(evaluation, scores=[level, *others]).headline
    assert len(said) == 1
    shares = "a constant answer (the shares of the items of the fit)"
    assert f"not clearly better than {shares} in CE ({edo.ce:.4f}" in said[0]
    assert "F1" not in said[0]
    worse = replace(edo, against_constant={"ce": UP, "f1": LEVEL}, only_label="no")
    first, second = replace(evaluation, scores=[worse, *others]).headline
    assert "labels all 300 items 'no': its F1" in first
    assert "worse than a constant" in second
    assert "and not clearly better than it in F1" in second


def test_every_metric_has_its_difference(found: ReportData) -> None:
    assert found.evaluation is not None
    told = " ".join(summary_of(found.ensemble, found.evaluation).improvement)
    assert all(f"({name})" in told for name in ("MD", "BS"))


def test_the_difference_is_edo_minus_uniform(found: ReportData) -> None:
    evaluation = found.evaluation
    assert evaluation is not None
    edo, uniform = evaluation.scores[:2]
    assert (edo.name, uniform.name) == ("edo", "uniform")
    assert evaluation.scores[0].against["ce"].difference == pytest.approx(edo.ce - uniform.ce)


def test_the_heaviest_members_are_named_with_their_share(found: ReportData) -> None:
    ensemble = found.ensemble
    assert ensemble is not None
    heaviest = ensemble.members_[int(np.argmax(ensemble.weights_))]
    sentence = summary_of(ensemble, found.evaluation).weights[1]
    assert sentence.startswith(f"“{heaviest}” ({ensemble.weights_.max():.3f})")


def test_equal_weights_are_called_equal() -> None:
    people, pool = people_and_pool()
    even = EDOEnsemble.from_weights([1 / 3] * 3, pool, people, ties="random")
    assert summary_of(even, None).weights[1] == "Their weights are equal (0.333)."


def test_members_without_weight_are_counted(found: ReportData) -> None:
    ensemble = found.ensemble
    assert ensemble is not None
    without = len(ensemble.members_) - ensemble.size_
    assert without >= 1
    text = " ".join(summary_of(ensemble, None).weights)
    assert f"{without} member{'s have' if without > 1 else ' has'} no weight" in text
    assert "would raise the loss" in text


def test_every_summary_ends_with_the_annotators(found: ReportData) -> None:
    assert "does not replace them" in summarize(found).caveats[-1]
    assert "does not replace them" in summarize(ReportData("nothing")).caveats[-1]


def test_cautions_follow_the_data(tmp_path: Path) -> None:
    few = summarize(collect(make_run(tmp_path / "few", items=20)))
    assert any("With 20 items the intervals are wide" in line for line in few.caveats)
    people, pool = people_and_pool(60, members=["a", "b"])
    same = pool.probabilities.copy()
    same[:, 1] = same[:, 0]
    pool = replace(pool, probabilities=same)
    EDOEnsemble(ties="random").fit(pool, people).save(tmp_path / "alike")
    alike = summarize(collect(tmp_path / "alike", predictions=pool, annotations=people))
    assert any("nearly identical" in line for line in alike.caveats)


@pytest.mark.parametrize(
    ("rho", "low", "high", "words"),
    [
        (0.5, 0.4, 0.6, "clearly correlated"),
        (0.15, 0.05, 0.25, "weakly correlated"),
        (0.35, -0.02, 0.6, "not significantly correlated"),
        (-0.4, -0.5, -0.3, "negatively, correlated"),
    ],
)
def test_a_correlation_is_called_by_its_size_and_interval(
    found: ReportData, rho: float, low: float, high: float, words: str
) -> None:
    assert found.evaluation is not None
    evaluation = replace(found.evaluation, rho=Interval(rho, low, high))
    assert words in summary_of(found.ensemble, evaluation).improvement[-1]


@pytest.mark.parametrize(("count", "rare"), [(2, True), (11, False)])
def test_a_class_is_rare_by_the_number_of_classes(tmp_path: Path, count: int, rare: bool) -> None:
    data = collect(make_run(tmp_path, classes=[f"c{k}" for k in range(count)]))
    assert data.evaluation is not None
    n = 60
    hard = np.arange(n) % count
    if count == 2:
        hard[:] = 0
        hard[:5] = 1  # 8 %, as is the rarest of eleven
    changed = replace(data, evaluation=replace(data.evaluation, hard_labels=hard))
    assert any("hardly affect" in line for line in summarize(changed).caveats) is rare


def test_the_page_says_when_nothing_was_learned(tmp_path: Path) -> None:
    for name, preset in (("short", "paper-fixed"), ("long", "default")):
        (tmp_path / name).mkdir()
        run = make_run(tmp_path / name, preset=preset, solver="gumbel")
        first = [text for text in summarize(collect(run)).caveats if "Nothing was learned" in text]
        assert bool(first) == (name == "short")
        assert all("10 epochs" in text for text in first)


@pytest.mark.parametrize(("size", "words"), [(0.001, "is slightly worse than"), (0.5, "is worse")])
def test_a_small_difference_is_called_slight(found: ReportData, size: float, words: str) -> None:
    assert found.evaluation is not None
    one = PairedTest(size, size / 2, size * 2, 0.01, 300)
    evaluation = with_differences(found.evaluation, f1=LEVEL, ce=one, md=LEVEL, bs=LEVEL)
    assert words in summary_of(found.ensemble, evaluation).lead


@pytest.mark.parametrize("count", [2, 11])
@pytest.mark.parametrize("biased", [False, True])
def test_a_minority_is_underestimated_by_more_than_chance(count: int, biased: bool) -> None:
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(count), size=200)
    names = [f"c{k}" for k in range(count)]
    codes = np.array([rng.choice(count, size=4, p=row) for row in truth])
    people = Annotations.from_matrix(np.array(names, dtype=object)[codes], classes=names)
    p = truth**4 / (truth**4).sum(axis=1, keepdims=True) if biased else truth
    pool = Predictions.from_arrays(p[:, None], items=people.items, classes=names, layout="NKC")
    ensemble = EDOEnsemble(ties="random").fit(pool, people)
    evaluation = evaluate_items(ensemble, pool, people, name="test items", held_out=True)
    shown = summarize(ReportData("run", ensemble=ensemble, evaluation=evaluation)).caveats
    assert any("half of its share" in line for line in shown) is biased
