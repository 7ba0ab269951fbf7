"""Texts to be scored with the ids of their items, and the annotators known to label them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edokit._errors import HAVE, InputError, are, errors_in, examples, headings
from edokit.members.recipe import Text, check_texts, have_contexts, joined
from edokit.members.training_data import refuse_two_contexts, utterance_and_context

_ROLES = ("item", "text", "context")
"""Columns of a table of texts."""


@dataclass(frozen=True, eq=False)
class Texts:
    """N texts and the ids of their items."""

    items: tuple[str, ...]
    """Item ids [N]."""
    texts: tuple[Text, ...]
    """Texts [N], or pairs (text, context)."""
    annotators: tuple[tuple[str, ...], ...] | None = None
    """Who will label each text [N], where that is known."""
    numbered: bool = False
    """Whether items are the positions of texts, counted from 0, for want of ids."""

    @classmethod
    def of(cls, texts: Sequence[Text]) -> Texts:
        """Texts without ids, named 0, 1, 2, …."""
        return _numbered(texts).checked()

    def parts(self, rows: int) -> Iterator[Texts]:
        """So many texts at a time."""
        for start in range(0, len(self.items), rows):
            some = slice(start, start + rows)
            whose = None if self.annotators is None else self.annotators[some]
            yield Texts(self.items[some], self.texts[some], whose, self.numbered)

    def place(self, item: str) -> str:
        """A text in a message."""
        return f"text {int(item) + 1}" if self.numbered else f"the text of item {item!r}"

    def place_of(self, text: Text) -> str:
        """The same of one of the texts."""
        return self.place(self.items[self.texts.index(text)])

    def check_lengths(self, most: int) -> None:
        """Refuse texts of more than so many characters, with their context."""
        for item, text in zip(self.items, self.texts, strict=True):
            if (length := sum(map(len, (text,) if isinstance(text, str) else text))) > most:
                raise InputError(
                    f"{self.place(item)} has {length:,} characters, more than {most:,}",
                    "shorten it, or raise the limit with max_length",
                    parameters=("max_length",),
                )

    def checked(self) -> Texts:
        """Itself, if there are texts and none is missing."""
        if not self.texts:
            raise InputError("there is no text to score", "give a text")
        check_texts(self.texts)
        missing = []
        for item, text in zip(self.items, self.texts, strict=True):
            if not (text if isinstance(text, str) else text[0]).strip():
                missing.append(item)
            try:
                joined(text).encode()
            except UnicodeEncodeError as error:
                raise InputError(
                    f"{self.place(item)} holds half a character", "export or decode it again"
                ) from error
        if missing and self.numbered:
            raise InputError(f"{self.place(missing[0])} is empty", "fill the gap or drop it")
        if missing:
            raise InputError(
                f"{are(len(missing), len(self.items), HAVE)} no text: {examples(missing)}",
                "fill the gap or drop these items",
            )
        return self


def read_texts(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    pairs: bool = False,
    **reading: Any,
) -> Texts:
    """Read texts from a table, a .txt file with one text per line, or a source of annotations.

    Parameters
    ----------
    path : str or Path
        A table with a ``text`` and perhaps a ``context`` and an ``item`` column (rows are named 0,
        1, 2, … without it), a .txt file, or anything that `edokit.read_annotations` reads.
    columns : mapping of str to str, default=None
        Names of the columns ``item``, ``text`` and ``context`` in the table.
    pairs : bool, default=False
        Whether the first line of a text is the utterance and the rest its context.
    **reading
        Passed to `edokit.read_annotations`.

    Returns
    -------
    Texts
        Texts and the ids of their items.

    Raises
    ------
    InputError
        If the file can't be read, or a text is missing.
    """
    from edokit._io import read_text
    from edokit._io.tables import TABLE_SUFFIXES, read_table

    path = Path(path)
    if path.suffix.lower() == ".txt":
        found = _numbered(read_text(path).splitlines())
    elif path.suffix.lower() in TABLE_SUFFIXES and not any(reading.values()):
        found = _of_table(read_table(path), path, columns or {})
    else:
        from edokit.datasets.read import read_items

        source = read_items(path, columns=columns or None, **reading)
        if source.texts is None:
            raise InputError(
                f"{path} holds no texts",
                "name their column: columns={'text': 'NAME'}",
                parameters=("columns",),
            )
        texts: Iterable[Text] = map(str, source.texts)
        if source.contexts is not None:
            texts = zip(map(str, source.texts), map(str, source.contexts), strict=True)
        found = Texts(tuple(map(str, source.items)), tuple(texts), tuple(source.annotators))
    return _checked(found, path, pairs)


def _checked(found: Texts, path: Path, pairs: bool) -> Texts:
    """Texts of a file, in utterances and contexts where they are ``pairs``."""
    with errors_in(path):
        if pairs:
            refuse_two_contexts(have_contexts(found.texts))
            texts = tuple(utterance_and_context(str(text)) for text in found.texts)
            found = replace(found, texts=texts)
        return found.checked()


def read_text_parts(
    path: str | Path,
    rows: int,
    *,
    columns: Mapping[str, str] | None = None,
    pairs: bool = False,
    **reading: Any,
) -> Iterator[Texts]:
    """Read texts as `read_texts` does, so many at a time.

    Of a Parquet file whose items have a row each, no more than some rows are in memory.
    """
    path, names = Path(path), {role: (columns or {}).get(role, role) for role in _ROLES}
    streams = path.suffix.lower() == ".parquet" and not any(reading.values())
    if not streams or not _one_row_each(path, names["item"]):
        yield from read_texts(path, columns=columns, pairs=pairs, **reading).parts(rows)
        return
    from edokit._io.tables import parquet_parts

    def wanted(held: list[str]) -> list[str]:
        return [name for name in held if name in names.values()]

    done = 0
    for table in parquet_parts(path, wanted, rows):
        found = _of_table(table, path, columns or {}, done)
        done += table.num_rows
        yield _checked(found, path, pairs)
    if not done:
        raise InputError(f"{path} has no rows", "check that it is the right file")


def _one_row_each(path: Path, item: str) -> bool:
    """Whether no item occurs twice in a Parquet file, as in a table with a row per annotation."""
    import numpy as np
    import pandas as pd

    from edokit._io.tables import parquet_parts

    hashes = [
        pd.util.hash_array(np.asarray(part[item].to_pandas().astype(str), dtype=object))
        for part in parquet_parts(path, lambda names: [item] if item in names else [], 1 << 16)
        if part.num_columns
    ]
    return not hashes or len(np.unique(np.concatenate(hashes))) == sum(map(len, hashes))


def read_annotators(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    items: Iterable[str] = (),
) -> dict[str, tuple[str, ...]]:
    """Annotators by item, from a table with ``item`` and ``annotator`` columns or from any source
    of annotations; their labels are not used. A list of annotators alone (a panel, see
    `edokit.panels.read_panel`) is asked about each of the ``items``."""
    from edokit._io.tables import TABLE_SUFFIXES, read_table
    from edokit.panels import read_panel

    path = Path(path)
    if path.suffix.lower() == ".txt":
        return dict.fromkeys(items, read_panel(path).annotators)
    if path.suffix.lower() in TABLE_SUFFIXES:
        table, given = read_table(path), columns or {}
        names, ids = {*table.column_names}, {"item", given.get("item", "item")}
        if {"annotator", "share"} & names and not ids & names:
            return dict.fromkeys(items, read_panel(path).annotators)
        pairs = []
        for role in ("item", "annotator"):
            # The texts' table may call its items by another name than this one.
            name = given.get(role, role)
            name = role if name not in table.column_names and role in table.column_names else name
            encoded = _encoded(table, name, role, path)
            pairs.append(encoded.names[encoded.codes])
        items, annotators = pairs
    else:
        from edokit.datasets.read import read_items

        source = read_items(path, columns=columns or None)
        return {
            str(item): names for item, names in zip(source.items, source.annotators, strict=True)
        }
    found: dict[str, dict[str, None]] = {}
    for item, annotator in zip(items, annotators, strict=True):
        found.setdefault(str(item), {})[str(annotator)] = None
    return {item: tuple(names) for item, names in found.items()}


def read_attributes(
    path: str | Path, names: Sequence[str], *, columns: Mapping[str, str] | None = None
) -> dict[str, dict[str, str]]:
    """These attributes by annotator, as far as a table with an ``annotator`` column, or any source
    of annotations, has them."""
    from edokit._io.tables import TABLE_SUFFIXES, read_table
    from edokit._names import encode

    path, given = Path(path), columns or {}
    if not names or path.suffix.lower() == ".txt":
        return {}
    if path.suffix.lower() not in TABLE_SUFFIXES:
        from edokit.datasets.read import read_items

        source = read_items(path, columns=columns or None)
        return {person: {**own} for person, own in source.attributes.items()}
    table = read_table(path)
    role = given.get("annotator", "annotator")
    if role not in table.column_names:
        return {}
    whose = _encoded(table, role, "annotator", path)
    found: dict[str, dict[str, str]] = {str(name): {} for name in whose.names}
    for name in (name for name in names if name in table.column_names):
        values = encode(table[name], name)
        for row, (code, value) in enumerate(zip(whose.codes, values.codes, strict=True), start=1):
            person, own = str(whose.names[code]), "" if value < 0 else str(values.names[value])
            before = found[person].setdefault(name, own)
            if before != own:
                raise InputError(
                    f"{path}: annotator {person!r} has {name} {before!r}, and {own!r} in row {row}",
                    "give each annotator one value",
                )
    return found


def _numbered(texts: Sequence[Text], first: int = 0) -> Texts:
    items = map(str, range(first, first + len(texts)))
    return Texts(tuple(items), tuple(texts), numbered=True)


def _of_table(table: Any, path: Path, columns: Mapping[str, str], first_row: int = 0) -> Texts:
    unknown = [role for role in columns if role not in _ROLES]
    if unknown:
        raise InputError(
            f"texts have the columns item, text and context, but no {unknown[0]!r}", "leave it out"
        )

    def column(role: str) -> list[str]:
        encoded = _encoded(table, columns.get(role, role), role, path)
        return ["" if code < 0 else str(encoded.names[code]) for code in encoded.codes]

    texts: list[Text] = list(column("text"))
    if columns.get("context", "context") in table.column_names or "context" in columns:
        texts = list(zip(column("text"), column("context"), strict=True))
    if "item" not in columns and "item" not in table.column_names:
        return _numbered(texts, first_row)
    item = _encoded(table, columns.get("item", "item"), "item", path)
    first: dict[str, Text] = {}
    for code, one in zip(item.codes, texts, strict=True):
        name = str(item.names[code])
        if first.setdefault(name, one) != one:
            raise InputError(f"{path}: item {name!r} has two texts", "give each item its own id")
    return Texts(tuple(first), tuple(first.values()))


def _encoded(table: Any, name: str, role: str, path: Path) -> Any:
    """A column of a table as names and codes; only texts may have gaps."""
    from edokit._names import encode

    if name not in table.column_names:
        raise InputError(
            f"{path} has no column {name!r} for the {role}; its columns are"
            f" {headings(table.column_names)}",
            f"map it with columns={{{role!r}: 'NAME'}}",
            parameters=("columns",),
        )
    encoded = encode(table[name], name)
    if role not in ("text", "context") and (encoded.codes < 0).any():
        row = int((encoded.codes < 0).argmax()) + 1
        raise InputError(f"{path}: row {row} has no {role}", "fill the gap or drop the row")
    return encoded
