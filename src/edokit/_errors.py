"""Errors and warnings: what is wrong, where, and what to do; and the wording of messages."""

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
from difflib import get_close_matches
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeAlias
from unicodedata import normalize

from edokit._credentials import without_credentials

_ADDRESS = re.compile(r"\s*([A-Za-z][\w+.-]+):/|.*://", re.DOTALL)
_LONGEST = 2000
"""Largest number of characters of a message, which may quote a long file."""


_MARKED = re.compile("⟦(.*?)⟧")
Place: TypeAlias = Callable[[int], str]
"""Says in a message where a row is, given its position in the table (from 0)."""


def option(name: str, *value: object) -> str:
    """A reference to an option in a message, optionally with a value.

    Python shows ``option("ties", "random")`` as ``ties='random'``, the command line as
    ``--ties random``.
    """
    return f"⟦{json.dumps([name, *value], ensure_ascii=False, default=_json_value)}⟧"


def _json_value(value: object) -> object:
    """A numpy number as a Python number, any other value as text."""
    if hasattr(value, "item"):
        return value.item()
    return str(value)


def show_options(text: str, show: Callable[..., str] | None = None) -> str:
    """A message with its option references written by ``show``, by default as in Python."""
    if show is None:
        show = _python_option

    def shown(mark: re.Match[str]) -> str:
        try:
            name, *value = json.loads(mark[1])
            return show(name, *value)
        except (ValueError, TypeError):  # not written by `option`
            return mark[0]

    return _MARKED.sub(shown, text)


def typed_values(value: object) -> list[str]:
    """The value of an option on the command line: one per key, names separated by commas."""
    if isinstance(value, dict):
        return [f"{old}={new}" for old, new in value.items()]
    if isinstance(value, list | tuple):
        fields = []
        for name in map(str, value):
            text = name.replace('"', '""')
            if name.strip() != name or set(',"') & set(name):
                text = f'"{text}"'
            fields.append(text)
        return [",".join(fields)]
    return [str(value)]


def _python_option(name: str, *value: object) -> str:
    if value:
        return f"{name}={value[0]!r}"
    return name


class EDOError(Exception):
    """The base class of EDO's errors. The message is one line; ``hint`` says what to do about it.

    If data leave several decisions open, ``str(error)`` lists them line by line.

    Parameters
    ----------
    message : str
        What is wrong, and where. Options are named by `option`.
    hint : str, default=""
        What to do about it.
    code : str
        The broken rule, such as ``"unknown-class"``: the same wherever the rule is broken, and
        independent of the wording.
    """

    def __init__(self, message: str, hint: str = "", *, code: str) -> None:
        self.code = code
        self._message = one_line(message)
        self._hint = one_line(hint)
        self.message = show_options(self._message)
        self.hint = show_options(self._hint)
        super().__init__(show_options(self.text))

    @property
    def text(self) -> str:
        """Message and hint, with references to options (see `show_options`)."""
        if self._hint:
            return f"{self._message}; {self._hint}"
        return self._message

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), code=self.code), (self._message, self._hint)


class InputError(EDOError, ValueError):
    """The data or a parameter breaks a rule."""

    def in_file(self, path: object) -> InputError:
        """The same error with the path in front, unless the message contains it."""
        if str(path) in self.message:
            return self
        return type(self)(f"{path}: {self._message}", self._hint, code=self.code)


class NothingLeftError(InputError):
    """All rows would be dropped."""


@dataclass(frozen=True)
class Decision:
    """A decision that the data leave open, and the arguments that would settle it.

    Attributes
    ----------
    message : str
        What is open, and where.
    hint : str
        The choices.
    remedy : Mapping[str, object]
        Arguments of `read_annotations` that settle it; empty if no option does.
    can_be_tried : bool
        Whether reading can continue with the remedy; a name that only the user knows can't be
        tried.
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
        The arguments with which it was read.
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
        place = self._place
        if len(self.decisions) == 1:
            decision = self.decisions[0]
            if str(path) in decision.message:
                place = ""
            super().__init__(f"{place}{decision.message}", decision.hint, code=decision.code)
            return
        listed = "; ".join(f"({number}) {line}" for number, line in self._numbered())
        super().__init__(
            f"{place}{len(self.decisions)} decisions are open: {listed}",
            f"choose, for example, {self.remedy_text}",
            code="open-decisions",
        )
        # As text, the error has one line per decision.
        self.args = (show_options("\n".join([*self.lines, self.closing(self.remedy_text)])),)

    @property
    def _place(self) -> str:
        """The file in front of a message; empty if it is not known."""
        if self.path is None:
            return ""
        return f"{self.path}: "

    @property
    def remedy(self) -> dict[str, Any]:
        """The arguments that settle all decisions."""
        arguments: dict[str, Any] = {}
        for decision in self.decisions:
            arguments = with_remedy(arguments, decision.remedy)
        return arguments

    @property
    def lines(self) -> list[str]:
        """The decisions line by line, with references to options (see `show_options`)."""
        heading = one_line(f"{self._place}{len(self.decisions)} decisions are open:")
        return [heading, *(one_line(f"{number}. {line}") for number, line in self._numbered())]

    @property
    def remedy_text(self) -> str:
        """The arguments that settle all decisions, as references to options.

        They include the caller's values of the same options.
        """
        remedy = self.remedy
        merged = with_remedy(self.given, remedy)
        return ", ".join(option(name, merged[name]) for name in remedy)

    def closing(self, remedy: str) -> str:
        """The last line: how to continue with ``remedy``, the command or the arguments."""
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
    """The error for one decision, with the arguments that settle it by its first choice."""
    return OpenDecisionsError([Decision(message, hint, remedy, code=code)])


def with_remedy(arguments: Mapping[str, Any], remedy: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with a remedy: lists and mappings are joined, other values replaced."""
    merged = dict(arguments)
    for name, value in remedy.items():
        current = merged.get(name)
        if isinstance(value, Mapping):
            merged[name] = {**(current or {}), **value}
        elif isinstance(value, list):
            merged[name] = list(dict.fromkeys([*(current or ()), *value]))
        else:
            merged[name] = value
    return merged


