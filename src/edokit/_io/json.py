"""Single JSON documents."""

from __future__ import annotations

import json
import math
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from pathlib import Path
from typing import Any

from edokit._errors import InputError, headings, in_bytes
from edokit._io.atomic import cannot_read, check_file, whole_file

LARGEST_DOCUMENT = 2**27
"""Bytes that a document of ours stays far below; sources of annotations may be larger."""


def read_json(path: str | Path, largest: float = LARGEST_DOCUMENT) -> Any:
    """One JSON document of at most so many bytes."""
    return parse_json(read_text(path, largest), str(path))


def read_text(path: str | Path, largest: float = math.inf) -> str:
    """The text in a file of at most so many bytes."""
    path = check_file(path)
    if (size := path.stat().st_size) > largest:
        raise InputError(
            f"{path} has {in_bytes(size)}, more than the {in_bytes(largest)} of any such file",
            "check that it is the right file",
        )
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        check_utf8(path)
        raise
    except OSError as error:
        raise cannot_read(path, error) from error


def parse_json(text: str, where: str) -> Any:
    """One JSON document; ``where`` names it in messages.

    What Python would let pass is refused, too: a key that an object holds twice, of which the last
    would win.
    """

    def distinct(entries: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(entries)
        if len(content) < len(entries):
            repeated = Counter(key for key, _ in entries).most_common(1)[0][0]
            raise InputError(
                f"{where} holds the key {headings([repeated])} twice in one object",
                "keep one of them; which one is meant can't be known",
            )
        return content

    try:
        content = json.loads(text, object_pairs_hook=distinct)
        if "\\u" in text:  # escapes may stand for half a character, which nothing can write
            json.dumps(content, ensure_ascii=False).encode()
        return content
    except InputError:
        raise
    except RecursionError:
        raise InputError(
            f"{where} is JSON that is nested too deeply", "check that it is the right file"
        ) from None
    except UnicodeEncodeError:
        raise InputError(f"{where} holds half a character", "export it again") from None
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


def check_utf8(path: Path) -> None:
    """Refuse a text file in another encoding."""
    content = path.read_bytes()
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        likely = "utf-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "latin1"
        raise InputError(
            f"{path} is not UTF-8 text (first in line {line}, at byte {error.start})",
            f"convert it, for example with: iconv -f {likely} -t utf-8",
        ) from error
