"""A run folder of an earlier version loads, resumes and answers as it did then.

``frozen/run.zip`` was made at 50a361e9 by ``edo run votes.csv --out RUN --jobs 1`` with the pool of
`small_pool`, on invented texts; its page was left out, since it holds the scripts of its charts.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edokit
from commands import answer
from edokit import Run, RunOptions, pipeline
from edokit.members import Group
from edokit.pipeline.pool import Ingredient

pytestmark = pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
ARCHIVE = Path(__file__).parent / "frozen" / "run.zip"


def small_pool(options: RunOptions) -> list[Ingredient]:
    """Two members that learn in no time."""
    return [
        Ingredient(Group("linear", 1, "bold", "soft", options={"strength": 20.0})),
        Ingredient(Group("linear", 1, "drawn", "random-select")),
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The table and the run of it, in the folder that commands run in."""
    shutil.unpack_archive(ARCHIVE, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pipeline, "default_pool", small_pool)
    return tmp_path


def alike(value: Any) -> Any:
    """The value, with numbers that another machine may round otherwise in the last digit."""
    if isinstance(value, dict):
        return {key: alike(part) for key, part in value.items()}
    if isinstance(value, list):
        return [alike(part) for part in value]
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-9)
    return value


def lasting(results: dict[str, Any]) -> dict[str, Any]:
    """The results without the time, and without intervals and the sentence made of them.

    Intervals of means were percentiles of a bootstrap at first; groups, the encoder and the
    sentences on quality came later.
    """
    rows = [{**row, "low": None, "high": None} for row in results["leaderboard"]]
    shares = {name: gain["share"] for name, gain in results["gains"].items()}
    changed = {"seconds": 0, "summary": "", "quality": [], "leaderboard": rows, "gains": shares}
    return {"groups": [], "encoder": "", "encoder_note": "", **results, **changed}


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_it_answers_as_it_did(folder: Path) -> None:
    expected = read(folder / "expected.json")
    described = edokit.load(folder / "RUN").describe(expected["texts"])
    for name in ("probabilities", "entropy", "spread"):
        np.testing.assert_allclose(getattr(described, name), expected[name], rtol=1e-12)
    assert answer("report", "RUN")["missing"] == []


def test_it_is_known_as_finished(folder: Path) -> None:
    before = read(folder / "RUN" / "summary.json")
    times = [path.stat().st_mtime_ns for path in sorted((folder / "RUN").rglob("*.npz"))]
    assert edokit.run("votes.csv", "RUN", jobs=1, quality="fast").results == before
    assert Run.load("RUN").results == before
    assert [path.stat().st_mtime_ns for path in sorted((folder / "RUN").rglob("*.npz"))] == times


@pytest.mark.parametrize("lost", [("ensemble", "comparison", "bundle"), ("bundle",), ()])
def test_it_resumes_where_a_kill_left_it_with_the_same_results(
    folder: Path, lost: tuple[str, ...]
) -> None:
    run = folder / "RUN"
    before = read(run / "summary.json")
    bundled = read(run / "bundle" / "bundle.json")["files"]
    weights = read(run / "ensemble" / "ensemble.json")["weights"]
    records = {name: read(run / name / "run.json")["inputs"] for name in ("ensemble", "comparison")}
    cards = {path: path.stat().st_mtime_ns for path in run.glob("*/members/*/fold-*/member.json")}
    (run / "run.json").unlink()
    for name in lost:
        shutil.rmtree(run / name)
    result = edokit.run("votes.csv", "RUN", jobs=1, quality="fast")
    assert read(run / "summary.json") == result.results
    # Options that came later have their defaults.
    before["options"] = asdict(RunOptions()) | before["options"] | {"encoder": None}
    assert lasting(result.results) == alike(lasting(before))
    assert read(run / "ensemble" / "ensemble.json")["weights"] == alike(weights)
    for name, inputs in records.items():
        assert read(run / name / "run.json")["inputs"] == inputs
    assert {path: path.stat().st_mtime_ns for path in cards} == cards  # nothing was trained
    again = read(run / "bundle" / "bundle.json")["files"]
    assert bundled.keys() <= again.keys()  # a later build may add files
    models = [name for name in bundled if name.endswith(".npz")]
    assert [again[name] for name in models] == [bundled[name] for name in models]
