"""Where annotations come from: files of all kinds, the LeWiDi datasets, the simulator."""

from edokit.datasets.dialogue import Dialogue
from edokit.datasets.get import get_lewidi2023
from edokit.datasets.info import describe
from edokit.datasets.lewidi import read_lewidi, read_lewidi_dialogues
from edokit.datasets.near_duplicates import near_duplicate_groups, near_duplicates_of
from edokit.datasets.read import read_annotations
from edokit.datasets.split import split_items
from edokit.datasets.table import read_annotation_table

__all__ = [
    "Dialogue",
    "describe",
    "get_lewidi2023",
    "near_duplicate_groups",
    "near_duplicates_of",
    "read_annotation_table",
    "read_annotations",
    "read_lewidi",
    "read_lewidi_dialogues",
    "split_items",
]
