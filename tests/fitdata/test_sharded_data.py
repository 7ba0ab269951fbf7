"""Everything that is learned from shards is a sum, and the sum over shards is that of the whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edokit import Annotations, EDOWarning, Objective, Predictions, write_predictions
from edokit import _parallel as workers_module
from edokit._io.tables import write_table
from edokit._parallel import Workers, choose_jobs, may_use_threads
from edokit.fitdata import sharded as sharded_module
from edokit.fitdata.data import FitData
from edokit.fitdata.sharded import ShardedData
from edokit.folds import stratified_folds
from edokit.metrics import METRIC, compute_metrics
from edokit.objective.loss import CrossEntropy, Expansion, pool_terms
from edokit.objective.pools import average_groups, pool
from edokit.objective.summaries import Summaries
from shard_cases import Cut, cut
from tests.errors import raises_code

pytestmark = pytest.mark.filterwarnings("ignore:.* tied:edokit._errors.EDOWarning")
FIELDS = ("items", "class_counts", "soft_counts", "hits", "distances", "log_losses")


def opened(made: Cut, tmp_path: Path, annotations: Any = None, **options: Any) -> ShardedData:
    source = made.annotations if annotations is None else annotations
    return FitData.open(
        made.predictions, source, scratch=tmp_path / "scratch", **{"jobs": 1, **options}
    )


def whole(made: Cut) -> tuple[Any, Any, Any]:
    P = made.pool.probabilities.astype(np.float64)
    return P, np.asarray(made.people.soft_labels), np.asarray(made.people.hard_labels())


def same(one: Summaries, other: Summaries) -> None:
    for field in FIELDS:
        np.testing.assert_allclose(getattr(one, field), getattr(other, field), rtol=1e-12)


@settings(max_examples=15)
@given(
    items=st.integers(1, 40),
    ends=st.lists(st.integers(1, 39), max_size=4),
    classes=st.sampled_from([2, 3]),
    suffix=st.sampled_from(["npz", "parquet"]),
    block=st.sampled_from([1, 50, 10**6]),
)
def test_the_sums_over_any_partition_are_those_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory,
    items: int,
    ends: list[int],
    classes: int,
    suffix: str,
    block: int,
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    made = cut(folder, items, ends, classes=classes, suffix=suffix)
    P, q, y = whole(made)
    weights = np.array([[0.1, 0.2, 0.3, 0.4], [1.0, 0.0, 0.0, 0.0]])
    alpha = np.arange(1.0, classes + 1.0)
    relative = {name for name, metric in METRIC.items() if metric.relative is not None}
    with pytest.MonkeyPatch.context() as patch, opened(made, folder) as data:
        patch.setattr(sharded_module, "_BLOCK", block)
        same(data.summaries(), Summaries.from_arrays(P, q, y))
        groups = made.pool.groups
        assert groups is not None
        means = average_groups(P, groups)
        same(data.grouped().summaries(), Summaries.from_arrays(means, q, y))
        for kind in ("linear", "log"):
            (term,) = pool_terms(Objective().resolve(kind), alpha).values()
            found = data.expansions(weights, term=term)
            for v, at in zip(weights, found, strict=True):
                wanted = Expansion.from_term(term, P, q, v)
                assert at.items == items
                for part in ("value", "gradient", "hessian"):
                    np.testing.assert_allclose(
                        getattr(at, part), getattr(wanted, part), rtol=1e-9, atol=1e-9
                    )
        for v in weights:
            metrics = data.evaluate(v, "log")
            wanted_metrics = {
                **compute_metrics(pool(P, v, "log"), q, y),
                "entropy_correlation": None,
            }
            # A value relative to all items is no sum over shards.
            for name in set(wanted_metrics) & relative:
                wanted_metrics[name] = None
            assert metrics == pytest.approx(wanted_metrics, abs=1e-12)


def test_a_part_of_the_members_has_a_part_of_the_sums(tmp_path: Path) -> None:
    made = cut(tmp_path, 30, [11, 20])
    P, q, _ = whole(made)
    v = np.array([[0.25, 0.75]])
    members = np.array([3, 1])
    with opened(made, tmp_path) as data:
        (at,) = data.expansions(v, members=members)
    wanted = Expansion.from_term(CrossEntropy(), P[:, members], q, v[0])
    np.testing.assert_allclose(at.hessian, wanted.hessian, rtol=1e-12)
    np.testing.assert_allclose(at.gradient, wanted.gradient, rtol=1e-12)


def test_annotations_may_come_in_every_form(tmp_path: Path) -> None:
    made = cut(tmp_path, 30, [11, 20])
    long = tmp_path / "people.parquet"
    write_table(made.people.to_table(), long)
    wanted = Summaries.from_arrays(*whole(made))
    forms = [made.annotations, made.people, long]
    for form in forms:
        with opened(made, tmp_path, form) as data:
            same(data.summaries(), wanted)
            assert data.counts == (90, 3)
    other = tmp_path / "other"
    write_table(made.people.to_table(), other / "everything.parquet")
    with opened(made, tmp_path, other) as data:
        same(data.summaries(), wanted)
    with raises_code("unsupported-type", "ItemArray"):
        opened(made, tmp_path, made.people.soft_labels)


def test_processes_give_the_same_sums_in_the_same_order(tmp_path: Path) -> None:
    made = cut(tmp_path, 60, [7, 20, 41, 50])
    v = np.array([[0.4, 0.3, 0.2, 0.1]])
    with opened(made, tmp_path) as here, opened(made, tmp_path, jobs=2) as there:
        assert (here.jobs, there.jobs) == (1, 2)
        one = here.expansions(v)[0]
        other = there.expansions(v)[0]
        np.testing.assert_allclose(one.hessian, other.hessian, rtol=1e-14)
        assert here.evaluate(v[0]) == pytest.approx(there.evaluate(v[0]), abs=1e-14)


def test_the_sample_is_of_all_shards_and_belongs_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = cut(tmp_path, 300, [5, 120, 250])
    P, q, y = whole(made)
    with opened(made, tmp_path) as data:
        np.testing.assert_array_equal(data.sample.P, P)
        np.testing.assert_array_equal(data.sample.y, y)
    monkeypatch.setattr("edokit.fitdata.sharded.SAMPLE", 80)
    with opened(made, tmp_path) as data, opened(made, tmp_path) as again:
        drawn = data.sample
        np.testing.assert_array_equal(drawn.P, again.sample.P)
    where = [int(np.flatnonzero((row == P).all(axis=(1, 2)))[0]) for row in drawn.P]
    assert len(set(where)) == 80
    assert where == sorted(where)
    np.testing.assert_array_equal(drawn.q, q[where])
    assert len({np.searchsorted([5, 120, 250], place, side="right") for place in where}) >= 3


def test_folds_judge_every_item_once(tmp_path: Path) -> None:
    made = cut(tmp_path, 90, [30, 50])
    with opened(made, tmp_path) as data:
        folds = data.folds(3, random_state=1)
        total = sum((judge.summaries() for _, judge in folds), start=0)
        same(total, data.summaries())
        for learn, judge in folds:
            assert len(learn) + len(judge) == 90
            assert len(learn) == len(learn.sample.y) == learn.summaries().items
            same(learn.summaries() + judge.summaries(), data.summaries())


def test_folds_hold_every_label_evenly_by_the_rule_of_arrays(tmp_path: Path) -> None:
    made = cut(tmp_path, 97, [30, 51, 60], classes=3)
    P, q, y = whole(made)
    with opened(made, tmp_path) as data:
        held_out = [fold.sample.y for _, fold in data.folds(4, random_state=5)]
    for label in range(3):
        counts = [int((labels == label).sum()) for labels in held_out]
        # In each of four shards a label is dealt out evenly, up to one item.
        assert max(counts) - min(counts) <= 4
    assert sorted(np.concatenate(held_out)) == sorted(y)
    # One shard is dealt like arrays in memory.
    one = cut(tmp_path / "one", 97, classes=3)
    with opened(one, tmp_path) as data:
        for ours, theirs in zip(
            data.folds(4, random_state=5),
            FitData.from_arrays(P, q, y).folds(4, random_state=5),
            strict=True,
        ):
            np.testing.assert_array_equal(ours[1].sample.P, theirs[1].sample.P)


def test_folds_of_many_shards_are_of_one_size() -> None:
    y = np.zeros(3, dtype=int)
    dealt = [stratified_folds(y, 5, [0, 5, shard], first_fold=shard) for shard in range(50)]
    sizes = sum(np.bincount(folds, minlength=5) for folds in dealt)
    assert np.ptp(sizes) <= 5


def test_the_cache_is_removed(tmp_path: Path) -> None:
    made = cut(tmp_path, 20, [5])
    with opened(made, tmp_path):
        assert len(list((tmp_path / "scratch").iterdir())) == 1
    assert list((tmp_path / "scratch").iterdir()) == []
    (made.predictions / "part-1.npz").write_bytes(b"torn")
    with raises_code("unreadable-file", "part-1.npz"):
        opened(made, tmp_path)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_reading_shards_leaves_arrow_its_memory_pool(tmp_path: Path) -> None:
    made = cut(tmp_path, 20, [9], suffix="parquet")
    before = pa.default_memory_pool().backend_name
    with opened(made, tmp_path):
        pass
    assert pa.default_memory_pool().backend_name == before


def _may_use_threads(_: int) -> bool:
    return may_use_threads()


def test_arrow_has_threads_where_there_are_cores_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edokit._parallel.available_cores", lambda: 2)
    assert may_use_threads()
    with Workers(2) as workers:
        assert not any(workers.run(_may_use_threads, [0, 1]))
    monkeypatch.setattr("edokit._parallel.available_cores", lambda: 1)
    assert not may_use_threads()


@pytest.mark.parametrize("change", ["classes", "sums", "type"])
def test_arrays_are_cached_as_they_are_used(tmp_path: Path, change: str) -> None:
    made = cut(tmp_path, 30, [])
    file = made.predictions / "part-0.npz"
    with np.load(file) as held:
        arrays = dict(held)
    if change == "classes":
        arrays = {**arrays, "classes": np.array(["1", "0"])}
        arrays["probabilities"] = np.ascontiguousarray(arrays["probabilities"][:, :, ::-1])
    elif change == "sums":
        arrays["probabilities"] *= np.float32(1.0005)
    else:
        arrays["probabilities"] = arrays["probabilities"].astype(">f4")
    np.savez(file, **arrays)
    with opened(made, tmp_path) as data:
        assert len(list((tmp_path / "scratch").rglob("*.P.npy"))) == 1
        np.testing.assert_allclose(data.sample.P, whole(made)[0], rtol=1e-6)


def test_published_labels_against_the_people_are_told_once_for_all_shards(tmp_path: Path) -> None:
    made = cut(tmp_path, 6, [2, 4])
    names = [f"item-{i}" for i in range(6)]
    table = {"item": names, "annotator": ["x"] * 6, "label": ["0"] * 6, "hard_label": ["1"] * 6}
    with pytest.warns(EDOWarning, match="hard_label of 6 of 6"):
        people = Annotations.from_table(table, classes=["0", "1"])
    write_table(people.to_table(), tmp_path / "people.parquet")
    for number in range(3):
        part = people.take([2 * number, 2 * number + 1])
        write_table(part.to_table(), made.annotations / f"part-{number}.csv")
    with pytest.warns(EDOWarning, match="hard_label of 6 of 6") as noted:
        opened(made, tmp_path).close()
    assert len(noted) == 1


def test_ties_are_told_once_for_all_shards(tmp_path: Path) -> None:
    people = Annotations.from_matrix([[0, 1]] * 6, items=[f"item-{i}" for i in range(6)])
    made = cut(tmp_path, 6, [2, 4])
    for number in range(3):
        part = people.take([2 * number, 2 * number + 1])
        write_table(part.to_table(), made.annotations / f"part-{number}.csv")
    for form in (made.annotations, people):
        with pytest.warns(EDOWarning, match="^6 of 6 items") as noted:
            opened(made, tmp_path, form).close()
        assert len(noted) == 1
    with raises_code("tied-item", "ties='first'"):
        opened(made, tmp_path, ties="error")
    with opened(made, tmp_path, ties="random", random_state=3) as data:
        labels = data.sample.y
    with opened(made, tmp_path, ties="random", random_state=3) as data:
        np.testing.assert_array_equal(labels, data.sample.y)


def test_classes_stand_in_the_order_of_the_annotations(tmp_path: Path) -> None:
    made = cut(tmp_path, 12, [5])
    for form in (made.annotations, made.people.with_classes(["1", "0"])):
        with opened(made, tmp_path, form, **_declared(form)) as data:
            assert data.classes == ("1", "0")
            np.testing.assert_array_equal(data.sample.P, made.pool.probabilities[:, :, ::-1])
            np.testing.assert_array_equal(data.sample.q, made.people.soft_labels[:, ::-1])


def _declared(form: Any) -> dict[str, Any]:
    return {} if isinstance(form, Annotations) else {"classes": ["1", "0"]}


def refused(
    made: Cut,
    tmp_path: Path,
    code: str,
    *facts: str,
    annotations: Any = None,
    **options: Any,
) -> None:
    with raises_code(code, *facts):
        opened(made, tmp_path, annotations, **options)


def test_items_that_do_not_match_are_named_with_their_shard(tmp_path: Path) -> None:
    made = cut(tmp_path, 30, [11, 20])
    (made.predictions / "part-1.npz").rename(made.predictions / "x.npz")
    (made.predictions / "part-2.npz").rename(made.predictions / "part-1.npz")
    (made.predictions / "x.npz").rename(made.predictions / "part-2.npz")
    # The names are right, the items are not.
    refused(made, tmp_path, "items-differ", "part-1.npz")
    few = made.people.take(range(15))
    refused(made, tmp_path, "items-differ", "part-1.npz", "10 of 10", annotations=few)
    (made.predictions / "part-2.npz").unlink()
    refused(made, tmp_path, "missing-shard", "'part-2'")
    refused(made, tmp_path, "items-differ", "9 are", "'item-11'", annotations=made.people)


def test_an_item_in_two_shards_is_refused(tmp_path: Path) -> None:
    made = cut(tmp_path, 30, [11, 20])
    again = made.pool.take([10, *range(20, 30)])
    write_predictions(again, made.predictions / "part-2.npz")
    facts = ("part-2.npz", "1 item of part-0.npz", "'item-10'")
    refused(made, tmp_path, "duplicate-name", *facts, annotations=made.people)


def test_shards_that_disagree_are_named(tmp_path: Path) -> None:
    made = cut(tmp_path, 30, [11, 20])
    part = made.pool.take(range(11, 20))
    write_predictions(part.select(["0", "1", "3"]), made.predictions / "part-1.npz")
    facts = ("members", "part-0.npz has '2', '3'", "part-1.npz has '3'")
    refused(made, tmp_path, "shards-differ", *facts)
    other = Predictions(part.probabilities, part.rows, part.members, ("0", "2"), part.groups)
    write_predictions(other, made.predictions / "part-1.npz")
    refused(made, tmp_path, "shards-differ", "classes", "part-1.npz has '2'")


def test_classes_that_do_not_match_are_refused(tmp_path: Path) -> None:
    made = cut(tmp_path, 12, [5])
    refused(made, tmp_path, "open-decisions", "'a', 'b'", classes=["a", "b"])
    strange = made.annotations / "part-1.csv"
    strange.write_text(strange.read_text().replace(',"1"\n', ',"7"\n'), encoding="utf-8")
    refused(made, tmp_path, "unknown-class", "part-1.csv", "'7'")


def test_a_worker_must_see_the_cache(tmp_path: Path) -> None:
    made = cut(tmp_path, 12, [5])
    with opened(made, tmp_path) as data:
        for file in next((tmp_path / "scratch").iterdir()).glob("*.q.npy"):
            file.unlink()
        with raises_code("unreachable-cache"):
            data.evaluate(np.full(4, 0.25))


def _die(task: int) -> int:
    os._exit(1)


def test_a_worker_that_dies_is_one_line() -> None:
    with Workers(2) as workers, raises_code("dead-worker", "jobs"):
        list(workers.run(_die, [1, 2]))


def test_strange_engines_and_jobs_are_refused() -> None:
    with raises_code("invalid-address", "'local'"):
        Workers(1, "spark://here")
    with raises_code("invalid-number", "jobs=0"):
        Workers(0)


def test_jobs_are_as_many_as_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "available_cores", lambda: 8)
    gib = 2**30
    mib = 2**20
    assert choose_jobs(5, [0] * 100) == 5
    assert choose_jobs(None, [50 * mib] * 100) == 4
    assert choose_jobs(None, [gib] * 100) == 1
    # Small data are done before a process has started.
    assert choose_jobs(None, [mib] * 100) == 1
    monkeypatch.setattr(workers_module, "SHARD_MEMORY", 64 * gib)
    assert choose_jobs(None, [10 * mib] * 100) == 8
    assert choose_jobs(None, [100 * mib] * 3) == 3


def test_relative_paths_are_those_of_whoever_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Processes are kept between calls: the second folder meets those that began in the first.
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "said").write_text(name)
        monkeypatch.chdir(tmp_path / name)
        with Workers(2) as workers:
            assert list(workers.run(Path.read_text, [Path("said")] * 4)) == [name] * 4


def test_a_fold_of_shards_is_not_divided_again(tmp_path: Path) -> None:
    with opened(cut(tmp_path, 40, [20]), tmp_path) as data:
        train, _ = data.folds(4)[0]
        with pytest.raises(NotImplementedError):
            train.folds(4)


@pytest.mark.parametrize("n_annotators", [1, 2])
def test_pairs_in_shards_are_pairs_and_their_items_are_counted_by_fold(
    tmp_path: Path, n_annotators: int
) -> None:
    pairs = [(f"i{i}", f"r{(i + k) % 4}") for i in range(40) for k in range(n_annotators)]
    items, people = (list(names) for names in zip(*pairs, strict=True))
    rng = np.random.default_rng(0)
    yes = rng.random((len(pairs), 2))
    predictions = Predictions.from_arrays(
        np.stack([1 - yes, yes], axis=2), layout="NKC", items=items, annotators=people
    )
    (tmp_path / "shards").mkdir()
    half = len(pairs) // 2
    for number, rows in enumerate((range(half), range(half, len(pairs)))):
        write_predictions(predictions.take(list(rows)), tmp_path / "shards" / f"{number}.npz")
    table = {"item": items, "annotator": people, "label": rng.integers(0, 2, len(pairs))}
    annotations = Annotations.from_table(table)
    with FitData.open(tmp_path / "shards", annotations, learn="pairs", jobs=1) as data:
        assert data.layout.are_pairs
        assert (len(data), data.n_items) == (len(pairs), 40)
        for rest, fold in data.folds(5):
            assert (rest.n_items, fold.n_items) == (32, 8)
        with raises_code("too-many-folds", "40 items"):
            data.folds(41)
