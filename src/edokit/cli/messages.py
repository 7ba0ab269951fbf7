"""Errors and warnings as lines on stderr, with options written as one types them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from edokit._errors import one_line, option, show_options, typed_values

if TYPE_CHECKING:
    from cyclopts import App, Argument

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
        return " ".join(f"{argument.name} {shlex.quote(word)}" for word in typed_values(value[0]))

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


class Notes:
    """Warnings as notes, each once."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.texts: set[str] = set()

    def show(self, message: Warning | str, *place: Any, **stream: Any) -> None:
        """Show a warning, as `warnings.showwarning` does."""
        text = self.options.render(getattr(message, "text", str(message)))
        if text not in self.texts:
            self.texts.add(text)
            say(f"note: {text}")
