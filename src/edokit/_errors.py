"""What EDO says when something is wrong: the rule, what was given, and what to do."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any
from unicodedata import normalize

from edokit._credentials import without_credentials

_ADDRESS = re.compile(r"\s*([A-Za-z][\w+.-]+):/|.*://", re.DOTALL)
_LONGEST = 2000
"""Characters of a message; what a file holds may be longer than a screen."""


_MARKED = re.compile("⟦(.*?)⟧")


def option(name: str, *value: object) -> str:
    """A reference to an option in a message, optionally with a value.

    Python shows ``option("ties", "random")`` as ``ties='random'``, the command line as
    ``--ties random``.
    """
    return f"⟦{json.dumps([name, *value], ensure_ascii=False, default=_plain)}⟧"


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python, all else as text."""
    return value.item() if hasattr(value, "item") else str(value)


def show_options(text: str, show: Callable[..., str] | None = None) -> str:
    """A message with its option references written by ``show``, by default as in Python."""

    def rendered(mark: re.Match[str]) -> str:
        try:
            return (show or _python_option)(*json.loads(mark[1]))
        except (ValueError, TypeError):  # not written by `option`
            return mark[0]

    return _MARKED.sub(rendered, text)


def typed_values(value: Any) -> list[str]:
    """The value of an option as one types it: once for each key, names separated by commas."""
    if isinstance(value, dict):
        return [f"{old}={new}" for old, new in value.items()]
    if isinstance(value, list | tuple):
        doubled = [str(name).replace('"', '""') for name in value]
        quoted = [
            f'"{name}"' if name.strip() != name or set(',"') & set(name) else name
            for name in doubled
        ]
        return [",".join(quoted)]
    return [str(value)]


def _python_option(name: str, *value: object) -> str:
    return f"{name}={value[0]!r}" if value else name


class EDOError(Exception):
    """Anything EDO refuses. The message is one line; ``hint`` says what to do about it.

    Where data leave several decisions open, ``str(error)`` lists them line by line.

    Parameters
    ----------
    message : str
        What is wrong, and where. Options are named by `option`.
    hint : str, default=""
        What to do about it.
    code : str
        The rule that is broken, such as ``"unknown-class"``: the same wherever it is broken, and
        however it is worded.
    """

    def __init__(self, message: str, hint: str = "", *, code: str) -> None:
        self.code = code
        self._message, self._hint = one_line(message), one_line(hint)
        self.message, self.hint = show_options(self._message), show_options(self._hint)
        super().__init__(show_options(self.text))

    @property
    def text(self) -> str:
        """Message and hint, with references to options still in it (see `show_options`)."""
        return f"{self._message}; {self._hint}" if self._hint else self._message

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), code=self.code), (self._message, self._hint)


class InputError(EDOError, ValueError):
    """The data or a parameter breaks a rule."""

    def in_file(self, path: object) -> InputError:
        """The same error with the file in front, unless it names the file already."""
        if str(path) in self.message:
            return self
        return type(self)(f"{path}: {self._message}", self._hint, code=self.code)


class NothingLeftError(InputError):
    """What was to be dropped were all rows."""


@dataclass(frozen=True)
class Decision:
    """What the data leave open, and the arguments that would settle it.

    Attributes
    ----------
    message : str
        What is open, and where.
    hint : str
        The choices.
    remedy : Mapping[str, object]
        Arguments of `read_annotations` that settle it; empty where no option does.
    can_be_tried : bool
        Whether reading goes on with the remedy; a name that only people know can't be tried.
    code : str
        The rule that the data break, as in `EDOError`.
    """

    message: str
    hint: str
    remedy: Mapping[str, Any] = field(default_factory=dict)
    can_be_tried: bool = True
    code: str = field(kw_only=True)


