"""Ways to damage a file."""

from __future__ import annotations

import copy
import io
import json
import random
import zipfile
import zlib
from typing import Any

_SPICE = [
    *(b"{", b"}", b"[", b"]", b'"', b",", b":", b"\n", b"\r", b"\0", b"\t", b"\\", b"\xff", b" "),
    *(b"null", b"true", b"NaN", b"Infinity", b"-1", b"1e999", b"9" * 30, b"0.5", b'""', b"{}"),
    *(b"[]", b"\\ud800", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"PK\x03\x04", b"PAR1", b"2024-01-01"),
]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The file with a few random changes."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(changed) + 1)
        length = rng.choice((0, 1, 2, 8, 64))
        what = rng.randrange(6)
        if what == 0 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            changed[at : at + length] = b""
        elif what == 2:
            start = rng.randrange(len(changed) + 1)
            changed[at:at] = changed[start : start + length]
        elif what == 3:
            changed[at : at + length] = rng.choice(_SPICE)
        elif what == 4:
            changed[at:at] = rng.choice(_SPICE) * rng.choice((1, 1, 3, 300))
        elif rng.random() < 0.2:
            del changed[at:]
        else:
            changed[at : at + length] = rng.randbytes(length)
    return bytes(changed)


def revalued(content: bytes, rng: random.Random) -> bytes:
    """JSON (or JSON lines) of which some value became another."""
    try:
        lines = [json.loads(content)]
    except ValueError:
        lines = [json.loads(line) for line in content.splitlines()]
    odd = [
        None,
        True,
        -1,
        0,
        1e308,
        10**40,
        "",
        "x",
        "\ud800",
        [],
        {},
        [[]],
        {"a": []},
        float("nan"),
    ]
    for _ in range(rng.choice((1, 1, 2, 4))):
        _replace(rng.choice(lines) if lines else None, odd, rng)
    return "\n".join(json.dumps(line) for line in lines).encode()


def _replace(value: Any, odd: list[Any], rng: random.Random) -> None:
    while isinstance(value, dict | list) and value:
        key: Any = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        inner = value[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.25:
            if rng.random() < 0.15:
                del value[key]
            else:
                value[key] = copy.deepcopy(rng.choice(odd))
            return
        value = inner


def repacked(content: bytes, rng: random.Random) -> bytes:
    """An archive of which some part was damaged before it was packed, so that its checksum fits."""
    made = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as archive,
        zipfile.ZipFile(made, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as new,
    ):
        names = archive.namelist()
        chosen = rng.choice(names)
        for name in dict.fromkeys(names):
            part = archive.read(name)
            if name == chosen and rng.random() < 0.1:
                name = rng.choice(("../" + name, name[1:], name + "x", names[0]))
            elif name == chosen:
                part = damaged(part, rng)
            if name not in new.namelist():
                new.writestr(zipfile.ZipInfo(name or "x"), part)
    return made.getvalue()


def another(name: str, content: bytes, rng: random.Random) -> bytes:
    """Some damaged version of a file."""
    if rng.random() < 0.02:
        return rng.randbytes(rng.randrange(1, 200))
    special = {".json": revalued, ".jsonl": revalued, ".npz": repacked}
    change = special.get(name[name.rfind(".") :])
    if change is not None and rng.random() < 0.6:
        try:
            return change(content, rng)
        except (ValueError, zipfile.BadZipFile, zlib.error, RecursionError, OSError, EOFError):
            pass
        except (NotImplementedError, RuntimeError, KeyError, IndexError):
            pass  # what is damaged already can't always be opened
    return damaged(content, rng)
