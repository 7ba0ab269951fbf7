"""Sampled answers of members: which classes they name, and what is known about the members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from edokit._errors import HAVE, InputError, are, counted, examples, option, warn, word
from edokit._io.tables import number_column
from edokit._names import Encoded, as_names, class_order, encode
from edokit._types import Bools, Codes
from edokit.annotations.labels import as_points, set_parts
from edokit.predictions.core import COST, SOURCES
from edokit.predictions.files import per_member
from edokit.scales import Declared

Unparsed: TypeAlias = Literal["error", "drop"]
"""What to do with answers that are no class: refuse them, or leave them out and count them."""
SMOOTHING = 0.5
"""What is added to the count of each class."""
ANSWER = "answer"
ROLES = (ANSWER, "annotator", *SOURCES, COST)
_MOST_ANSWERS = 10
"""Answers that a message lists."""
_LONGEST = 60
"""Characters of an answer that a message shows, so that it can be mapped."""
_BEFORE = " \t\r\n\"'`*()[]{}<>“”‘’"
_DIFFER = ("differs", "differ")


class Answers(NamedTuple):
    """What sampled answers [R] say.

    Attributes
    ----------
    is_class : Bools
        Whether each answer names each class [R, C].
    is_parsed : Bools
        Whether it names classes alone [R]; an empty set of labels is an answer, too.
    """

    classes: tuple[str, ...]
    is_class: Bools
    is_parsed: Bools


def read_answers(
    path: Path,
    column: Encoded,
    codes: Codes,
    member: Encoded,
    declared: Declared,
    classes: Sequence[str] | None,
    label_map: Mapping[str, str],
    unparsed: Unparsed,
) -> Answers:
    """The classes that answers name, if need be but for case and punctuation.

    ``column`` holds the answers of the whole table, ``codes`` are those of the lines to read, and
    ``member`` who gave them. Answers that are no class are refused or left out;
    a note counts those that are written otherwise than their class.
    """
    sets, classes = declared.kind == "multi-label", classes or declared.classes
    names = {}
    for answer in column.names:
        bare = answer.strip()
        names[answer] = label_map.get(answer, label_map.get(bare, bare))
    if declared.kind == "ordinal":
        points = as_points(names.values(), classes)
        names = {answer: points.get(name, name) for answer, name in names.items()}
    if classes is None:
        texts = _listed(Counter(column.names[column.codes[column.codes >= 0]]))
        # What is long may be somebody's text.
        short = [name for name in class_order({*names.values()}) if word(name) == repr(name)]
        raise InputError(
            f"there are {counted(len(column.names), 'different answer')}, and the classes"
            f" are not declared: {texts}",
            f"name those that are classes: {option('classes', short[:5])}",
        )
    parts = set_parts(list(names.values()), set(classes)) if sets else {}
    class_of = _class_finder(classes)
    # The last row is that of no answer, whose code is -1.
    is_class = np.zeros((len(names) + 1, len(classes)), dtype=bool)
    is_parsed, is_loose = np.zeros((2, len(is_class)), dtype=bool)
    for row, answer in enumerate(names.values()):
        labels = parts.get(answer, [answer])
        read = [class_of(label) for label in labels]
        is_parsed[row] = set(read) <= set(classes)
        is_loose[row] = is_parsed[row] and read != list(labels)
        if is_parsed[row]:
            is_class[row] = np.isin(classes, read)
    answers = Answers(tuple(classes), is_class[codes], is_parsed[codes])
    if is_loose[codes].any():
        loose = Counter(column.names[codes[is_loose[codes]]])
        number = are(loose.total(), len(codes), _DIFFER, "answer")
        warn(
            f"{path}: {number} from a class in case or punctuation alone, so that class is counted:"
            f" {_listed(loose)}"
        )
    _note_unparsed(path, column._replace(codes=codes), member, answers, unparsed)
    return answers


def _class_finder(classes: Sequence[str]) -> Callable[[str], str]:
    """The class that an answer names, if need be but for case and punctuation."""
    bare_names = Counter(map(_bare, classes))
    forms = {_bare(name): name for name in classes if bare_names[_bare(name)] == 1}
    return lambda answer: answer if answer in classes else forms.get(_bare(answer), answer)


def _bare(answer: str) -> str:
    """An answer without case, and without the punctuation that models put around it."""
    return answer.casefold().lstrip(_BEFORE).rstrip(_BEFORE + ".,:;!")


def _note_unparsed(
    path: Path, column: Encoded, member: Encoded, answers: Answers, unparsed: Unparsed
) -> None:
    """Refuse answers that are no class, or warn that they are left out."""
    is_unparsed = ~answers.is_parsed
    if not is_unparsed.any():
        return
    texts = Counter(np.append(column.names, "")[column.codes[is_unparsed]])
    by_member = Counter(member.names[member.codes[is_unparsed]])
    message = (
        f"{path}: {are(texts.total(), len(is_unparsed), noun='answer')} none of the classes"
        f" {examples(answers.classes, 20)}: {_listed(texts)}; by member: "
        + ", ".join(f"{name} {number}" for name, number in by_member.most_common(_MOST_ANSWERS))
    )
    if unparsed == "error":
        mappable = [name for name, _ in texts.most_common() if 0 < len(name) <= _LONGEST]
        pairs = option("label_map", dict.fromkeys(mappable[:3], "CLASS"))
        remedy = f"read them as classes, such as {pairs}, or " if mappable else ""
        raise InputError(message, f"{remedy}leave them out with {option('unparsed', 'drop')}")
    warn(f"{message}. They are left out")


def _shown(answer: str) -> str:
    """An answer as it is mapped to a class; of what may be somebody's text only the length."""
    return repr(answer) if len(answer) <= _LONGEST else word(answer)


