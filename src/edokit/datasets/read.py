"""Reading and writing annotations: each kind of source is recognised by what is in it."""

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
import pyarrow.parquet as pa_parquet

from edokit._errors import EDOWarning, InputError, Place, errors_in, examples, one_of, option, warn
from edokit._io.atomic import check_file
from edokit._io.documents import read_json
from edokit._io.tables import READABLE_SUFFIXES, class_columns, read_file_table, write_table
from edokit._types import Strings
from edokit.annotations.core import Annotations
from edokit.annotations.decisions import read_or_ask_all
from edokit.annotations.long_table import Policies, from_long_table
from edokit.scales import NOMINAL, DeclaredScale, ScaleLike, split_points

_LONGEST_RECORD = 1 << 24
_LONGEST_START = 1 << 20
"""Characters of a JSON file that are read to find its first record."""
FOLDER = "/"
"""The entry for a folder among the endings of files."""
SOURCES: dict[str, tuple[str, ...]] = {
    "lewidi": (".json", FOLDER),
    "table": (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".xlsx", FOLDER),
    "label_studio": (".json",),
    "argilla": (".json", ".parquet", ".jsonl", ".ndjson"),
    "doccano": (".json", ".jsonl", FOLDER),
    "potato": (".json", FOLDER),
}
"""Modules of this package that hold a `SOURCE` (that of tables is here), and the endings of files.

A module is imported for such files alone. The last one that recognises a file reads it, so special
kinds come after general ones.
"""


POLICIES = ("empty", "ignore_case", "drop_label", "drop_annotator")
"""Fields of `Policies` that are further arguments of `read_annotations`."""


class ScaleWarning(EDOWarning):
    """Classes may be points of a scale, which was not declared."""


@dataclass(frozen=True)
class SourceItems:
    """Texts of items and who annotated them, whether or not labels are known.

    Attributes
    ----------
    items : Strings
        Item ids [N].
    annotators : Sequence[tuple[str, ...]]
        The annotators of each item [N].
    """

    items: Strings
    texts: Strings | None
    contexts: Strings | None
    annotators: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Source:
    """One kind of source, and how it is read.

    Attributes
    ----------
    name : str
        What it is called: ``format="lewidi"``.
    about : str
        What it is, in a few words, with its article.
    read : Callable[..., Annotations]
        ``read(path, split=…, classes=…, policies=…, scale=…, **options)``; the scale is left out
        where it was not given.
    recognises : Callable[[Path, Any], bool]
        Whether a file or folder with one of its endings is one of these, by its path and content
        (as `_content` gives it).
    options : tuple[str, ...]
        Further arguments of ``read``.
    items : Callable[..., SourceItems] or None
        ``items(path, split=…, **options)`` reads texts alone, where labels may be held out.
    """

    name: str
    description: str
    read: Callable[..., Annotations]
    recognises: Callable[[Path, Any], bool] = lambda path, content: True
    options: tuple[str, ...] = ()
    items: Callable[..., SourceItems] | None = None


def sources(suffix: str | None = None) -> list[Source]:
    """All sources in the order of `SOURCES`, or those whose files have this ending."""
    return [
        TABLE if module == "table" else import_module(f"edokit.datasets.{module}").SOURCE
        for module, endings in SOURCES.items()
        if suffix is None or suffix in endings
    ]


def _content(path: Path, suffix: str) -> Any:
    """The document in a JSON file, a list with the first row of a JSONL or Parquet file (of Parquet
    its columns alone), else an empty list."""
    if suffix == ".json":
        return read_json(path, math.inf)
    record = first_record(path)
    return [] if record is None else [record]


