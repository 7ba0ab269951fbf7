"""Texts to be scored with the ids of their items, and the annotators known to label them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edokit._errors import HAVE, InputError, are, errors_in, examples, headings, option, warn
from edokit.members.contexts import Text, check_texts, join_context, split_context, text_parts

if TYPE_CHECKING:
    from edokit._io.tables import FileTable
    from edokit.annotations.core import Annotations
    from edokit.datasets.read import SourceItems

# Columns of a table of texts.
_ROLES = ("item", "text", "context")
_LINE_BYTES = 250  # of memory that a line takes beside its characters, with the name of its item


@dataclass(frozen=True, eq=False)
class Texts:
    """N texts and the ids of their items.

    Parameters
    ----------
    items : tuple of str
        Item ids [N].
    texts : tuple of str or of (str, str)
        Texts [N], or pairs (text, context).
    annotators : tuple of tuple of str, default=None
        Who will label each text [N], where that is known.
    numbered : bool, default=False
        Whether items are the positions of texts, counted from 0, for want of ids.
    """

    items: tuple[str, ...]
    texts: tuple[Text, ...]
    annotators: tuple[tuple[str, ...], ...] | None = None
    numbered: bool = False

    @classmethod
    def from_texts(cls, texts: Texts | Annotations | Sequence[Text]) -> Texts:
        """Texts, checked; those without ids are named 0, 1, 2, …."""
        from edokit.annotations.core import Annotations

        if isinstance(texts, Texts):
            return texts.checked()
        if isinstance(texts, Annotations):
            if texts.texts is None:
                raise InputError(
                    "the annotations have no texts to score",
                    f"name their column: {option('columns', {'text': 'NAME'})}",
                    code="missing-texts",
                )
            return cls.from_source(texts).checked()
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            kind = type(texts).__name__
            if isinstance(texts, str):
                kind = "one string"
            raise InputError(
                f"{option('texts')} is {kind}, not a list of texts",
                "write ['…']",
                code="single-value",
            )
        pairs = [tuple(text) if isinstance(text, list) else text for text in texts]
        return _numbered(pairs).checked()

    @classmethod
    def from_source(cls, source: Annotations | SourceItems) -> Texts:
        """The texts of annotations, or of the items of another source, and their contexts."""
        assert source.texts is not None
        strings = [text if isinstance(text, str) else "" for text in source.texts]
        items = tuple(str(item) for item in source.items)
        if source.contexts is None:
            return cls(items, tuple(strings))
        contexts = [str(context) for context in source.contexts]
        return cls(items, tuple(zip(strings, contexts, strict=True)))

    def parts(self, rows: int) -> Iterator[Texts]:
        """Parts of ``rows`` texts each."""
        for start in range(0, len(self.items), rows):
            part = slice(start, start + rows)
            annotators = self.annotators
            if annotators is not None:
                annotators = annotators[part]
            yield Texts(self.items[part], self.texts[part], annotators, self.numbered)

    def place(self, item: str) -> str:
        """The text of an item as messages name it."""
        if self.numbered:
            return f"text {int(item) + 1}"
        return f"the text of item {item!r}"

    def place_of(self, text: Text) -> str:
        """A text, or a part of a pair, as messages name it: by the first item that has it."""
        for item, known_text in zip(self.items, self.texts, strict=True):
            if text == known_text or text in text_parts(known_text):
                return self.place(item)
        return "a text"

    def check_lengths(self, most: int) -> None:
        """Raise an error for a text that is longer, with its context, than ``most`` characters."""
        for item, text in zip(self.items, self.texts, strict=True):
            length = len(text)
            if not isinstance(text, str):
                length = sum(map(len, text))
            if length > most:
                raise InputError(
                    f"{self.place(item)} has {length:,} characters, more than {most:,}",
                    f"shorten it, or raise {option('max_length')}",
                    code="too-long-text",
                )

    def checked(self) -> Texts:
        """Return these texts; raise an error if there are none, or one is missing or invalid."""
        if not self.texts:
            raise InputError("no text is given", "give at least one text", code="missing-texts")
        check_texts(self.texts)
        strings, _ = split_context(self.texts)
        missing = [item for item, text in zip(self.items, strings, strict=True) if not text.strip()]
        for item, text in zip(self.items, self.texts, strict=True):
            try:
                join_context(text).encode()
            except UnicodeEncodeError as error:
                raise InputError(
                    f"{self.place(item)} contains invalid Unicode",
                    "export or decode it again",
                    code="invalid-unicode",
                ) from error
        if missing and self.numbered:
            raise InputError(
                f"{self.place(missing[0])} is empty",
                "fill the gap or drop it",
                code="missing-value",
            )
        if missing:
            raise InputError(
                f"{are(len(missing), len(self.items), HAVE)} no text: {examples(missing)}",
                "fill them in, or remove these rows from the file",
                code="missing-value",
            )
        return self


def read_texts(
    path: str | Path, *, columns: Mapping[str, str] | None = None, **reading: Any
) -> Texts:
    """Read texts from a table, a .txt file with one text per line, or a source of annotations.

    Parameters
    ----------
    path : str or Path
        A table with a ``text`` and perhaps a ``context`` and an ``item`` column (rows are named 0,
        1, 2, … without it), a .txt file, or anything that `edokit.read_annotations` reads.
    columns : mapping of str to str, default=None
        Names of the columns ``item``, ``text`` and ``context`` in the table.
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
    from edokit._io.documents import read_text
    from edokit._io.memory import check_memory
    from edokit._io.tables import read_file_table

    path = Path(path)
    if path.suffix.lower() == ".txt":
        content = read_text(path)
        check_memory(path, 2 * len(content) + _LINE_BYTES * (content.count("\n") + 1))
        # Not by `splitlines`, for which some characters inside of a text end a line, too.
        lines = content.split("\n")
        if not lines[-1]:
            lines.pop()
        texts = _numbered(lines)
    elif _is_table(path) and not any(reading.values()):
        texts = _texts_of_table(read_file_table(path), path, columns or {})
    else:
        from edokit.datasets.read import read_items

        source = read_items(path, columns=columns or None, **reading)
        if source.texts is None:
            raise InputError(
                f"{path} has no texts",
                f"name their column: {option('columns', {'text': 'NAME'})}",
                code="missing-texts",
            )
        texts = replace(Texts.from_source(source), annotators=tuple(source.annotators))
    with errors_in(path):
        return texts.checked()


