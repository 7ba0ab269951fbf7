"""Reading and writing annotations; the kind of a source is recognised from its content."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from edokit._errors import EDOWarning, InputError, Place, errors_in, examples, one_of, option, warn
from edokit._io.atomic import check_file
from edokit._io.documents import read_json
from edokit._io.tables import (
    READABLE_SUFFIXES,
    class_columns,
    plain_schema,
    read_file_table,
    write_table,
)
from edokit._types import Strings
from edokit.annotations.core import Annotations
from edokit.annotations.decisions import read_or_ask_all
from edokit.annotations.long_table import Policies, from_long_table
from edokit.scales import NOMINAL, DeclaredScale, ScaleLike, split_points

_LONGEST_RECORD = 1 << 24
"""Characters of a line of JSONL that are read; the records that tools export are far shorter."""
_LONGEST_START = 1 << 20
"""Characters of a JSON file that are read to find its first record."""
FOLDER = "/"
"""The entry for a folder among the suffixes of files."""
SOURCES: dict[str, tuple[str, ...]] = {
    "lewidi": (".json", FOLDER),
    "table": (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".xlsx", FOLDER),
    "label_studio": (".json",),
    "argilla": (".json", ".parquet", ".jsonl", ".ndjson"),
    "doccano": (".json", ".jsonl", FOLDER),
    "potato": (".json", FOLDER),
}
"""The module of each kind of source, and the suffixes of its files.

