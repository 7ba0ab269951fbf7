"""JSON and TOML documents: reading with one-line errors, writing, and checks by pydantic models."""

from __future__ import annotations

import json
import math
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

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
"""Largest size in bytes of EDO's own documents; sources of annotations may be larger."""


def read_json(path: str | Path, largest: float = LARGEST_DOCUMENT) -> Any:
    """Read one JSON document; a file of more than ``largest`` bytes is refused."""
    text = read_text(path, largest)
    check_memory(Path(path), parsed_size(text))
    return parse_json(text, str(path))


def read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The documents of a JSON Lines file, each with the number of its line from 1.

    Empty lines are counted, but skipped.
    """
    budget = MemoryBudget(path)
    try:
        with path.open(encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    budget.take(parsed_size(line))
                    yield number, parse_json(line, f"line {number} of {path}")
    except UnicodeDecodeError:
        check_utf8(path)
        raise
    except OSError as error:
        raise cannot_read(path, error) from error


def parsed_size(text: str) -> float:
    """An upper estimate of the bytes of memory that a JSON document takes once it is parsed.

    Counts its text, and what Python takes for each object, list and further entry.
    """
    width = 4
    if text.isascii():
        width = 1
    objects = 250 * text.count("{")
    lists = 80 * text.count("[")
    entries = 100 * text.count(",")
    return 2.0 * width * len(text) + objects + lists + entries


def read_text(path: str | Path, largest: float = math.inf) -> str:
    """Read the text of a file; a file of more than ``largest`` bytes is refused."""
    path = check_file(path)
    size = path.stat().st_size
    if size > largest:
        raise InputError(
            f"{path} has {in_bytes(size)}, more than the allowed {in_bytes(largest)}",
            "check that it is the right file",
            code="too-large-file",
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
    """Parse one JSON document; ``where`` names it in messages.

    Repeated keys in an object are refused; Python would silently keep the last one.
    """

    def distinct(entries: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(entries)
        if len(content) < len(entries):
            repeated = Counter(key for key, _ in entries).most_common(1)[0][0]
            raise InputError(
                f"{where} holds the key {headings([repeated])} twice in one object",
                "keep one of them",
                code="duplicate-key",
            )
        return content

    try:
        content = json.loads(text, object_pairs_hook=distinct)
        if "\\u" in text:  # escapes may form a lone surrogate, which can't be encoded
            json.dumps(content, ensure_ascii=False).encode()
        return content
    except InputError:
        raise
    except RecursionError:
        raise InputError(
            f"{where} is JSON that is nested too deeply",
            "check that it is the right file",
            code="invalid-json",
        ) from None
    except UnicodeEncodeError:
        raise InputError(
            f"{where} contains half a character, which is not valid Unicode",
            "export it again",
            code="invalid-unicode",
        ) from None
    except json.JSONDecodeError as error:
        place = f"column {error.colno}"
        if "\n" in text.rstrip():
            place = f"line {error.lineno}, {place}"
        raise InputError(
            f"{where} is not valid JSON in {place}: {error.msg}",
            "the file may be cut off; export or download it again",
            code="invalid-json",
        ) from error
    except ValueError as error:
        # Python refuses to parse integers of thousands of digits.
        raise InputError(
            f"{where} holds a number that can't be read: {error}",
            "check that it is the right file",
            code="invalid-json",
        ) from error


def write_json(value: object, path: str | Path) -> None:
    """Write one indented JSON document."""
    with whole_file(path) as temporary:
        temporary.write_text(json_text(value, indent=2) + "\n", encoding="utf-8")


def json_text(value: object, **options: Any) -> str:
    """Readable JSON; characters that control a terminal or the direction of text are escaped."""
    text = json.dumps(value, ensure_ascii=False, **options)
    if text.replace("\n", "").isprintable():
        return text
    characters = []
    for character in text:
        if not character.isprintable() and character != "\n":
            character = json.dumps(character)[1:-1]
        characters.append(character)
    return "".join(characters)


def check_utf8(path: Path) -> None:
    """Refuse a text file in another encoding."""
    content = path.read_bytes()
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        likely = "latin1"
        if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            likely = "utf-16"
        raise InputError(
            f"{path} is not UTF-8 text (first in line {line}, at byte {error.start})",
            f"convert it, for example with: iconv -f {likely} -t utf-8",
            code="invalid-unicode",
        ) from error


class Document(BaseModel):
    """A document, or an object within one.

    Types are strict (``"7"`` is not a number) and numbers must be finite. Undeclared fields are
    ignored, since newer versions may write some.
    """

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False, extra="ignore")


def _distinct(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("holds a name twice")
    if "" in names:
        raise ValueError("holds an empty name")
    return names


def _is_finite(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _finite(value: JsonValue) -> JsonValue:
    if not _is_finite(value):
        raise ValueError("holds a number that is not finite")
    return value


@dataclass(frozen=True)
class ReadAs:
    """Annotates a field that is read as ``kind`` and converted by ``convert``."""

    kind: Any
    convert: Callable[[Any], Any]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler.generate_schema(self.kind)
        return core_schema.no_info_after_validator_function(self.convert, schema)


Count = Annotated[int, Field(ge=0, le=2**53)]
"""A whole number that floating-point numbers represent exactly, in every language."""
Names = Annotated[list[str], AfterValidator(_distinct)]
"""A list of distinct names that are not empty."""
Json = Annotated[JsonValue, AfterValidator(_finite)]
"""A JSON value whose numbers are finite."""


def read_model(
    path: str | Path,
    model: type[Model],
    *,
    title: str = "a valid document",
    hint: str = "write it again with edo",
) -> Model:
    """Read a JSON document (TOML if the name ends in .toml) as a pydantic model or a dataclass.

    ``title`` says what the file should be, ``hint`` what to do if it is not.
    """
    text = read_text(path, LARGEST_DOCUMENT)
    check_memory(Path(path), parsed_size(text))
    if str(path).lower().endswith(".toml"):
        return to_model(parse_toml(text, str(path)), model, path, title=title, hint=hint)
    return to_model(parse_json(text, str(path)), model, path, title=title, hint=hint)


def to_model(
    content: object,
    model: type[Model],
    path: str | Path,
    *,
    title: str = "a valid document",
    hint: str = "write it again with edo",
) -> Model:
    """The content of a document as a model, or an error that names ``path`` and the place in it."""
    try:
        # From JSON, pydantic also accepts lists as tuples and strings as members of an enumeration.
        text = json.dumps(content, default=str)
        document: Model = _adapter(cast(Hashable, model)).validate_json(text, strict=True)
        return document
    except ValidationError as error:
        problem = describe_error(error, content)
        raise InputError(f"{path} is not {title}: {problem}", hint, code="wrong-content") from None


@cache
def _adapter(model: Hashable) -> TypeAdapter[Any]:
    """The checker of a model's documents; making it takes longer than checking most documents."""
    return TypeAdapter(cast(Any, model))


