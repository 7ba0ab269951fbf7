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


@dataclass(frozen=True)
class Asked:
    """What a dataset asks of a submission."""

    dataset: str
    test: Texts
    """The items, with their annotators."""
    scale: Scale
    classes: tuple[str, ...]


def write_dataset(folder: Path, asked: Asked, soft: Floats, own: Sequence[Codes]) -> list[Path]:
    """Write both files of a dataset.

    ``soft`` [N, C] are probabilities; ``own`` are class codes [n] of an item's n annotators, or
    [n, L] for sets.
    """
    scale = asked.scale
    classes = asked.classes
    lines: dict[str, list[Any]] = {"soft": [], "pe": []}
    for p, answers in zip(soft, own, strict=True):
        rows = scale.rows(np.asarray(p, dtype=np.float64)[None])
        rounded_rows = [_rounded(row) for row in rows]
        lines["soft"].append(rounded_rows if scale.is_multi_label else rounded_rows[0])
        if scale.is_multi_label:
            lines["pe"].append(np.asarray(answers).T.tolist())
        else:
            lines["pe"].append([int(classes[code]) for code in answers])
    written = []
    for kind, values in lines.items():
        path = folder / f"{asked.dataset}_test_{kind}.tsv"
        pairs = zip(asked.test.items, values, strict=True)
        text = "".join(f"{_key(item)}\t{json.dumps(value)}\n" for item, value in pairs)
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        check_soft(path, asked) if kind == "soft" else check_pe(path, asked)
        written.append(path)
    return written


def write_zip(path: Path, files: Sequence[Path]) -> None:
    """One archive of the files, the same bytes each time."""
    with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for file in sorted(files):
            entry = zipfile.ZipInfo(file.name, (2025, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())


def check_soft(path: Path, asked: Asked) -> None:
    """Refuse a file whose items or distributions are not those that the task asks for."""
    scale = asked.scale
    classes = asked.classes
    for item, value in _lines(path, asked.test):
        place = f"{path}: item {item!r}"
        rows = value if scale.is_multi_label else [value]
        _length(place, "distributions", rows, len(classes) if scale.is_multi_label else 1)
        for row in rows:
            _length(place, "probabilities", row, 2 if scale.is_multi_label else len(classes))
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
    """Refuse a file that does not have one possible answer of each annotator of each item."""
    scale = asked.scale
    classes = asked.classes
    possible = {0, 1} if scale.is_multi_label else {int(name) for name in classes}
    annotators = dict(zip(map(_key, asked.test.items), asked.test.annotators or (), strict=True))
    for item, value in _lines(path, asked.test):
        place = f"{path}: item {item!r}"
        rows = value if scale.is_multi_label else [value]
        _length(place, "labels", rows, len(classes) if scale.is_multi_label else 1)
        for row in rows:
            _length(place, "answers", row, len(annotators[item]))
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
    """Few digits that still sum to 1: the largest probability takes the rest."""
    rounded = np.round(row / row.sum(), DIGITS)
    rounded[rounded.argmax()] += 1 - rounded.sum()
    return [round(float(p), DIGITS) for p in rounded]


def _lines(path: Path, test: Texts) -> list[tuple[str, list[Any]]]:
    """Items and lists, if the items are those of test in their order."""
    entries: list[tuple[str, list[Any]]] = []
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


def _length(where: str, what: str, value: Any, wanted: int) -> None:
    if not isinstance(value, list) or len(value) != wanted:
        size = len(value) if isinstance(value, list) else "no list of"
        raise InputError(f"{where} has {size} {what}, not {wanted}", _HINT, code="lengths-differ")
