"""Sampled answers of members: the classes that they name, and facts about the members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from edokit._errors import InputError, are, counted, examples, option, warn, word
from edokit._io.tables import FileTable
from edokit._names import Encoded, as_names, encode
from edokit._types import Bools, Strings
from edokit.annotations.labels import as_points, set_parts
from edokit.predictions.core import IDENTITY
from edokit.predictions.files import per_member
from edokit.scales import DeclaredScale

Unparsed: TypeAlias = Literal["error", "drop"]
"""What to do with answers that are not a class: refuse them, or leave them out and count them."""
SMOOTHING = 0.5
"""The constant that is added to the count of each class."""
ANSWER = "answer"
"""The role of the column with the sampled answers."""
ANSWER_ROLES = (ANSWER, "annotator", *IDENTITY)
"""The roles of columns in a table of sampled answers."""
_MOST_ANSWERS = 10
"""Number of answers that a message lists."""
_LONGEST = 60
"""Length of the longest answer that a message shows, so that it can be mapped."""
_AROUND = " \t\r\n\"'`*()[]{}<>“”‘’"
"""Characters around an answer that are ignored."""
_DIFFER = ("differs", "differ")


class SampledAnswers(NamedTuple):
    """The classes that sampled answers [R] name.

    Attributes
    ----------
    is_class : Bools
        Whether each answer names each class [R, C].
    is_parsed : Bools
        Whether it names only classes [R]; an empty set of labels is also an answer.
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
    """The classes that answers name, ignoring case and punctuation if necessary.

    Answers that are not a class are refused or left out; a warning counts those that differ from
    their class in case or punctuation.
    """
    mapped = {}
    for answer in column.names:
        stripped = answer.strip()
        mapped[answer] = label_map.get(answer, label_map.get(stripped, stripped))
    classes = classes or declared.classes
    if classes is None:
        raise InputError(
            f"the classes are not declared; there are {counted(len(mapped), 'different answer')}:"
            f" {_listed(column.names[column.codes[column.codes >= 0]])}",
            f"name those that are classes: {option('classes', ['A', 'B'])}",
            code="undeclared-classes",
        )
    # Classes that differ only in case or punctuation are recognised only by their exact name.
    bare_names = Counter(map(_bare, classes))
    class_by_bare_name = {}
    for name in classes:
        bare_name = _bare(name)
        if bare_names[bare_name] == 1:
            class_by_bare_name[bare_name] = name
    # The last row is that of a missing answer, whose code is −1.
    is_class = np.zeros((len(mapped) + 1, len(classes)), dtype=bool)
    is_parsed = np.zeros(len(is_class), dtype=bool)
    is_loose = np.zeros(len(is_class), dtype=bool)
    labels_by_name = _label_parts(mapped.values(), declared, classes)
    for row, answer in enumerate(mapped.values()):
        labels = labels_by_name.get(answer, [answer])
        parsed_labels: list[str | None] = []
        for label in labels:
            if label in classes:
                parsed_labels.append(label)
            else:
                parsed_labels.append(class_by_bare_name.get(_bare(label)))
        if None not in parsed_labels:
            is_parsed[row] = True
            is_loose[row] = parsed_labels != list(labels)
            is_class[row] = [class_name in parsed_labels for class_name in classes]
    texts = np.append(column.names, "")
    codes = column.codes
    answers = SampledAnswers(tuple(classes), is_class[codes], is_parsed[codes])
    if is_loose[codes].any():
        how_many = are(int(is_loose[codes].sum()), len(codes), _DIFFER, "answer")
        warn(
            f"{path}: {how_many} from a class only in case or punctuation, and are counted as that"
            f" class: {_listed(texts[codes[is_loose[codes]]])}"
        )
    is_unparsed = ~answers.is_parsed
    if is_unparsed.any():
        how_many = are(int(is_unparsed.sum()), len(codes), noun="answer")
        message = f"{path}: {how_many} none of the classes {examples(classes, 20)}"
        _refuse_or_warn(texts[codes[is_unparsed]], message, unparsed)
    return answers


