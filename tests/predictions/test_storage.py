"""Predictions on disk: .npz, Parquet, and folders of shards."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit import Predictions, read_predictions, write_predictions
from edokit.predictions.core import MemberFacts
from edokit.predictions.shards import read_shards
from tests.errors import raises_code

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


def made_up(n: int = 4, k: int = 3, c: int = 2, **names: Any) -> Predictions:
    array = np.random.default_rng(n).dirichlet(np.ones(c), (n, k))
    return Predictions.from_arrays(array, layout="NKC", **names)


def assert_same(one: Predictions, other: Predictions) -> None:
    assert one.items.tolist() == other.items.tolist()
    assert (one.members, one.classes, one.groups) == (other.members, other.classes, other.groups)
    assert one.member_info == other.member_info
    assert one.probabilities.dtype == other.probabilities.dtype
    np.testing.assert_array_equal(one.probabilities, other.probabilities)


@st.composite
def predictions(draw: st.DrawFn) -> Predictions:
    items, members, classes = (
        draw(st.lists(NAMES, min_size=least, max_size=4, unique=True)) for least in (1, 1, 2)
    )
    labels = st.lists(st.just("") | NAMES, min_size=len(members), max_size=len(members))
    groups = draw(st.none() | labels)
    shape = (len(items), len(members), len(classes))
    weights = np.random.default_rng(draw(st.integers(0, 99))).gamma(0.1, size=shape) + 1e-12
    kind = draw(st.sampled_from([np.float32, np.float64]))
    values = st.text(st.characters(exclude_categories=["Cs"])) | st.booleans() | st.integers(0, 9)
    # Costs and counts are numbers; any other name may have any value.
    about = NAMES.filter(lambda name: name not in MemberFacts.model_fields)
    info = st.dictionaries(st.sampled_from(members), st.dictionaries(about, values))
    return Predictions.from_arrays(
        weights.astype(kind),
        layout="NKC",
        items=items,
        members=members,
        classes=classes,
        groups=groups,
        invalid="normalize",
        member_info=draw(info),
    )


@pytest.mark.parametrize("name", ["p.npz", "P.PARQUET"])
@given(made=predictions())
def test_predictions_come_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, name: str, made: Predictions
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    write_predictions(made, path)
    assert_same(read_predictions(path), made)


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
@given(made=predictions(), cut=st.integers(0, 4))
def test_shards_are_read_as_one(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, made: Predictions, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    parts = [part for part in (range(len(made))[:cut], range(len(made))[cut:]) if part]
    for number, part in enumerate(parts):
        write_predictions(made.take(list(part)), folder / f"part-{number}.{suffix}")
    assert_same(read_predictions(folder), made)
    assert [len(shard) for shard in read_shards(folder)] == [len(part) for part in parts]


def test_shards_may_be_of_both_kinds_and_stand_in_order_of_their_names(tmp_path: Path) -> None:
    made = made_up(4)
    write_predictions(made.take([2, 3]), tmp_path / "b.npz")
    write_predictions(made.take([0, 1]), tmp_path / "a.parquet")
    (tmp_path / "notes.txt").write_text("not a shard", encoding="utf-8")
    (tmp_path / ".edo-left-over.npz").write_bytes(b"half a shard")
    assert_same(read_predictions(tmp_path), made)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"members": ["x", "q"]}, ("shards-differ", "a.npz", "'y'", "b.npz", "'q'")),
        ({"members": ["y", "x"]}, ("shards-differ", "a.npz", "'x', 'y'", "b.npz", "'y', 'x'")),
        ({"classes": ["no", "maybe"]}, ("shards-differ", "a.npz", "'yes'", "b.npz", "'maybe'")),
        ({"groups": ["g", "h"]}, ("shards-differ", "a.npz", "b.npz", "'g', 'h'")),
    ],
)
def test_shards_that_disagree_are_named(
    other: dict[str, Any], words: tuple[str, ...], tmp_path: Path
) -> None:
    names: dict[str, Any] = {"members": ["x", "y"], "classes": ["no", "yes"]}
    write_predictions(made_up(2, 2, items=["a", "b"], **names), tmp_path / "a.npz")
    write_predictions(made_up(2, 2, items=["c", "d"], **{**names, **other}), tmp_path / "b.npz")
    with raises_code(*words):
        read_predictions(tmp_path)


def test_an_item_in_two_shards_is_refused_with_the_shard(tmp_path: Path) -> None:
    write_predictions(made_up(3, items=["a", "b", "c"]), tmp_path / "1.npz")
    write_predictions(made_up(3, items=["d", "c", "a"]), tmp_path / "2.npz")
    with raises_code("duplicate-name", "2.npz", "2 items", "1.npz: 'a', 'c'"):
        list(read_shards(tmp_path))


def test_a_folder_without_shards_and_a_path_without_a_file_are_refused(tmp_path: Path) -> None:
    with raises_code("missing-shard", ".npz", ".parquet"):
        read_predictions(tmp_path)
    with raises_code("missing-file"):
        read_predictions(tmp_path / "gone.npz")
    (tmp_path / "p.csv").write_text("item,p_0\n", encoding="utf-8")
    with raises_code("unknown-ending", ".npz", ".parquet"):
        read_predictions(tmp_path / "p.csv")
    write_predictions(made_up(), tmp_path / "p.npz")
    with raises_code("unknown-choice"):
        list(read_shards(tmp_path, invalid="ignore"))


def test_an_unknown_ending_is_refused_and_nothing_written(tmp_path: Path) -> None:
    with raises_code("unknown-ending", ".npz", ".parquet"):
        write_predictions(made_up(), tmp_path / "p.csv")
    with raises_code("invalid-name"):
        write_predictions(made_up(1, items=["a\0"]), tmp_path / "p.npz")
    with raises_code("invalid-unicode"):
        write_predictions(made_up(1, items=["\ud800"]), tmp_path / "p.parquet")
    assert list(tmp_path.iterdir()) == []


# --- .npz -----------------------------------------------------------------------------------------

ARRAYS: dict[str, Any] = {
    "probabilities": np.full((2, 1, 2), 0.5),
    "items": np.array(["a", "b"]),
    "members": np.array(["m"]),
    "classes": np.array(["0", "1"]),
}


def saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("items", "names"),
    [
        (np.array([7, 8]), ["7", "8"]),
        (np.array([7.0, 8.5]), ["7", "8.5"]),
        (np.array([b"a", b"b"]), ["a", "b"]),
        (np.array(["007", "مرحبا"]), ["007", "مرحبا"]),
    ],
)
def test_names_in_an_npz_may_be_numbers_or_text(
    items: Any, names: list[str], tmp_path: Path
) -> None:
    made = read_predictions(saved(tmp_path / "p.npz", **{**ARRAYS, "items": items}))
    assert made.items.tolist() == names


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"items": np.array(["a", "b"], dtype=object)}, ("unreadable-file",)),
        ({"items": np.array(["a"])}, ("wrong-shape", "p.npz", "(2, 1, 2)", "N=1")),
        ({"items": np.array(["a", "a"])}, ("duplicate-name",)),
        ({"items": np.array([np.nan, 1])}, ("missing-value",)),
        ({"items": np.array([(1, 2)] * 2, dtype="i,i")}, ("duplicate-name",)),
        ({"classes": np.array(["0"])}, ("wrong-shape", "C=1")),
        ({"groups": np.array(["g", "h"])}, ("lengths-differ", "2 groups")),
        (
            {"probabilities": np.full((2, 2), 0.5)},
            ("wrong-shape", "p.npz", "(2, 2)", "NKC"),
        ),
        ({"probabilities": np.full((2, 1, 2), "a")}, ("not-numbers", "<U1")),
        ({"probabilities": np.full((2, 1, 2), 0.5j)}, ("not-numbers", "complex128")),
        (
            {"probabilities": np.full((2, 1, 2), np.nan)},
            ("invalid-probabilities", "member 'm'", "item 'a'"),
        ),
        (
            {"probabilities": np.full((2, 1, 2), -0.5)},
            ("invalid-probabilities", "member 'm'", "item 'a'"),
        ),
        (
            {"probabilities": np.full((2, 1, 2), 1.0)},
            ("invalid-probabilities", "logits=True"),
        ),
    ],
)
def test_a_bad_npz_is_told_in_one_line(
    changed: dict[str, Any], words: tuple[str, ...], tmp_path: Path
) -> None:
    path = saved(tmp_path / "p.npz", **{**ARRAYS, **changed})
    with raises_code(*words):
        read_predictions(path)


def test_stored_probabilities_can_be_normalised(tmp_path: Path) -> None:
    path = saved(tmp_path / "p.npz", **{**ARRAYS, "probabilities": np.full((2, 1, 2), 3.0)})
    assert read_predictions(path, invalid="normalize").probabilities.max() == 0.5


def test_missing_arrays_are_named(tmp_path: Path) -> None:
    path = saved(tmp_path / "p.npz", probabilities=ARRAYS["probabilities"], items=ARRAYS["items"])
    with raises_code("missing-array", "'members', 'classes'"):
        read_predictions(path)


class Trap:
    """Something that would act on being unpickled."""

    sprung = False

    def __reduce__(self) -> tuple[Any, ...]:
        return (setattr, (Trap, "sprung", True))


def test_nothing_is_ever_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "p.npz"
    path.write_bytes(pickle.dumps(Trap()))
    with raises_code("unreadable-file", "archive") as caught:
        read_predictions(path)
    assert "allow_pickle" not in str(caught.value)
    hidden = np.array([Trap(), Trap()], dtype=object)
    with raises_code("unreadable-file"):
        read_predictions(saved(path, **{**ARRAYS, "items": hidden}))
    assert not Trap.sprung


def test_a_cut_npz_and_a_single_array_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "p.npz", **ARRAYS)
    full_content = path.read_bytes()
    for length in (1, 10, len(full_content) // 2, len(full_content) - 1):
        path.write_bytes(full_content[:length])
        with raises_code("unreadable-file", ".npz"):
            read_predictions(path)
    with path.open("wb") as stream:
        np.save(stream, np.zeros(3))
    with raises_code("unreadable-file", "archive"):
        read_predictions(path)


# --- Parquet --------------------------------------------------------------------------------------

ROWS: dict[str, Any] = {
    "item": ["a", "a", "b", "b"],
    "member": ["x", "y", "x", "y"],
    "p_no": [0.5, 0.25, 1, 0],
    "p_yes": [0.5, 0.75, 0, 1],
}


def stored(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table({**ROWS, **columns}), path)
    return path


def test_rows_may_stand_in_any_order(tmp_path: Path) -> None:
    table = pa.table({**ROWS, "group": ["g", "", "g", ""]})
    pq.write_table(table.take([3, 0, 2, 1]), tmp_path / "p.parquet")
    made = read_predictions(tmp_path / "p.parquet")
    assert (made.items.tolist(), made.members) == (["b", "a"], ("y", "x"))
    assert made.groups == ("", "g")
    assert made.probabilities.tolist() == [[[0, 1], [1, 0]], [[0.25, 0.75], [0.5, 0.5]]]


def test_classes_of_a_foreign_table_stand_in_class_order(tmp_path: Path) -> None:
    shares = {f"p_{name}": [0.25] * 4 for name in (10, 2, 1, 0)}
    table = pa.table({"item": ROWS["item"], "member": ROWS["member"], **shares})
    pq.write_table(table, tmp_path / "p.parquet")
    assert read_predictions(tmp_path / "p.parquet").classes == ("0", "1", "2", "10")


def test_declared_classes_keep_their_order(tmp_path: Path) -> None:
    made = made_up(2, 1, 3, classes=["yes", "no", "maybe"])
    write_predictions(made, tmp_path / "p.parquet")
    assert read_predictions(tmp_path / "p.parquet").classes == ("yes", "no", "maybe")
    # What has no gaps is read faster.
    assert not any(column.nullable for column in pq.read_schema(tmp_path / "p.parquet"))


@pytest.mark.parametrize("noted", [b"", b"no json", b"7", b'["no"]', b'[["no"], "yes"]', b"{}"])
def test_a_note_that_does_not_fit_is_passed_over(noted: bytes, tmp_path: Path) -> None:
    table = pa.table(ROWS).replace_schema_metadata({b"edokit.classes": noted})
    pq.write_table(table, tmp_path / "p.parquet")
    assert read_predictions(tmp_path / "p.parquet").classes == ("no", "yes")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"member": ["x", "x", "x", "y"]},
            ("duplicate-prediction", "item 'a'", "member 'x'"),
        ),
        ({"member": ["x", "y", "x", "z"]}, ("missing-predictions", "item 'a'", "member 'z'")),
        ({"item": ["a", None, "b", "b"]}, ("missing-value", "row 2", "item")),
        ({"member": ["x", "y", "", "y"]}, ("missing-value", "row 3")),
        ({"p_no": ["a", "b", "c", "d"]}, ("not-a-number", "'p_no'", "'a'", "row 1")),
        ({"p_no": [0.5, None, 1, 0]}, ("invalid-probabilities", "member 'y'", "item 'a'")),
        ({"group": ["g", "g", "h", "g"]}, ("contradictory-rows", "'x'", "row 3")),
        ({"p_": [0.0] * 4}, ("missing-value",)),
        (
            {"member": [b"x", b"y", b"x", b"y"]},
            ("unsupported-type", "p.parquet", "column 'member'", "binary"),
        ),
    ],
)
def test_a_bad_parquet_is_told_in_one_line(
    changed: dict[str, Any], words: tuple[str, ...], tmp_path: Path
) -> None:
    path = stored(tmp_path / "p.parquet", **changed)
    with raises_code(*words):
        read_predictions(path)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["item", "p_no", "p_yes"], ("missing-column", "column 'member'", "'item', 'p_no'")),
        (["member", "p_no", "p_yes"], ("missing-column", "column 'item'")),
        (["item", "member", "p_no"], ("missing-column", "1 p_<class>")),
    ],
)
def test_missing_columns_are_named(
    columns: list[str], words: tuple[str, ...], tmp_path: Path
) -> None:
    pq.write_table(pa.table(ROWS).select(columns), tmp_path / "p.parquet")
    with raises_code(*words):
        read_predictions(tmp_path / "p.parquet")


def test_a_table_with_as_many_members_as_rows_is_refused_without_filling_memory(
    tmp_path: Path,
) -> None:
    n = 100_000
    names = [str(k) for k in range(n)]
    table = pa.table({"item": names, "member": names, "p_0": [0.5] * n, "p_1": [0.5] * n})
    pq.write_table(table, tmp_path / "p.parquet")
    with raises_code("sparse-predictions"):
        read_predictions(tmp_path / "p.parquet")