def _listed(counts: Counter[str]) -> str:
    """Answers with their counts, the most frequent first; long ones may be somebody's text."""
    texts = [
        f"{_shown(name) if name else 'no answer'} ({number})"
        for name, number in counts.most_common(_MOST_ANSWERS)
    ]
    hidden = len(counts) - _MOST_ANSWERS
    return ", ".join(texts) + (f" and {hidden} more" if hidden > 0 else "")


def answering_members(table: pa.Table, path: Path, member: str, sources: Sequence[str]) -> Encoded:
    """Who gave each answer: model, prompt and persona together, else the one member."""
    parts = [name for name in sources if name in table.column_names]
    if not parts:
        return Encoded(np.zeros(len(table), dtype=np.int32), np.array([member], dtype=object))
    columns = [encode(table[name], name) for name in parts]
    # A gap has the code -1, the last name.
    texts = [np.append(column.names, "")[column.codes].tolist() for column in columns]
    combinations = list(zip(*texts, strict=True))
    codes, names = pd.factorize(as_names(["+".join(filter(None, parts)) for parts in combinations]))
    if len(set(combinations)) > len(names) or "" in names:
        raise InputError(
            f"{path}: {examples(parts)} do not name the members apart, or not in every row",
            f"name each member in a column: {option('columns', {'member': 'NAME'})}",
        )
    return Encoded(codes.astype(np.int32), names)


def answer_info(
    table: pa.Table,
    path: Path,
    member: Encoded,
    cells: npt.NDArray[np.int64],
    is_parsed: Bools,
) -> dict[str, dict[str, Any]]:
    """What the table tells about each member, and how many of its answers count.

    ``cells`` are the row and member of each answer.
    """
    k = len(member.names)
    answers, failures = (
        np.bincount(member.codes[lines], minlength=k).tolist() for lines in (is_parsed, ~is_parsed)
    )
    facts: dict[str, Sequence[Any]] = {
        "answers": answers,
        "failures": [n or None for n in failures],
    }
    for role in SOURCES:
        if role in table.column_names:
            values = per_member(table, role, member, path)
            facts[role] = [value or None for value in values]
    if COST in table.column_names:
        costs = number_column(table, COST, str(path)).astype(np.float64)
        items = np.bincount(np.unique(cells) % k, minlength=k)
        per_item = np.bincount(member.codes, costs, minlength=k) / items
        unknown = member.names[np.isnan(per_item)]
        if len(unknown):
            warn(
                f"{path}: {are(len(unknown), k, HAVE, 'member')} no {COST} in some rows,"
                f" so their cost per item is unknown: {examples(unknown)}"
            )
        facts[COST] = [None if np.isnan(cost) else cost for cost in per_item.tolist()]
    return {
        str(name): {
            fact: values[code] for fact, values in facts.items() if values[code] is not None
        }
        for code, name in enumerate(member.names)
    }
