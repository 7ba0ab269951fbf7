"""One door for every source of annotations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

import pyarrow.parquet as pa_parquet

from edokit.annotations import Annotations
from edokit.datasets.clean import clean_text
from edokit.datasets.lewidi import is_lewidi, read_lewidi
from edokit.datasets.table import read_annotation_table
from edokit.datasets.where import naming
from edokit.errors import InputError, one_of
from edokit.files import TABLE_SUFFIXES, check_file, read_json
from edokit.ids import as_names


class Format(str, Enum):
    """What a source of annotations can be."""

    TABLE = "table"
    """CSV, TSV, Parquet or JSONL, one row per annotation."""
    LEWIDI = "lewidi"
    """A LeWiDi 2023 JSON file, or a folder of its splits."""
    LABEL_STUDIO = "label-studio"
    """A JSON export of Label Studio."""
    ARGILLA = "argilla"
    """Exported records of Argilla."""


_EXPORT = ("multi_choice", "text", "item", "unlabelled", "anonymous")
OPTIONS: Mapping[Format, tuple[str, ...]] = {
    Format.TABLE: ("columns", "attributes"),
    Format.LEWIDI: ("dialogue",),
    Format.LABEL_STUDIO: ("control", "annotator", "ground_truth", *_EXPORT),
    Format.ARGILLA: ("question", *_EXPORT),
}
"""What can be said about each format beyond split, classes, duplicates and cleaning."""

_UNDERSTOOD = (
    f"a table ({', '.join(TABLE_SUFFIXES)}), a LeWiDi 2023 JSON file or a folder of its splits,"
    " a Label Studio JSON export, an Argilla export"
)


def read_annotations(
    source: str | Path,
    *,
    format: str | None = None,
    split: str | None = None,
    classes: Sequence[object] | None = None,
    duplicates: str | None = None,
    clean: bool = False,
    columns: Mapping[str, str] | None = None,
    dialogue: str | None = None,
    control: str | None = None,
    question: str | None = None,
    multi_choice: str | None = None,
    **options: Any,
) -> Annotations:
    """The annotations in a file or folder, recognised by what is in it unless ``format`` says.

    - ``split`` keeps one split; ``classes`` declares them and their order; ``duplicates`` is
      ``error | first | all`` ("all" for LeWiDi, else "error"); ``clean`` applies the paper's
      cleaning to the texts.
    - ``columns`` maps our names to the source's, as in ``{"item": "id"}``; in an export it names
      the fields with the ``item`` and the ``text``.
    - ``dialogue`` is for LeWiDi's conversations, ``control`` for Label Studio, ``question`` for
      Argilla, ``multi_choice`` for both; ``options`` are further ones of the format's reader.
    """
    path = Path(source)
    if format is not None:
        one_of("format", format, [kind.value for kind in Format])
    kind = Format(format) if format is not None else recognise(path)
    given = {
        "columns": columns,
        "dialogue": dialogue,
        "control": control,
        "question": question,
        "multi_choice": multi_choice,
        **options,
    }
    wanted = _options(kind, {name: value for name, value in given.items() if value is not None})
    common: dict[str, Any] = {"split": split, "classes": classes}
    if duplicates is not None:
        common["duplicates"] = duplicates
    if kind is Format.LEWIDI:
        return read_lewidi(path, clean=clean, **common, **wanted)
    if kind is Format.TABLE:
        read = read_annotation_table(path, **common, **wanted)
    else:
        from edokit.datasets.argilla import read_argilla
        from edokit.datasets.label_studio import read_label_studio

        read_export = read_argilla if kind is Format.ARGILLA else read_label_studio
        with naming(path):
            read = read_export(path, **common, **wanted)
    if clean and read.texts is not None:
        read = replace(read, texts=as_names(clean_text(text) for text in read.texts))
    return read


def recognise(path: Path) -> Format:
    """What a file or folder holds."""
    from edokit.datasets.argilla import is_argilla
    from edokit.datasets.label_studio import is_label_studio

    if path.is_dir():
        return Format.LEWIDI
    check_file(path)
    suffix = path.suffix.lower()
    if suffix in TABLE_SUFFIXES:
        row = _first_row(path)
        if is_label_studio(row):
            return Format.LABEL_STUDIO
        return Format.ARGILLA if is_argilla(row) else Format.TABLE
    if suffix == ".json":
        data = read_json(path)
        for kind, matches in (
            (Format.LEWIDI, is_lewidi),
            (Format.LABEL_STUDIO, is_label_studio),
            (Format.ARGILLA, is_argilla),
        ):
            if matches(data):
                return kind
    raise InputError(
        f"a source of annotations must be {_UNDERSTOOD}, but {path} looks like none of them",
        "convert it to a table with the columns item, annotator, label, or say what it is with"
        f" format: {', '.join(kind.value for kind in Format)}",
    )


def _first_row(path: Path) -> list[Any]:
    """The first row of a JSONL file, or the columns of a Parquet file; else nothing.

    A file that can't be read is left to its reader, which says why.
    """
    try:
        if path.suffix.lower() == ".parquet":
            return [dict.fromkeys(pa_parquet.read_schema(path).names)]
        if path.suffix.lower() in (".jsonl", ".ndjson"):
            with path.open(encoding="utf-8-sig") as lines:
                return [json.loads(next(line for line in lines if line.strip()))]
    except (ValueError, OSError, StopIteration, RecursionError):
        pass
    return []


def _options(kind: Format, given: dict[str, Any]) -> dict[str, Any]:
    """The options as the format's reader calls them; one that it has no use for is refused."""
    if kind in (Format.LABEL_STUDIO, Format.ARGILLA):
        columns = given.pop("columns", {})
        wrong = [role for role in columns if role not in ("item", "text")]
        if wrong:
            raise InputError(
                f"in an export the columns item and text can be named, but got {wrong[0]!r}",
                "leave it out",
            )
        given |= columns
    for name in given:
        if name not in OPTIONS[kind]:
            fitting = [other.value for other in Format if name in OPTIONS[other]]
            raise InputError(
                f"the option {name!r} must fit the source, but this is {kind.value!r}, which takes"
                f" {', '.join(map(repr, OPTIONS[kind]))}",
                f"leave it out, or say format={fitting[0]!r}" if fitting else "leave it out",
            )
    return given
