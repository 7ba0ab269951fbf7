"""Whatever is in a file, every reader gives a valid object or refuses it in one line."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz_cases import OTHERS, another, read_everywhere, read_own, whole_files, whole_folders

FOUND = Path(__file__).parent / "found"
"""Inputs that tools/fuzz_loaders.py and tools/fuzz_guided.py found, each of which a reader failed
on, in a folder named like what it is a damaged version of."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return whole_files(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, whole: dict[str, bytes]) -> Path:
    folder: Path = tmp_path_factory.mktemp("fuzz")
    for name, content in whole.items():
        (folder / name).write_bytes(content)
    return folder


def test_files_that_nobody_damaged_are_accepted(whole: dict[str, bytes], place: Path) -> None:
    for name in whole:
        assert read_own(place / name), name


def damage(path: Path, content: bytes, whole: bytes) -> None:
    """Read a file with another content, and restore it."""
    try:
        path.write_bytes(content)
        read_everywhere(path)
    finally:
        path.write_bytes(whole)


@settings(max_examples=100)
@given(data=st.data())
def test_arbitrary_bytes_are_refused_in_one_line(
    data: st.DataObject, whole: dict[str, bytes], place: Path
) -> None:
    name = data.draw(st.sampled_from(sorted(whole)))
    damage(place / name, data.draw(st.binary(max_size=300)), whole[name])


def test_damaged_files_are_read_or_refused_in_one_line(
    whole: dict[str, bytes], place: Path
) -> None:
    names = sorted(whole)
    for number in range(600):
        name = names[number % len(names)]
        damage(place / name, another(name, whole[name], random.Random(number)), whole[name])


@pytest.mark.parametrize(
    "found", sorted(FOUND.glob("*/*")), ids=lambda path: f"{path.parent.name}: {path.stem}"
)
def test_what_once_broke_a_reader_no_longer_does(found: Path, place: Path, tmp_path: Path) -> None:
    name = found.parent.name
    if name in OTHERS:
        shutil.copy(place / OTHERS[name], tmp_path)
    shutil.copy(found, tmp_path / name)
    read_everywhere(tmp_path / name)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    folder: Path = tmp_path_factory.mktemp("folders")
    return folder, whole_folders(folder, runs=False)


def test_mutated_folders_are_refused_by_name_or_used_and_saved_again(
    folders: tuple[Path, dict[str, bytes]],
) -> None:
    """Ensembles, classifiers and member folders; `make soak` tries 20,000 over all kinds."""
    folder, whole = folders
    names = sorted(whole)
    for name in names:
        assert read_own(folder / name, name), name
    for number in range(200):
        name = names[number % len(names)]
        (folder / name).write_bytes(another(name, whole[name], random.Random(number)))
        read_own(folder / name, name)
        for other in names:
            (folder / other).parent.mkdir(parents=True, exist_ok=True)
            (folder / other).write_bytes(whole[other])
