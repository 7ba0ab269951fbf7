"""Sampled answers of members: which classes they name, and what is known about the members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from edokit._errors import InputError, are, counted, examples, option, warn, word
from edokit._names import Encoded, as_names, encode
from edokit._types import Bools, Strings
from edokit.annotations.labels import as_points, set_parts
from edokit.predictions.core import SOURCES
from edokit.predictions.files import per_member
from edokit.scales import DeclaredScale

Unparsed: TypeAlias = Literal["error", "drop"]
"""What to do with answers that are no class: refuse them, or leave them out and count them."""
SMOOTHING = 0.5
"""What is added to the count of each class."""
ANSWER = "answer"
ROLES = (ANSWER, "annotator", *SOURCES)
_MOST_ANSWERS = 10
"""Answers that a message lists."""
_LONGEST = 60
"""Characters of an answer that a message shows, so that it can be mapped."""
_BEFORE = " \t\r\n\"'`*()[]{}<>“”‘’"
_DIFFER = ("differs", "differ")


class SampledAnswers(NamedTuple):
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
    declared: DeclaredScale,
    classes: Sequence[str] | None,
    label_map: Mapping[str, str],
    unparsed: Unparsed,
) -> SampledAnswers:
    """The classes that answers name, if need be but for case and punctuation.

    Answers that are no class are refused or left out; a note counts those that are written
    otherwise than their class.
    """
    mapped = {}
    for answer in column.names:
        bare = answer.strip()
        mapped[answer] = label_map.get(answer, label_map.get(bare, bare))
    classes = classes or declared.classes
    if classes is None:
        raise InputError(
            f"there are {counted(len(mapped), 'different answer')}, and the classes are not"
            f" declared: {_listed(column.names[column.codes[column.codes >= 0]])}",
            f"name those that are classes: {option('classes', ['A', 'B'])}",
            code="undeclared-classes",
        )
    bare_names = Counter(map(_bare, classes))
    forms = {_bare(name): name for name in classes if bare_names[_bare(name)] == 1}
    # The last row is that of no answer, whose code is -1.
    is_class = np.zeros((len(mapped) + 1, len(classes)), dtype=bool)
    is_parsed, is_loose = np.zeros((2, len(is_class)), dtype=bool)
    labels_of = _label_parts(mapped.values(), declared, classes)
    for row, name in enumerate(mapped.values()):
        labels = labels_of.get(name, [name])
        read = [label if label in classes else forms.get(_bare(label)) for label in labels]
        is_parsed[row] = None not in read
        is_loose[row] = is_parsed[row] and read != list(labels)
        is_class[row] = [is_parsed[row] and name in read for name in classes]
    texts = np.append(column.names, "")
    codes = column.codes
    answers = SampledAnswers(tuple(classes), is_class[codes], is_parsed[codes])
    if is_loose[codes].any():
        number = are(int(is_loose[codes].sum()), len(codes), _DIFFER, "answer")
        warn(
            f"{path}: {number} from a class in case or punctuation alone, so that class is counted:"
            f" {_listed(texts[codes[is_loose[codes]]])}"
        )
    is_unparsed = ~answers.is_parsed
    if is_unparsed.any():
        number = are(int(is_unparsed.sum()), len(codes), noun="answer")
        message = f"{path}: {number} none of the classes {examples(classes, 20)}"
        _note_unparsed(texts[codes[is_unparsed]], message, unparsed)
    return answers


def _label_parts(
    names: Iterable[str], declared: DeclaredScale, classes: Sequence[str]
) -> dict[str, list[str]]:
    """The labels of answers that are sets, and the point that a number is; of others nothing."""
    if declared.kind == "multi-label":
        return set_parts(list(names), set(classes))
    if declared.kind == "ordinal":
        return {name: [point] for name, point in as_points(names, classes).items()}
    return {}


def _bare(answer: str) -> str:
    """An answer without case, and without the punctuation that models put around it."""
    return answer.casefold().lstrip(_BEFORE).rstrip(_BEFORE + ".,:;!")


def _note_unparsed(texts: Strings, message: str, unparsed: Unparsed) -> None:
    """Refuse answers that are no class, or warn that they are left out."""
    message = f"{message}: {_listed(texts)}"
    if unparsed == "drop":
        warn(f"{message}. They are left out")
        return
    mappable = [name for name, _ in Counter(texts).most_common() if 0 < len(name) <= _LONGEST]
    pairs = option("label_map", dict.fromkeys(mappable[:3], "CLASS"))
    remedy = f"read them as classes, such as {pairs}, or " if mappable else ""
    raise InputError(
        message, f"{remedy}leave them out with {option('unparsed', 'drop')}", code="unparsed-answer"
    )


def _listed(answers: Strings) -> str:
    """Answers with their counts, the most frequent first; long ones may be somebody's text."""
    counts = Counter(answers)
    texts = [
        f"{(repr(name) if len(name) <= _LONGEST else word(name)) if name else 'no answer'} ({n})"
        for name, n in counts.most_common(_MOST_ANSWERS)
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
            code="missing-value",
        )
    return Encoded(codes.astype(np.int32), names)


def answer_info(
    table: pa.Table, path: Path, member: Encoded, is_parsed: Bools
) -> dict[str, dict[str, Any]]:
    """What the table tells about each member, and how many of its answers count."""
    k = len(member.names)
    facts: dict[str, Sequence[Any]] = {
        "answers": np.bincount(member.codes[is_parsed], minlength=k).tolist(),
        "failures": [
            n or None for n in np.bincount(member.codes[~is_parsed], minlength=k).tolist()
        ],
    }
    for role in SOURCES:
        if role in table.column_names:
            facts[role] = [value or None for value in per_member(table, role, member, path)]
    return {
        str(name): {fact: values[code] for fact, values in facts.items()}
        for code, name in enumerate(member.names)
    }
