"""Errors and warnings as lines on stderr, with options written as one types them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

from cyclopts import (
    App,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
)

from edokit._errors import EDOError, TieWarning, one_line, option, show_options

if TYPE_CHECKING:
    from cyclopts import Argument

_NEVER_PART = frozenset({"ties"})  # of a recipe or of a search space


def say(line: str) -> None:
    """One line on stderr."""
    print(one_line(line), file=sys.stderr, flush=True)  # noqa: T201


def arguments_of(app: App, words: Sequence[str], help: bool = False) -> list[Argument]:
    """The arguments and options of the command that these words invoke, perhaps with their help."""
    _, apps, _ = app.parse_commands(list(words))
    if apps[-1].default_command is None:
        return []
    with app.app_stack(apps):
        arguments = apps[-1].assemble_argument_collection(parse_docstring=help)
    return [argument for argument in arguments if argument.parse and not argument.children]


class Options:
    """The options of the command that these words invoke, as messages name them."""

    def __init__(self, app: App, words: Sequence[str]) -> None:
        self.app, self.words = app, words

    @cached_property
    def by_name(self) -> dict[str, Argument]:
        """The options by their name in Python."""
        return {
            argument.field_info.name: argument
            for argument in arguments_of(self.app, self.words)
            if argument.name.startswith("--")
        }

    def render(self, text: str) -> str:
        """A message with its references to options as the command takes them."""
        return show_options(text, self._written)

    def _written(self, name: str, *value: Any) -> str:
        """An option as the command takes it; one that it does not take is marked as Python."""
        argument = self.by_name.get(name)
        if argument is None:
            return self._not_taken(name, *value)
        if not value:
            return argument.name
        if isinstance(value[0], bool):
            if not value[0] and not argument.negatives:
                return show_options(option(name, *value))
            return argument.name if value[0] else argument.negatives[0]
        return " ".join(f"{argument.name} {shlex.quote(word)}" for word in _words(value[0]))

    def _not_taken(self, name: str, *value: Any) -> str:
        if not value:
            return name
        switch = self.by_name.get(str(value[0]))
        if switch is not None and switch.is_flag():
            return switch.name  # invalid='normalize' is --normalize
        for part in ("option", "space"):
            if part in self.by_name and name not in _NEVER_PART:
                text = str(value[0]).lower() if isinstance(value[0], bool) else value[0]
                return f"{self.by_name[part].name} {name}={text}"
        return f"{show_options(option(name, *value))} (in Python)"

    def explain(self, error: EDOError | CycloptsError) -> str:
        """What is wrong, and what to do about it."""
        if isinstance(error, CycloptsError) and isinstance(error.__cause__, EDOError):
            error = error.__cause__
        if isinstance(error, EDOError):
            return self.render(error.text)
        unknown = [word for word in error.unused_tokens or () if word.startswith("--")]
        if isinstance(error, MissingArgumentError) and unknown:
            message = _unknown(unknown[0].partition("=")[0], self.by_name.values())
        else:
            message = _usage(error)
        stop = "" if message.endswith((".", "?", "!")) else "."
        command = " ".join(["edo", *(error.command_chain or ())])
        return f"{message}{stop} See `{command} --help`."


def _words(value: Any) -> list[str]:
    """A value as one types it: once for each key, names separated by commas."""
    if isinstance(value, dict):
        return [f"{old}={new}" for old, new in value.items()]
    if isinstance(value, list):
        quoted = (f'"{name}"' if name.strip() != name or "," in name else name for name in value)
        return [",".join(quoted)]
    return [str(value)]


def _usage(error: CycloptsError) -> str:
    """What is wrong with the words of the command line; only close names are suggested."""
    if isinstance(error, UnknownOptionError):
        return _unknown(error.token.keyword or error.token.value, error.argument_collection)
    if isinstance(error, UnknownCommandError):
        name = (error.unused_tokens or [""])[0]
        near = get_close_matches(name, list(error.app or ()))
        return f"No such command {name!r}.{_suggestion(map(repr, near))}"
    if isinstance(error, MissingArgumentError) and error.argument:
        name = error.keyword or error.argument.name
        needs_value = error.keyword or error.argument.tokens
        return f"{name} needs a value." if needs_value else f"{name} is missing."
    return str(error)


def _unknown(name: str, arguments: Iterable[Argument]) -> str:
    """An option that the command does not take, and those that may be meant."""
    names = [name for argument in arguments for name in argument.names]
    return f"No such option: {name}.{_suggestion(get_close_matches(name, names, cutoff=0.75))}"


def _suggestion(names: Iterable[str]) -> str:
    listed = " or ".join(names)
    return f" Did you mean {listed}?" if listed else ""


class Notes:
    """Warnings as notes: each once, ties in one note at the end."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.shown: set[str] = set()
        self.ties: dict[str, TieWarning] = {}

    def show(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        """Show a warning; the signature is that of `warnings.showwarning`."""
        if isinstance(message, TieWarning):
            self.ties[str(message)] = message
        elif str(message) not in self.shown:
            self.shown.add(str(message))
            text = getattr(message, "text", str(message))
            say(f"note: {self.options.render(text)}")

    def show_ties(self, code: int) -> int:
        """Show one note on tied items, also where a command reads several files."""
        if self.ties:
            say(f"note: {self.options.render(TieWarning.merge(list(self.ties.values())).text)}")
        return code
