"""Where annotations come from: files of all kinds, the LeWiDi datasets, the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edokit._package import lazy_names

if TYPE_CHECKING:
    from edokit.datasets.get import get_dataset
    from edokit.datasets.info import describe_annotations
    from edokit.datasets.lewidi import read_lewidi
    from edokit.datasets.near_duplicates import near_duplicate_groups
    from edokit.datasets.read import read_annotations, write_annotations
    from edokit.datasets.split import split_items

__all__ = [
    "describe_annotations",
    "get_dataset",
    "near_duplicate_groups",
    "read_annotations",
    "read_lewidi",
    "split_items",
    "write_annotations",
]
# Reading one kind of file does not load the readers of others.
__getattr__ = lazy_names(
    __name__,
    {
        "get": ("get_dataset",),
        "info": ("describe_annotations",),
        "lewidi": ("read_lewidi",),
        "near_duplicates": ("near_duplicate_groups",),
        "read": ("read_annotations", "write_annotations"),
        "split": ("split_items",),
    },
)
