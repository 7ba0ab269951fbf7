"""Where annotations come from: files of all kinds, the LeWiDi datasets, the simulator."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edokit.datasets.get import get_lewidi2023, get_lewidi2025
    from edokit.datasets.info import describe_annotations
    from edokit.datasets.lewidi import Dialogue, read_lewidi, read_lewidi_dialogues
    from edokit.datasets.near_duplicates import near_duplicate_groups, near_duplicates_of
    from edokit.datasets.read import read_annotations, write_annotations
    from edokit.datasets.split import split_items

# Loaded when first used, so that reading one kind of file does not load the readers of others.
_HOME = {
    "Dialogue": "lewidi",
    "describe_annotations": "info",
    "get_lewidi2023": "get",
    "get_lewidi2025": "get",
    "near_duplicate_groups": "near_duplicates",
    "near_duplicates_of": "near_duplicates",
    "read_annotations": "read",
    "read_lewidi": "lewidi",
    "read_lewidi_dialogues": "lewidi",
    "split_items": "split",
    "write_annotations": "read",
}

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


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"edokit.datasets.{_HOME[name]}"), name)
    raise AttributeError(f"module 'edokit.datasets' has no attribute {name!r}")
