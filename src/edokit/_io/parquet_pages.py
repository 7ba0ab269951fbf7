"""The uncompressed size of the pages of a Parquet file, according to their headers.

The footer of a Parquet file states the size of each column, and may be wrong. Readers allocate
memory by the header of each page, so an estimate has to add up these headers.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from edokit._io.parquet_footer import STATISTICS, Footer
from edokit._io.thrift import BOOL, I32, ThriftReader, struct_of

_MOST_PAGES = 1_000_000
_UNCOMPRESSED_SIZE = 2  # fields of a header
_COMPRESSED_SIZE = 3
_HEADER = struct_of(
    {
        1: I32,
        _UNCOMPRESSED_SIZE: I32,
        _COMPRESSED_SIZE: I32,
        4: I32,
        5: struct_of({1: I32, 2: I32, 3: I32, 4: I32, 5: STATISTICS}),
        6: struct_of({}),
        7: struct_of({1: I32, 2: I32, 3: BOOL}),
        8: struct_of(
            {1: I32, 2: I32, 3: I32, 4: I32, 5: I32, 6: I32, 7: BOOL, 8: STATISTICS},
        ),
    }
)


def unpacked_size(path: Path, footer: Footer) -> int:
    """Bytes that all pages take uncompressed.

    Raises ValueError if a header can't be read.
    """
    size = 0
    pages = 0
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for chunk in footer.chunks():
            if chunk.num_values == 0:
                continue
            if not 0 <= chunk.start <= chunk.end <= len(data):
                raise ValueError("a column lies outside the file")
            reader = ThriftReader(data, chunk.start, "the header of a page")
            while reader.position < chunk.end:
                header = reader.read(_HEADER)
                unpacked = header.integer(_UNCOMPRESSED_SIZE)
                packed = header.integer(_COMPRESSED_SIZE)
                if unpacked < 0 or packed < 0:
                    raise ValueError("the header of a page states a negative size")
                size += unpacked
                reader.position += packed
                pages += 1
                if pages > _MOST_PAGES:
                    raise ValueError(f"it has more than {_MOST_PAGES:,} pages")
    return size
