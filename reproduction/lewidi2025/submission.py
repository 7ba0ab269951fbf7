"""The files of a submission, ``<Dataset>_test_soft.tsv`` and ``<Dataset>_test_pe.tsv``, and a check
of their format.

A line is ``id<TAB>[list]``. Soft: the probability of each class in class order; of VariErrNLI three
lists, "no" and "yes" of each label. Perspectivist: the answer of each annotator in the order in
which the item lists them; of VariErrNLI three lists, 0 or 1 of each annotator for each label.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import InputError, examples
from edokit._io.atomic import check_file, whole_file
from edokit._types import Codes, Floats
from edokit.members.texts import Texts
from edokit.scales import Scale

DIGITS = 6
_SUM = 10.0**-DIGITS * 50
_HINT = "write it with `python -m reproduction lewidi2025 submit`"
Line = list[Any]
"""The list of an item in a file: numbers, or a list of numbers for each label."""


@dataclass(frozen=True)
class Asked:
    """What a dataset asks of a submission."""

    dataset: str
    test: Texts
    """The items, with their annotators."""
    scale: Scale
    classes: tuple[str, ...]

    @property
    def rows_per_item(self) -> int:
        """The number of lists in a line: one for each label of VariErrNLI, else one."""
        return len(self.classes) if self.scale.is_multi_label else 1

    @property
    def probabilities_per_row(self) -> int:
        """The number of probabilities of a distribution."""
        return 2 if self.scale.is_multi_label else len(self.classes)

    @property
    def possible_answers(self) -> set[int]:
        """The answers that an annotator can give."""
        if self.scale.is_multi_label:
            return {0, 1}
        return {int(name) for name in self.classes}

    def rows(self, value: Line) -> list[Any]:
        """The lists of a line."""
        if self.scale.is_multi_label:
            return value
        return [value]


def write_dataset(
    folder: Path, asked: Asked, soft: Floats, perspectives: Sequence[Codes]
) -> list[Path]:
    """Write both files of a dataset.

    ``soft`` [N, C] are probabilities; ``perspectives`` are class codes [n] of an item's n
    annotators, or [n, L] for sets.
    """
    scale = asked.scale
    soft_lines: list[Line] = []
    for p in soft:
        rows = scale.rows(np.asarray(p, dtype=np.float64)[None])
        rounded_rows = [_rounded(row) for row in rows]
        if scale.is_multi_label:
            soft_lines.append(rounded_rows)
        else:
            soft_lines.append(rounded_rows[0])
    answer_lines: list[Line] = []
    for answers in perspectives:
        if scale.is_multi_label:
            answer_lines.append(np.asarray(answers).T.tolist())
        else:
            answer_lines.append([int(asked.classes[code]) for code in answers])
    soft_path = folder / f"{asked.dataset}_test_soft.tsv"
    _write_lines(soft_path, asked.test, soft_lines)
    check_soft(soft_path, asked)
    answer_path = folder / f"{asked.dataset}_test_pe.tsv"
    _write_lines(answer_path, asked.test, answer_lines)
    check_pe(answer_path, asked)
    return [soft_path, answer_path]


def _write_lines(path: Path, test: Texts, values: Sequence[Line]) -> None:
    lines = []
    for item, value in zip(test.items, values, strict=True):
        lines.append(f"{_key(item)}\t{json.dumps(value)}\n")
    with whole_file(path) as temporary:
        temporary.write_text("".join(lines), encoding="utf-8")


def write_zip(path: Path, files: Sequence[Path]) -> None:
    """One archive of the files, the same bytes each time."""
    with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for file in sorted(files):
            entry = zipfile.ZipInfo(file.name, (2025, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())


def check_soft(path: Path, asked: Asked) -> None:
    """Raise an error if the items or distributions are not those that the task asks for."""
    for item, value in _lines(path, asked.test):
        place = f"{path}: item {item!r}"
        rows = asked.rows(value)
        _check_length(place, "distributions", rows, asked.rows_per_item)
        for row in rows:
            _check_length(place, "probabilities", row, asked.probabilities_per_row)
            if not all(type(p) in (int, float) and 0 <= p <= 1 for p in row):
                raise InputError(
                    f"{place} has probabilities that are not from 0 to 1",
                    _HINT,
                    code="invalid-probabilities",
                )
            if abs(sum(row) - 1) > _SUM:
                raise InputError(
                    f"{place}: probabilities sum to {sum(row):.6g}, not to 1",
                    _HINT,
                    code="invalid-probabilities",
                )


def check_pe(path: Path, asked: Asked) -> None:
    """Raise an error unless each annotator of each item has one possible answer."""
    possible = asked.possible_answers
    annotators = dict(zip(map(_key, asked.test.items), asked.test.annotators or (), strict=True))
    for item, value in _lines(path, asked.test):
        place = f"{path}: item {item!r}"
        rows = asked.rows(value)
        _check_length(place, "labels", rows, asked.rows_per_item)
        for row in rows:
            _check_length(place, "answers", row, len(annotators[item]))
            wrong = [answer for answer in row if type(answer) is not int or answer not in possible]
            if wrong:
                raise InputError(
                    f"{place} has the answer {wrong[0]!r}, which is none of"
                    f" {', '.join(map(str, sorted(possible)))}",
                    _HINT,
                    code="unknown-class",
                )


def _key(item: str) -> str:
    """The id in the published file."""
    return item.removeprefix("test-")


def _rounded(row: Floats) -> list[float]:
    """Probabilities of few digits; the largest is adjusted so that they sum to 1."""
    rounded = np.round(row / row.sum(), DIGITS)
    rounded[rounded.argmax()] += 1 - rounded.sum()
    return [round(float(p), DIGITS) for p in rounded]


def _lines(path: Path, test: Texts) -> list[tuple[str, Line]]:
    """The items and their lists, after a check that the items are those of test in order."""
    entries: list[tuple[str, Line]] = []
    for number, line in enumerate(check_file(path).read_text(encoding="utf-8").splitlines(), 1):
        item, tab, text = line.partition("\t")
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not tab or not isinstance(value, list):
            raise InputError(
                f"{path}: line {number} is not of the form id<TAB>[list]",
                _HINT,
                code="wrong-content",
            )
        entries.append((item, value))
    expected = [_key(item) for item in test.items]
    submitted = [item for item, _ in entries]
    if submitted != expected:
        problem = "has its items in another order than the test file"
        if missing := [item for item in expected if item not in set(submitted)]:
            problem = f"lacks {len(missing)} of {len(expected)} items: {examples(missing)}"
        elif unexpected := [item for item in submitted if item not in set(expected)]:
            problem = f"has {len(unexpected)} items that are not in test: {examples(unexpected)}"
        elif len(submitted) > len(expected):
            problem = f"has {len(submitted)} lines for {len(expected)} items"
        raise InputError(f"{path} {problem}", _HINT, code="items-differ")
    return entries


def _check_length(place: str, noun: str, value: object, expected: int) -> None:
    """Raise an error unless a value read from a file is a list of this length."""
    if not isinstance(value, list):
        size = "no list of"
    elif len(value) != expected:
        size = str(len(value))
    else:
        return
    raise InputError(f"{place} has {size} {noun}, not {expected}", _HINT, code="lengths-differ")
