"""Potato's output folder: a folder per annotator with ``annotated_instances.jsonl``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from edokit._errors import InputError
from edokit._io.documents import Document
from edokit.annotations.core import Annotations
from edokit.datasets.exports import (
    OPTIONS,
    ExportedAnswer,
    Item,
    Name,
    as_records,
    load,
    read_export,
)
from edokit.datasets.read import Source

FILE = "annotated_instances.jsonl"
_POINT = "scale_"
"""What the points of a Likert scale are called: ``scale_3``."""


class Instance(Document):
    """What one annotator answered about an item."""

    id: Name | None = None
    instance_id: Name | None = None
    displayed_text: str = ""
    label_annotations: dict[str, dict[str, Any]] = Field(default_factory=dict)

    def labels(self) -> dict[str, list[str]]:
        """The chosen labels by annotation scheme."""
        return {
            scheme: [
                label.removeprefix(_POINT)
                for label, value in values.items()
                if value and str(value).lower() != "false"
            ]
            for scheme, values in self.label_annotations.items()
        }


def read_potato(source: Any, **options: Any) -> Annotations:
    """Annotations from the folder ``annotation_output`` of a Potato project.

    A question is an annotation scheme. Annotators are called as their folders; spans are no
    annotations of items. Options are those of `read_export`.
    """
    hint = "name the folder annotation_output of a project"
    files = _files(Path(source))
    if not files:
        raise InputError(f"{source}: no folder in it holds {FILE}", hint, code="wrong-folder")
    items = [
        Item(
            [instance.id, instance.instance_id],
            {"text": instance.displayed_text},
            {
                scheme: [ExportedAnswer(file.parent.name, labels)]
                for scheme, labels in instance.labels().items()
            },
        )
        for file in files
        for instance in as_records(file, load(file), Instance, "output of Potato", hint)
    ]
    return read_export(items, **options)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*/{FILE}"))


SOURCE = Source(
    "potato",
    "the output folder of Potato",
    read_potato,
    lambda path, content: bool(_files(path)),
    options=OPTIONS,
)
