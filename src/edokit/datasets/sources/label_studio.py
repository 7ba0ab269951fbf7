"""Label Studio: a JSON export."""

from __future__ import annotations

from edokit.datasets.label_studio import is_label_studio, read_label_studio
from edokit.datasets.registry import Source
from edokit.datasets.sources._fields import OPTIONS, with_fields

SOURCE = Source(
    "label-studio",
    "a Label Studio JSON export",
    lambda candidate: is_label_studio(candidate.content),
    with_fields(read_label_studio),
    options=("control", "annotator", "ground_truth", *OPTIONS),
    place=30,
)