def first_record(path: Path) -> Any:
    """The first record of a JSONL or JSON file, or the columns of a Parquet file.

    None where there is none, and where it can't be read: the reader of the file says why.
    """
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            return dict.fromkeys(pa_parquet.read_schema(path).names)
        if suffix in (".jsonl", ".ndjson"):
            with path.open(encoding="utf-8-sig") as lines:
                # Records that tools export are far shorter; a longer line is cut, and no record.
                for line in iter(lambda: lines.readline(_LONGEST_RECORD), ""):
                    if line.strip():
                        return json.loads(line)
        if suffix == ".json":
            with path.open(encoding="utf-8-sig") as stream:
                start = stream.read(_LONGEST_START).lstrip()
            if start.startswith("["):
                return json.JSONDecoder().raw_decode(start[1:].lstrip())[0]
    except (ValueError, OSError, RecursionError, pa.ArrowException):
        pass
    return None


def recognise(path: Path) -> Source:
    """The source that a file or folder is one of."""
    suffix = FOLDER if path.is_dir() else check_file(path).suffix.lower()
    content = _content(path, suffix)
    for source in reversed(sources(suffix)):
        if source.recognises(path, content):
            return source
    formats = sources()
    raise InputError(
        f"{path} is not a known source of annotations: neither"
        f" {', nor '.join(source.description for source in formats)}",
        f"unpack it if it is an archive, convert it to a table with the columns item, annotator,"
        f" label, or give its {option('format')}: {', '.join(source.name for source in formats)}",
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
    """Read annotations from a file or folder; its kind is recognised by what is in it.

    Parameters
    ----------
    source : str or Path
        A table with one row per annotation (CSV, TSV, Parquet, JSONL, XLSX; columns ``item``,
        ``annotator``, ``label``), a LeWiDi JSON file, a folder of either, or an export of Label
        Studio, Argilla, doccano or Potato.
    format : {"table", "lewidi", "label-studio", "argilla", "doccano", "potato"}, default=None
        What the source is; recognised if None.
    split : str or sequence of str, default=None
        Read only this split, or these.
    classes : sequence, default=None
        All classes in order; if None those that occur, in numeric or alphabetical order.
    duplicates : {"error", "first", "all"}, default=None
        What to do when an annotator labels an item twice: refuse, keep the first, or keep all.
        None means "all" for LeWiDi, else "error".
    columns : mapping of str to str, default=None
        Other column names, as in ``{"item": "id"}``. ``{"group": "thread"}`` names the column with
        the group of each item: folds, splits and intervals keep a group together. In an export:
        the fields that hold the ``item``, the ``text`` and the ``group``.
    label_map : mapping of str to str, default=None
        Labels and hard labels to read as others, as in ``{"Rude": "rude"}``.
    scale : Scale or str, default=None
        The answer scale: ``nominal``, ``ordinal``, ``multi-label``, or with the classes as in
        ``ordinal:low=0,mid=1,high=3``. None means what the file says, else nominal, with a warning
        where the classes are whole numbers in a row.
    attributes : sequence of str, default=None
        Columns that describe annotators, such as ``["gender"]``; ``[]`` for none. None: all that
        have one value per annotator, without ids and constants (`Annotations.people`).
    people : str or Path, default=None
        A table of people with a column ``annotator`` (or as ``columns`` calls it) and a column per
        attribute, or a JSON object with an object per annotator.
    **options
        How to treat rows that are not clean annotations: ``empty="drop"``, ``ignore_case=True``,
        ``drop_label`` and ``drop_annotator`` as in `Annotations.from_table`, which also explains
        ``annotator_columns``, for tables with one column per annotator. Of a CSV or XLSX file,
        ``skip_rows`` is the number of rows above the header, such as a title; of an XLSX file,
        ``sheet`` is the name of the sheet, by default the first one. Of exports,
        ``question`` is what the labels answer (Label Studio's control, Argilla's question, Potato's
        scheme); needed if there are several. ``user_first=True`` takes the annotated utterance
        of LeWiDi's ConvAbuse as the text, and the turns before it as its context.

    Returns
    -------
    Annotations

    Raises
    ------
    InputError
        If the file is damaged, of an unknown kind, or contains invalid annotations.

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
    """The annotations in a source of this kind, by the arguments of `read_annotations`."""
    policies = {name: options.pop(name) for name in POLICIES if name in options}
    options |= {"columns": columns, "label_map": label_map}
    splits = [split] if isinstance(split, str) else list(split or ())
    arguments = _reader_options(kind, options) | {
        "split": splits[0] if len(splits) == 1 else None,
        "classes": classes,
        "policies": Policies(duplicates=duplicates, **policies),
    }
    if scale is not None:
        arguments["scale"] = scale
    with errors_in(path):
        annotations = kind.read(path, **arguments)
        annotations = annotations.split(*splits) if len(splits) > 1 else annotations
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
    """Classes of a nominal scale that may be points, and those beside them that may be mistakes.

    Both are empty where the classes look like names.
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
    """Texts and annotators of the items in any source; labels that are held out are not missed."""
    path = Path(source)
    kind = _kind(path, format)
    if kind.items is not None:
        of_labels = ("scale", "classes", "duplicates", "attributes", "people", *POLICIES)
        reading = {name: value for name, value in options.items() if name not in of_labels}
        with errors_in(path):
            return kind.items(path, split=split, **_reader_options(kind, reading))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScaleWarning)  # no label is used here
        annotations = read_annotations(path, format=format, split=split, **options)
    annotators: list[dict[str, None]] = [{} for _ in annotations.items]
    for item, annotator in zip(annotations.item_codes, annotations.annotator_codes, strict=True):
        annotators[item][str(annotations.annotators[annotator])] = None
    texts = (annotations.texts, annotations.contexts)
    return SourceItems(annotations.items, *texts, [*map(tuple, annotators)])


