"""LeWiDi 2023: a JSON file as published, or a folder of its splits."""

from __future__ import annotations

from edokit.datasets.get import get_lewidi2023
from edokit.datasets.lewidi import is_lewidi, read_lewidi
from edokit.datasets.registry import Candidate, Source
from edokit.datasets.sources.table import is_table


def recognises(candidate: Candidate) -> bool:
    """Whether a JSON file holds LeWiDi's fields; any folder but one of tables is taken for it."""
    if candidate.path.is_dir():
        return not is_table(candidate)
    return candidate.suffix == ".json" and is_lewidi(candidate.content)


SOURCE = Source(
    "lewidi",
    "a LeWiDi 2023 JSON file or a folder of its splits",
    recognises,
    read_lewidi,
    options=("dialogue",),
    cleans=True,
    place=20,
    obtain={"lewidi2023": get_lewidi2023},
)
