"""Data of every answer scale as rows: items stay whole, shards see what memory sees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit import (
    Annotations,
    EDOWarning,
    Predictions,
    Scale,
    read_predictions,
    write_predictions,
)
from edokit._io.tables import write_table
from edokit.fitdata.data import FitData
from edokit.predictions.shards import Shards
from shard_cases import cut, data
from tests.errors import raises_code

pytestmark = pytest.mark.filterwarnings("ignore:.*tied:edokit._errors.EDOWarning")
SETS = Scale("multi-label")
UNEVEN = Scale("ordinal", (0, 1, 4))


@st.composite
def sets(draw: st.DrawFn) -> FitData:
    """Sets whose every row says which item and label it is of."""
    items = draw(st.integers(4, 30))
    labels = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    P = np.arange(items * labels).reshape(items, 1, labels) + np.array([[0.2], [0.4]])
    q = rng.integers(0, 4, (items, labels)) / 3
    return FitData.from_arrays(P / 200, q, (q > 0.5).astype(int), scale="multi-label")


def of_items(data: FitData) -> list[int]:
    """The item of each group of rows, which must be whole and in the order of the labels."""
    each = data.rows_per_item
    rows = np.floor(data.sample.P[:, 0, 1] * 200).astype(int).reshape(-1, each)
    np.testing.assert_array_equal(rows % each, np.tile(np.arange(each), (len(rows), 1)))
    assert (rows // each == rows[:, :1] // each).all()
    assert len(data) == len(rows)
    return (rows[:, 0] // each).tolist()


@given(data=sets(), folds=st.integers(2, 4), seed=st.integers(0, 9))
def test_folds_never_split_a_set(data: FitData, folds: int, seed: int) -> None:
    everyone = list(range(len(data)))
    held_out = []
    for rest, fold in data.folds(folds, seed):
        assert sorted(of_items(rest) + of_items(fold)) == everyone
        held_out += of_items(fold)
    assert sorted(held_out) == everyone


@given(data=sets(), count=st.integers(1, 40))
def test_draws_keep_sets_whole(data: FitData, count: int) -> None:
    drawn = of_items(data.draw(count))
    assert len(set(drawn)) == len(drawn) == min(count, len(data))


def test_rows_are_those_of_the_definition() -> None:
    P = np.array([[[0.2, 0.9]], [[0.4, 0.5]]])
    q = np.array([[0.0, 1.0], [0.5, 0.75]])
    data = FitData.from_arrays(P, q, [[0, 1], [0, 1]], classes=["rude", "odd"], scale="multi-label")
    assert data.sample.P[:, 0].tolist() == [[0.8, 0.2], [1 - 0.9, 0.9], [0.6, 0.4], [0.5, 0.5]]
    assert data.sample.q[:, 1].tolist() == [0.0, 1.0, 0.5, 0.75]
    assert data.sample.y.tolist() == [0, 1, 0, 1]
    assert (len(data), data.labels, data.row_classes) == (2, ("rude", "odd"), ("no", "yes"))
    second = data.label_summaries()[1]
    assert (second.items, np.asarray(second.soft_counts).tolist()) == (2, [0.25, 1.75])


def test_the_standard_error_is_that_of_items() -> None:
    pool, people = data(50, classes=3, scale=SETS)
    fit = FitData.from_predictions(pool, people)
    (found,) = fit.scores(np.full((1, 4), 0.25), ["linear"]).estimates()
    p = np.clip(fit.sample.P.mean(axis=1), 1e-12, 1)
    losses = -(fit.sample.q * np.log(p)).sum(axis=1).reshape(50, 3).mean(axis=1)
    assert found["ce"] == pytest.approx(losses.mean())
    assert found["ce_se"] == pytest.approx(losses.std() / 7)


@pytest.mark.parametrize("scale", [UNEVEN, SETS])
@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_shards_see_what_memory_sees(scale: Scale, suffix: str, tmp_path: Path) -> None:
    made = cut(tmp_path, 120, [30, 70], classes=3, suffix=suffix, scale=scale)
    assert read_predictions(made.predictions).scale == scale
    memory = FitData.from_predictions(made.pool, made.people)
    weights = np.array([[0.1, 0.2, 0.3, 0.4]])
    with FitData.open(made.predictions, made.annotations, jobs=1) as shards:
        assert (shards.scale, len(shards), shards.classes) == (scale, 120, memory.classes)
        for one, other in zip(shards.sample, memory.sample, strict=True):
            np.testing.assert_allclose(one, other)
        for name in ("hits", "distances", "log_losses"):
            ours, expected = (getattr(each.summaries(), name) for each in (shards, memory))
            np.testing.assert_allclose(ours, expected, rtol=1e-6)
        assert shards.scores(weights, ["linear"]).estimates() == [
            pytest.approx(one) for one in memory.scores(weights, ["linear"]).estimates()
        ]
        drawn = shards.draw(40)
        assert (len(drawn), drawn.scale) == (40, scale)
        np.testing.assert_allclose(drawn.sample.P, memory.draw(40).sample.P)
        for rest, fold in shards.folds(3):
            assert len(rest) + len(fold) == 120
            assert len(fold.sample.y) == len(fold) * fold.rows_per_item
            assert shards.summaries().items == (rest.summaries() + fold.summaries()).items
        labels = [part.label_summaries() for part in (shards, memory)]
        for one, other in zip(*labels, strict=True):
            np.testing.assert_allclose(one.hits, other.hits, rtol=1e-6)
            assert one.items == 120


def test_mixed_scales_name_both(tmp_path: Path) -> None:
    pool, people = data(20, classes=3, scale=UNEVEN)
    _, plain = data(20, classes=3)
    with raises_code("scales-differ", "(0, 1, 4)", "nominal"):
        FitData.from_predictions(pool, plain)
    write_predictions(pool.take(range(10)), tmp_path / "part-0.npz")
    others, _ = data(20, classes=3)
    write_predictions(others.take(range(10, 20)), tmp_path / "part-1.npz")
    with raises_code("scales-differ", "part-1.npz", "nominal", "part-0.npz"):
        read_predictions(tmp_path)
    with raises_code("scales-differ", "nominal"):
        Shards.open(tmp_path).read(1)
    write_predictions(pool.take(range(10, 20)), tmp_path / "part-1.npz")
    with raises_code("scales-differ", "nominal"):
        FitData.open(tmp_path, plain, jobs=1)
    with FitData.open(tmp_path, people, jobs=1) as shards:
        assert shards.scale == UNEVEN


def test_a_declared_scale_holds_for_files_without_one(tmp_path: Path) -> None:
    pool, _ = data(20, classes=3)
    write_predictions(pool, tmp_path / "part-0.npz")
    shards = Shards.open(tmp_path).on_scale("ordinal")
    assert shards.read(0).scale == shards.scale == Scale("ordinal", (0, 1, 2))
    with raises_code("scales-differ", "nominal"):
        Shards.open(tmp_path).on_scale("multi-label")


def test_files_of_annotations_have_the_scale_of_the_shards(tmp_path: Path) -> None:
    made = cut(tmp_path, 20, [10], classes=3, scale=SETS)
    one_label = {"item": made.pool.items, "annotator": ["x"] * 20, "label": ["1"] * 20}
    plain_annotations = Annotations.from_table(one_label, classes=range(3))
    for number, part in enumerate((range(10), range(10, 20))):
        write_table(
            plain_annotations.take(part).to_table(), made.annotations / f"part-{number}.csv"
        )
    with raises_code("scales-differ", "nominal"):
        FitData.open(made.predictions, made.annotations, jobs=1)


def test_old_files_are_described_as_before() -> None:
    pool, people = data(20)
    assert isinstance(pool, Predictions)
    assert "scale" not in FitData.from_predictions(pool, people).describe()
    sets, chosen = data(20, scale=SETS)
    assert FitData.from_predictions(sets, chosen).describe()["scale"] == "multi-label:0,1"


def test_ties_are_counted_by_item(tmp_path: Path) -> None:
    made = cut(tmp_path, 3, classes=2, scale=SETS)
    half = Annotations.from_soft_labels(
        [[0.5, 0.5], [0.5, 1.0], [0.0, 1.0]],
        items=made.pool.items,
        classes=range(2),
        scale="multi-label",
    )
    with (
        pytest.warns(EDOWarning, match="2 of 3 items"),
        FitData.open(made.predictions, half, jobs=1),
    ):
        pass


def test_labels_of_sets_have_no_order(tmp_path: Path) -> None:
    made = cut(tmp_path, 20, [10], classes=3, scale=SETS)
    for file in made.predictions.iterdir():
        write_predictions(read_predictions(file).order_classes(["2", "0", "1"]), file)
    with (
        FitData.open(made.predictions, made.annotations, jobs=1) as files,
        FitData.open(made.predictions, made.people, jobs=1) as memory,
    ):
        assert (files.classes, memory.classes) == (("2", "0", "1"), ("0", "1", "2"))
        for label, position in (("2", 0), ("0", 1)):
            ours = files.label_summaries()[position]
            other = memory.label_summaries()[int(label)]
            np.testing.assert_allclose(ours.hits, other.hits)
            np.testing.assert_allclose(ours.soft_counts, other.soft_counts)
