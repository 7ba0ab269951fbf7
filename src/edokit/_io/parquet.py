"""Reading Parquet files, whose footers EDO reads first."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pa_parquet

from edokit._errors import InputError
from edokit._io.memory import MemoryBudget, check_memory
from edokit._io.parquet_footer import DELTA_BYTE_ARRAY, Footer, read_footer
from edokit._io.parquet_pages import unpacked_size
from edokit._io.tables import LONGEST_ROW, check_distinct, is_text, unreadable, written_out
from edokit._parallel import may_use_threads


def read_parquet(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a Parquet file, or only some of its columns; repeated text is kept once.

    The footer is read by EDO first. pyarrow gets the file only if the footer contradicts neither
    itself nor the memory that is free.
    """
    try:
        footer = read_footer(path)
        metadata = pa_parquet.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
        check_distinct(schema.names, path)
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
            footer = footer.select(columns)
        _check_parquet_memory(footer, path)
        prefixed = _columns_of_bytes(footer, DELTA_BYTE_ARRAY)
        texts = [field.name for field in schema if is_text(field.type)]
        texts = [name for name in texts if name not in prefixed]
        _check_repeated(path, metadata, footer, set(texts), prefixed)
        with pa_parquet.ParquetFile(path, read_dictionary=texts, metadata=metadata) as file:
            if prefixed:  # at once, Arrow would take quadratic time for a column of long values
                batches = file.iter_batches(_rows_at_once(footer), columns=columns)
                table = pa.Table.from_batches(batches)
            else:
                table = file.read(columns, use_threads=may_use_threads())
        if table.num_rows != footer.num_rows:
            raise ValueError(f"it claims {footer.num_rows} rows")
        table.validate(full=True)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise unreadable(path, "Parquet", error) from error
    check_memory(path, sum(written_out(table[name]) for name in texts))
    return table


def parquet_columns(path: Path) -> list[str]:
    """The names of the columns of a Parquet file.

    Raises ValueError or an error of Arrow if they can't be read.
    """
    read_footer(path)
    names: list[str] = pa_parquet.read_schema(path).names
    return names


def _check_parquet_memory(footer: Footer, path: Path) -> None:
    """Refuse a file that would take far more memory than its size on disk suggests."""
    claimed = sum(group.size for group in footer.groups)
    # Rows of repeated values take no bytes in the file, but an entry per column in memory.
    cells = 4 * max(footer.num_rows, sum(chunk.num_values for chunk in footer.chunks()))
    check_memory(path, 2 * max(cells, claimed))
    check_memory(path, 2 * unpacked_size(path, footer))


def _columns_of_bytes(footer: Footer, encoding: int | None = None) -> set[str]:
    """Columns (and parts of columns) of text or bytes; with ``encoding``, only those with it."""
    return {
        chunk.leaf.path
        for chunk in footer.chunks()
        if chunk.leaf.is_bytes and (encoding is None or encoding in chunk.encodings)
    }


def _check_repeated(
    path: Path,
    metadata: pa_parquet.FileMetaData,
    footer: Footer,
    texts: set[str],
    prefixed: set[str],
) -> None:
    """Refuse columns whose values are stored once in the file, but would be repeated in memory.

    Repeated text is kept once (``texts``); bytes, and text in lists, are repeated. For ``prefixed``
    columns, the file stores only the difference of a value from the one before it.
    """
    repeated = _columns_of_bytes(footer) - texts - prefixed
    if not repeated and not prefixed:
        return
    budget = MemoryBudget(path)
    with pa_parquet.ParquetFile(path, read_dictionary=[*repeated], metadata=metadata) as file:
        for number in range(len(footer.groups)):
            if repeated:
                part = file.read_row_group(number, columns=[*repeated], use_threads=False)
                for column in part.columns:
                    budget.take(written_out(column))
            if prefixed:
                rows = _rows_at_once(footer)
                for batch in file.iter_batches(rows, row_groups=[number], columns=[*prefixed]):
                    budget.take(batch.nbytes)


def _rows_at_once(footer: Footer) -> int:
    """A number of rows that takes little memory even if each value is as long as a row group."""
    largest = max(group.size for group in footer.groups)
    return int(max(1, min(1 << 16, LONGEST_ROW // max(1, largest))))
