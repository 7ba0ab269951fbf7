"""One door for every source of annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from edokit._errors import InputError
from edokit._names import as_names
from edokit.annotations import Annotations
from edokit.datasets.clean import clean_text
from edokit.datasets.registry import Source, find_source, recognise, sources


def read_annotations(
    source: str | Path,
    *,
    format: str | None = None,
    split: str | None = None,
    classes: Sequence[object] | None = None,
    duplicates: str | None = None,
    clean: bool = False,
    columns: Mapping[str, str] | None = None,
    dialogue: str | None = None,
    control: str | None = None,
    question: str | None = None,
    multi_choice: str | None = None,
    **options: Any,
) -> Annotations:
    """The annotations in a file or folder, recognised by what is in it unless ``format`` says.

    - ``split`` keeps one split; ``classes`` declares them and their order; ``duplicates`` is
      ``error | first | all`` ("all" for LeWiDi, else "error"); ``clean`` applies the paper's
      cleaning to the texts.
    - ``columns`` maps our names to the source's, as in ``{"item": "id"}``; in an export it names
      the fields with the ``item`` and the ``text``.
    - ``dialogue`` is for LeWiDi's conversations, ``control`` for Label Studio, ``question`` for
      Argilla, ``multi_choice`` for both; ``options`` are further ones of the format's reader.
    """
    path = Path(source)
    kind = find_source(format) if format is not None else recognise(path)
    given = {
        "columns": columns,
        "dialogue": dialogue,
        "control": control,
        "question": question,
        "multi_choice": multi_choice,
        **options,
    }
    wanted = {name: value for name, value in given.items() if value is not None}
    _check_options(kind, wanted)
    common: dict[str, Any] = {"split": split, "classes": classes}
    if duplicates is not None:
        common["duplicates"] = duplicates
    if kind.cleans:
        return kind.read(path, clean=clean, **common, **wanted)
    read = kind.read(path, **common, **wanted)
    if clean and read.texts is not None:
        read = replace(read, texts=as_names(clean_text(text) for text in read.texts))
    return read


def _check_options(kind: Source, given: Mapping[str, Any]) -> None:
    """An option that the source has no use for is refused."""
    for name in given:
        if name not in kind.options:
            fitting = [other.name for other in sources() if name in other.options]
            raise InputError(
                f"the option {name!r} must fit the source, but this is {kind.name!r}, which takes"
                f" {', '.join(map(repr, kind.options))}",
                f"leave it out, or say format={fitting[0]!r}" if fitting else "leave it out",
            )