Each module defines a `SOURCE`, except that of tables, which is in this module. A module is only
imported for files with its suffixes. The last kind that recognises a file reads it, so special
kinds come after general ones.
"""

POLICIES = ("empty", "ignore_case", "drop_label", "drop_annotator")
"""Fields of `Policies` that are further arguments of `read_annotations`."""


class ScaleWarning(EDOWarning):
    """Classes may be points of a scale, which was not declared."""


@dataclass(frozen=True)
class SourceItems:
    """Texts of items and their annotators; labels may be unknown.

    Attributes
    ----------
    items : Strings
        Item ids [N].
    texts, contexts : Strings or None
        The text of each item and its context [N].
    annotators : Sequence[tuple[str, ...]]
        The annotators of each item [N].
    """

    items: Strings
    texts: Strings | None
    contexts: Strings | None
    annotators: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Source:
    """A kind of source, and how it is read.

    Attributes
    ----------
    name : str
        The value of ``format`` for this kind, such as ``lewidi``.
    description : str
        A few words for messages, with an article.
    read : Callable[..., Annotations]
        Called as ``read(path, split=…, classes=…, policies=…, scale=…, **options)``; without
        ``scale`` if none is declared.
    recognises : Callable[[Path, Any], bool]
        Whether a file or folder with one of its suffixes is of this kind, by its path and its
        content (see `_content`).
    options : tuple[str, ...]
        Further arguments of ``read``.
    items : Callable[..., SourceItems] or None
        Called as ``items(path, split=…, **options)`` to read texts whose labels may be held out.
    """

    name: str
    description: str
    read: Callable[..., Annotations]
    recognises: Callable[[Path, Any], bool] = lambda path, content: True
    options: tuple[str, ...] = ()
    items: Callable[..., SourceItems] | None = None


def sources(suffix: str | None = None) -> list[Source]:
    """All kinds of sources in the order of `SOURCES`, or those whose files have this suffix."""
    matching_sources = []
    for module, suffixes in SOURCES.items():
        if suffix is not None and suffix not in suffixes:
            continue
        if module == "table":
            matching_sources.append(TABLE)
        else:
            matching_sources.append(import_module(f"edokit.datasets.{module}").SOURCE)
    return matching_sources


def _content(path: Path, suffix: str) -> Any:
    """What a file is recognised by: the document of a JSON file, else a list of its first record.

    The list is empty if there is no such record (see `first_record`).
    """
    if suffix == ".json":
        return read_json(path, math.inf)
    record = first_record(path)
    if record is None:
        return []
    return [record]


def first_record(path: Path) -> Any:
    """The first record of a JSON or JSONL file; of a Parquet file, only its columns.

    None for other files, and if it can't be read: the reader of the file says why.
    """
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            from edokit._io.parquet import parquet_columns

            return dict.fromkeys(parquet_columns(path))
        if suffix in (".jsonl", ".ndjson"):
            return _first_json_line(path)
        if suffix == ".json":
            with path.open(encoding="utf-8-sig") as stream:
                start = stream.read(_LONGEST_START).lstrip()
            if start.startswith("["):
                return json.JSONDecoder().raw_decode(start[1:].lstrip())[0]
    except (ValueError, OSError, RecursionError, pa.ArrowException):
        pass
    return None


def _first_json_line(path: Path) -> Any:
    """The first record of a JSONL file; None if there is none."""
    with path.open(encoding="utf-8-sig") as stream:
        while line := stream.readline(_LONGEST_RECORD):
            if line.strip():
                return json.loads(line)  # fails if the line was cut
    return None


def recognise(path: Path) -> Source:
    """The kind of source that a file or folder is."""
    suffix = FOLDER
    if not path.is_dir():
        suffix = check_file(path).suffix.lower()
    content = _content(path, suffix)
    for source in reversed(sources(suffix)):
        if source.recognises(path, content):
            return source
    known_sources = sources()
    descriptions = ", nor ".join(source.description for source in known_sources)
    names = ", ".join(source.name for source in known_sources)
    raise InputError(
        f"{path} is not a known source of annotations: neither {descriptions}",
        "unpack it if it is an archive, convert it to a table with the columns item, annotator,"
        f" label, or give its {option('format')}: {names}",
        code="unknown-format",
    )


def read_annotations(
    source: str | Path,
    *,
    format: str | None = None,
    split: str | Sequence[str] | None = None,
    classes: Sequence[object] | None = None,
    duplicates: Literal["error", "first", "all"] | None = None,
    columns: Mapping[str, str] | None = None,
    label_map: Mapping[str, str] | None = None,
    scale: ScaleLike | None = None,
    attributes: Sequence[str] | None = None,
    people: str | Path | None = None,
    **options: Any,
) -> Annotations:
    """Read annotations from a file or folder; its format is recognised from its content.

    Parameters
    ----------
    source : str or Path
        A table with one row per annotation (CSV, TSV, Parquet, JSONL, XLSX; columns ``item``,
        ``annotator``, ``label``), a LeWiDi JSON file, a folder of either, or an export of Label
        Studio, Argilla, doccano or Potato.
    format : {"table", "lewidi", "label-studio", "argilla", "doccano", "potato"}, default=None
        The format of the source; recognised if None.
    split : str or sequence of str, default=None
        Read only the items of this split, or of these.
    classes : sequence, default=None
        All classes in their order. With None, those that occur, in numeric or alphabetical order.
    duplicates : {"error", "first", "all"}, default=None
        What to do if an annotator labels an item more than once: raise, keep the first label, or
        count every label. None means "all" for LeWiDi, else "error".
    columns : mapping of str to str, default=None
        Names of columns that differ from the default, as in ``{"item": "id"}``. ``{"group":
        "thread"}`` names the column with the group of each item: folds, splits and intervals keep
        a group together. For an export, the fields with the ``item``, the ``text``, the
        ``context`` and the ``group``.
    label_map : mapping of str to str, default=None
        Labels and hard labels to replace, as in ``{"Rude": "rude"}``.
    scale : Scale or str, default=None
        The answer scale: ``nominal``, ``ordinal``, ``multi-label``, or with the classes as in
        ``ordinal:low=0,mid=1,high=3``. None means the scale noted in the file, else nominal, with
        a warning if the classes are consecutive whole numbers.
    attributes : sequence of str, default=None
        Columns that describe annotators, such as ``["gender"]``; ``[]`` for none. With None, all
        columns with one value per annotator, except ids and constants (`Annotations.people`).
    people : str or Path, default=None
        A table of people with a column ``annotator`` (or its name in ``columns``) and a column per
        attribute, or a JSON object with an object per annotator.
    **options
        ``empty="drop"``, ``ignore_case=True``, ``drop_label`` and ``drop_annotator`` say what to do
        with rows that are not clean annotations, and ``annotator_columns`` names the columns of a
        table with one column per annotator: see `Annotations.from_table`. For a CSV or XLSX file,
        ``skip_rows`` is the number of rows above the header, such as a title; for an XLSX file,
        ``sheet`` is the name of the sheet, by default the first one. For an export, ``question`` is
        the question that the labels answer (a control of Label Studio, a question of Argilla, a
        scheme of Potato); it is needed if there are several. ``user_first=True`` takes the
        annotated utterance of LeWiDi's ConvAbuse as the text, and the turns before it as its
        context.

    Returns
    -------
    Annotations

    Raises
    ------
    InputError
        If the file is damaged, of an unknown format, or contains invalid annotations.

    Examples
    --------
    >>> from pathlib import Path
    >>> import edokit
    >>> rows = ["item,annotator,label", "a,ann-1,no", "a,ann-2,yes", "b,ann-1,no"]
    >>> _ = Path("labels.csv").write_text("\\n".join(rows))
    >>> annotations = edokit.read_annotations("labels.csv")
    >>> annotations.classes
    ('no', 'yes')
    >>> annotations.soft_labels.tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    path = Path(source)
    if path.is_dir() and not any(path.iterdir()):
        raise InputError(
            f"the folder '{path}' is empty", "name a file of annotations", code="not-a-file"
        )
    if scale is not None:
        DeclaredScale(scale)  # refused before the file is read
    kind = _kind(path, format)
    reading = {
        "split": split,
        "classes": classes,
        "duplicates": duplicates,
        "columns": columns,
        "label_map": label_map,
        "scale": scale,
        "attributes": attributes,
        "people": people,
        **options,
    }

    def read(arguments: Mapping[str, Any]) -> Annotations:
        return _read_source(path, kind, **arguments)

    return read_or_ask_all(read, reading)


