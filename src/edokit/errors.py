"""What EDO says when something is wrong: the rule, what was given, and what to do."""

from __future__ import annotations

from collections.abc import Iterable


class EDOError(Exception):
    """Anything EDO refuses. The message is one line; ``hint`` says what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = _one_line(message)
        self.hint = _one_line(hint)
        super().__init__(f"{self.message}; {self.hint}" if self.hint else self.message)

    def __reduce__(self) -> tuple[type[EDOError], tuple[str, str]]:
        return type(self), (self.message, self.hint)


class InputError(EDOError, ValueError):
    """The data or a parameter breaks a rule."""


class MissingExtraError(EDOError, ImportError):
    """An optional part of EDO is not installed."""


class EDOWarning(UserWarning):
    """Something was decided for you; the message says what, and how to decide otherwise."""


def examples(values: Iterable[object], most: int = 3) -> str:
    """A few values for a message: ``'a', 'b', 'c' and 7 more``."""
    listed = list(values)
    shown = ", ".join(repr(_shorten(str(value))) for value in listed[:most])
    rest = len(listed) - most
    return f"{shown} and {rest} more" if rest > 0 else shown


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 such row``, ``3 such rows``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def one_of(name: str, value: object, allowed: Iterable[str]) -> None:
    """Refuse a mode that does not exist, naming those that do."""
    choices = list(allowed)
    if value not in choices:
        raise InputError(
            f"{name} must be one of {', '.join(map(repr, choices))}, but got {value!r}",
            f"choose {choices[0]!r}, for example",
        )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _shorten(text: str, length: int = 40) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