class OpenDecisionsError(InputError):
    """The data leave decisions open; all of them, with arguments that would settle them.

    Parameters
    ----------
    decisions : sequence of Decision
    path : object, default=None
        The file that is read.
    given : mapping of str to object, optional
        The arguments that it was read with.
    """

    def __init__(
        self,
        decisions: Sequence[Decision],
        path: object = None,
        given: Mapping[str, Any] | None = None,
    ) -> None:
        self.decisions = tuple(decisions)
        self.path = path
        self.given = dict(given or {})
        place = "" if path is None else f"{path}: "
        if len(self.decisions) == 1:
            only = self.decisions[0]
            if path is not None and str(path) in only.message:
                place = ""
            super().__init__(f"{place}{only.message}", only.hint, code=only.code)
            return
        listed = "; ".join(f"({number}) {line}" for number, line in self._numbered())
        super().__init__(
            f"{place}{len(self.decisions)} decisions are open: {listed}",
            f"choose, for example, {self.remedy_text}",
            code="open-decisions",
        )
        # An error of several lines, since nobody reads ten sentences in one.
        self.args = (show_options("\n".join([*self.lines, self.closing(self.remedy_text)])),)

    @property
    def remedy(self) -> dict[str, Any]:
        """The arguments that settle all decisions."""
        arguments: dict[str, Any] = {}
        for decision in self.decisions:
            arguments = with_remedy(arguments, decision.remedy)
        return arguments

    @property
    def lines(self) -> list[str]:
        """The decisions line by line, with references to options still in them."""
        place = "" if self.path is None else f"{self.path}: "
        heading = one_line(f"{place}{len(self.decisions)} decisions are open:")
        return [heading, *(one_line(f"{number}. {line}") for number, line in self._numbered())]

    @property
    def remedy_text(self) -> str:
        """The arguments that settle all decisions, as references to options.

        What was given for the same options is among them.
        """
        remedy = self.remedy
        merged = with_remedy(self.given, remedy)
        return ", ".join(option(name, merged[name]) for name in remedy)

    def closing(self, remedy: str) -> str:
        """The last line: how to go on with ``remedy``, the command or the arguments."""
        if all(decision.remedy for decision in self.decisions):
            return f"With the first choice of each: {remedy}"
        return f"When the rest is corrected, with the first choice of each: {remedy}"

    def in_file(self, path: object) -> InputError:
        """The same error with the file in front."""
        if self.path is not None:
            return self
        return OpenDecisionsError(self.decisions, path, self.given)

    def _numbered(self) -> Iterator[tuple[int, str]]:
        for number, decision in enumerate(self.decisions, start=1):
            line = decision.message
            if decision.hint:
                line += f"; {decision.hint}"
            yield number, line

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.decisions, self.path, self.given)


def open_decision(message: str, hint: str, *, code: str, **remedy: Any) -> OpenDecisionsError:
    """The error for one decision, and the arguments that settle it by its first choice."""
    return OpenDecisionsError([Decision(message, hint, remedy, code=code)])


def with_remedy(arguments: Mapping[str, Any], remedy: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with those of a remedy: lists and mappings are joined, others replaced."""
    merged = dict(arguments)
    for name, value in remedy.items():
        given = merged.get(name)
        if isinstance(value, Mapping):
            merged[name] = {**(given or {}), **value}
        elif isinstance(value, list):
            merged[name] = list(dict.fromkeys([*(given or ()), *value]))
        else:
            merged[name] = value
    return merged


class MissingExtraError(EDOError, ImportError):
    """An optional part of EDO is not installed."""

    def __init__(self, message: str, hint: str = "", *, code: str = "missing-package") -> None:
        super().__init__(message, hint, code=code)


def missing_extra(message: str, extra: str) -> MissingExtraError:
    """The error for a package that is not there; the extra is named as one types it in a clone."""
    return MissingExtraError(message, f'in a clone of EDO, run: pip install ".[{extra}]"')


class EDOWarning(UserWarning):
    """Something was decided for you; the message says what, and how to decide otherwise.

    Parameters
    ----------
    message : str
        The warning.
    """

    def __init__(self, message: str) -> None:
        self.text = message
        super().__init__(show_options(message))


def warn(message: str, category: type[EDOWarning] = EDOWarning) -> None:
    """Warn at the first frame outside this package: the user's own line."""
    package = os.path.dirname(__file__) + os.sep
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(package)
        or (frame.f_code.co_filename, frame.f_code.co_name) == ("<string>", "__init__")
    ):  # the second is a dataclass's
        frame, level = frame.f_back, level + 1
    warnings.warn(category(message), stacklevel=level)


def examples(values: Iterable[object], most: int = 3) -> str:
    """A few values for a message: ``'a', 'b', 'c' and 7 more``."""
    listed = list(values)
    texts = map(str, listed[:most])
    quoted = ", ".join(_quoted(text if len(text) <= 40 else text[:39] + "…") for text in texts)
    return f"{quoted} and {len(listed) - most} more" if len(listed) > most else quoted


_WORD = (24, 2)  # characters and words up to which a value is shown


def word(value: object) -> str:
    """A value for a message; of what may be somebody's text only the length."""
    return _unless_text(value, *_WORD)


def is_text(value: object) -> bool:
    """Whether `word` gives only the length, so that no option may name the value either."""
    return _exceeds(str(value), *_WORD)


def headings(names: Iterable[object], most: int = 20) -> str:
    """Column names for a message; where a header is missing they may be somebody's text."""
    listed = list(names)
    quoted = ", ".join(_unless_text(name, 40, 5) for name in listed[:most])
    return f"{quoted} and {len(listed) - most} more" if len(listed) > most else quoted


def _unless_text(value: object, length: int, words: int) -> str:
    text = str(value)
    return f"text of {len(text)} characters" if _exceeds(text, length, words) else _quoted(text)


def _exceeds(text: str, length: int, words: int) -> bool:
    return len(text) > length or len(text.split()) > words


