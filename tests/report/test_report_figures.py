"""Static figures: every chart, three formats, the same bytes for the same run."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_cases import HOSTILE, make_run

from edokit.report import charts as module
from edokit.report import collect, write_figures
from edokit.report.charts import all_charts


@pytest.mark.slow
def test_every_figure_in_every_format_and_the_same_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = collect(
        make_run(
            tmp_path / "run",
            members=[*HOSTILE[:3], "$x_{", "名前"],
            search=8,
            compare=True,
            preset="paper-fixed",
        )
    )
    # Drawing takes time; a few charts with all there is to them stand for the rest.
    every = all_charts(found)
    some = {name: every[name] for name in ("pareto-f1-ce", "methods", "weights")}
    monkeypatch.setattr(module, "all_charts", lambda data: some)
    first, again = (
        {path.name: path.read_bytes() for path in write_figures(found, tmp_path / folder)}
        for folder in "ab"
    )
    assert len(first) == 3 * len(some)
    # A PDF holds a random id.
    assert all(first[name] == again[name] for name in again if not name.endswith("pdf"))


def test_what_the_run_lacks_is_left_out(tmp_path: Path) -> None:
    charts = all_charts(collect(make_run(tmp_path, members=["alone"])))
    assert set(charts) >= {"weights", "reliability"}
    assert not set(charts) & {"pareto-f1-ce"}
