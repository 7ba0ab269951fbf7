"""Where annotations come from: files of all kinds, the LeWiDi datasets, the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edokit._lazy import lazy_names

if TYPE_CHECKING:
    from edokit.datasets.get import get_lewidi2023, get_lewidi2025
    from edokit.datasets.info import describe_annotations
    from edokit.datasets.lewidi import Dialogue, read_lewidi, read_lewidi_dialogues
    from edokit.datasets.near_duplicates import near_duplicate_groups, near_duplicates_of
    from edokit.datasets.read import read_annotations, write_annotations
    from edokit.datasets.split import split_items

__all__ = [
    "Dialogue",
    "describe_annotations",
    "get_lewidi2023",
    "get_lewidi2025",
    "near_duplicate_groups",
    "near_duplicates_of",
    "read_annotations",
    "read_lewidi",
    "read_lewidi_dialogues",
    "split_items",
    "write_annotations",
]
# Reading one kind of file does not load the readers of others.
__getattr__ = lazy_names(
    __name__,
    {
        "get": ("get_lewidi2023", "get_lewidi2025"),
        "info": ("describe_annotations",),
        "lewidi": ("Dialogue", "read_lewidi", "read_lewidi_dialogues"),
        "near_duplicates": ("near_duplicate_groups", "near_duplicates_of"),
        "read": ("read_annotations", "write_annotations"),
        "split": ("split_items",),
    },
)
