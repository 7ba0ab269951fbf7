"""Reading tables and JSON with clear errors, and writing files whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pa_parquet

from edokit.errors import InputError, examples

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")
_STRINGS = pa.dictionary(pa.int32(), pa.string())


def read_table(path: str | Path, numbers: Callable[[str], bool] = lambda name: False) -> pa.Table:
    """One CSV, TSV, Parquet or JSONL file as an Arrow table.

    Text files know no types, so in a CSV every column is text ("007" stays "007", "NA" is no gap)
    except those whose name ``numbers`` accepts.
    """
    path = check_file(path)
    suffix = path.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise InputError(
            f"a table must be a file ending in {', '.join(TABLE_SUFFIXES)}, but got {path}",
            "rename or convert the file",
        )
    try:
        if suffix == ".parquet":
            table = pa_parquet.ParquetFile(path, memory_map=True).read()
        elif suffix in (".jsonl", ".ndjson"):
            table = _read_jsonl(path)
        else:
            table = _read_csv(path, "\t" if suffix == ".tsv" else ",", numbers)
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from error
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    if table.num_rows == 0:
        raise InputError(
            f"a table must hold at least one row, but {path} holds none",
            "check that it is the right file",
        )
    return table


def number_column(table: pa.Table, name: str, where: str = "the table") -> npt.NDArray[Any]:
    """A column of numbers [n], float32 if stored so; text is refused, gaps become NaN."""
    column = table[name]
    if not pa.types.is_float32(column.type):
        try:
            column = pc.cast(_decoded(column), pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(
                f"column {name!r} of {where} must hold numbers, but: {error}", "correct the column"
            ) from error
    values: npt.NDArray[Any] = column.to_numpy()
    return values


def parquet_columns(path: str | Path) -> list[str]:
    """The column names of a Parquet file, without reading it; none for any other file."""
    if Path(path).suffix.lower() != ".parquet":
        return []
    path = check_file(path)
    try:
        names: list[str] = pa_parquet.read_schema(path).names
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    return names


def read_json(path: str | Path) -> Any:
    """One JSON document."""
    path = check_file(path)
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path} must be valid JSON, but line {error.lineno} column {error.colno} is not:"
            f" {error.msg}",
            "the file may be cut off; export or download it again",
        ) from error
    except RecursionError as error:
        raise InputError(
            f"{path} must be JSON of ordinary depth, but is nested too deeply",
            "check that it is the right file",
        ) from error


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write CSV, TSV, Parquet or JSONL, by the file's ending."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise InputError(
            f"a table is written to a file ending in {', '.join(TABLE_SUFFIXES)}, but got {path}",
            "choose one of these endings",
        )
    with whole_file(path) as temporary:
        if suffix == ".parquet":
            pa_parquet.write_table(table, temporary, compression="zstd")
        elif suffix in (".csv", ".tsv"):
            plain = pa.table({name: _decoded(table[name]) for name in table.column_names})
            delimiter = "\t" if suffix == ".tsv" else ","
            pa_csv.write_csv(plain, temporary, pa_csv.WriteOptions(delimiter=delimiter))
        else:
            with temporary.open("w", encoding="utf-8") as stream:
                for batch in table.to_batches(max_chunksize=65_536):
                    for row in batch.to_pylist():
                        stream.write(json.dumps(row, ensure_ascii=False) + "\n")


def write_json(value: Any, path: str | Path) -> None:
    """Write one JSON document, readable by people."""
    with whole_file(path) as temporary:
        temporary.write_text(
            json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8"
        )


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary name beside ``path`` that takes its place only when all is written."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent
        )
    except OSError as error:
        raise cannot_write(path, error) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        # mkstemp makes private files; a result is as public as any other new file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def check_file(path: str | Path) -> Path:
    """The path, if it is a file with something in it."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"a file is needed here, but {path} is a folder", "name a file inside it")
    if not path.exists():
        raise InputError(f"the file must exist, but {path} does not", "check the spelling")
    if path.stat().st_size == 0:
        raise InputError(
            f"the file must not be empty, but {path} is", "check that it was written to the end"
        )
    return path


def cannot_write(path: Path, error: OSError) -> InputError:
    """The sentence for an output that can't be written."""
    return InputError(
        f"{path} must be writable, but {error.strerror or error}", "choose another place"
    )


def not_utf8(path: Path, error: UnicodeDecodeError) -> InputError:
    """The sentence for a text file in another encoding."""
    return InputError(
        f"text files must be UTF-8, but {path} is not (first at byte {error.start})",
        "convert it, for example with: iconv -f latin1 -t utf-8",
    )


def _read_csv(path: Path, delimiter: str, numbers: Callable[[str], bool]) -> pa.Table:
    import csv

    with path.open(encoding="utf-8-sig", newline="") as stream:
        header = next(csv.reader(stream, delimiter=delimiter), [])
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise InputError(
            f"column names must differ, but {path} has {examples(repeated)} twice",
            "rename one of them",
        )
    types = {name: pa.float64() if numbers(name) else _STRINGS for name in header}
    table: pa.Table = pa_csv.read_csv(
        path,
        parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types=types, strings_can_be_null=False, null_values=[""]
        ),
    )
    return table


def _read_jsonl(path: Path) -> pa.Table:
    # One block must hold a whole row, so blocks grow with the file up to a bound.
    block = min(max(1 << 20, path.stat().st_size), 1 << 26)
    options = pa_json.ReadOptions(block_size=block)
    table: pa.Table = pa_json.read_json(path, read_options=options)
    # Arrow reads text that looks like a date as a date; an id such as "2024-01-01" stays text.
    dates = [field.name for field in table.schema if pa.types.is_temporal(field.type)]
    if dates:
        schema = pa.schema([(name, pa.string()) for name in dates])
        parse = pa_json.ParseOptions(explicit_schema=schema)
        table = pa_json.read_json(path, read_options=options, parse_options=parse)
    return table


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if "utf8" in reason.lower() or "utf-8" in reason.lower():
        return InputError(
            f"text files must be UTF-8, but {path} is not",
            "convert it, for example with: iconv -f latin1 -t utf-8",
        )
    if "changed from" in reason:
        return InputError(
            f"each column must hold one type of value, but {path} mixes types: {reason}",
            "write the whole column as text or as numbers",
        )
    kind = {".parquet": "Parquet", ".csv": "CSV", ".tsv": "TSV"}.get(path.suffix.lower(), "JSONL")
    return InputError(
        f"{path} must be a valid {kind} file, but can't be read: {reason}",
        "the file may be cut off; export or download it again",
    )