def _label_parts(
    names: Iterable[str], declared: DeclaredScale, classes: Sequence[str]
) -> dict[str, list[str]]:
    """The labels that each answer consists of, by answer.

    For multi-label data, these are the labels of the set; for an ordinal scale, the class that an
    answer such as ``4.0`` denotes. Left out are answers that are their own label: those that are
    classes, and all on a nominal scale.
    """
    if declared.kind == "multi-label":
        return set_parts(list(names), set(classes))
    if declared.kind == "ordinal":
        return {name: [point] for name, point in as_points(names, classes).items()}
    return {}


def _bare(answer: str) -> str:
    """An answer without case and surrounding punctuation."""
    return answer.casefold().lstrip(_AROUND).rstrip(_AROUND + ".,:;!")


def _refuse_or_warn(texts: Strings, message: str, unparsed: Unparsed) -> None:
    """Refuse answers that are not a class, or warn that they are left out."""
    message = f"{message}: {_listed(texts)}"
    if unparsed == "drop":
        warn(f"{message}. They are left out")
        return
    mappable = [name for name, _ in Counter(texts).most_common() if 0 < len(name) <= _LONGEST]
    hint = f"leave them out with {option('unparsed', 'drop')}"
    if mappable:
        pairs = option("label_map", dict.fromkeys(mappable[:3], "CLASS"))
        hint = f"map them to classes, as in {pairs}, or {hint}"
    raise InputError(message, hint, code="unparsed-answer")


def _listed(answers: Strings) -> str:
    """Answers with their counts, the most frequent first; long ones may be somebody's text."""
    counts = Counter(answers)
    parts = []
    for answer, count in counts.most_common(_MOST_ANSWERS):
        if not answer:
            text = "no answer"
        elif len(answer) <= _LONGEST:
            text = repr(answer)
        else:
            text = word(answer)
        parts.append(f"{text} ({count})")
    listed = ", ".join(parts)
    if len(counts) > _MOST_ANSWERS:
        listed += f" and {len(counts) - _MOST_ANSWERS} more"
    return listed


def answering_members(table: pa.Table, path: Path, member: str, identity: Sequence[str]) -> Encoded:
    """The member that gave each answer: the texts in the columns ``identity``, else ``member``."""
    present = [name for name in identity if name in table.column_names]
    if not present:
        return Encoded(np.zeros(len(table), dtype=np.int32), np.array([member], dtype=object))
    columns = [encode(table[name], name) for name in present]
    texts = [column.row_names.tolist() for column in columns]
    combinations = list(zip(*texts, strict=True))
    joined_names = []
    for combination in combinations:
        given_names = [text for text in combination if text]
        joined_names.append("+".join(given_names))
    codes, names = pd.factorize(as_names(joined_names))
    # "a+b" and "c" have the same joined name as "a" and "b+c".
    is_ambiguous = len(set(combinations)) > len(names)
    if is_ambiguous or "" in names:
        raise InputError(
            f"{path}: {examples(present)} do not identify the members: a row lacks all of them, or"
            " two members get the same name",
            f"name each member in a column: {option('columns', {'member': 'NAME'})}",
            code="missing-value",
        )
    return Encoded(codes.astype(np.int32), names)


def answer_info(
    source: FileTable, path: Path, member: Encoded, is_parsed: Bools
) -> dict[str, dict[str, Any]]:
    """The facts about each member in the table, and its numbers of answers and failures."""
    k = len(member.names)
    answers = np.bincount(member.codes[is_parsed], minlength=k).tolist()
    failures = np.bincount(member.codes[~is_parsed], minlength=k).tolist()
    info: dict[str, dict[str, object]] = {}
    for name, n_answers, n_failures in zip(member.names, answers, failures, strict=True):
        # `with_info` leaves out facts that are None.
        info[str(name)] = {"answers": n_answers, "failures": n_failures or None}
    for role in IDENTITY:
        if role in source.table.column_names:
            values = per_member(source.table, role, member, path, source.place)
            for name, value in zip(member.names, values, strict=True):
                info[str(name)][role] = value or None
    return info
