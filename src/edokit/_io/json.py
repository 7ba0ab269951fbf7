"""Single JSON documents."""

from __future__ import annotations

import codecs
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, headings
from edokit._io.atomic import cannot_read, check_file, whole_file


def read_json(path: str | Path) -> Any:
    """One JSON document."""
    return parse_json(read_text(path), str(path))


def read_text(path: str | Path) -> str:
    """The text in a file."""
    path = check_file(path)
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from error
    except OSError as error:
        raise cannot_read(path, error) from error


def parse_json(text: str, where: str) -> Any:
    """One JSON document; ``where`` names it in messages.

    What Python would let pass is refused, too: a key that an object holds twice, of which the last
    would win, and more levels than the stack may have.
    """
    check_depth(text.encode("utf-8", "surrogatepass"), where)
    try:
        return json.loads(text, object_pairs_hook=_distinct)
    except _RepeatedError:
        try:
            key, place = _repeated(json.loads(text, object_pairs_hook=_Pairs)) or ("", "")
        except ValueError:
            raise InputError(
                f"{where} holds a key twice, and is not valid JSON", "export or download it again"
            ) from None
        inside = f" in {headings([place])}" if place else ""
        raise InputError(
            f"{where} holds the key {headings([key])} twice{inside}",
            "keep one of them; which one is meant can't be known",
        ) from None
    except UnicodeEncodeError:
        raise InputError(f"{where} has a key with half a character", "export it again") from None
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if "\n" in text.rstrip() else ""
        raise InputError(
            f"{where} is not valid JSON in {line}column {error.colno}: {error.msg}",
            "the file may be cut off; export or download it again",
        ) from error
    except ValueError as error:
        # Python refuses whole numbers of thousands of digits.
        raise InputError(
            f"{where} holds a number that can't be read: {error}", "check that it is the right file"
        ) from error


class _RepeatedError(Exception):
    """An object holds a key twice."""


class _Pairs(list[tuple[str, Any]]):
    """An object with all of its keys, also those that it holds twice."""


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise _RepeatedError
    "".join(content).encode()  # half a character can't be a name of anything
    return content


def _repeated(value: Any, place: str = "") -> tuple[str, str] | None:
    """The first key that an object holds twice, and where that object is: ``trials[3].weights``."""
    if not isinstance(value, list):
        return None
    keys: set[Any] = set()
    is_object = isinstance(value, _Pairs)
    for key, inner in value if is_object else enumerate(value):
        if is_object and key in keys:
            return str(key), place
        keys.add(key)
        inside = f"{place}.{key}".lstrip(".") if is_object else f"{place}[{key}]"
        if repeated := _repeated(inner, inside):
            return repeated
    return None


def write_json(value: Any, path: str | Path) -> None:
    """Write one indented JSON document."""
    with whole_file(path) as temporary:
        temporary.write_text(json_text(value, indent=2) + "\n", encoding="utf-8")


def json_text(value: Any, **options: Any) -> str:
    """JSON as people read it; characters that would steer a terminal or turn text are escaped."""
    text = json.dumps(value, ensure_ascii=False, **options)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in text
    )


DEEPEST = 64
"""Levels that a file may have; every known export needs fewer than ten."""
_BLOCK = 1 << 22
_LONGEST = 1 << 26
_QUOTE, _NEWLINE, _BACKSLASH = b'"\n\\'
_STEP = np.zeros(256, dtype=np.int8)
_STEP[list(b"[{")] = 1
_STEP[list(b"]}")] = -1
_MARKS = bytes(byte in b'[{]}"\n' for byte in range(256))


def check_depth(content: bytes, where: str) -> None:
    """Refuse a JSON document that is nested too deeply."""
    marks, inside = _marks(content)
    if _depths(marks, inside, 0)[1] > DEEPEST:
        raise InputError(
            f"{where} is JSON that is nested too deeply, with more than {DEEPEST} levels",
            "check that it is the right file",
        )


def bad_lines(path: Path) -> str | None:
    """What makes JSON lines unfit for Arrow's parser, if anything does."""
    depth = 0
    with path.open("rb") as stream:
        # Whole lines, since each line begins outside a text.
        while block := stream.read(_BLOCK) + stream.readline(_LONGEST):
            marks, inside = _marks(block)
            if (inside & (marks == _NEWLINE)).any():
                return "a text does not end in its row"
            depth, deepest = _depths(marks, inside, depth)
            if deepest > DEEPEST:
                return f"it is nested more than {DEEPEST} levels deep"
    return None


def _marks(text: bytes) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Brackets, quotation marks and line ends, and which of them are inside a text."""
    content = np.frombuffer(text, np.uint8)
    places = np.flatnonzero(np.frombuffer(text.translate(_MARKS), np.bool_))
    marks = content[places]
    quotes = marks == _QUOTE
    # A quotation mark after an odd number of backslashes is part of the text.
    follows = places[quotes]
    real = np.ones(len(follows), dtype=bool)
    at, rows = follows - 1, np.arange(len(follows))
    while len(rows):
        escaped = (at >= 0) & (content[at] == _BACKSLASH)
        at, rows = at[escaped] - 1, rows[escaped]
        real[rows] ^= True
    quotes[quotes] = real
    opened = np.cumsum(quotes) % 2 == 1
    return marks, opened & ~quotes


def _depths(
    marks: npt.NDArray[np.uint8], inside: npt.NDArray[np.bool_], start: int
) -> tuple[int, int]:
    """The depth at the end and the greatest, counted from the lowest level so far."""
    steps = np.where(inside, 0, _STEP[marks])
    depths = np.concatenate([[start], start + np.cumsum(steps, dtype=np.int64)])
    # What closes more than was opened must not hide what opens later.
    depths -= np.minimum(np.minimum.accumulate(depths), 0)
    return int(depths[-1]), int(depths.max())


def not_utf8(path: Path, error: UnicodeDecodeError | None = None) -> InputError:
    """The error for a text file in another encoding."""
    place = "" if error is None else f" (first at byte {error.start})"
    if position := first_bad_byte(path):
        place = " (first in line {}, at byte {})".format(*position)
    with path.open("rb") as stream:
        marked = stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    likely = "utf-16" if marked else "latin1"
    return InputError(
        f"{path} is not UTF-8 text{place}",
        f"convert it, for example with: iconv -f {likely} -t utf-8",
    )


def first_bad_byte(path: Path) -> tuple[int, int] | None:
    """Line (from 1) and byte (from 0) where the file stops being UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, start = 1, 0
    with path.open("rb") as stream:
        while True:
            block = stream.read(1 << 20)
            pending = len(decoder.getstate()[0])
            try:
                line += decoder.decode(block, final=not block).count("\n")
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                return line, start - pending + error.start
            if not block:
                return None
            start += len(block)
