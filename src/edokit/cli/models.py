"""`edo models`: pretrained sentence encoders that are known by short names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from edokit._errors import in_bytes
from edokit.cli import console, options


def get(
    name: Annotated[str, options.POSITIONAL],
    /,
    *,
    source: Annotated[Path | None, Parameter(name="--from")] = None,
    json: options.Json = False,
) -> None:
    """Download a sentence encoder into the hub's cache; verify digests, resume.

    HF_ENDPOINT names a mirror of the Hugging Face hub, HF_HUB_CACHE another cache. Where the
    connection breaks, the download goes on from there; run again, it keeps the files that are
    whole.

    Parameters
    ----------
    name : str
        minilm (all-MiniLM-L6-v2, English) or multilingual (paraphrase-multilingual-MiniLM-L12-v2).
    source : Path, optional
        A folder with the same files, instead of the hub.
    """
    from edokit.members.catalogue import find_encoder, get_encoder

    folder = get_encoder(name, source)
    encoder = find_encoder(name)
    assert encoder is not None
    console.print_result(
        {"name": encoder.name, "folder": str(folder), "revision": encoder.revision},
        f"{folder}: {encoder.name}, {in_bytes(encoder.size)}, {encoder.license}, digests verified",
        json,
    )


def list(*, json: options.Json = False) -> None:
    """List the sentence encoders with short names: size, licence, which are here."""
    from edokit.members.catalogue import describe_encoders

    encoders = describe_encoders()

    def show() -> None:
        rows = []
        notes = []
        for encoder in encoders:
            availability = "no"
            if encoder["folder"] is not None:
                availability = "yes"
            size = in_bytes(encoder["bytes"])
            row = [encoder["short_name"], encoder["languages"], size, encoder["license"]]
            rows.append([*row, availability])
            notes.append(f"{encoder['short_name']}: {encoder['repository']}")
        heads = ["name", "reads", "size", "licence", "here"]
        console.print_table("Sentence encoders: edo models get NAME", heads, rows, notes)

    console.print_result({"encoders": encoders}, show, json)
