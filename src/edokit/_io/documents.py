"""JSON and TOML documents, read with one line on what is wrong; pydantic models of their form."""

from __future__ import annotations

import json
import math
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    JsonValue,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import CoreSchema, core_schema

from edokit._errors import InputError, headings, in_bytes, word
from edokit._io.atomic import cannot_read, check_file, whole_file
from edokit._io.memory import MemoryBudget, check_memory

Model = TypeVar("Model")
LARGEST_DOCUMENT = 2**27
"""Bytes that a document of ours stays far below; sources of annotations may be larger."""


def read_json(path: str | Path, largest: float = LARGEST_DOCUMENT) -> Any:
    """One JSON document of at most so many bytes."""
    text = read_text(path, largest)
    check_memory(Path(path), parsed_size(text))
    return parse_json(text, str(path))


def read_json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """The documents of a file with one in each line, and the place of each for messages.

    Empty lines are passed over.
    """
    budget = MemoryBudget(path)
    number = 0
    try:
        with path.open(encoding="utf-8-sig") as stream:
            for line in filter(str.strip, stream):
                number += 1
                place = f"row {number} of {path}"
                budget.take(parsed_size(line))
                yield place, parse_json(line, place)
    except UnicodeDecodeError:
        check_utf8(path)
        raise
    except OSError as error:
        raise cannot_read(path, error) from error


def parsed_size(text: str) -> float:
    """Bytes of memory that a JSON document takes once it is parsed, rather too many than too few.

    Its text, and what Python takes for each object, list and further entry.
    """
    width = 1 if text.isascii() else 4
    objects = 250 * text.count("{")
    lists = 80 * text.count("[")
    entries = 100 * text.count(",")
    return 2.0 * width * len(text) + objects + lists + entries


def read_text(path: str | Path, largest: float = math.inf) -> str:
    """The text in a file of at most so many bytes."""
    path = check_file(path)
    if (size := path.stat().st_size) > largest:
        raise InputError(
            f"{path} has {in_bytes(size)}, more than the {in_bytes(largest)} of any such file",
            "check that it is the right file",
        )
    check_memory(path, size)
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


class Document(BaseModel):
    """A document, or an object in one.

    Types are strict (``"7"`` is no number), numbers finite, and fields that are not declared are
    ignored: newer versions write some.
    """

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False, extra="ignore")


def _distinct(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("holds a name twice")
    if "" in names:
        raise ValueError("holds an empty name")
    return names


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict | list):
        return all(map(_is_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


def _finite(value: JsonValue) -> JsonValue:
    if not _is_finite(value):
        raise ValueError("holds a number that is not finite")
    return value


@dataclass(frozen=True)
class ReadAs:
    """Annotates a field that a document holds as ``kind``, and ``convert`` makes the value of."""

    kind: Any
    convert: Callable[[Any], Any]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler.generate_schema(self.kind)
        return core_schema.no_info_after_validator_function(self.convert, schema)


Count = Annotated[int, Field(ge=0, le=2**53)]
"""A whole number that is the same as a floating-point number, in every language."""
Names = Annotated[list[str], AfterValidator(_distinct)]
"""A list of names, all different and none of them empty."""
Json = Annotated[JsonValue, AfterValidator(_finite)]
"""Any JSON value whose numbers are finite."""


def read_model(
    path: str | Path,
    model: type[Model],
    *,
    title: str = "a valid document",
    hint: str = "write it again with edo",
) -> Model:
    """A JSON document (TOML if the name ends so) that fits a model, or a dataclass.

    ``title`` says what the file should be, ``hint`` what to do if it is not.
    """
    text = read_text(path, LARGEST_DOCUMENT)
    check_memory(Path(path), parsed_size(text))
    if str(path).lower().endswith(".toml"):
        return to_model(parse_toml(text, str(path)), model, path, title=title, hint=hint)
    return to_model(parse_json(text, str(path)), model, path, title=title, hint=hint)


def to_model(
    content: Any,
    model: type[Model],
    path: str | Path,
    *,
    title: str = "a valid document",
    hint: str = "write it again with edo",
) -> Model:
    """The content of a document as a model, or an error that names ``path`` and the place in it."""
    try:
        # As JSON, where lists may be tuples and words may be members of an enumeration.
        return TypeAdapter(model).validate_json(json.dumps(content, default=str), strict=True)
    except ValidationError as error:
        problem = describe_error(error, content)
        raise InputError(f"{path} is not {title}: {problem}", hint) from None


def describe_error(error: ValidationError, content: Any) -> str:
    """The first problem that pydantic reports: its place in the document, and what is wrong."""
    problem = error.errors(include_url=False)[0]
    place = _place(problem["loc"], content)
    kind = problem["type"]
    message = problem["msg"]
    if kind == "missing":
        return f"{place} is missing"
    if kind == "extra_forbidden":
        return f"{place} is not a known field"
    if kind == "json_invalid":
        is_deep = "recursion" in message
        return "it is nested too deeply" if is_deep else "it holds half a character"
    if kind == "value_error":
        return f"{place or 'it'} {problem['ctx']['error']}"
    expected = message.removeprefix("Input should be ").removeprefix("Input should ")
    return f"{place or 'it'} is {show_value(problem['input'])}, but should be {expected}"


def _place(location: Sequence[int | str], content: Any) -> str:
    """``members[2].name``; names that pydantic adds for the branches of a union are left out."""
    place = ""
    missing = object()
    for number, part in enumerate(location, start=1):
        inner: Any = missing
        if isinstance(content, dict):
            inner = content.get(part, missing)
        elif isinstance(content, list) and isinstance(part, int):
            inner = content[part]
        if inner is missing and number < len(location):
            continue
        if inner is missing and not isinstance(content, dict):
            break
        content = inner
        if isinstance(part, int):
            place += f"[{part}]"
        elif place:
            place += f".{part}"
        else:
            place = part
    return place


def show_value(value: object) -> str:
    """A value of a document, short enough for a message."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict | list | tuple):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return word(value)
    # Python refuses to write out integers of thousands of digits.
    huge = isinstance(value, int) and value.bit_length() > 64
    return "a huge number" if huge else repr(value)[:40]


def parse_toml(text: str, name: str) -> Any:
    """The content of a TOML document; ``name`` names it in messages."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also of numbers with thousands of digits
        raise InputError(f"{name} is not valid TOML: {error}", "correct the file") from None
