"""`edo fit` and `edo predict` take a folder of shards as they take a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands import answer, assert_one_line, edo, printed
from edokit import write_predictions
from edokit._io.tables import read_table, write_table
from edokit.cli.console import progress
from edokit.cli.options import Streaming
from shard_cases import Cut, cut
from tests.errors import raises_code


@pytest.fixture
def made(tmp_path: Path) -> Cut:
    return cut(tmp_path, 60, [21, 40])


def fit_words(made: Cut, out: Path, annotations: Path | None = None) -> tuple[Any, ...]:
    people = made.annotations if annotations is None else annotations
    return ("fit", "--predictions", made.predictions, "--annotations", people, "--out", out)


def test_streaming_or_not_the_ensemble_is_the_same(made: Cut, tmp_path: Path) -> None:
    long = tmp_path / "people.parquet"
    file = tmp_path / "all.npz"
    write_table(made.people.to_table(), long)
    write_predictions(made.pool, file)
    words = fit_words(made, tmp_path / "e")
    one = answer(*words, "--no-stream")
    scratch = ("--jobs", 1, "--scratch", tmp_path / "scratch")
    for found in (
        answer(*words, "--stream", *scratch),
        answer(*fit_words(made, tmp_path / "e", long), "--stream", *scratch),
        answer("fit", "--predictions", file, *words[3:], "--stream"),
    ):
        assert found["weights"] == pytest.approx(one["weights"], abs=1e-8)
        assert found["metrics"]["ce"] == pytest.approx(one["metrics"]["ce"], abs=1e-10)
    assert list((tmp_path / "scratch").iterdir()) == []
    assert json.loads((tmp_path / "e" / "ensemble.json").read_text())["items"] == 60


def test_predict_writes_shard_by_shard_what_it_writes_at_once(made: Cut, tmp_path: Path) -> None:
    file = tmp_path / "all.npz"
    ensemble = tmp_path / "e"
    write_predictions(made.pool, file)
    answer(*fit_words(made, ensemble))
    for ending in ("parquet", "csv"):
        by_shard = tmp_path / f"by-shard.{ending}"
        at_once = tmp_path / f"at-once.{ending}"
        told = [
            answer("predict", ensemble, "--predictions", source, "--out", out)
            for source, out in ((made.predictions, by_shard), (file, at_once))
        ]
        assert told[0]["items"] == 60
        assert told[0]["entropy"] == pytest.approx(told[1]["entropy"])
        assert read_table(by_shard).to_pylist() == read_table(at_once).to_pylist()
    evaluated = ("evaluate", "--probabilities", tmp_path / "by-shard.csv", "--bootstrap", 0)
    assert answer(*evaluated, "--annotations", made.annotations)["items"] == 60


def test_bad_shards_get_one_line_and_write_nothing(made: Cut, tmp_path: Path) -> None:
    ensemble = tmp_path / "e"
    out = tmp_path / "out.parquet"
    answer(*fit_words(made, ensemble))
    fit = (*fit_words(made, tmp_path / "new"), "--jobs", 1, "--scratch", tmp_path / "scratch")
    predict = ("predict", ensemble, "--predictions", made.predictions, "--out", out)
    part = made.predictions / "part-1.npz"
    whole = part.read_bytes()

    def all_refuse(*words: str) -> None:
        for command in ((*fit, "--stream"), (*fit, "--no-stream"), predict):
            assert_one_line(edo(*command), *words)

    write_predictions(made.pool.take(range(21, 40)).select(["0", "1", "2"]), part)
    all_refuse("same members", "part-0.npz has '3' where part-1.npz has none")
    part.write_bytes(whole[:300])
    all_refuse("part-1.npz", "can't be read")
    part.write_bytes(b"")
    all_refuse("part-1.npz", "is empty")
    write_predictions(made.pool.take(range(20, 40)), part)
    for command in ((*fit, "--no-stream"), predict):
        assert_one_line(edo(*command), "repeats 1 item", "'item-20'")
    # The annotation file of the shard does not know the item.
    assert_one_line(edo(*fit, "--stream"), "part-1.npz", "'item-20'")
    part.unlink()
    with raises_code("missing-shard", "'part-1'"):
        printed(*fit, "--stream")
    for name in ("part-0.npz", "part-2.npz"):
        (made.predictions / name).unlink()
    all_refuse("does not contain .npz or .parquet shards")
    assert not (tmp_path / "new").exists()
    assert not out.exists()


def test_bad_options_get_one_line(made: Cut, tmp_path: Path) -> None:
    words = fit_words(made, tmp_path / "e")
    with raises_code("invalid-number", "jobs=0"):
        printed(*words, "--stream", "--jobs", 0)
    with raises_code("invalid-address", "spark://x"):
        printed(*words, "--engine", "spark://x")
    assert_one_line(edo(*words, "--stream", "--ce", "median"), "--ce", "mean")
    inside = tmp_path / "file"
    inside.write_text("no folder", encoding="utf-8")
    with raises_code("unwritable-file", str(inside)):
        printed(*words, "--stream", "--scratch", inside / "x")
    assert not (tmp_path / "e").exists()


def streamed(path: Path, stream: bool | None, engine: str = "local") -> object:
    with progress() as bars:
        return Streaming(stream=stream, engine=engine).shard_options(bars, path)


def test_a_folder_is_streamed_when_it_is_large_or_asked_for(
    made: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made.predictions
    file = made.predictions / "part-0.npz"
    assert streamed(folder, None) is None
    assert streamed(folder, None, "dask://here:1") is not None
    assert streamed(folder, True) is not None
    monkeypatch.setattr("edokit._parallel.SHARD_MEMORY", 1000)
    assert streamed(folder, None) is not None
    assert streamed(folder, False) is None
    assert streamed(file, None) is None
    assert streamed(file, True) is not None


@pytest.mark.parametrize("solver", ["exact", "gumbel"])
def test_search_takes_shards_as_it_takes_a_file(made: Cut, tmp_path: Path, solver: str) -> None:
    words = ("search", "--predictions", made.predictions, "--annotations", made.annotations)
    words = (*words, "--solver", solver, "--trials", 6, "--population", 3, "--folds", 0)
    streamed = ("--stream", "--jobs", 1, "--scratch", tmp_path / "scratch")
    there = answer(*words, "--out", tmp_path / "there", *streamed)
    here = answer(*words, "--out", tmp_path / "here", "--no-stream", "--no-report")
    assert (there["trials"], len(there["front"])) == (6, len(here["front"]))
    assert there["chosen"]["weights"] == pytest.approx(here["chosen"]["weights"], abs=1e-6)
    assert there["chosen"]["ce"] == pytest.approx(here["chosen"]["ce"], abs=1e-8)
    kept = [
        json.loads((tmp_path / run / "ensemble" / "ensemble.json").read_text())["metrics"]["ce"]
        for run in ("there", "here")
    ]
    assert kept[0] == pytest.approx(kept[1], abs=1e-8)
    assert list((tmp_path / "scratch").iterdir()) == []
