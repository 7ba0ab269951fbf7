"""The summary agrees with the numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_cases import make_run, people_and_pool

from edokit import EDOEnsemble, compare
from edokit._io.documents import write_json
from edokit._types import Floats
from edokit.analysis.scores.result import Gain, Score
from edokit.analysis.scores.text import result_sentence
from edokit.metrics import MAIN_METRICS, Interval, PairedTest
from edokit.report import collect
from edokit.report.charts import all_charts
from edokit.report.data import ReportData
from edokit.report.evaluation import EvaluatedItems
from edokit.report.summary import PageSummary, summarize


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    return collect(make_run(tmp_path_factory.mktemp("words"), items=300))


def summary_of(ensemble: EDOEnsemble | None, evaluation: EvaluatedItems | None) -> PageSummary:
    return summarize(ReportData("run", ensemble=ensemble, evaluation=evaluation))


def with_differences(evaluation: EvaluatedItems, **tests: PairedTest) -> EvaluatedItems:
    """The evaluation with other differences from the uniform mean."""
    edo = evaluation.scores[0]
    return with_score(evaluation, replace(edo, against={**edo.against, **tests}))


def with_score(evaluation: EvaluatedItems, edo: Score) -> EvaluatedItems:
    """The evaluation with another score of the ensemble."""
    assert evaluation.result is not None
    scores = (edo, *evaluation.scores[1:])
    return replace(evaluation, result=replace(evaluation.result, scores=scores))


DOWN = PairedTest(-0.02, -0.03, -0.01, 0.01, 300)
UP = PairedTest(0.02, 0.01, 0.03, 0.01, 300)
LEVEL = PairedTest(0.0, -0.01, 0.01, 0.9, 300)


def divided(found: ReportData, probabilities: Floats) -> list[str]:
    """The caveats about answers that are more divided than the annotators."""
    evaluation = found.evaluation
    assert evaluation is not None
    pooled = replace(evaluation.pooled, probabilities=probabilities)
    summary = summary_of(found.ensemble, replace(evaluation, pooled=pooled))
    return [caveat for caveat in summary.caveats if "more divided" in caveat]


def test_doubt_of_the_models_is_not_called_disagreement(found: ReportData) -> None:
    assert found.evaluation is not None
    annotations = found.evaluation.annotations
    assert annotations is not None
    soft_labels = annotations.soft_labels
    assert divided(found, soft_labels) == []
    counts = annotations.annotations_per_item
    pairs = (counts * (counts - 1)).sum()
    assert pairs == len(counts) * counts[0] * (counts[0] - 1)
    chosen = soft_labels * counts[:, None]
    observed = 1 - (chosen * (chosen - 1)).sum() / pairs
    (caveat,) = divided(found, np.full_like(soft_labels, 1 / soft_labels.shape[1]))
    assert re.findall(r"\d+(?=\u00a0?%)", caveat) == ["50", f"{100 * observed:.0f}"]


@pytest.mark.parametrize(
    ("ce", "lead", "evidence"),
    [
        (DOWN, "Matches your annotators clearly better than a plain average", "is significant"),
        (UP, r"better than the same answer.*; clearly worse than a plain", "is significant"),
        (LEVEL, "; not clearly better than a plain average", "not significant"),
    ],
)
def test_the_headline_says_better_or_worse_only_if_the_interval_does(
    found: ReportData, ce: PairedTest, lead: str, evidence: str
) -> None:
    assert found.evaluation is not None
    summary = summary_of(found.ensemble, with_differences(found.evaluation, ce=ce))
    assert re.search(lead, summary.lead)
    assert evidence in summary.evidence[0]


def test_the_headline_has_the_size_of_the_gain() -> None:
    rival = Score("uniform", metrics={"ce": 0.5, "f1": 0.8})
    gain = Gain.from_test("ce", DOWN, rival)
    assert (gain.share, gain.low, gain.high) == pytest.approx((0.04, 0.02, 0.06))
    plain = "Matches your annotators clearly better than a plain average of the same models"
    assert result_sentence({"uniform": gain}) == f"{plain} (+4 %, +2 to +6 %)."
    slight = Gain.from_test("ce", replace(DOWN, difference=-0.002), rival)
    assert "(+0.4 %," in result_sentence({"uniform": slight})
    # Higher is better in F1.
    assert Gain.from_test("f1", UP, rival).standing == "better"
    assert Gain.from_test("f1", DOWN, rival).standing == "worse"


def test_the_gain_in_every_metric_is_one_chart(found: ReportData) -> None:
    assert found.evaluation is not None
    tests = {"f1": LEVEL, "ce": DOWN, "md": UP, "bs": LEVEL}
    evaluation = with_differences(found.evaluation, **tests)
    chart = all_charts(ReportData("run", evaluation=evaluation))["gain"]
    rows = chart["layer"][-1]["data"]["values"]
    assert [row["name"].split()[0] for row in rows] == [
        "cross-entropy",
        "F1",
        "distance",
        "Brier",
    ]
    assert [row["_clear"] for row in rows] == [True, False, True, False]
    assert rows[0]["gain"] > 0 > rows[2]["gain"]


def test_a_page_of_items_of_the_fit_has_the_headline_of_its_comparison(tmp_path: Path) -> None:
    run = make_run(tmp_path, test=False, compare=True)
    summary = summarize(collect(run))
    plain = "Matches your annotators clearly better than a plain average of the same models (+3 %,"
    assert summary.lead.startswith(plain)
    assert "held-out item" in summary.evidence[0]
    assert "Headline and comparison are of held-out items" in summary.caveats[0]


def test_the_lead_says_when_the_items_are_those_of_the_fit(tmp_path: Path) -> None:
    seen = collect(make_run(tmp_path, test=False))
    assert summarize(seen).lead.endswith(", on the items it was fitted on")


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
        page = evaluation.scores[0].against[metric]
        table = ours.against[metric]
        assert (page.low, page.high) == pytest.approx((table.low, table.high))
        assert page.p_value == table.p_value
    assert "(90\u00a0% interval: " in summary_of(None, evaluation).evidence[0]


def test_an_ensemble_no_better_than_a_constant_is_called_so(found: ReportData) -> None:
    evaluation = found.evaluation
    assert evaluation is not None
    assert found.evaluation.result.headline == []
    assert "a constant answer" in summary_of(found.ensemble, evaluation).evidence[0]
    edo = evaluation.scores[0]
    level = replace(edo, against_constant={**edo.against_constant, "ce": LEVEL})
    said = with_score(evaluation, level).result.headline
    lead = summary_of(found.ensemble, with_score(evaluation, level)).lead
    assert lead.startswith("Not clearly better than the same answer for every text (")
    assert len(said) == 1
    shares = "a constant answer (the shares of the items of the fit)"
    assert f"not clearly better than {shares} in CE ({edo.ce:.4f}" in said[0]
    assert "F1" not in said[0]
    worse = replace(edo, against_constant={"ce": UP, "f1": LEVEL}, only_label="no")
    first, second, third = with_score(evaluation, worse).result.headline
    assert f"labels all 300 items 'no', which has an F1 of {edo.f1:.4f}" in first
    assert "worse than a constant" in second
    assert "not clearly better than a constant" in third
    assert "in F1 (" in third


def test_the_difference_is_edo_minus_uniform(found: ReportData) -> None:
    evaluation = found.evaluation
    assert evaluation is not None
    edo, uniform = evaluation.scores[:2]
    assert (edo.name, uniform.name) == ("edo", "uniform")
    assert evaluation.scores[0].against["ce"].difference == pytest.approx(edo.ce - uniform.ce)


def test_equal_weights_are_called_equal() -> None:
    people, pool = people_and_pool()
    even = EDOEnsemble.from_weights([1 / 3] * 3, pool, people, ties="random")
    assert summary_of(even, None).weights[1] == "Their weights are equal (0.333)."


def test_every_summary_ends_with_the_annotators(found: ReportData) -> None:
    assert "does not replace them" in summarize(found).caveats[-1]
    assert "does not replace them" in summarize(ReportData("nothing")).caveats[-1]


def test_cautions_follow_the_data(tmp_path: Path) -> None:
    few = summarize(collect(make_run(tmp_path / "few", items=20)))
    assert any("With 20 items the intervals are wide" in line for line in few.caveats)


@pytest.mark.parametrize(
    ("rho", "low", "high", "words"),
    [
        (0.5, 0.4, 0.6, "clearly correlated"),
        (0.15, 0.05, 0.25, "weakly correlated"),
        (0.35, -0.02, 0.6, "not significantly correlated"),
        (-0.4, -0.5, -0.3, "negatively, correlated"),
        (0.5, None, None, "ρ = 0.50; there is no interval to judge it by"),
    ],
)
def test_a_correlation_is_called_by_its_size_and_interval(
    found: ReportData, rho: float, low: float | None, high: float | None, words: str
) -> None:
    assert found.evaluation is not None
    result = found.evaluation.result
    assert result is not None
    intervals = {**result.intervals, "entropy_correlation": Interval(rho, low, high)}
    evaluation = replace(found.evaluation, result=replace(result, intervals=intervals))
    assert words in summary_of(found.ensemble, evaluation).evidence[-1]


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


def test_cautions_are_about_the_items_of_the_headline(tmp_path: Path) -> None:
    """Of a page of items of the fit, held-out figures: no constant that these items chose."""
    found = collect(make_run(tmp_path, test=False, compare=True))
    assert found.comparison is not None
    assert found.evaluation is not None
    scores = {score.name: score for score in found.comparison.scores}
    unclear = replace(scores["edo"], against_constant={"ce": LEVEL, "f1": DOWN})
    constant = Score("constant", metrics={**unclear.metrics, "ce": unclear.ce + 0.01})
    held_out_scores = [unclear, scores["uniform"], constant]
    found.comparison = replace(found.comparison, scores=held_out_scores)
    summary = summarize(found)
    in_sample = found.evaluation.result
    assert in_sample is not None
    held_out = f"{unclear.ce:.4f} against {constant.ce:.4f}"
    assert any(f"in CE ({held_out}" in line for line in summary.cautions)
    assert f"{in_sample.scores[0].ce:.4f} against" not in "".join(summary.cautions)
