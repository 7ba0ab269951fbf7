"""Annotations from a table file: CSV, TSV, Parquet or JSONL, one row per annotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from edokit.annotations import Annotations
from edokit.datasets.where import naming
from edokit.files import read_table


def read_annotation_table(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    split: str | None = None,
    classes: Sequence[object] | None = None,
    duplicates: str = "error",
    attributes: Sequence[str] | None = None,
) -> Annotations:
    """A long table with ``item, annotator, label`` (or crowd-kit's ``task, worker, label``).

    Columns ``p_<class>`` may stand in place of ``label``; ``text``, ``split``, ``hard_label`` and
    what describes the annotators are read where they are. ``columns`` maps our names to the
    file's, as in ``{"item": "id"}``.
    """
    table = read_table(path, numbers=lambda name: name.startswith("p_"))
    with naming(path):
        return Annotations.from_table(
            table,
            columns=columns,
            classes=classes,
            duplicates=duplicates,
            split=split,
            attributes=attributes,
        )
