"""Plain arrays in .npz files; what a header claims is checked before memory is given to it."""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from edokit._io.atomic import check_memory

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DEFLATE = 1032
"""Deflate can't make more bytes than this out of one."""
_ENDING = ".npy"
_MADE = (1980, 1, 1, 0, 0, 0)
"""The oldest time that an archive can name: the same arrays are the same bytes on every day."""


class BadArchiveError(ValueError):
    """An .npz file that is damaged, or claims what it can't hold."""


def array_names(path: Path) -> list[str]:
    """The names of the arrays in an .npz file."""
    with _opened(path) as archive:
        return list(_entries(archive))


def array_shape(path: Path, name: str) -> tuple[int, ...]:
    """The shape of one array, from its header."""
    with _opened(path) as archive:
        return _checked_shape(archive, _entries(archive)[name], name)


def read_arrays(path: Path, names: Iterable[str] | None = None) -> dict[str, npt.NDArray[Any]]:
    """Arrays by name, all unless ``names`` says which; a damaged archive fails in as many ways as
    zip, zlib and numpy have."""
    with _opened(path) as archive, warnings.catch_warnings():
        # numpy warns of damaged headers before it refuses them.
        warnings.simplefilter("ignore")
        entries = _entries(archive)
        wanted = list(entries) if names is None else list(names)
        for name in wanted:
            _checked_shape(archive, entries[name], name)
        # The arrays, and once more what it takes to check them.
        check_memory(path, 2 * sum(entries[name].file_size for name in wanted))
        arrays = {}
        for name in wanted:
            with archive.open(entries[name]) as stream:
                arrays[name] = np.lib.format.read_array(stream, allow_pickle=False)
                # The checksum is compared where the end is read.
                if stream.read(1):
                    raise BadArchiveError(f"{name!r} goes on behind its end")
                _refuse_no_text(arrays[name], name)
        return arrays


def write_arrays(stream: IO[bytes], arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Write arrays by name: the same arrays are always the same bytes."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(name + _ENDING, _MADE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            with archive.open(entry, "w", force_zip64=True) as part:
                np.lib.format.write_array(part, np.asanyarray(array), allow_pickle=False)


def _opened(path: Path) -> zipfile.ZipFile:
    if path.exists() and not path.is_file():
        raise BadArchiveError("it is no file")
    with path.open("rb") as stream:
        start = stream.read(6)
    if start == np.lib.format.MAGIC_PREFIX:
        raise BadArchiveError("it holds a single array")
    if not start.startswith(b"PK"):
        raise BadArchiveError("it holds something else")
    return zipfile.ZipFile(path)


def _entries(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    entries: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        # Nothing is unpacked by name, but who writes such names wants somebody to.
        parts = info.filename.replace("\\", "/").split("/")
        if ".." in parts or parts[0] == "" or ":" in parts[0]:
            raise BadArchiveError(f"its entry {info.filename[:40]!r} points outside the archive")
        name = info.filename.removesuffix(_ENDING)
        if name in entries:
            raise BadArchiveError(f"it holds {name[:40]!r} twice")
        entries[name] = info
    return entries


def _checked_shape(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> tuple[int, ...]:
    """The shape that the header claims, if the entry can hold it."""
    most = info.compress_size * (1 if info.compress_type == zipfile.ZIP_STORED else _DEFLATE)
    if info.compress_type not in _METHODS or info.flag_bits & 1:
        raise BadArchiveError(f"{name!r} is packed in a way that is not read")
    if info.file_size > most + _DEFLATE:
        raise BadArchiveError(f"{name!r} claims more bytes than the file holds")
    with archive.open(info) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise BadArchiveError(f"{name!r} is written in an unknown version of the format")
        header = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
        shape, _, dtype = header(stream)
        left = info.file_size - stream.tell()
    if dtype.hasobject:
        raise BadArchiveError(f"{name!r} holds objects")
    if any(length < 0 for length in shape):
        raise BadArchiveError(f"{name!r} claims the shape {str(shape)[:60]}")
    # Entries of no bytes would cost nothing to claim.
    if math.prod(shape) * max(1, dtype.itemsize) != left:
        raise BadArchiveError(
            f"{name!r} claims the shape {str(shape)[:60]} of {dtype}, but holds {left} bytes"
        )
    return tuple(shape)


def _refuse_no_text(array: npt.NDArray[Any], name: str) -> None:
    """Refuse text with numbers in it that stand for no character."""
    if array.dtype.kind != "U" or not array.dtype.itemsize:
        return
    codes = array.ravel(order="K").view(array.dtype.str[0] + "u4")
    if ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any():
        raise BadArchiveError(f"{name!r} holds what is no text")
