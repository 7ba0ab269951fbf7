"""Item ids that stay in Arrow while shards are read give what Python strings give."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edokit import InputError, Predictions, write_predictions
from edokit._names import ArrowNames, arrow_names, as_names, match, names_in_arrow
from edokit.fitdata import FitData

PLAIN, ARROW = 10**9, 0  # from so many names on they stay in Arrow
ODD = ["é", "日本語", "007", "7", "7.0", "NA", "x" * 40, "a b", "A", "a", "-1", "null"]
NUMBERS = [str(number) for number in (3, 1, 2**62, 0, -5, 11, 12, 13, 14, 15, 16, 17)]


def write(
    folder: Path, shards: list[list[Any]], labelled: list[list[Any]] | None = None, kind: str = ""
) -> None:
    """Predictions and soft labels of these items, each number decided by its item."""
    for name in ("predictions", "annotations"):
        (folder / name).mkdir(parents=True)
    for number, (items, own) in enumerate(zip(shards, labelled or shards, strict=True)):
        shares = np.array([[int.from_bytes(str(i).encode(), "big") % 97 / 97] for i in items])
        yes = np.clip(shares * [[0.5, 0.9, 0.7]] + 0.05, 0, 1).astype(np.float32)
        made = Predictions.from_arrays(
            np.stack([1 - yes, yes], axis=2), items=range(len(items)), layout="NKC"
        )
        file = folder / "predictions" / f"part-{number}"
        if kind == "parquet":
            write_predictions(made, file.with_suffix(".parquet"))
            table = pq.read_table(file.with_suffix(".parquet"))
            column = pa.array(np.repeat(np.array(items), 3).tolist())
            pq.write_table(table.set_column(0, "item", column), file.with_suffix(".parquet"))
        else:
            arrays = {"members": np.array(made.members), "classes": np.array(made.classes)}
            ids = {"items": np.array(items)}
            np.savez(file.with_suffix(".npz"), probabilities=made.probabilities, **ids, **arrays)
        share = np.array([int.from_bytes(str(i).encode(), "big") % 89 / 89 for i in own])
        labels = pa.table({"item": pa.array(own), "p_0": 1 - share, "p_1": share})
        pq.write_table(labels, folder / "annotations" / f"part-{number}.parquet")


def opened(folder: Path, few: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Everything that the first pass finds, or the message of what is wrong."""
    monkeypatch.setattr("edokit._names._FEW", few)
    try:
        with FitData.open(
            folder / "predictions", folder / "annotations", jobs=1, scratch=folder / f"s{few}"
        ) as data:
            sums = data.summaries()
            drawn = [data.draw(count).sample for count in (3, 5)]
            return [sums.hits, sums.distances, sums.log_losses, *drawn[0], *drawn[1], *data.sample]
    except InputError as error:
        return str(error).replace(str(folder), "")


