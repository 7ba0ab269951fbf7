"""Potato's output folder: a folder per annotator with ``annotated_instances.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from edokit._errors import InputError
from edokit._io.documents import Document
from edokit.annotations.core import Annotations
from edokit.datasets.exports import OPTIONS, Export, Name, Response, as_records, load
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


def read_potato(source: Any, *, question: str | None = None, **options: Any) -> Annotations:
    """Annotations from the folder ``annotation_output`` of a Potato project.

    ``question`` names the annotation scheme and may be left out when there is one. Annotators are
    called as their folders; spans are no annotations of items. Further options are those of
    `Export`.
    """
    export = Export("instance", "annotation", "question", **options)
    files = _files(Path(source))
    if not files:
        raise InputError(
            f"{source}: no folder in it holds {FILE}", "name the folder annotation_output"
        )
    title, hint = "output of Potato", "name the folder annotation_output of a project"
    responses = []
    for file in files:
        for number, instance in enumerate(as_records(file, load(file), Instance, title, hint), 1):
            fields: Mapping[str, Any] = {"text": instance.displayed_text}
            ids = {"id": instance.id, "instance_id": instance.instance_id}
            item = export.item_name(fields, ids, number)
            responses.append(Response(item, fields, file.parent.name, instance.labels()))
    return export.annotations(responses, [response.item for response in responses], question)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*/{FILE}"))


SOURCE = Source(
    "potato",
    "the output folder of Potato",
    read_potato,
    lambda path, content: bool(_files(path)),
    options=("question", *OPTIONS),
)
