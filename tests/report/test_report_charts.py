"""Charts show the numbers they are given, names as text."""

from __future__ import annotations

import colorsys
from itertools import combinations
from pathlib import Path
from typing import Any

import altair
import numpy as np
import pytest
from report_cases import make_run, make_search

from edokit._errors import InputError
from edokit.metrics import reliability_curve
from edokit.report import charts, collect
from edokit.report.charts import diagnosis, pareto
from edokit.report.colours import DARK, class_colours
from edokit.report.results import parse_search, read_search
from edokit.report.vega import Spec, figure_spec, page_spec


def drawn(chart: Spec, mark: str = "point") -> list[list[dict[str, Any]]]:
    """The rows of each layer with this mark, of a specification that the schema allows."""
    spec = page_spec(chart)
    altair.LayerChart.from_dict(spec)
    layers = [layer for layer in spec["layer"] if layer["mark"]["type"] == mark]
    return [layer["data"]["values"] for layer in layers]


def column(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


def test_every_chart_is_valid_vega_lite(tmp_path: Path) -> None:
    run_charts = charts.all_charts(collect(make_run(tmp_path, search=8, preset="paper-fixed")))
    expected = {"weights", "classes", "gain", "reliability", "pareto-f1-ce"}
    assert expected <= set(run_charts)
    for chart in run_charts.values():
        drawn(chart)
        altair.HConcatChart.from_dict(figure_spec([chart]))


def test_the_three_views_hold_the_same_trials_in_the_same_places(tmp_path: Path) -> None:
    make_search(tmp_path, 30)
    search = read_search(tmp_path)
    views = [drawn(pareto(search, x, y)) for x, y in combinations(search.metrics, 2)]
    numbers = [column(trials, "trial") for trials, _ in views]
    assert numbers[0] == numbers[1] == numbers[2]
    assert sorted(numbers[0]) == list(range(30))
    assert search.chosen is not None
    assert views[0][1][0]["F1"] == pytest.approx(search.chosen["f1"])


def test_trials_are_coloured_by_sign_and_the_dominated_dimmed(tmp_path: Path) -> None:
    make_search(tmp_path, 30)
    search = read_search(tmp_path)
    chart = pareto(search, "f1", "ce")
    rows = {row["trial"]: row for row in drawn(chart)[0]}
    for trial in search.trials:
        row = rows[trial["number"]]
        assert (row["diversity"], row["_front"]) == (trial["diversity"], trial["on_front"])
    encoding = chart["layer"][0]["encoding"]
    assert encoding["color"]["field"] == "diversity"
    assert encoding["opacity"]["value"] < 0.5 < encoding["opacity"]["condition"][-1]["value"]


def test_failed_trials_are_counted_not_drawn() -> None:
    rows: list[dict[str, Any]] = [
        {"number": 0, "f1": 0.9, "ce": 0.3, "md": 0.2, "on_front": True, "diversity": "preserve"},
        {"number": 1, "f1": None, "ce": None, "md": None, "on_front": False},
    ]
    search = parse_search(rows, {})
    assert (len(search.trials), search.failed, search.chosen) == (1, 1, None)
    assert column(drawn(pareto(search, "f1", "ce"))[0], "trial") == [0]


def test_weights_stand_heaviest_first_with_zeros_shown(tmp_path: Path) -> None:
    run = collect(make_run(tmp_path))
    assert run.ensemble is not None
    chart = charts.weights(run.ensemble)
    weights = column(drawn(chart, "bar")[0], "weight")
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1, abs=1e-3)
    assert column(drawn(chart, "text")[0], "_text")[-1] == "0"


def test_reliability_shows_every_bin() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1], size=200)
    q = rng.dirichlet([1, 1], size=200)
    curve = reliability_curve(p, q)
    bins = drawn(charts.reliability(curve))[0]
    assert column(bins, "predicted probability") == pytest.approx(
        curve.predicted.tolist(), abs=1e-4
    )
    assert column(bins, "share of annotations") == pytest.approx(curve.observed.tolist(), abs=1e-4)


def test_binned_means_are_means_of_their_items() -> None:
    full = float(np.log(2))
    human = np.array([0.0] * 5 + [full] * 5)
    predicted = np.arange(10) / 20
    at, mean, count = charts.binned_means(human, predicted, full)
    assert at.tolist() == pytest.approx([0, full])
    assert mean.tolist() == pytest.approx([0.1, 0.35])
    assert count.tolist() == [5, 5]