def _quoted(text: str) -> str:
    """Text in quotes; code points are escaped where the usual ones would look the same."""
    return repr(text) if text.isascii() or normalize("NFC", text) == text else ascii(text)


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 such row``, ``3 such rows``, ``2 classes``, ``0 entries``."""
    if number == 1:
        return f"{number} {noun}"
    if noun.endswith("y"):
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}{'es' if noun.endswith('s') else 's'}"


def money(value: float | None) -> str:
    """A cost with four digits and without an exponent; costs have no unit of their own."""
    if value is None:
        return "–"
    digits = f"{Decimal(f'{value:.4g}'):f}".replace("-", "−")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def signed(value: float, digits: int = 4) -> str:
    """A number with its sign: ``+0.0012`` or ``−0.0097``; zero has no minus."""
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", "−")


def listed(words: Sequence[str], joint: str = "and") -> str:
    """``a, b and c``."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {joint} {words[-1]}"


def in_bytes(number: float) -> str:
    """A size for a message: ``2.5 GiB``, ``12 MiB``, ``80 KiB``."""
    if number < 2**20:
        return f"{number / 2**10:,.0f} KiB"
    return f"{number / 2**30:,.1f} GiB" if number >= 2**30 else f"{number / 2**20:,.0f} MiB"


HAVE = ("has", "have")


def are(
    number: int, of: int | None = None, verb: tuple[str, str] = ("is", "are"), noun: str = ""
) -> str:
    """A number with its verb: ``1 is``, ``3 are``, ``1 of 9 has``, ``1 of 9 items is``."""
    subject = str(number) if of is None else f"{number} of {of}"
    if noun:
        subject = counted(number, noun) if of is None else f"{number} of {counted(of, noun)}"
    return f"{subject} {verb[number != 1]}"


def one_of(name: str, value: object, allowed: Iterable[str]) -> None:
    """Refuse a mode that does not exist, naming those that do."""
    choices = list(allowed)
    if value not in choices:
        raise InputError(
            f"{option(name)} must be one of {', '.join(map(repr, choices))}, but got {value!r}",
            f"choose {choices[0]!r}, for example",
            code="unknown-choice",
        )


def local_path(given: str | Path) -> Path:
    """The path of a file or a folder; an empty name, ~ and an address (``…://…``) are refused."""
    if isinstance(given, str) and not given.strip():
        raise InputError(
            "a path is empty",
            "name a file or a folder; . is the current folder",
            code="invalid-path",
        )
    # A path folds :// into :/.
    if address := _ADDRESS.match(str(given)):
        # What follows may be a password.
        raise InputError(
            f"{address[1] or ''}://… is an address and no path, and files are local",
            "name a file or a folder of this machine",
            code="invalid-path",
        )
    # Not every shell and no Python replaces it, and nobody wants a folder of this name.
    if Path(given).parts[:1] == ("~",) and not Path("~").exists():
        raise InputError(
            f"{given} is no path: ~ was not replaced by your home folder",
            "write the home folder out; in a shell, a blank instead of = lets it replace ~",
            code="invalid-path",
        )
    try:
        str(given).encode()
    except UnicodeError as error:
        raise InputError(
            f"the path {given} is not valid Unicode", "rename the file", code="invalid-path"
        ) from error
    return Path(given)


def is_loopback(host: str | None) -> bool:
    """Whether a name or an address is this machine itself."""
    from ipaddress import ip_address

    with suppress(ValueError):
        return ip_address(host or "").is_loopback
    return host == "localhost"


def check_number(
    name: str,
    value: Any,
    least: float,
    most: float = float("inf"),
    *,
    above: bool = False,
    whole: bool = False,
    hint: str = "",
) -> None:
    """Refuse what is no number, or one outside of these bounds."""
    right_kind = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    if not right_kind or not (least < value if above else least <= value) or value > most:
        bound = f"{'above' if above else 'of at least'} {least:.10g}"
        bound += f" and at most {most:.10g}" if most < float("inf") else ""
        raise InputError(
            f"{option(name)} is {value!r}, but must be a {'whole ' if whole else ''}number {bound}",
            hint or f"choose another {option(name)}",
            code="invalid-number",
        )


LARGEST_SEED = 2**32 - 1


def check_seed(random_state: object) -> None:
    """Refuse what is no seed; scikit-learn and Optuna take none above 2³² − 1."""
    check_number("random_state", random_state, 0, LARGEST_SEED, whole=True)


def printable(text: str) -> str:
    """The text with characters written out that would steer a terminal or can't be encoded."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def one_line(text: str) -> str:
    """A message as people may see it: one line, no credentials, nothing that steers a terminal."""
    line = printable(without_credentials(" ".join(text.split())))
    half = _LONGEST // 2
    return line if len(line) <= _LONGEST else f"{line[:half]} … {line[-half:]}"


@contextmanager
def errors_in(path: object) -> Iterator[None]:
    """Errors raised inside name this file."""
    try:
        yield
    except InputError as error:
        named = error.in_file(path)
        if named is error:
            raise
        raise named from error
