"""What each field of a document must be: the one place where loaded documents are validated.

A check takes a value and its place (``members[2].name``) and returns the value, or raises
`WrongValueError` with a sentence. Documents may hold more fields than a check names: newer versions
write some.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from edokit._errors import InputError
from edokit._io.documents import show_value
from edokit._io.json import read_json

Check = Callable[[Any, str], Any]
WHOLE = 2**53
"""Whole numbers up to this are the same as floating-point numbers, in every language."""


class WrongValueError(ValueError):
    """A value is not what its place in a document needs."""


def read_document(path: Path, check: Check, what: str, hint: str) -> Any:
    """The content of a JSON file that passes a check; ``what`` says what the file should be."""
    return checked(read_json(path), check, path, what, hint)


def checked(content: Any, check: Check, path: Path, what: str, hint: str) -> Any:
    """The content of a file, if it passes a check."""
    try:
        return check(content, "")
    except WrongValueError as error:
        raise InputError(f"{path} is not {what}: {error}", hint) from error


def text(value: Any, at: str) -> str:
    """Text that can be encoded: JSON can write one half of a pair of surrogates."""
    try:
        if isinstance(value, str) and value.encode() is not None:
            return value
    except UnicodeEncodeError:
        raise WrongValueError(f"{at} holds half a character") from None
    raise _wrong(value, at, "text")


def flag(value: Any, at: str) -> bool:
    """True or false."""
    if isinstance(value, bool):
        return value
    raise _wrong(value, at, "true or false")


def number(
    least: float = -math.inf, most: float = math.inf, *, whole: bool = False, finite: bool = True
) -> Check:
    """A number in a range; with ``finite=False`` also NaN and infinity."""
    if whole:
        least, most = max(least, -WHOLE), min(most, WHOLE)
    kind = "a whole number" if whole else "a number"
    if least > -math.inf or most < math.inf:
        kind += f" from {least:g}" if most == math.inf else f" from {least:g} to {most:g}"

    def check(value: Any, at: str) -> Any:
        if not finite and isinstance(value, float) and not math.isfinite(value):
            return value
        usual = isinstance(value, int) or (isinstance(value, float) and not whole)
        # An integer of hundreds of digits is larger than every floating-point number.
        small = usual and -1.7e308 < value < 1.7e308
        if not small or isinstance(value, bool) or not least <= value <= most:
            raise _wrong(value, at, kind)
        return value

    return check


def choice(*allowed: str) -> Check:
    """One of these words."""

    def check(value: Any, at: str) -> Any:
        if not isinstance(value, str) or value not in allowed:
            raise _wrong(value, at, f"one of {', '.join(map(repr, allowed))}")
        return value

    return check


def optional(inner: Check) -> Check:
    """What may be null or missing."""

    def check(value: Any, at: str) -> Any:
        return None if value is None else inner(value, at)

    return check


def as_type(make: Callable[[Any], Any], inner: Check) -> Check:
    """What is made of a value that passes a check."""
    return lambda value, at: make(inner(value, at))


def listed(inner: Check, length: int | None = None, *, least: int = 0) -> Check:
    """A list of one kind of value."""

    def check(value: Any, at: str) -> list[Any]:
        if not isinstance(value, list):
            raise _wrong(value, at, "a list")
        if len(value) < least or (length is not None and len(value) != length):
            needed = f"at least {least}" if length is None else length
            raise WrongValueError(f"{at} has {len(value)} entries, not {needed}")
        return [inner(entry, f"{at}[{k}]") for k, entry in enumerate(value)]

    return check


def distinct(inner: Check) -> Check:
    """A list of names, each of them there once and none empty."""

    def check(value: Any, at: str) -> list[Any]:
        found: list[Any] = inner(value, at)
        if len(set(found)) < len(found):
            raise WrongValueError(f"{at} holds a name twice")
        if "" in found:
            raise WrongValueError(f"{at} holds an empty name")
        return found

    return check


def mapping(inner: Check) -> Check:
    """An object of one kind of value, whatever its keys."""

    def check(value: Any, at: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong(value, at, "an object")
        return {text(name, f"a key of {at}"): inner(value[name], _in(at, name)) for name in value}

    return check


def record(
    needed: Mapping[str, Check], more: Mapping[str, Check] | None = None, *, only: bool = False
) -> Check:
    """An object with these fields, and perhaps ``more``, which may also be null.

    What else it holds is kept if JSON can hold it again, or left out (``only``).
    """
    fields = {**needed, **{name: optional(inner) for name, inner in (more or {}).items()}}

    def check(value: Any, at: str) -> dict[str, Any]:
        held: dict[str, Any] = mapping(lambda entry, _: entry)(value, at or "it")
        for name in needed:
            if name not in held:
                raise WrongValueError(f"{_in(at, name)} is missing")
        kept = [name for name in held if name in fields or not only]
        return {name: fields.get(name, plain)(held[name], _in(at, name)) for name in kept}

    return check


def instance(
    make: Callable[..., Any], needed: Mapping[str, Check], more: Mapping[str, Check] | None = None
) -> Check:
    """An object of Python with these fields; what is null has its default."""
    return as_type(
        lambda held: make(**{name: one for name, one in held.items() if one is not None}),
        record(needed, more, only=True),
    )


def plain(value: Any, at: str) -> Any:
    """Any value that JSON can hold: no half characters, every number finite."""
    return _any(value, at, number())


def loose(value: Any, at: str) -> Any:
    """The same with NaN and infinity, as a training may have reported them."""
    return _any(value, at, number(finite=False))


def _any(value: Any, at: str, numeric: Check) -> Any:
    def inner(entry: Any, place: str) -> Any:
        return _any(entry, place, numeric)

    if isinstance(value, str):
        return text(value, at)
    if isinstance(value, dict):
        return mapping(inner)(value, at)
    if isinstance(value, list):
        return listed(inner)(value, at)
    return value if value is None or isinstance(value, bool) else numeric(value, at)


def scalar(value: Any, at: str) -> Any:
    """Text, a number, true or false."""
    if value is None or isinstance(value, dict | list):
        raise _wrong(value, at, "text or a number")
    return plain(value, at)


def anything(value: Any, at: str) -> Any:
    """Whatever it is."""
    return value


def needs(condition: bool, at: str, rule: str) -> None:
    """Refuse values that do not fit together."""
    if not condition:
        raise WrongValueError(f"{at} {rule}")


def names(value: Any, at: str) -> list[Any]:
    """A list of text."""
    found: list[Any] = listed(text)(value, at)
    return found


def _in(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _wrong(value: Any, at: str, wanted: str) -> WrongValueError:
    return WrongValueError(f"{at or 'it'} is {show_value(value)}, not {wanted}")
