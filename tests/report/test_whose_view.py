"""The section "Whose view?" of a page, and `edo run --by`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import edokit
from edokit import EDOEnsemble, Predictions, write_report
from edokit.analysis.diagnose.groups import compare_groups
from edokit.analysis.diagnose.groups.result import GroupComparison
from edokit.report.charts import all_charts, group_levels
from edokit.report.data import ReportData, collect
from edokit.report.groups import groups_view
from tests.errors import raises_code


def votes(levels: int, scale: str) -> edokit.Annotations:
    rng = np.random.default_rng(0)
    rows = []
    for person in range(40):
        for item in rng.choice(60, 20, replace=False):
            high = rng.random() < (0.8 if person % levels == 0 else 0.3)
            label = str(rng.integers(2, 4)) if high else "1"
            rows.append((f"t{item}", f"p{person}", label, f"level {person % levels}"))
    table = pd.DataFrame(rows, columns=["item", "annotator", "label", "band"])
    # Texts that are not alike: near-duplicates would share a fold.
    letters = list("bcdfghklmnprstvz")
    words = {
        item: " ".join("".join(rng.choice(letters, 6)) for _ in range(8))
        for item in set(table.item)
    }
    table["text"] = "invented note: " + table["item"].map(words)
    return edokit.Annotations.from_table(table, scale=scale)


@pytest.mark.parametrize(("levels", "scale"), [(2, "ordinal"), (5, "nominal"), (10, "multi-label")])
def test_the_page_draws_every_level_and_says_what_the_tests_say(
    tmp_path: Path, levels: int, scale: str
):
    annotations = votes(levels, scale)
    p = np.random.default_rng(1).dirichlet(np.ones(3), (len(annotations.items), 2))
    if scale == "multi-label":
        p = np.clip(p, 0.01, 0.99)
    predictions = Predictions.from_arrays(
        p,
        layout="NKC",
        items=annotations.items,
        classes=annotations.classes,
        scale=annotations.scale,
    )
    EDOEnsemble(ties="random").fit(predictions, annotations).save(tmp_path / "ensemble")
    data = collect(tmp_path / "ensemble", predictions=predictions, annotations=annotations)
    data.groups = compare_groups(annotations, ["band"], permutations=199)
    charts = {name: spec for name, spec in all_charts(data).items() if name.startswith("groups-")}
    assert len(charts) == (1 if scale == "ordinal" else 3)
    dots = next(iter(charts.values()))["layer"][-1]["data"]["values"]
    assert [row["name"].split(" (")[0] for row in dots] == [f"level {k}" for k in range(levels)]
    page = write_report(data, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Whose view?" in page
    assert "no difference shown" in page or levels == 2
    assert 'class="veil"' in page
    assert "The anonymous answer is closer to" in page
    bare = write_report(data, tmp_path / "bare.html", texts=False).read_text(encoding="utf-8")
    assert "invented note" not in bare


def test_a_level_that_differs_beside_one_without_a_test_is_named_alone(tmp_path: Path):
    annotations = votes(3, "nominal")
    comparison = compare_groups(annotations, ["band"], permutations=0)
    first, second, third = comparison.levels
    levels = (replace(first, differs="yes", p=0.001), replace(second, differs="no", p=0.5), third)
    data = ReportData("RUN", groups=replace(comparison, levels=levels))
    view = groups_view(data, texts=False)
    assert view is not None
    assert view.attributes[0].findings == ("level 0 answers differently from the others.",)
    both = (levels[0], replace(second, differs="yes", p=0.001), third)
    view = groups_view(replace(data, groups=replace(comparison, levels=both)), texts=False)
    assert view is not None
    sentence = "level 0 and level 1 answer differently from the others."
    assert view.attributes[0].findings == (sentence,)


def test_charts_of_groups_have_one_scale_that_contains_every_interval():
    found = compare_groups(votes(5, "nominal"), ["band"], permutations=0)
    first = found.levels[0]
    wide = replace(first, low=dict.fromkeys(found.classes, -0.9))
    found = replace(found, levels=(wide, *found.levels[1:]))
    domains = [
        group_levels(found, "band", name)["encoding"]["x"]["scale"]["domain"]
        for name in found.classes
    ]
    assert domains[0] == domains[1] == domains[2]
    low, high = domains[0]
    assert low < -0.9
    for level in found.levels:
        assert isinstance(level.high, dict)
        assert high > max(level.high.values())


def test_a_comparison_survives_its_file():
    found = compare_groups(votes(5, "nominal"), ["band"], permutations=199)
    again = GroupComparison.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.to_dict() == found.to_dict()


@pytest.mark.filterwarnings("ignore:.* tied")
def test_a_run_compares_groups_and_keeps_the_result(tmp_path: Path):
    result = edokit.run(votes(2, "ordinal"), tmp_path / "run", time="1s", by=["band"])
    assert result.groups is not None
    assert result.groups.levels[0].differs == "yes"
    assert [entry["level"] for entry in result.results["groups"]] == ["level 0", "level 1"]
    assert any("--by band" in command for command in result.commands)
    assert "Whose view?" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    again = collect(tmp_path / "run")
    assert again.groups is not None
    with raises_code("unknown-attribute", "'gender'"):
        edokit.run(votes(2, "ordinal"), tmp_path / "other", by=["gender"])