class MissingExtraError(EDOError, ImportError):
    """An optional part of EDO is not installed."""

    def __init__(self, message: str, hint: str = "", *, code: str = "missing-package") -> None:
        super().__init__(message, hint, code=code)


def missing_extra(message: str, extra: str) -> MissingExtraError:
    """The error for a package that is not installed; the hint is for a clone of EDO."""
    return MissingExtraError(message, f'in a clone of EDO, run: pip install ".[{extra}]"')


class EDOWarning(UserWarning):
    """EDO made a decision; the message says which, and how to change it.

    Parameters
    ----------
    message : str
        The warning.
    """

    def __init__(self, message: str) -> None:
        self.text = message
        super().__init__(show_options(message))


def warn(message: str, category: type[EDOWarning] = EDOWarning) -> None:
    """Warn at the first frame outside this package: the user's line."""
    package = os.path.dirname(__file__) + os.sep
    frame = sys._getframe(1)
    level = 2
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        is_dataclass_init = file == "<string>" and frame.f_code.co_name == "__init__"
        if not file.startswith(package) and not is_dataclass_init:
            break
        frame = frame.f_back
        level += 1
    warnings.warn(category(message), stacklevel=level)


@contextmanager
def each_warning_once() -> Iterator[None]:
    """In this context, show each warning only once, even if several steps raise it."""
    shown_messages: set[str] = set()
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_first(message: Warning | str, *place: Any, **stream: Any) -> None:
            if str(message) not in shown_messages:
                shown_messages.add(str(message))
                show(message, *place, **stream)

        warnings.showwarning = show_first
        yield


def examples(values: Iterable[object], most: int = 3) -> str:
    """A few values for a message: ``'a', 'b', 'c' and 7 more``."""
    texts = list(map(str, values))
    quoted = []
    for text in texts[:most]:
        if len(text) > 40:
            text = text[:39] + "…"
        quoted.append(_quoted(text))
    return _and_more(quoted, len(texts))


def _and_more(texts: Sequence[str], total: int) -> str:
    """Texts separated by commas, and how many more there are in total."""
    listed = ", ".join(texts)
    if total > len(texts):
        listed += f" and {total - len(texts)} more"
    return listed


_LONGEST_VALUE = 24
"""Largest number of characters of a value that `word` shows."""
_MOST_WORDS = 2
"""Largest number of words of a value that `word` shows."""


def word(value: object) -> str:
    """A value for a message; if it may be somebody's text, only its length."""
    return _unless_text(value, _LONGEST_VALUE, _MOST_WORDS)


def is_text(value: object) -> bool:
    """Whether `word` shows only the length; then options in messages must not name the value."""
    return _exceeds(str(value), _LONGEST_VALUE, _MOST_WORDS)


def headings(names: Iterable[object], most: int = 20) -> str:
    """Column names for a message; without a header, they may be somebody's text."""
    listed = list(names)
    return _and_more([_unless_text(name, 40, 5) for name in listed[:most]], len(listed))


def _unless_text(value: object, longest: int, most_words: int) -> str:
    """A value in quotes; only its length if it has more characters or words than these."""
    text = str(value)
    if _exceeds(text, longest, most_words):
        return f"text of {len(text)} characters"
    return _quoted(text)


def _exceeds(text: str, longest: int, most_words: int) -> bool:
    return len(text) > longest or len(text.split()) > most_words


def _quoted(text: str) -> str:
    """Text in quotes; if it is not in Unicode's normal form NFC, characters are escaped."""
    if text.isascii() or normalize("NFC", text) == text:
        return repr(text)
    return ascii(text)