def read_annotators(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    items: Iterable[str] = (),
) -> dict[str, tuple[str, ...]]:
    """Read annotators by item, from a table or any source of annotations.

    Parameters
    ----------
    path : str or Path
        A table with the columns ``item`` and ``annotator``, anything that
        `edokit.read_annotations` reads (labels are not used), or a list of annotators (a panel, see
        `edokit.panels.read_panel`).
    columns : mapping of str to str, default=None
        Names of the columns ``item`` and ``annotator`` in the table.
    items : iterable of str, default=()
        The items that a list of annotators is for.

    Returns
    -------
    dict of str to tuple of str
        The annotators of each item.
    """
    import pandas as pd

    from edokit._io.tables import read_file_table
    from edokit.panels import read_panel

    path = Path(path)
    names = columns or {}
    if path.suffix.lower() == ".txt":
        return dict.fromkeys(items, read_panel(path).annotators)
    if not _is_table(path):
        from edokit.datasets.read import read_items

        source = read_items(path, columns=columns or None)
        item_names = [str(item) for item in source.items]
        return dict(zip(item_names, source.annotators, strict=True))
    source_table = read_file_table(path)
    headers = set(source_table.table.column_names)
    has_items = "item" in headers or names.get("item", "item") in headers
    if not has_items and ("annotator" in headers or "share" in headers):
        return dict.fromkeys(items, read_panel(path).annotators)
    rows = {}
    for role in ("item", "annotator"):
        name = names.get(role, role)
        if name not in headers and role in headers:
            # The table of the texts may call its items by another name than this one.
            name = role
        rows[role] = _column(source_table, name, role, path)
    by_item = pd.DataFrame(rows).drop_duplicates().groupby("item", sort=False)["annotator"]
    return {str(item): tuple(annotators) for item, annotators in by_item}


