"""Errors and warnings name Python parameters; the command line shows its options in their place."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

_VALUE = (
    r"""=(?P<value>\{['"][^{}]*\}|\[['"][^\]]*\]|'[^']*'|"[^"]*"|-?\d[\w.+-]*(?<!\.)"""
    r"""|True\b|False\b|[A-Z]+\b)"""
)
OPTIONS = {"random_state": "seed", "columns": "column", "samples": "bootstrap"}
"""Parameters whose option has another name."""
_NEVER_PART = frozenset({"ties"})  # of a recipe or of a search space


def render(text: str, parameters: Sequence[str], command: Any) -> str:
    """The text with ``duplicates='first'`` as ``--duplicates first``, if the command takes it.

    Only the named parameters are replaced. One that belongs to a recipe or to a search space is
    shown as ``--option name=value`` or ``--space name=value``; one that the command does not take
    is marked as Python.
    """
    options = {one.name: one for one in command.params if one.opts[0].startswith("--")}
    for name in sorted(set(parameters), key=len, reverse=True):
        # A name of one word may also be an ordinary word, as in "the diversity term".
        start = (
            r"(?<![\w'\"=.,-])"
            if "_" in name
            else rf"(?:(?<=^)|(?<=; )|(?<=, )|(?<=give )|(?<= or )|(?<=\()(?={name}\)))"
        )
        named = rf"{start}{re.escape(name)}(?![\w=])"
        assigned = rf"(?<![\w'\"=.,-]){re.escape(name)}{_VALUE}(?![\w=])"
        pattern = re.compile(f"{assigned}|{named}")
        text = pattern.sub(partial(_option, name=name, options=options), text)
    return re.sub(r"\(([^()]*) \(in Python\)\)", r"(in Python: \1)", text)


def invoked(root: Any, arguments: Sequence[str]) -> Any:
    """The command that these arguments name."""
    command = root
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    return command


def _option(found: re.Match[str], name: str, options: dict[str, Any]) -> str:
    given = found["value"]
    value = None if given is None else given.strip("'\"")
    option = options.get(OPTIONS.get(name, name))
    if option is not None:
        if value is None:
            return str(option.opts[0])
        if value in ("True", "False"):
            sides = option.opts if value == "True" else option.secondary_opts
            return str(sides[0]) if sides else found[0]
        words = [value]
        with suppress(ValueError, SyntaxError):
            listed = ast.literal_eval(value) if value[:1] in ("{", "[") else value
            if isinstance(listed, dict):
                words = [f"{old}={new}" for old, new in listed.items()]
            elif isinstance(listed, list):
                marked = (name.strip() != name or "," in name for name in listed)
                parts = zip(listed, marked, strict=True)
                words = [",".join(f'"{name}"' if mark else name for name, mark in parts)]
        return " ".join(f"{option.opts[0]} {shlex.quote(word)}" for word in words)
    if value is None:
        return found[0]
    if value in options and options[value].is_flag:
        return str(options[value].opts[0])  # invalid='normalize' is --normalize
    for part in ("option", "space"):
        if part in options and name not in _NEVER_PART:
            return f"--{part} {name}={value.lower() if value in ('True', 'False') else value}"
    return f"{found[0]} (in Python)"
