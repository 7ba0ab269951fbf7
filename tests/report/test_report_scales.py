"""The page of ratings and sets: metrics, colours, charts, items and the review queue."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from report_cases import POINTS, ratings_and_pool, sets_and_pool

from edokit import Annotations, EDOEnsemble, Objective, Predictions, Scale, write_report
from edokit.ensemble.pooled import Pooled
from edokit.ensemble.reviews import label_studio_tasks, labelling_config, review
from edokit.metrics import w1
from edokit.report import collect
from edokit.report.charts import all_charts
from edokit.report.colours import class_colours
from edokit.report.data import ReportData
from edokit.report.evaluation import EvaluatedItems, evaluate_items
from edokit.report.items import filters, item_table, minority_lost
from edokit.report.results import (
    best_values,
    parse_search,
    ranked_scores,
    read_comparison,
    trial_settings,
)
from edokit.report.summary import summarize
from edokit.rows import Rows
from edokit.scales import DeclaredScale
from tests.errors import raises_code

SEVEN = DeclaredScale(POINTS).resolve("1234567")
SETS = Scale("multi-label")


@pytest.fixture(scope="module")
def ordinal(tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    return data_of(tmp_path_factory.mktemp("ordinal"), *ratings_and_pool())


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    return data_of(tmp_path_factory.mktemp("sets"), *sets_and_pool())


def data_of(folder: Path, people: Annotations, pool: Predictions) -> ReportData:
    EDOEnsemble(ties="random").fit(pool, people).save(folder / "ensemble")
    data = collect(folder / "ensemble", predictions=pool, annotations=people)
    assert data.missing == []
    return data


def text_of(data: ReportData, tmp_path: Path) -> str:
    page = write_report(data, tmp_path / "report.html").read_text(encoding="utf-8")
    body = page.partition("<main>")[2].partition("</main>")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def test_methods_of_ratings_are_ranked_by_rps(ordinal: ReportData, tmp_path: Path) -> None:
    scores = ranked_scores(None, ordinal.evaluation)
    assert list(best_values(scores)) == ["f1", "ce", "rps", "w1"]
    values = [score.rps for score in scores]
    assert values == sorted(values)
    assert values[0] == min(score.rps for score in ordinal.evaluation.scores)
    text = text_of(ordinal, tmp_path)
    for shown in ("RPS ↓", "W1 ↓", "ΔRPS vs uniform", "units of the scale"):
        assert shown in text
    assert "MD ↓" not in text
    assert "Ranked probability score of each method" in all_charts(ordinal)["methods"]["title"]


def test_sets_are_ranked_by_ce_and_have_exact_match(sets: ReportData, tmp_path: Path) -> None:
    scores = ranked_scores(None, sets.evaluation)
    assert set(best_values(scores)) == {"f1", "exact_match", "ce", "md"}
    assert scores[0].headline_metric == "ce"
    text = text_of(sets, tmp_path)
    for shown in ("exact ↑", "ΔCE vs uniform", "share of sets right", "α of “ rude ”"):
        assert shown in text


def test_the_summary_is_in_the_metrics_of_the_scale(ordinal: ReportData, sets: ReportData) -> None:
    tiles = [name for _, name, _, _ in summarize(ordinal).tiles]
    assert {"ranked probability score (RPS)", "Wasserstein distance (W1)"} < set(tiles)
    assert summarize(ordinal).evidence[0].startswith("By ranked probability score (RPS), on")
    assert "7 points of the scale" in summarize(ordinal).weights[0]
    found = summarize(sets)
    assert "labels of sets, “mocking”, “rude” and “warm”" in found.weights[0]
    assert "exact match" in [name for _, name, _, _ in found.tiles]
    assert "distance (MD)" not in tiles


def test_points_of_a_scale_have_ordered_colours_whatever_their_names() -> None:
    classes = ["never", "seldom", "often"]
    ordered = class_colours(classes, Scale("ordinal", (0, 1, 2)))
    assert ordered != class_colours(classes)
    # Labels of sets have no order, even if they are numbers.
    assert class_colours(["1", "2", "3"], SETS) == class_colours(["a", "b", "c"])
    assert ordered == class_colours(["a", "b", "c"], Scale("ordinal", (0.0, 0.25, 0.5)))


def test_items_are_compared_in_units_of_the_scale(ordinal: ReportData) -> None:
    evaluation = ordinal.evaluation
    table = item_table(evaluation)
    assert (table["kind"], table["metric"]) == ("ordinal", "W1")
    assert table["positions"] == tuple(range(1, 8))
    p = evaluation.pooled.probabilities
    q = np.asarray(evaluation.annotations.soft_labels)
    assert table["distance"][3] == pytest.approx(w1(p[[3]], q[[3]], range(1, 8)), abs=1e-4)
    labels = np.repeat(np.arange(1, 8), np.rint(5 * q[3]).astype(int))
    assert table["annotated"][3] == pytest.approx(labels.std(), abs=1e-4)


def test_the_spread_of_members_is_in_units_of_the_scale() -> None:
    people = Annotations.from_matrix([[1, 7], [7, 1]], scale=POINTS)
    ends = np.eye(7)[[0, 6]]
    pool = Predictions.from_arrays([ends, ends[::-1]], items=people.items, scale=POINTS)
    pooled = (
        EDOEnsemble(ties="random", objective=Objective(reg=100.0)).fit(pool, people).describe(pool)
    )
    # Two certain members at both ends are each three points from their mean.
    np.testing.assert_allclose(pooled.spread, [3, 3])


def ratings_of(labels: list[list[int]], p: list[list[float]]) -> EvaluatedItems:
    people = Annotations.from_matrix(labels, scale="ordinal:1,2,3,4,5")
    return evaluated(people, p)


def evaluated(people: Annotations, p: list[list[float]]) -> EvaluatedItems:
    pool = Predictions.from_arrays(
        [p], items=people.items, classes=people.classes, scale=people.scale, layout="KNC"
    )
    ensemble = EDOEnsemble(ties="random").fit(pool, people)
    return evaluate_items(ensemble, pool, people, name="test items", held_out=True)


def passing(evaluation: EvaluatedItems, key: str) -> list[int]:
    return np.flatnonzero(filters(evaluation)[key]).tolist()


def test_filters_of_ratings_look_at_numbers() -> None:
    sure = [0.0, 0.1, 0.8, 0.1, 0.0]
    flat = [0.2, 0.2, 0.2, 0.2, 0.2]
    evaluation = ratings_of(
        [[1, 5, 1, 5], [2, 3, 3, 4], [3, 3, 3, 3], [1, 3, 3, 3]], [sure, sure, flat, sure]
    )
    # Neighbouring ratings are no division, though no point has two thirds.
    assert passing(evaluation, "divided") == [0]
    assert passing(evaluation, "sure") == [0]
    assert passing(evaluation, "unsure") == [2]
    # Half of the annotators rate 5, where the ensemble has nothing; a quarter rate 1.
    assert passing(evaluation, "minority") == [0, 1, 3]
    described = {one["key"]: one["meaning"] for one in item_table(evaluation)["filters"]}
    assert "standard deviation" in described["divided"]


def test_filters_of_sets_look_at_each_label() -> None:
    table = {
        "item": [0, 0, 1, 1, 2, 2, 2, 2, 2],
        "annotator": [0, 1, 0, 1, 0, 1, 2, 3, 4],
        "label": [["a"], ["a", "b"], ["a"], ["a"], ["a"], ["a"], ["a"], ["a"], ["a", "b"]],
    }
    people = Annotations.from_table(table, scale="multi-label:a,b")
    evaluation = evaluated(people, [[0.95, 0.05], [0.9, 0.5], [0.9, 0.02]])
    assert passing(evaluation, "divided") == [0]
    assert passing(evaluation, "sure") == [0]
    assert passing(evaluation, "unsure") == [1]
    assert passing(evaluation, "minority") == [0, 2]
    assert passing(evaluation, "label") == []


def test_a_minority_above_a_point_is_lost_below_half_of_its_share() -> None:
    scale = Scale("ordinal", (1, 2, 3, 4))
    q = np.array([[0.6, 0.0, 0.2, 0.2]])
    assert not minority_lost(np.array([[0.7, 0.1, 0.1, 0.1]]), q, scale).any()
    assert minority_lost(np.array([[0.85, 0.0, 0.05, 0.1]]), q, scale).all()


def queue_of(scale: Scale, classes: str, p: list[float], spread: float = 0.0) -> list[object]:
    pooled = Pooled(Rows.from_names(["a"]), tuple(classes), np.array([p]), np.array([spread]))
    return review(
        Pooled(pooled.rows, pooled.classes, pooled.probabilities, pooled.spread, scale), 1
    )


def test_sets_to_review_are_the_labels_above_one_half() -> None:
    (one,) = queue_of(SETS, "abc", [0.9, 0.6, 0.2])
    assert one.label == ["a", "b"]
    assert one.reason.endswith("about 40% would leave out 'b'")
    (task,) = label_studio_tasks([one])
    assert task["predictions"][0]["result"][0]["value"]["choices"] == ["a", "b"]
    assert task["predictions"][0]["score"] == pytest.approx(0.6)
    (empty,) = queue_of(SETS, "abc", [0.1, 0.3, 0.2])
    assert empty.label == []
    assert empty.reason.endswith("about 30% would choose 'b'")
    (choices,) = ElementTree.fromstring(labelling_config("abc", True, is_multi_label=True)).iter(
        "Choices"
    )
    assert choices.get("choice") == "multiple"
    assert choices.get("required") is None


def test_ratings_to_review_are_far_from_the_median() -> None:
    scale = Scale("ordinal", (1, 2, 3, 4, 5))
    (few,) = queue_of(scale, "12345", [0.4, 0.2, 0.0, 0.0, 0.4])
    assert few.reason.endswith("about 80% would not choose '2'")  # the median
    (near,) = queue_of(scale, "12345", [0.0, 0.3, 0.4, 0.3, 0.0])
    (far,) = queue_of(scale, "12345", [0.3, 0.0, 0.4, 0.0, 0.3])
    assert near.urgency < far.urgency
    assert near.entropy == pytest.approx(far.entropy)


def test_a_search_of_ratings_is_shown_in_its_metrics(ordinal: ReportData) -> None:
    trial = {"f1": 0.5, "ce": 1.2, "md": 0.9, "w1": 0.8, "diversity": "preserve", "on_front": True}
    rows = [{"number": k, "rps": 0.3 - k / 10, "chosen": k == 1, **trial} for k in range(2)]
    estimates = {"optimistic": {"rps": 0.2, "ce": 1.2}, "cross-fitted": {"rps": 0.25}}
    chosen = {"rule": "lowest-rps", "estimates": estimates, "weights": {}}
    search = parse_search(rows, {"metrics": ["f1", "rps", "w1"], "chosen": chosen})
    assert search.headline == "rps"
    assert search.metrics == ("f1", "rps", "w1")
    assert "rps" not in trial_settings(search.trials[0])
    (text,) = summarize(ReportData("run", search=search)).weights
    assert "the lowest RPS on the front" in text
    assert "Its RPS is 0.2000 in-sample (optimistic) and 0.2500 cross-fitted" in text
    ordinal.search = search
    names = [name for name in all_charts(ordinal) if name.startswith("pareto-")]
    ordinal.search = None
    assert names == ["pareto-f1-rps", "pareto-f1-w1", "pareto-rps-w1"]


def test_annotations_of_another_scale_are_refused_by_name() -> None:
    people, pool = ratings_and_pool(items=20)
    ensemble = EDOEnsemble(ties="random").fit(pool, people)
    nominal = Annotations.from_table(
        people.to_table().to_pandas().drop(columns="answer_scale"), classes=people.classes
    )
    with raises_code("scales-differ", "nominal", "ordinal"):
        evaluate_items(ensemble, pool, nominal, name="test items", held_out=True)


def test_a_comparison_of_ratings_is_ranked_by_rps(tmp_path: Path) -> None:
    rows = [
        {"name": "uniform", "f1": 0.4, "ce": 1.5, "rps": 0.31, "w1": 1.1},
        {
            "name": "edo",
            "f1": 0.4,
            "ce": 1.6,
            "rps": 0.3,
            "w1": 1.0,
            "against_reference": {
                "rps": {"difference": -0.01, "low": -0.02, "high": 0.0, "p_value": 0.1, "n": 9}
            },
        },
    ]
    path = tmp_path / "methods.json"
    path.write_text(json.dumps({"methods": rows}))
    best, other = ranked_scores(read_comparison(path), None)
    assert (best.name, best.headline_metric, other.name) == ("edo", "rps", "uniform")
    assert best.against["rps"].difference == -0.01


@pytest.mark.parametrize(
    "people",
    [
        Annotations.from_matrix(
            [["never", "always"], ["often", "often"], ["never", "often"]],
            scale="ordinal:never=0,often=1,always=9",
        ),
        Annotations.from_matrix([[0, 1], [1, 1], [0, 0]], scale="ordinal:0,1"),
        Annotations.from_table(
            {"item": [0, 0, 1], "annotator": [0, 1, 0], "label": [["x"], [], []]},
            scale="multi-label:x",
        ),
        Annotations.from_soft_labels([[0.2, 0.9], [0.0, 0.4]], scale="multi-label"),
    ],
    ids=["uneven steps", "two points", "one label", "shares of labels"],
)
def test_small_and_odd_scales_make_a_page(people: Annotations, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shape = (len(people.items), 2, len(people.classes))
    P = rng.random(shape)
    if not people.scale.is_multi_label:
        P = P / P.sum(axis=2, keepdims=True)
    pool = Predictions.from_arrays(
        P, items=people.items, classes=people.classes, scale=people.scale, layout="NKC"
    )
    data = data_of(tmp_path, people, pool)
    assert people.classes[0] in text_of(data, tmp_path)
    largest = (people.scale.span or 2.0) + 1e-9
    assert 0 <= data.evaluation.distance.min() <= data.evaluation.distance.max() <= largest
