"""Texts to be judged, with the ids of their items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edokit._errors import HAVE, InputError, are, examples, headings
from edokit.members.recipe import Text, check_texts
from edokit.members.training_data import utterance_and_context


@dataclass(frozen=True, eq=False)
class Texts:
    """N texts and the ids of their items."""

    items: tuple[str, ...]
    """Item ids [N]."""
    texts: tuple[Text, ...]
    """Texts [N], or pairs (utterance, context)."""

    @classmethod
    def of(cls, texts: Sequence[Text]) -> Texts:
        """Bare texts, named 0, 1, 2, …."""
        return cls(tuple(str(row) for row in range(len(texts))), tuple(texts)).checked()

    def checked(self) -> Texts:
        """Itself, if every text is one and no item stands twice."""
        if not self.texts:
            raise InputError("there must be a text to score, but there is none", "give a text")
        check_texts(self.texts)
        gaps = [
            item
            for item, text in zip(self.items, self.texts, strict=True)
            if not (text if isinstance(text, str) else text[0]).strip()
        ]
        if gaps:
            raise InputError(
                f"every item needs a text, but {are(len(gaps), len(self.items), HAVE)} none:"
                f" {examples(gaps)}",
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
    """Texts from a table with ``item`` and ``text`` columns, from a .txt file with one text per
    line, or from any source of annotations.

    Where there is no item column, rows are named 0, 1, 2, …. With ``pairs`` the first line of a
    text is the utterance and the others are its context. ``reading`` goes to
    `edokit.datasets.read_annotations`.
    """
    from edokit._io import TABLE_SUFFIXES

    path = Path(path)
    if path.suffix.lower() == ".txt":
        found = _lines(path)
    elif path.suffix.lower() in TABLE_SUFFIXES and not any(reading.values()):
        found = _from_table(path, columns or {})
    else:
        found = _from_annotations(path, columns, reading)
    if pairs:
        found = Texts(found.items, tuple(utterance_and_context(str(text)) for text in found.texts))
    return found.checked()


def _lines(path: Path) -> Texts:
    from edokit._io import check_file, not_utf8

    try:
        lines = check_file(path).read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from error
    return Texts(tuple(str(row) for row in range(len(lines))), tuple(lines))


def _from_table(path: Path, columns: Mapping[str, str]) -> Texts:
    from edokit._io import read_table
    from edokit._names import encode

    table = read_table(path)
    unknown = [role for role in columns if role not in ("item", "text")]
    if unknown:
        raise InputError(
            f"texts have the columns item and text, but got {unknown[0]!r}", "leave it out"
        )
    names = {role: columns.get(role, role) for role in ("item", "text")}
    if names["item"] not in table.column_names and "item" not in columns:
        names.pop("item")
    for role, name in names.items():
        if name not in table.column_names:
            raise InputError(
                f"{path} must have a column for the {role}, but {name!r} is not among"
                f" {headings(table.column_names)}",
                f"map it with --column {role}=NAME",
            )
    text = encode(table[names["text"]], names["text"])
    texts = ["" if code < 0 else str(text.names[code]) for code in text.codes]
    if "item" not in names:
        return Texts(tuple(str(row) for row in range(len(texts))), tuple(texts))
    item = encode(table[names["item"]], names["item"])
    if (item.codes < 0).any():
        raise InputError(
            f"every row of {path} must name its item, but row {int((item.codes < 0).argmax()) + 1}"
            " does not",
            "fill the gap or drop the row",
        )
    first: dict[str, str] = {}
    for code, one in zip(item.codes, texts, strict=True):
        name = str(item.names[code])
        if first.setdefault(name, one) != one:
            raise InputError(
                f"an item must have one text, but item {name!r} of {path} has two",
                "give each item its own id",
            )
    return Texts(tuple(first), tuple(first.values()))


def _from_annotations(
    path: Path, columns: Mapping[str, str] | None, reading: Mapping[str, Any]
) -> Texts:
    from edokit.datasets import read_annotations

    people = read_annotations(path, columns=columns or None, **reading)
    if people.texts is None:
        raise InputError(
            f"{path} must hold texts, but has none", "name their column with --column text=NAME"
        )
    return Texts(tuple(map(str, people.items)), tuple(map(str, people.texts)))