def _read_source(
    path: Path,
    kind: Source,
    *,
    split: str | Sequence[str] | None,
    classes: Sequence[object] | None,
    duplicates: Literal["error", "first", "all"] | None,
    columns: Mapping[str, str] | None,
    label_map: Mapping[str, str] | None,
    scale: ScaleLike | None,
    attributes: Sequence[str] | None,
    people: str | Path | None,
    **options: Any,
) -> Annotations:
    """The annotations in a source of this kind; arguments are those of `read_annotations`."""
    policies = {}
    reader_options = {}
    for name, value in options.items():
        if name in POLICIES:
            policies[name] = value
        else:
            reader_options[name] = value
    reader_options["columns"] = columns
    reader_options["label_map"] = label_map
    splits = list(split or ())
    if isinstance(split, str):
        splits = [split]
    arguments = _reader_options(kind, reader_options)
    arguments["split"] = None
    if len(splits) == 1:
        arguments["split"] = splits[0]
    arguments["classes"] = classes
    arguments["policies"] = Policies(duplicates=duplicates, **policies)
    if scale is not None:
        arguments["scale"] = scale
    with errors_in(path):
        annotations = kind.read(path, **arguments)
        if len(splits) > 1:
            annotations = annotations.split(*splits)
    if people is not None:
        from edokit.datasets.people import with_people

        annotations = with_people(annotations, people, columns)
    if attributes is not None:
        annotations = annotations.with_attributes(attributes)
    points, outliers = possible_points(annotations)
    if scale is None and points:
        outlier_note = ""
        if outliers:
            outlier_note = f" ({examples(outliers)} beside them may be mistakes)"
        warn(
            f"the labels {', '.join(points)}{outlier_note} may be points of a scale and are read as"
            f" classes without an order; choose {option('scale', 'ordinal')} or, if they have none,"
            f" {option('scale', 'nominal')}",
            ScaleWarning,
        )
    return annotations


def possible_points(annotations: Annotations) -> tuple[list[str], list[str]]:
    """Classes of a nominal scale that may be points, and other classes that may be mistakes.

    Both lists are empty if the classes look like names.
    """
    if annotations.scale != NOMINAL:
        return [], []
    totals = annotations.counts.sum(axis=0).astype(int).tolist()
    return split_points(dict(zip(annotations.classes, totals, strict=True)))


def read_items(
    source: str | Path,
    *,
    format: str | None = None,
    split: str | None = None,
    **options: Any,
) -> SourceItems:
    """Texts and annotators of the items in any source; its labels may be held out."""
    path = Path(source)
    kind = _kind(path, format)
    if kind.items is not None:
        label_options = ("scale", "classes", "duplicates", "attributes", "people", *POLICIES)
        reading = {name: value for name, value in options.items() if name not in label_options}
        with errors_in(path):
            return kind.items(path, split=split, **_reader_options(kind, reading))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScaleWarning)  # no label is used here
        annotations = read_annotations(path, format=format, split=split, **options)
    # The keys of dictionaries are distinct, and keep their order.
    annotators: list[dict[str, None]] = [{} for _ in annotations.items]
    for item, annotator in zip(annotations.item_codes, annotations.annotator_codes, strict=True):
        annotators[item][str(annotations.annotators[annotator])] = None
    return SourceItems(
        items=annotations.items,
        texts=annotations.texts,
        contexts=annotations.contexts,
        annotators=list(map(tuple, annotators)),
    )


def _kind(path: Path, format: str | None) -> Source:
    """The kind of source with this format, else the kind recognised from the file or folder."""
    if format is None:
        return recognise(path)
    formats = {source.name: source for source in sources()}
    one_of("format", format, formats)
    return formats[format]


