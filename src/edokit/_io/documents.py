"""JSON and TOML documents of a declared form: pydantic models, and one line on what is wrong."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
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

from edokit._errors import InputError, word
from edokit._io.json import LARGEST_DOCUMENT, parse_json, read_text

Model = TypeVar("Model")


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
    kind, message = problem["type"], problem["msg"]
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
    place, missing = "", object()
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
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else part
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
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{name} is not valid TOML: {error}", "correct the file") from None
