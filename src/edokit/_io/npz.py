"""Plain arrays in .npz files; what a header claims is checked before memory is given to it."""

from __future__ import annotations

import math
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO, FileIO
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edokit._io.atomic import check_memory

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DEFLATE = 1032
"""Deflate can't make more bytes than this out of one."""
_ENDING = ".npy"
_START = 2**14
"""Entries by which an array shows whether it can be packed; fewer bytes always are."""
_WORTH = 0.8
_MADE = (1980, 1, 1, 0, 0, 0)
"""The oldest time that an archive can name: the same arrays are the same bytes on every day."""
_LONGEST_HEADER = 2**14
"""Bytes that no header exceeds which numpy reads."""


class BadArchiveError(ValueError):
    """An .npz file that is damaged, or claims what it can't hold."""


class Arrays(dict[str, npt.NDArray[Any]]):
    """Arrays by name."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: dict[str, tuple[int, ...]] = {}
        """The shapes of these arrays, and of those whose headers alone were read."""
        self.places: dict[str, int] = {}
        """Where in the file the numbers of an array begin, if it holds them as they are here."""


def read_arrays(
    path: Path, names: Iterable[str] | None = None, unread: Iterable[str] = ()
) -> Arrays:
    """Arrays by name, all unless ``names`` says which (those that are there), and the shapes of
    ``unread`` ones; a damaged archive fails in as many ways as zip, zlib and numpy have."""
    with _opened(path) as (stream, archive), warnings.catch_warnings():
        # numpy warns of damaged headers before it refuses them.
        warnings.simplefilter("ignore")
        entries = _entries(archive)
        read_names = [name for name in (entries if names is None else names) if name in entries]
        heads = [*read_names, *(name for name in unread if name in entries)]
        headers = {name: _header(stream, archive, entries[name], name) for name in heads}
        # The arrays, and once more what it takes to check them.
        check_memory(path, 2 * sum(entries[name].file_size for name in read_names))
        arrays = Arrays()
        arrays.shapes = {name: header.shape for name, header in headers.items()}
        for name in read_names:
            if entries[name].compress_type == zipfile.ZIP_STORED:
                arrays[name], place = _stored(stream, entries[name], headers[name])
                if not headers[name].fortran:
                    arrays.places[name] = place
            else:
                with archive.open(entries[name]) as part:
                    arrays[name] = np.lib.format.read_array(part, allow_pickle=False)
                    # The checksum is compared where the end is read.
                    if part.read(1):
                        raise BadArchiveError(f"{name!r} goes on behind its end")
            _refuse_no_text(arrays[name], name)
        return arrays


def _stored(stream: FileIO, info: zipfile.ZipInfo, header: _Header) -> tuple[npt.NDArray[Any], int]:
    """An array that is not packed, and where it begins; zip would copy it in pieces."""
    start = stream.seek(_start(stream, info) + len(header.head))
    array = np.empty(header.shape, header.dtype, order="F" if header.fortran else "C")
    data: Any = array.reshape(-1, order="A").view(np.uint8) if array.nbytes else b""
    read = 0
    while read < len(data) and (count := stream.readinto(data[read:])):
        read += count
    if read < len(data) or zlib.crc32(data, zlib.crc32(header.head)) != info.CRC:
        raise BadArchiveError(f"Bad CRC-32 for file {info.filename!r}")
    return array, start


def _start(stream: FileIO, info: zipfile.ZipInfo) -> int:
    """Where the bytes of an entry begin."""
    stream.seek(info.header_offset)
    local = stream.read(30)
    if not local.startswith(b"PK\x03\x04"):
        raise BadArchiveError(f"{info.filename[:40]!r} is not where the archive says")
    # A name and more follow, whose lengths are the last in it.
    lengths = local[26:28], local[28:30]
    return info.header_offset + 30 + sum(int.from_bytes(field, "little") for field in lengths)


def write_arrays(stream: IO[bytes], arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Write arrays by name: the same arrays are always the same bytes."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(name + _ENDING, _MADE)
            entry.compress_type = zipfile.ZIP_DEFLATED if _packs(array) else zipfile.ZIP_STORED
            entry.external_attr = 0o600 << 16
            # The lowest level takes much less time than the usual one, and little more space.
            entry._compresslevel = 1  # type: ignore[attr-defined]
            with archive.open(entry, "w", force_zip64=True) as part:
                np.lib.format.write_array(part, np.asanyarray(array), allow_pickle=False)


def _packs(array: npt.NDArray[Any]) -> bool:
    """Whether an array gets notably smaller, as its start does: fractions seldom do, and packing
    them takes a hundred times as long as writing them."""
    start = np.asanyarray(array).flat[:_START].tobytes()
    return len(start) < _START or len(zlib.compress(start)) < _WORTH * len(start)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[FileIO, zipfile.ZipFile]]:
    if path.exists() and not path.is_file():
        raise BadArchiveError("it is no file")
    with path.open("rb", buffering=0) as stream:
        start = stream.read(6)
        if start == np.lib.format.MAGIC_PREFIX:
            raise BadArchiveError("it holds a single array")
        if not start.startswith(b"PK"):
            raise BadArchiveError("it holds something else")
        with zipfile.ZipFile(stream) as archive:
            yield stream, archive


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


class _Header(NamedTuple):
    """What an array claims to be, and the bytes that say so."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    head: bytes


def _header(stream: FileIO, archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> _Header:
    """What the header claims, if the entry can hold it."""
    limit = info.compress_size * (1 if info.compress_type == zipfile.ZIP_STORED else _DEFLATE)
    if info.compress_type not in _METHODS or info.flag_bits & 1:
        raise BadArchiveError(f"{name!r} is packed in a way that is not read")
    if info.file_size > limit + _DEFLATE:
        raise BadArchiveError(f"{name!r} claims more bytes than the file holds")
    if info.compress_type == zipfile.ZIP_STORED:
        stream.seek(_start(stream, info))
        head = stream.read(_LONGEST_HEADER)
    else:
        with archive.open(info) as part:
            head = part.read(_LONGEST_HEADER)
    version = np.lib.format.read_magic(BytesIO(head))
    if version not in ((1, 0), (2, 0)):
        raise BadArchiveError(f"{name!r} is written in an unknown version of the format")
    end = 8 + 2 * version[0]
    head = head[: end + int.from_bytes(head[8:end], "little")]
    shape, fortran, dtype = _parsed(version[0], head[8:])
    size = info.file_size - len(head)
    if dtype.hasobject:
        raise BadArchiveError(f"{name!r} holds objects")
    if any(length < 0 for length in shape):
        raise BadArchiveError(f"{name!r} claims the shape {str(shape)[:60]}")
    # Entries of no bytes would cost nothing to claim.
    if math.prod(shape) * max(1, dtype.itemsize) != size:
        raise BadArchiveError(
            f"{name!r} claims the shape {str(shape)[:60]} of {dtype}, but holds {size} bytes"
        )
    return _Header(tuple(shape), fortran, dtype, head)


@lru_cache(maxsize=64)  # the headers of shards are mostly the same
def _parsed(version: int, header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    read: Any = getattr(np.lib.format, f"read_array_header_{version}_0")
    return read(BytesIO(header))  # type: ignore[no-any-return]


def _refuse_no_text(array: npt.NDArray[Any], name: str) -> None:
    """Refuse text with numbers in it that stand for no character."""
    if array.dtype.kind != "U" or not array.dtype.itemsize:
        return
    codes = array.ravel(order="K").view(array.dtype.str[0] + "u4")
    if ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any():
        raise BadArchiveError(f"{name!r} holds what is no text")