def data_row(position: int) -> str:
    """The place of a row of which only the position is known; the header does not count.

    Readers of files give the number that the file shows instead (`edokit._io.tables.FileTable`).
    """
    return f"data row {position + 1}"


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 such row``, ``3 arrays``, ``2 classes``, ``0 entries``."""
    if number == 1:
        return f"{number} {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{number} {noun[:-1]}ies"
    if noun.endswith("s"):
        return f"{number} {noun}es"
    return f"{number} {noun}s"


def money(value: float | None) -> str:
    """A cost with four digits and without an exponent; its unit is the user's."""
    if value is None:
        return "–"
    digits = f"{Decimal(f'{value:.4g}'):f}".replace("-", "−")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return digits


def signed(value: float, digits: int = 4) -> str:
    """A number with its sign: ``+0.0012`` or ``−0.0097``; the sign of zero is ``+``."""
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
    if number < 2**30:
        return f"{number / 2**20:,.0f} MiB"
    return f"{number / 2**30:,.1f} GiB"


HAVE = ("has", "have")
"""A verb for `are`."""


def are(
    number: int, of: int | None = None, verb: tuple[str, str] = ("is", "are"), noun: str = ""
) -> str:
    """A number with its verb: ``1 is``, ``3 are``, ``1 of 9 has``, ``1 of 9 items is``.

    ``of`` is the total, ``verb`` its forms for one and for several, ``noun`` what is counted.
    """
    if of is None:
        subject = str(number)
        if noun:
            subject = counted(number, noun)
    else:
        total = str(of)
        if noun:
            total = counted(of, noun)
        subject = f"{number} of {total}"
    singular, plural = verb
    if number == 1:
        return f"{subject} {singular}"
    return f"{subject} {plural}"


def one_of(name: str, value: object, allowed: Iterable[str]) -> None:
    """Refuse an unknown choice; the message names the allowed ones."""
    choices = list(allowed)
    if value in choices:
        return
    rule = f"must be one of {', '.join(map(repr, choices))}"
    if len(choices) == 1:
        rule = f"must be {choices[0]!r}"
    hint = f"choose {choices[0]!r}, for example"
    close = get_close_matches(str(value), map(str, choices), 1)
    if close:
        hint = f"did you mean {close[0]!r}?"
    raise InputError(f"{option(name)} {rule}, but got {value!r}", hint, code="unknown-choice")


def local_path(name: str | Path) -> Path:
    """The path of a file or a folder; an empty name, ~ and a URL (``…://…``) are refused."""
    if isinstance(name, str) and not name.strip():
        raise InputError(
            "a path is empty",
            "name a file or a folder; . is the current folder",
            code="invalid-path",
        )
    # pathlib shortens :// to :/.
    address = _ADDRESS.match(str(name))
    if address:
        # The rest of the URL is not shown, since it may contain a password.
        raise InputError(
            f"{address[1] or ''}://… is an address, not a path to a local file",
            "name a file or a folder of this machine",
            code="invalid-path",
        )
    # Python does not expand ~, nor does every shell.
    if Path(name).parts[:1] == ("~",) and not Path("~").exists():
        raise InputError(
            f"{name} contains ~, which was not replaced by your home folder",
            "write the path of your home folder; in a shell, write a blank instead of = before ~",
            code="invalid-path",
        )
    try:
        str(name).encode()
    except UnicodeError as error:
        raise InputError(
            f"the path {name} is not valid Unicode", "rename the file", code="invalid-path"
        ) from error
    return Path(name)


def is_loopback(host: str | None) -> bool:
    """Whether a host name or an address is this machine."""
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
    """Refuse a value that is not a number within these bounds; with ``whole``, an integer."""
    noun = "number"
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if whole:
        noun = "whole number"
        is_number = isinstance(value, Integral) and not isinstance(value, bool)
    if above:
        bound = f"above {least:.10g}"
        is_valid = is_number and least < value <= most
    else:
        bound = f"of at least {least:.10g}"
        is_valid = is_number and least <= value <= most
    if most < float("inf"):
        bound += f" and at most {most:.10g}"
    if not is_valid:
        raise InputError(
            f"{option(name)} is {value!r}, but must be a {noun} {bound}",
            hint or f"choose another {option(name)}",
            code="invalid-number",
        )


LARGEST_SEED = 2**32 - 1


def check_seed(random_state: object) -> None:
    """Refuse an invalid seed; scikit-learn and Optuna accept seeds up to 2³² − 1."""
    check_number("random_state", random_state, 0, LARGEST_SEED, whole=True)


def printable(text: str) -> str:
    """The text with escape sequences for characters that control a terminal or can't be encoded."""
    if text.isprintable():
        return text
    characters = []
    for character in text:
        if not character.isprintable():
            character = repr(character)[1:-1]
        characters.append(character)
    return "".join(characters)


def one_line(text: str) -> str:
    """A message on one line, without credentials and control characters."""
    line = printable(without_credentials(" ".join(text.split())))
    half = _LONGEST // 2
    if len(line) > _LONGEST:
        line = f"{line[:half]} … {line[-half:]}"
    return line


@contextmanager
def errors_in(path: object) -> Iterator[None]:
    """Errors that are raised in this context name this file."""
    try:
        yield
    except InputError as error:
        error_in_file = error.in_file(path)
        if error_in_file is error:
            raise
        raise error_in_file from error