def test_of_many_items_evenly_spaced_ones_are_drawn() -> None:
    entropies = np.linspace(0, 0.69, 10_000)
    points = drawn(charts.entropy_against_entropy(entropies, entropies, 0.69))[0]
    cloud = column(points, "entropy of ensemble")
    assert (len(cloud), cloud[0], cloud[-1]) == (1500, 0, 0.69)
    assert len(set(cloud)) == 1500


NO_NUMBERS: dict[str, Any] = {
    "scale": "nominal",
    "classes": ["no", "yes"],
    "variance": None,
    "people": [],
}


def test_a_diagnosis_without_numbers_has_no_charts() -> None:
    assert diagnosis(NO_NUMBERS) == diagnosis(None) == {}


def test_a_diagnosis_shows_shares_of_the_variance() -> None:
    share = {"share": 0.25, "low": 0.2, "high": 0.3}
    parts = {**dict.fromkeys(["item", "annotator", "rest"], share), "group_item": None}
    figures = diagnosis(NO_NUMBERS | {"variance": parts})
    assert set(figures) == {"variance"}
    assert column(drawn(figures["variance"])[0], "share") == [0.25] * 3


def luminance(colour: str) -> float:
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(colour: str, ground: str) -> float:
    low, high = sorted((luminance(colour), luminance(ground)))
    return (high + 0.05) / (low + 0.05)


SCALES = {
    "two": ["no", "yes"],
    "six": [str(c) for c in range(1, 7)],
    "eleven": [str(c) for c in range(-5, 6)],
    "nominal": [f"class {k}" for k in range(16)],
}


@pytest.mark.parametrize("names", SCALES.values(), ids=SCALES)
def test_every_class_has_a_colour_of_its_own_on_both_pages(names: list[str]) -> None:
    pairs = class_colours(names)
    assert len(pairs) == len(names)
    for page, ground in ((0, "#ffffff"), (1, DARK["#ffffff"])):
        shown = [pair[page] for pair in pairs]
        rgb = np.array([[int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in shown])
        apart = np.abs(rgb[:, None] - rgb[None]).sum(axis=2) + 999 * np.eye(len(rgb), dtype=int)
        assert apart.min() >= 24
        assert min(contrast(colour, ground) for colour in shown) >= 1.6


def hue(colour: str) -> tuple[float, float]:
    """Hue in degrees, and how vivid the colour is."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    h, _, s = colorsys.rgb_to_hls(*parts)
    return 360 * h, s * (max(parts) - min(parts))


@pytest.mark.parametrize("names", SCALES.values(), ids=SCALES)
def test_no_class_is_green_or_red(names: list[str]) -> None:
    for colour in {shade for pair in class_colours(names) for shade in pair}:
        angle, vivid = hue(colour)
        assert vivid < 0.1 or not (75 < angle < 165 or angle < 12 or angle > 345), colour


def test_colours_of_classes_can_be_chosen() -> None:
    chosen = class_colours(["fine", "offensive"], chosen={"offensive": "#5e3c99"})
    assert chosen == [class_colours(["fine"])[0], ("#5e3c99", "#5e3c99")]
    with pytest.raises(InputError, match="'fine', 'offensive'"):
        class_colours(["fine", "offensive"], chosen={"offensiv": "#5e3c99"})
    with pytest.raises(InputError, match="#RRGGBB"):
        class_colours(["fine"], chosen={"fine": "red; background: url(x)"})


def test_ordered_classes_get_ordered_colours() -> None:
    for page, ground in ((0, "#ffffff"), (1, DARK["#ffffff"])):
        rising = [contrast(pair[page], ground) for pair in class_colours(SCALES["six"])]
        assert rising == sorted(rising)
        both = [contrast(pair[page], ground) for pair in class_colours(SCALES["eleven"])]
        assert both[:5] == sorted(both[:5], reverse=True)
        assert both[6:] == sorted(both[6:])
        zero = class_colours(SCALES["eleven"])[5][page]
        parts = [int(zero[k : k + 2], 16) for k in (1, 3, 5)]
        assert max(parts) - min(parts) < 24  # grey
    assert class_colours(["-3", "0", "1"])[1] == class_colours(SCALES["eleven"])[5]


def test_names_decide_whether_classes_are_ordered() -> None:
    nominal = class_colours(["a", "b", "c"])
    assert class_colours(["1", "2", "other"]) == nominal
    assert class_colours(["1.5", "2.5", "3.5"]) == nominal
    assert class_colours(["0", "1"]) == nominal[:2]
    assert class_colours([str(k) for k in range(300)])
    assert class_colours(["9" * 400, "1", "2"]) == nominal
    assert class_colours([]) == []
