"""Arrays in .npz files; the size in a header is checked before memory is allocated for it."""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from edokit._io.memory import check_memory

_DEFLATE = 1032
"""The highest compression ratio of Deflate."""
_ENDING = ".npy"
_MODIFIED = (1980, 1, 1, 0, 0, 0)
"""The earliest time of an archive, so that the same arrays always give the same bytes."""


class BadArchiveError(ValueError):
    """An .npz file that is damaged, or whose headers are inconsistent."""


def read_arrays(path: Path, names: Iterable[str] | None = None) -> dict[str, npt.NDArray[Any]]:
    """Arrays by name: all, or those of ``names`` that the archive contains.

    A damaged archive may raise any exception of zipfile, zlib and numpy.
    """
    if path.exists() and not (path.is_file() and zipfile.is_zipfile(path)):
        raise BadArchiveError("it is not an archive of arrays")
    arrays = {}
    with zipfile.ZipFile(path) as archive, warnings.catch_warnings():
        # numpy warns about damaged headers before it refuses them.
        warnings.simplefilter("ignore")
        entries = {entry.filename.removesuffix(_ENDING): entry for entry in archive.infolist()}
        if len(entries) < len(archive.infolist()):
            raise BadArchiveError("it holds an array twice")
        if names is None:
            read_names = list(entries)
        else:
            read_names = [name for name in names if name in entries]
        for name in read_names:
            with archive.open(entries[name]) as part:
                _check_header(part, entries[name], name)
        # The arrays, and the same amount again to check them.
        check_memory(path, 2 * sum(entries[name].file_size for name in read_names))
        for name in read_names:
            with archive.open(entries[name]) as part:
                arrays[name] = np.lib.format.read_array(part, allow_pickle=False)
                # Reading the end also compares the checksum.
                if part.read(1):
                    raise BadArchiveError(f"{name!r} has trailing bytes")
            _check_unicode(arrays[name], name)
    return arrays


def _check_header(part: IO[bytes], entry: zipfile.ZipInfo, name: str) -> None:
    """Refuse an array whose header states a larger size than its entry can have."""
    highest_ratio = _DEFLATE
    if entry.compress_type == zipfile.ZIP_STORED:
        highest_ratio = 1
    if entry.file_size > entry.compress_size * highest_ratio + _DEFLATE:
        raise BadArchiveError(f"{name!r} claims more bytes than the file holds")
    version = np.lib.format.read_magic(part)
    if version not in ((1, 0), (2, 0)):
        raise BadArchiveError(f"{name!r} is written in an unknown version of the format")
    read_header = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
    shape, _, dtype = read_header(part)
    if dtype.hasobject:
        raise BadArchiveError(f"{name!r} holds objects")
    size = entry.file_size - part.tell()
    # Elements of zero bytes count as one byte: any number of them would fit.
    if min(shape, default=0) < 0 or math.prod(shape) * max(1, dtype.itemsize) != size:
        raise BadArchiveError(
            f"{name!r} claims the shape {str(shape)[:60]} of {dtype}, but holds {size} bytes"
        )


def write_arrays(stream: IO[bytes], arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Write arrays by name; the same arrays always give the same bytes."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(name + _ENDING, _MODIFIED)
            # Compressing floats takes a hundred times as long as writing them, and saves little.
            if np.asanyarray(array).dtype.kind == "f":
                entry.compress_type = zipfile.ZIP_STORED
            else:
                entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            # The lowest level takes much less time than the default, and little more space.
            entry._compresslevel = 1  # type: ignore[attr-defined]
            with archive.open(entry, "w", force_zip64=True) as part:
                np.lib.format.write_array(part, np.asanyarray(array), allow_pickle=False)


def _check_unicode(array: npt.NDArray[Any], name: str) -> None:
    """Refuse text that contains invalid code points."""
    if array.dtype.kind != "U" or not array.dtype.itemsize:
        return
    codes = array.ravel(order="K").view(array.dtype.str[0] + "u4")
    if ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any():
        raise BadArchiveError(f"{name!r} contains invalid Unicode")
