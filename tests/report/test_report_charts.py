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

from edokit.metrics import reliability_curve
from edokit.report import charts, collect
from edokit.report.charts import pareto
from edokit.report.colours import DARK, class_colours
from edokit.report.results import parse_search, read_search
from edokit.report.vega import Spec, page_spec
from edokit.scales import DeclaredScale


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
    expected = {"weights", "gain", "reliability", "pareto-f1-ce"}
    assert expected <= set(run_charts)
    for chart in run_charts.values():
        drawn(chart)


def test_what_the_run_lacks_is_left_out(tmp_path: Path) -> None:
    run_charts = charts.all_charts(collect(make_run(tmp_path, members=["alone"])))
    assert set(run_charts) >= {"answers", "reliability"}
    assert not set(run_charts) & {"pareto-f1-ce", "weights", "gain"}


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
        assert (row["_sign"], row["_front"]) == (trial["diversity"], trial["on_front"])
    encoding = chart["layer"][0]["encoding"]
    assert [test["test"][-9:-1] for test in encoding["color"]["condition"]] == [
        "preserve",
        "suppress",
    ]
    assert encoding["opacity"]["value"] < 0.5 < encoding["opacity"]["condition"]["value"]


def test_failed_trials_are_counted_not_drawn() -> None:
    rows: list[dict[str, Any]] = [
        {"number": 0, "f1": 0.9, "ce": 0.3, "md": 0.2, "on_front": True, "diversity": "preserve"},
        {"number": 1, "f1": None, "ce": None, "md": None, "on_front": False},
    ]
    search = parse_search(rows, {})
    assert (len(search.trials), search.failed, search.chosen) == (1, 1, None)
    assert search.rule == ""
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


def luminance(colour: str) -> float:
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(colour: str, ground: str) -> float:
    low, high = sorted((luminance(colour), luminance(ground)))
    return (high + 0.05) / (low + 0.05)


POINTS = [str(c) for c in range(1, 12)]
COLOURS = {
    "nominal": class_colours([f"class {k}" for k in range(16)]),
    "ordinal": class_colours(POINTS, DeclaredScale("ordinal").resolve(POINTS)),
}


@pytest.mark.parametrize("pairs", COLOURS.values(), ids=COLOURS)
def test_every_class_has_a_colour_of_its_own_on_both_pages(pairs: list[tuple[str, str]]) -> None:
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


@pytest.mark.parametrize("pairs", COLOURS.values(), ids=COLOURS)
def test_no_class_is_green_or_red(pairs: list[tuple[str, str]]) -> None:
    for colour in {shade for pair in pairs for shade in pair}:
        angle, vivid = hue(colour)
        assert vivid < 0.1 or not (75 < angle < 165 or angle < 12 or angle > 345), colour


def test_points_of_a_scale_get_ordered_colours() -> None:
    points = [str(point) for point in range(-5, 6)]
    pairs = class_colours(points, DeclaredScale("ordinal").resolve(points))
    for page, ground in ((0, "#ffffff"), (1, DARK["#ffffff"])):
        rising = [contrast(pair[page], ground) for pair in pairs]
        assert rising == sorted(rising)


def test_numbers_that_are_no_scale_have_colours_as_names_do() -> None:
    nominal = class_colours(["a", "b", "c"])
    assert class_colours(["1", "2", "3"]) == nominal
    assert class_colours([str(k) for k in range(300)])[:3] == nominal
    assert class_colours([]) == []
