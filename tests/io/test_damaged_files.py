"""Whatever bytes a file holds: a valid object comes out, or one clear line."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edokit import Annotations, EDOError, Predictions, read_predictions, write_predictions
from edokit._io.documents import read_json
from edokit._io.tables import read_table, write_table
from edokit.predictions.join import join_models


def read_annotations(path: Path) -> object:
    return Annotations.from_table(read_table(path), duplicates="all").soft_labels


READERS: list[Callable[[Path], object]] = [
    read_table,
    read_annotations,
    read_predictions,
    lambda path: join_models([path]),
    read_json,
]
SUFFIXES = [".csv", ".tsv", ".jsonl", ".parquet", ".npz", ".json"]


def assert_clear(path: Path) -> None:
    for read in READERS:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                read(path)
            except EDOError as error:
                lines = str(error).splitlines()
            else:
                lines = ["fine"]
        assert len(lines) == 1 or lines[0].endswith("decisions are open:")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Valid files, by name."""
    folder = tmp_path_factory.mktemp("whole")
    rng = np.random.default_rng(0)
    people = Annotations.from_matrix(rng.integers(0, 3, (6, 3)).astype(str)).to_table()
    people = people.append_column("text", pa.array(['a "word",\nمرحبا'] * 18))
    people = people.append_column("day", pa.array(np.arange(18)).cast(pa.timestamp("us", "UTC")))
    model = pa.table({"item": ["a", "b"], "p_0": [0.25, 1.0], "p_1": [0.75, 0.0]})
    for suffix in (".csv", ".tsv", ".jsonl", ".parquet"):
        write_table(people, folder / f"people{suffix}")
        write_table(model, folder / f"model{suffix}")
    shares = rng.dirichlet([1, 1], (6, 2)).astype(np.float32)
    predictions = Predictions.from_arrays(shares, layout="NKC", groups=["g", "h"])
    for suffix in (".npz", ".parquet"):
        write_predictions(predictions, folder / f"made{suffix}")
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=25)
@given(content=st.binary(max_size=200))
@example(content=b"\x93NUMPY\x01\x00v\x00")
@example(content=b"PAR1PAR1")
@example(content=b"PK\x03\x04")
@example(content=b'item,label\n"')
@example(content=b'{"item": [')
@example(content=b" null")
@example(content=b"\xc2\x80\n\xc2")
def test_any_bytes_give_a_valid_object_or_one_clear_line(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / f"bytes{suffix}"
    path.write_bytes(content)
    assert_clear(path)


@settings(max_examples=150)
@given(data=st.data())
def test_a_changed_file_gives_a_valid_object_or_one_clear_line(
    tmp_path_factory: pytest.TempPathFactory, whole: dict[str, bytes], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(whole)))
    content = bytearray(whole[name])
    start = data.draw(st.integers(0, len(content) - 1))
    length = data.draw(st.sampled_from([0, 1, 4, len(content)]))
    content[start : start + length] = data.draw(st.binary(max_size=6))
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(bytes(content))
    assert_clear(path)
