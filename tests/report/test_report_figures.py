"""Static figures: every chart, three formats, the same bytes for the same run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from report_cases import HOSTILE, make_run

from edokit._errors import MissingExtraError
from edokit.report import collect, write_figures
from edokit.report import figures as module

pytest.importorskip("matplotlib")


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
    first = {path.name: path.read_bytes() for path in write_figures(found, tmp_path / "a")}
    names = {name.partition(".")[0] for name in first}
    assert names == {
        *("pareto", "correlations", "weights", "epochs", "methods", "calibration", "members"),
        "diagnosis",
    }
    assert len(first) == 3 * len(names)
    # Drawing takes time; two figures with all there is to them stand for the rest.
    every = module.figures(found)
    some = {name: every[name] for name in ("pareto", "members")}
    monkeypatch.setattr(module, "figures", lambda found: some)
    again = {path.name: path.read_bytes() for path in write_figures(found, tmp_path / "b")}
    assert len(again) == 6
    assert again == {name: first[name] for name in again}


def test_what_the_run_lacks_is_left_out(tmp_path: Path) -> None:
    able = set(module.figures(collect(make_run(tmp_path, members=["alone"]))))
    assert able >= {"weights", "calibration"}
    assert not able & {"pareto", "members", "epochs"}


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"edokit\[figures\]"):
        write_figures(make_run(tmp_path / "run"), tmp_path / "out")
