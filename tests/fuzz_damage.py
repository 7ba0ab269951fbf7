"""Ways to damage a file."""

from __future__ import annotations

import copy
import io
import json
import random
import re
import zipfile
import zlib

import numpy as np

from thrift_tree import refooted

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
        change = rng.randrange(6)
        if change == 0 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif change == 1:
            changed[at : at + length] = b""
        elif change == 2:
            start = rng.randrange(len(changed) + 1)
            changed[at:at] = changed[start : start + length]
        elif change == 3:
            changed[at : at + length] = rng.choice(_SPICE)
        elif change == 4:
            changed[at:at] = rng.choice(_SPICE) * rng.choice((1, 1, 3, 300))
        elif rng.random() < 0.2:
            del changed[at:]
        else:
            changed[at : at + length] = rng.randbytes(length)
    return bytes(changed)


Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
"""A value of a JSON document."""
ODD: list[Json] = [
    *(None, True, False, -1, 0, 1, 2, 9, 10**40, -(10**40), 2**63, 10**400),
    *(0.5, -0.5, 1e-320, 1e308, -1e308, float("nan"), float("inf")),
    *("", "x", "\ud800", "a\0b", "../x", "/dev/zero", "7", "nan", "x" * 5000, "\u202e"),
    *([], {}, [[]], {"a": []}, [0.5, 0.5], [None], ["x"] * 40),
]
"""What a value may become."""


def revalued(content: bytes, rng: random.Random) -> bytes:
    """JSON (or JSON lines) in which some values, keys or lengths were replaced."""
    try:
        lines = [json.loads(content)]
    except ValueError:
        lines = [json.loads(line) for line in content.splitlines()]
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if lines:
            _change(rng.choice(lines), rng)
    text = "\n".join(json.dumps(line) for line in lines)
    if rng.random() < 0.05:
        text = _doubled(text, rng)
    if rng.random() < 0.02:
        return text.encode(rng.choice(("utf-16", "utf-8-sig", "utf-32")))
    return text.encode()


def _change(value: Json, rng: random.Random) -> None:
    """Change one place inside a value."""
    while isinstance(value, dict | list) and value:
        if isinstance(value, dict):
            key = rng.choice(list(value))
        else:
            key = rng.randrange(len(value))
        inner = value[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.25:
            draw = rng.random()
            if draw < 0.15:
                del value[key]
            elif draw < 0.25 and isinstance(value, list):
                value.insert(key, copy.deepcopy(inner))
            elif draw < 0.3 and isinstance(value, dict):
                value[rng.choice(("extra", "", "\ud800", "../x", key + "x"))] = inner
            elif draw < 0.32:
                value[key] = _deep(rng.choice((3, 60, 70, 500)))
            else:
                value[key] = copy.deepcopy(rng.choice(ODD))
            return
        value = inner


def _deep(levels: int) -> Json:
    """Lists in lists, this many levels deep."""
    value: Json = 0
    for _ in range(levels):
        value = [value]
    return value


def _doubled(text: str, rng: random.Random) -> str:
    """The text with a duplicate key."""
    keys = [match.end() for match in re.finditer(r'"(?:[^"\\]|\\.)*": ', text)]
    if not keys:
        return text
    at = rng.choice(keys)
    start = text.rindex('"', 0, text.rindex('"', 0, at))
    return f"{text[:start]}{text[start:at]}null, {text[start:]}"


def retensored(content: bytes, rng: random.Random) -> bytes:
    """A safetensors file with a changed header, and a length that fits it or not."""
    size = int.from_bytes(content[:8], "little")
    header = revalued(content[8 : 8 + size], rng)
    if rng.random() < 0.1:
        return rng.choice((0, 1, 2**40, 2**63 - 1, size - 1)).to_bytes(8, "little") + content[8:]
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


def repacked(content: bytes, rng: random.Random) -> bytes:
    """An archive of which some part was damaged before it was packed, so that its checksum fits."""
    stream = io.BytesIO()
    compression = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with (
        zipfile.ZipFile(io.BytesIO(content)) as archive,
        zipfile.ZipFile(stream, "w", compression) as new,
    ):
        names = archive.namelist()
        damaged_name = rng.choice(names)
        for name in dict.fromkeys(names):
            part = archive.read(name)
            if name == damaged_name and rng.random() < 0.1:
                name = rng.choice(("../" + name, name[1:], name + "x", names[0]))
            elif name == damaged_name:
                if name.endswith((".json", "schema")) and rng.random() < 0.7:
                    part = revalued(part, rng)
                else:
                    part = reheaded(part, rng)
            if name not in new.namelist():
                new.writestr(zipfile.ZipInfo(name or "x"), part)
    return stream.getvalue()


def reheaded(content: bytes, rng: random.Random) -> bytes:
    """An array with another type, shape or content."""
    if not content.startswith(b"\x93NUMPY") or rng.random() < 0.4:
        return damaged(content, rng)
    try:
        array = np.lib.format.read_array(io.BytesIO(content))
    except Exception:  # damaged before, in a way that numpy does not foresee
        return damaged(content, rng)
    with np.errstate(all="ignore"):
        kinds = ("f4", "f8", "i4", "i8", "u1", "bool", "U3", "S2", "c16", "M8[s]", "f2")
        change = rng.randrange(6)
        flat = array.ravel()
        if change == 0:
            array = array.astype(rng.choice(kinds))
        elif change == 1:
            array = rng.choice((flat, array[None], array.T, flat[:-1], flat[:0]))
        elif change == 2:
            array = np.concatenate([flat, flat])
        elif flat.size and flat.dtype.kind in "fiu":
            odd: tuple[float, ...] = (-1, 0, 1, 2**31 - 1)
            if flat.dtype.kind == "f":
                odd = (-1, 0, 2**31 - 1, 1e30, np.nan, np.inf)
            flat = flat.copy()
            flat[rng.randrange(flat.size)] = np.array(rng.choice(odd)).astype(flat.dtype)
            array = flat.reshape(array.shape)
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def another(name: str, content: bytes, rng: random.Random) -> bytes:
    """Some damaged version of a file."""
    if rng.random() < 0.02:
        return rng.randbytes(rng.randrange(1, 200))
    special = {
        **dict.fromkeys((".json", ".jsonl", ".log"), revalued),
        **dict.fromkeys((".npz", ".skops"), repacked),
        ".safetensors": retensored,
        ".parquet": refooted,
    }
    change = special.get(name[name.rfind(".") :])
    if change is not None and rng.random() < 0.7:
        try:
            return change(content, rng)
        except (ValueError, zipfile.BadZipFile, zlib.error, RecursionError, OSError, EOFError):
            pass
        except (NotImplementedError, RuntimeError, KeyError, IndexError, TypeError, SystemError):
            pass  # what is damaged already can't always be opened, or cast to another type
    return damaged(content, rng)
