"""Who judges which text, where that is known, and what members make of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import EDOWarning, InputError, counted, examples, headings
from edokit._types import Floats
from edokit.members.recipe import Member, Text


def read_judges(
    path: str | Path, *, columns: Mapping[str, str] | None = None
) -> dict[str, tuple[str, ...]]:
    """Annotators by item, from a table with ``item`` and ``annotator`` columns or from any source
    of annotations; what they answered is not looked at."""
    from edokit._io import TABLE_SUFFIXES

    path = Path(path)
    if path.suffix.lower() in TABLE_SUFFIXES:
        items, people = _from_table(path, columns or {})
    else:
        from edokit.datasets import read_annotations

        told = read_annotations(path, columns=columns or None)
        items, people = told.items[told.item_codes], told.annotators[told.annotator_codes]
    judges: dict[str, dict[str, None]] = {}
    for item, annotator in zip(items, people, strict=True):
        judges.setdefault(str(item), {})[str(annotator)] = None
    return {item: tuple(names) for item, names in judges.items()}


class Judges:
    """Who judges each of N texts, and which members and texts it could not be used for."""

    def __init__(self, known: Mapping[str, Iterable[str]], items: Sequence[str]) -> None:
        if not any(item in known for item in items):
            raise InputError(
                f"judges must be named for some of the {len(items)} texts' items"
                f" ({examples(items)}), but are named for {examples(known) or 'none'}",
                "use the same item ids in both files",
            )
        self._judges = [tuple(map(str, known.get(item, ()))) for item in items]
        self._strangers = np.zeros(len(items), dtype=bool)
        self._members: dict[str, bool] = {}

    def ask(self, name: str, member: Member, texts: Sequence[Text]) -> Floats:
        """Probabilities [N, C]: of those who judge each text, if the member can tell them apart."""
        known = set(member.tells_apart)
        self._members[name] = bool(known)
        if not known:
            return member.predict_proba(texts)
        self._strangers |= [known.isdisjoint(judges) for judges in self._judges]
        asked: Any = member
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # told once for all members, see notes
            answers: Floats = asked.predict_proba(texts, annotators=self._judges)
        return answers

    def set_aside(self, names: Iterable[str]) -> None:
        """These members answer as always."""
        self._members.update(dict.fromkeys(names, False))

    def notes(self) -> list[str]:
        """What could not be used, in words."""
        alike = [name for name, told in self._members.items() if not told]
        lines = []
        if alike:
            lines.append(
                f"{len(alike)} of {counted(len(self._members), 'member')} cannot tell annotators"
                f" apart and answer as always: {examples(alike)} (train with"
                " --option annotator_heads=true)"
            )
        if self._strangers.any() and len(alike) < len(self._members):
            lines.append(
                f"for {int(self._strangers.sum())} of {counted(len(self._strangers), 'text')} some"
                " members know none of the judges; there they average over all annotators"
            )
        return lines


def _from_table(path: Path, columns: Mapping[str, str]) -> tuple[Any, Any]:
    from edokit._io import read_table
    from edokit._names import encode

    table = read_table(path)
    found = []
    for role in ("item", "annotator"):
        # The texts' table may call its items by another name than this one.
        names = [name for name in (columns.get(role, role), role) if name in table.column_names]
        if not names:
            raise InputError(
                f"{path} must have a column for the {role}, but {columns.get(role, role)!r} is not"
                f" among {headings(table.column_names)}",
                f"map it with --column {role}=NAME",
            )
        encoded = encode(table[names[0]], names[0])
        if (encoded.codes < 0).any():
            raise InputError(
                f"every row of {path} must name its {role}, but row"
                f" {int((encoded.codes < 0).argmax()) + 1} does not",
                "fill the gap or drop the row",
            )
        found.append(encoded.names[encoded.codes])
    return found[0], found[1]