def _kind(path: Path, format: str | None) -> Source:
    """The named source, else the source recognised from the file or folder."""
    if format is None:
        return recognise(path)
    formats = {source.name: source for source in sources()}
    one_of("format", format, formats)
    return formats[format]


def _reader_options(kind: Source, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not None; one that this kind of source does not take is refused."""
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
        A file ending in .csv, .tsv, .parquet, .jsonl or .ndjson. It is written whole or not at all.
    raw : bool, default=False
        In a CSV, text that a spreadsheet would run as a formula (with ``=``, ``+``, ``-`` or ``@``
        in front) gets a quote before it, which EDO removes on reading. With ``raw=True`` it is
        written unchanged, for other programs.

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
    """A long table with ``item, annotator, label``.

    Columns ``p_<class>`` may replace ``label``, and without an annotator they are soft labels, one
    row per item; ``text``, ``split``, ``hard_label`` and attributes of annotators are read if they
    are there. ``columns`` maps our names to the file's, as in ``{"item": "id"}``; further options
    are those of `Annotations.from_table`. A folder of such files is read as one table.
    ``skip_rows`` rows above the header of a CSV or a sheet are passed over. ``sheet`` names a sheet
    of a workbook.
    """
    places_by_file: dict[Path, Place] = {}
    tables = []
    for file in table_files(path):
        part = read_file_table(file, skip_rows=skip_rows, sheet=sheet)
        tables.append(part.table)
        places_by_file[file] = part.place
    with errors_in(path):
        try:
            table = pa.concat_tables(tables, promote_options="permissive")
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
    # Hidden files are leftover temporary files of an interrupted writer.
    return sorted(
        file
        for file in path.iterdir()
        if file.suffix.lower() in READABLE_SUFFIXES and not file.name.startswith(".")
    )


def with_annotator(table: pa.Table, columns: Mapping[str, str]) -> pa.Table:
    """The table; soft labels (shares without an annotator) become those of one annotator."""
    names = {*columns, *table.column_names}
    if names & {"annotator", "label"} or not class_columns(table.column_names):
        return table
    codes = pa.array(np.zeros(table.num_rows, dtype=np.int32))
    return table.append_column("annotator", pa.DictionaryArray.from_arrays(codes, ["soft"]))


def _is_table(path: Path, content: object) -> bool:
    """Whether it is a file, or a folder with tables and no JSON in it."""
    return not path.is_dir() or (not any(path.glob("*.json")) and bool(table_files(path)))


TABLE = Source(
    "table",
    f"a table ({', '.join(READABLE_SUFFIXES)})",
    read_annotation_table,
    _is_table,
    options=("columns", "label_map", "skip_rows", "sheet", "annotator_columns"),
)