def _reader_options(kind: Source, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not None; those that this kind of source does not take are refused."""
    arguments = {name: value for name, value in options.items() if value is not None}
    for name in arguments:
        if name not in kind.options:
            raise InputError(
                f"{option(name)} is not an option of the format {kind.name!r}, which takes"
                f" {', '.join(map(repr, kind.options)) or 'none'}",
                f"leave it out, or choose another {option('format')}",
                code="inapplicable-option",
            )
    return arguments


def write_annotations(annotations: Annotations, path: str | Path, *, raw: bool = False) -> None:
    """Write annotations as a table with one row per annotation.

    Parameters
    ----------
    annotations : Annotations
    path : str or Path
        A file ending in .csv, .tsv, .parquet, .jsonl or .ndjson. It is written completely or not
        at all.
    raw : bool, default=False
        In a CSV or TSV file, text that a spreadsheet would run as a formula (it begins with ``=``,
        ``+``, ``-`` or ``@``) gets a quote before it, which EDO removes when it reads the file.
        With ``raw=True``, text is written unchanged, for other programs.

    Raises
    ------
    InputError
        If the file has another ending or can't be written.

    Examples
    --------
    >>> import edokit
    >>> annotations = edokit.simulate("two-camps", items=(10, 2, 2)).annotations
    >>> edokit.write_annotations(annotations, "labels.parquet")
    >>> edokit.read_annotations("labels.parquet", split="dev").items.tolist()
    ['sim-dev-1', 'sim-dev-2']
    """
    write_table(annotations.to_table(), path, raw=raw)


# --- Tables: CSV, TSV, Parquet, JSONL or XLSX, one row per annotation -----------------------------


def read_annotation_table(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    skip_rows: int = 0,
    sheet: str | None = None,
    **options: Any,
) -> Annotations:
    """Read a long table with the columns ``item``, ``annotator`` and ``label``.

    Columns ``p_<class>`` may replace ``label``; without a column of annotators, they are soft
    labels with one row per item. A folder of tables is read as one table. ``skip_rows`` and
    ``sheet`` are those of `read_table`; ``columns`` and further options are those of
    `Annotations.from_table`.
    """
    places_by_file: dict[Path, Place] = {}
    tables = []
    for file in table_files(path):
        part = read_file_table(file, skip_rows=skip_rows, sheet=sheet)
        tables.append(part.table)
        places_by_file[file] = part.place
    with errors_in(path):
        try:
            table = _concatenated(tables)
        except pa.ArrowException as error:
            raise InputError(
                f"the tables in the folder have different columns: {error}",
                "write them with the same names and types of columns",
                code="columns-differ",
            ) from error
        table = with_annotator(table, columns or {})
        lengths = [part.num_rows for part in tables]
        place = _place_in_files(places_by_file, lengths)
        return from_long_table(table, columns=columns, place=place, **options)


def _concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of several tables; a column that one of them lacks has gaps."""
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        # CSV files are read with dictionaries of repeated text, which Arrow does not merge with
        # the plain text of JSONL files.
        plain_tables = [table.cast(plain_schema(table.schema)) for table in tables]
        return pa.concat_tables(plain_tables, promote_options="permissive")


def _place_in_files(places_by_file: Mapping[Path, Place], lengths: Sequence[int]) -> Place:
    """Says where a row of several tables, one after another, is; ``lengths`` are their rows."""
    files = list(places_by_file)
    ends = np.cumsum(lengths)

    def place(position: int) -> str:
        number = int(np.searchsorted(ends, position, side="right"))
        file = files[number]
        start = int(ends[number]) - lengths[number]
        place_in_file = places_by_file[file](position - start)
        if len(files) == 1:
            return place_in_file
        return f"{place_in_file} of {file.name}"

    return place


def table_files(path: str | Path) -> list[Path]:
    """The file itself, or the tables in a folder by name."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    files = []
    for file in sorted(path.iterdir()):
        # Hidden files are left by an interrupted writer.
        if file.suffix.lower() in READABLE_SUFFIXES and not file.name.startswith("."):
            files.append(file)
    return files


def with_annotator(table: pa.Table, columns: Mapping[str, str]) -> pa.Table:
    """The table, with one annotator for soft labels: columns ``p_<class>`` without annotators."""
    names = {*columns, *table.column_names}
    if names & {"annotator", "label"} or not class_columns(table.column_names):
        return table
    codes = pa.array(np.zeros(table.num_rows, dtype=np.int32))
    return table.append_column("annotator", pa.DictionaryArray.from_arrays(codes, ["soft"]))


def _is_table(path: Path, content: object) -> bool:
    """Whether the path is a file, or a folder that contains tables and no JSON files."""
    if not path.is_dir():
        return True
    return not any(path.glob("*.json")) and bool(table_files(path))


TABLE = Source(
    "table",
    f"a table ({', '.join(READABLE_SUFFIXES)})",
    read_annotation_table,
    _is_table,
    options=("columns", "label_map", "skip_rows", "sheet", "annotator_columns"),
)
