"""Sources of annotations by name. A new one is one file in ``sources`` with a `SOURCE` in it."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet

from edokit._errors import InputError, one_of
from edokit._io import check_file, read_json
from edokit.annotations import Annotations

Obtain = Callable[..., list[Path]]


@dataclass(frozen=True)
class Candidate:
    """A file or folder of which it is not known yet what it holds."""

    path: Path

    @property
    def suffix(self) -> str:
        """The ending of a file's name in small letters, nothing for a folder."""
        return "" if self.path.is_dir() else self.path.suffix.lower()

    @cached_property
    def content(self) -> Any:
        """What a JSON file holds; of a JSONL or Parquet file a list with the first row (of Parquet
        its columns alone); else an empty list."""
        if self.suffix == ".json":
            return read_json(self.path)
        # A file that can't be read is left to its reader, which says why.
        try:
            if self.suffix == ".parquet":
                return [dict.fromkeys(pa_parquet.read_schema(self.path).names)]
            if self.suffix in (".jsonl", ".ndjson"):
                with self.path.open(encoding="utf-8-sig") as lines:
                    return [json.loads(next(line for line in lines if line.strip()))]
        except (ValueError, OSError, StopIteration, RecursionError, pa.ArrowException):
            pass
        return []


@dataclass(frozen=True)
class Source:
    """One kind of source, and how it is read."""

    name: str
    """What it is called: ``format="lewidi"``."""
    about: str
    """What it is, in a few words, with its article."""
    recognises: Callable[[Candidate], bool]
    """Whether a file or folder is one of these."""
    read: Callable[..., Annotations]
    """``read(path, split=…, classes=…, duplicates=…, **options)``."""
    options: tuple[str, ...] = ()
    """What else can be said about it."""
    cleans: bool = False
    """Whether ``read`` takes ``clean``; else texts are cleaned afterwards."""
    place: int = 50
    """Where it stands in lists: low numbers first. High ones are asked first whether a file is
    theirs, so that a special kind comes before tables."""
    obtain: Mapping[str, Obtain] = field(default_factory=dict)
    """Public datasets of this kind: ``obtain["lewidi2023"](out, source=…, progress=…)`` gets all
    files, checked."""


def sources() -> list[Source]:
    """All sources, in the order of lists."""
    from edokit.datasets import sources as shelf

    found = [
        import_module(f"{shelf.__name__}.{module.name}").SOURCE
        for module in pkgutil.iter_modules(shelf.__path__)
        if not module.name.startswith("_")
    ]
    return sorted(found, key=lambda source: (source.place, source.name))


def find_source(name: str) -> Source:
    """The source of this name."""
    known = {source.name: source for source in sources()}
    one_of("format", name, known)
    return known[name]


def recognise(path: Path) -> Source:
    """The source that a file or folder is one of."""
    if not path.is_dir():
        check_file(path)
    candidate, known = Candidate(path), sources()
    for source in reversed(known):
        if source.recognises(candidate):
            return source
    raise InputError(
        f"a source of annotations must be {', '.join(source.about for source in known)}, but"
        f" {path} looks like none of them",
        "convert it to a table with the columns item, annotator, label, or say what it is with"
        f" format: {', '.join(source.name for source in known)}",
    )


def obtainable() -> dict[str, Obtain]:
    """The public datasets that can be obtained, by name."""
    return {name: get for source in sources() for name, get in source.obtain.items()}