@pytest.mark.parametrize("kind", ["npz", "parquet"])
@pytest.mark.parametrize("items", [ODD, NUMBERS, list(range(5, 17)), list(range(17, 5, -1))])
def test_ids_in_arrow_are_matched_and_drawn_as_strings_are(
    tmp_path: Path, items: list[Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = [items[:6], items[6:]]
    turned = [[*map(str, shards[0][::-1])], [*map(str, shards[1])]]
    write(tmp_path, shards, turned, kind)
    found, wanted = (opened(tmp_path, few, monkeypatch) for few in (ARROW, PLAIN))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_the_first_pass_makes_no_python_strings(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, [NUMBERS[:6], NUMBERS[6:]], [NUMBERS[5::-1], NUMBERS[6:]], kind)
    monkeypatch.setattr(ArrowNames, "strings", property(lambda names: pytest.fail("strings")))
    assert not isinstance(opened(tmp_path, 6, monkeypatch), str)  # items, but not members


@pytest.mark.parametrize("kind", ["npz", "parquet"])
@pytest.mark.parametrize("name", [int, str])
def test_whole_numbers_that_rise_from_shard_to_shard_are_not_hashed(
    tmp_path: Path, kind: str, name: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [*range(95, 105)], [*range(10)]
    write(tmp_path, [[*map(name, each)] for each in numbers], [*numbers], kind)
    monkeypatch.setattr("edokit.fitdata.sharded.check_once", lambda *given: pytest.fail("hashed"))
    assert not isinstance(opened(tmp_path, 6, monkeypatch), str)


@pytest.mark.parametrize(
    ("shards", "labelled", "message"),
    [
        ([["a", "b", "a"]], None, "not unique: 'a'"),
        ([["a", ""]], [["a", "b"]], "empty name"),
        ([["a", "b"], ["c", "b"]], None, "part-1.npz repeats 1 item of part-0.npz: 'b'"),
        ([[1, 2], ["3", "2"]], None, "part-1.npz repeats 1 item of part-0.npz: '2'"),
        ([[1, 5], [3, 4, 5]], None, "part-1.npz repeats 1 item of part-0.npz: '5'"),
        ([["1", "2"], ["2", "3"]], None, "part-1.npz repeats 1 item of part-0.npz: '2'"),
        ([["a", "b"]], [["a", "c"]], "missing: 'b'; 1 is extra: 'c'"),
        ([["a", "b"]], [["a", "b", "c"]], "extra: 'c'"),
        ([["a", "b"]], [["a", "a"]], "labels item 'a' again in row 2"),
        ([[1, 2]], [["1", "02"]], "missing: '2'; 1 is extra: '02'"),
    ],
)
def test_errors_name_the_same_items(
    tmp_path: Path,
    shards: list[list[Any]],
    labelled: list[list[Any]] | None,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(tmp_path, shards, labelled)
    found, wanted = (opened(tmp_path, few, monkeypatch) for few in (ARROW, PLAIN))
    assert found == wanted
    assert message in found


texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=12)


@given(texts, st.permutations(range(12)))
def test_names_in_arrow_know_what_python_knows(names: list[str], order: list[int]) -> None:
    arrow, strings = arrow_names(as_names(names)), as_names(names)
    assert arrow.distinct == (len(set(names)) == len(names))
    assert not (arrow.trimmed and any(name != name.strip() for name in names))
    assert (len(set(arrow.hashes.tolist())) == len(names)) == arrow.distinct
    assert arrow.sorted_hashes.tolist() == sorted(arrow.hashes.tolist())
    assert ("" in arrow) == ("" in names)
    assert pickle.loads(pickle.dumps(arrow)).tolist() == names
    if arrow.distinct:
        mixed = strings[[k for k in order if k < len(names)]]
        where = match(arrow, arrow_names(mixed), "annotations", "predictions")
        assert mixed[where].tolist() == names


@pytest.mark.parametrize(
    "values",
    [
        np.array([3, 1], dtype=">i8"),
        np.array(["b", "é"], dtype=">U2"),
        np.array([["a", "b"], ["c", "d"]]),
        np.array([[1, 2], [3, 4]]),
        np.array(["a\0b", "a\0c", ""]),
    ],
)
def test_arrays_of_any_layout_have_the_same_names_in_arrow(
    values: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    strings = as_names(values).tolist()
    monkeypatch.setattr("edokit._names._FEW", 0)
    with names_in_arrow():
        arrow = as_names(values)
    assert isinstance(arrow, ArrowNames)
    assert arrow.tolist() == strings


def test_numbers_and_text_of_the_same_items_are_the_same_names() -> None:
    with pytest.MonkeyPatch.context() as patch, names_in_arrow():
        patch.setattr("edokit._names._FEW", 0)
        numbers = as_names(np.array([12, -3, 2**63 - 1]))
        text = as_names(np.array(["12", "-3", "9223372036854775807"]))
    assert isinstance(numbers, ArrowNames)
    assert (numbers.hashes == text.hashes).all()
    assert match(numbers, text, "annotations", "predictions").tolist() == [0, 1, 2]


digits = st.lists(st.text("0123456789", min_size=1, max_size=20), min_size=1, max_size=6)


@example(["0xA000000000", "0xA000000001"])  # as long as their decimal numbers
@example(["01", "0x7FFFFFFFFFFFFFFF"])  # together as long
@given(digits.map(lambda names: sorted(names, key=int)))
def test_text_of_whole_numbers_stays_as_it_is_written(names: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edokit._names._FEW", ARROW)
        found = arrow_names(as_names(names))
    assert found.tolist() == names
    numbers = [int(name, 16 if "x" in name else 10) for name in names]
    rising = all(one < other for one, other in pairwise(numbers))
    plain = all(name == str(n) and n < 2**63 for name, n in zip(names, numbers, strict=True))
    assert (found.bounds is not None) == (rising and plain)