def describe_error(error: ValidationError, content: object) -> str:
    """The first problem that pydantic reports, with its place in the document."""
    problem = error.errors(include_url=False)[0]
    place = _place(problem["loc"], content)
    kind = problem["type"]
    message = problem["msg"]
    if kind == "missing":
        return f"{place} is missing"
    if kind == "extra_forbidden":
        return f"{place} is not a known field"
    if kind == "json_invalid":
        if "recursion" in message:
            return "it is nested too deeply"
        return "it contains half a character, which is not valid Unicode"
    if kind == "value_error":
        return f"{place or 'it'} {problem['ctx']['error']}"
    expected = message.removeprefix("Input should be ").removeprefix("Input should ")
    return f"{place or 'it'} is {show_value(problem['input'])}, but should be {expected}"


def _place(location: Sequence[int | str], content: object) -> str:
    """A path such as ``members[2].name``, without the names that pydantic adds for unions."""
    place = ""
    missing = object()
    for number, part in enumerate(location, start=1):
        entry: object = missing
        if isinstance(content, dict):
            entry = content.get(part, missing)
        elif isinstance(content, list) and isinstance(part, int) and part < len(content):
            entry = content[part]
        if entry is missing and number < len(location):
            continue
        is_field = isinstance(content, dict)
        is_position = isinstance(content, list) and isinstance(part, int)  # of a list too short
        if entry is missing and not (is_field or is_position):
            break
        content = entry
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
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str):
        return word(value)
    if isinstance(value, int) and value.bit_length() > 64:
        return "a huge number"  # Python refuses to print integers of thousands of digits
    return repr(value)[:40]


def parse_toml(text: str, name: str) -> Any:
    """The content of a TOML document; ``name`` names it in messages."""
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also raised for numbers of thousands of digits
        raise InputError(
            f"{name} is not valid TOML: {error}", "correct the file", code="invalid-toml"
        ) from None