def _is_table(path: Path) -> bool:
    from edokit._io.tables import READABLE_SUFFIXES

    return path.suffix.lower() in READABLE_SUFFIXES


def _numbered(texts: Sequence[Text]) -> Texts:
    """Texts whose items are their positions."""
    items = tuple(str(position) for position in range(len(texts)))
    return Texts(items, tuple(texts), numbered=True)


def _texts_of_table(source: FileTable, path: Path, columns: Mapping[str, str]) -> Texts:
    """The texts of a table, each item once."""
    table = source.table
    # Annotators may be in a table of their own.
    unknown = [role for role in columns if role not in (*_ROLES, "annotator")]
    if unknown:
        raise InputError(
            f"texts have the columns item, text and context, but no {unknown[0]!r}",
            "leave it out",
            code="unknown-role",
        )
    from edokit.annotations.roles import guess_text_roles

    columns = guess_text_roles(table, columns)
    names = {role: columns.get(role, role) for role in _ROLES}
    roles = ["text"]
    if names["context"] in table.column_names or "context" in columns:
        roles.append("context")
    cells = [_column(source, names[role], role, path) for role in roles]
    items = None
    if "item" in columns or "item" in table.column_names:
        items = _column(source, names["item"], "item", path)
        cells = [_fill_empty_cells(column, items) for column in cells]
    texts: list[Text] = list(cells[0])
    if len(cells) > 1:
        texts = list(zip(cells[0], cells[1], strict=True))
    if items is None:
        _note_numbers(path, [name for name in table.column_names if name not in names.values()])
        return _numbered(texts)
    text_of: dict[str, Text] = {}
    for item, text in zip(items, texts, strict=True):
        if text_of.setdefault(item, text) != text:
            raise InputError(
                f"{path}: item {item!r} has two texts",
                "give each item its own id",
                code="contradictory-rows",
            )
    return Texts(tuple(text_of), tuple(text_of.values()))


def _note_numbers(path: Path, columns: Sequence[str]) -> None:
    """Say that texts are numbered, where one of these columns may have their ids."""
    if columns:
        warn(
            f"{path} lacks a column item, so that its texts are numbered from 0; if another column"
            f" has their ids: {option('columns', {'item': columns[0]})}"
        )


def _fill_empty_cells(cells: list[str], items: list[str]) -> list[str]:
    """The cells of a column; an empty one takes the value of another row of its item."""
    values: dict[str, str] = {}
    for item, cell in zip(items, cells, strict=True):
        values[item] = values.get(item) or cell
    return [cell or values[item] for item, cell in zip(items, cells, strict=True)]


def _column(source: FileTable, name: str, role: str, path: Path) -> list[str]:
    """A column of a table as text; items and annotators must not have gaps."""
    from edokit._names import encode

    table = source.table
    if name not in table.column_names:
        raise InputError(
            f"{path} has no column {name!r} for the {role}; its columns are"
            f" {headings(table.column_names)}",
            f"map it with {option('columns', {role: 'NAME'})}",
            code="missing-column",
        )
    with errors_in(path):
        encoded = encode(table[name], name)
    values = ["" if code < 0 else str(encoded.names[code]) for code in encoded.codes]
    if role in ("item", "annotator") and "" in values:
        place = source.place(values.index(""))
        raise InputError(
            f"{path}: {place} has no {role}", "fill the gap or drop the row", code="missing-value"
        )
    return values
