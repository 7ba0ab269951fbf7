"""Whatever is in a file, every reader gives a valid object or refuses it in one line."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz_cases import another, read_everywhere, whole_files

FOUND = Path(__file__).parent / "found"
"""Inputs that tools/fuzz_loaders.py found, each of which a reader failed on."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return whole_files(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def test_files_that_nobody_damaged_are_accepted(whole: dict[str, bytes], place: Path) -> None:
    for name, content in whole.items():
        (place / name).write_bytes(content)
        assert read_everywhere(place / name) >= 1, name


@settings(max_examples=100)
@given(data=st.data())
def test_arbitrary_bytes_are_refused_in_one_line(
    data: st.DataObject, whole: dict[str, bytes], place: Path
) -> None:
    path = place / data.draw(st.sampled_from(sorted(whole)))
    path.write_bytes(data.draw(st.binary(max_size=300)))
    read_everywhere(path)


@settings(max_examples=500)
@given(number=st.integers(0, 2**32), data=st.data())
def test_damaged_files_are_read_or_refused_in_one_line(
    number: int, data: st.DataObject, whole: dict[str, bytes], place: Path
) -> None:
    name = data.draw(st.sampled_from(sorted(whole)))
    content = another(name, whole[name], random.Random(number))
    (place / name).write_bytes(content)
    read_everywhere(place / name)


@pytest.mark.parametrize("path", sorted(FOUND.iterdir()), ids=lambda path: path.name)
def test_what_once_broke_a_reader_no_longer_does(path: Path) -> None:
    read_everywhere(path)
