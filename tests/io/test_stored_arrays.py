"""Arrays of an .npz file that is not packed are read at once, and checked as others are."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from edokit._io.npz import read_arrays, write_arrays

ARRAYS = {
    "plain": np.arange(12.0).reshape(3, 4),
    "fortran": np.asfortranarray(np.arange(12, dtype=np.int16).reshape(3, 4)),
    "none": np.empty((0, 3), dtype=np.float32),
    "one": np.array(7),
    "text": np.array(["é", "日本", ""]),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_read_as_numpy_reads_them(tmp_path: Path, save: object) -> None:
    save(tmp_path / "a.npz", **ARRAYS)  # type: ignore[operator]
    for name, array in read_arrays(tmp_path / "a.npz").items():
        np.testing.assert_array_equal(array, ARRAYS[name])
        assert array.dtype == ARRAYS[name].dtype
        assert array.flags.writeable


@pytest.mark.parametrize("place", [-1, -100])
def test_a_changed_byte_is_found(tmp_path: Path, place: int) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, a=np.zeros(100_000))
    content = bytearray(file.read_bytes())
    content[content.rindex(b"PK\x01\x02") + place] ^= 1  # the array ends where the list begins
    file.write_bytes(content)
    with pytest.raises(zipfile.BadZipFile, match="CRC"):
        read_arrays(file)


def test_fractions_are_stored_and_all_else_is_packed(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).random(5_000).astype(np.float32)
    with (tmp_path / "a.npz").open("wb") as stream:
        write_arrays(stream, {"noise": noise, "codes": np.arange(9), "names": np.array(["a"])})
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        stored = [entry.compress_type == zipfile.ZIP_STORED for entry in archive.infolist()]
    assert stored == [True, False, False]
    np.testing.assert_array_equal(read_arrays(tmp_path / "a.npz")["noise"], noise)
