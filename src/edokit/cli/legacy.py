"""Messages that still name parameters in prose; gone when all of them use `option`."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

_VALUE = (
    r"""=(?P<value>\{['"][^{}]*\}|\[['"][^\]]*\]|'[^']*'|"[^"]*"|-?\d[\w.+-]*(?<!\.)"""
    r"""|True\b|False\b|[A-Z]+\b)"""
)
_NEVER_PART = frozenset({"ties"})  # of a recipe or of a search space


def render(text: str, parameters: Sequence[str], options: Mapping[str, Any]) -> str:
    # What was replaced is kept apart: --column split=NAME is no --column --split NAME.
    made: list[str] = []

    def kept(found: re.Match[str], name: str) -> str:
        made.append(_option(found, name, options))
        return f"\0{len(made) - 1}\0"

    for name in sorted(set(parameters), key=len, reverse=True):
        # A name of one word may also be an ordinary word, as in "the diversity term".
        start = (
            r"(?<![\w'\"=.,-])"
            if "_" in name
            else rf"(?:(?<=^)|(?<=; )|(?<=, )|(?<=give )|(?<=leave )|(?<= or )|(?<=\()(?={name}\)))"
        )
        named = rf"{start}{re.escape(name)}(?![\w=])"
        assigned = rf"(?<![\w'\"=.,-]){re.escape(name)}{_VALUE}(?![\w=])"
        pattern = re.compile(f"{assigned}|{named}")
        text = pattern.sub(partial(kept, name=name), text)
    text = re.sub("\0(\\d+)\0", lambda found: made[int(found[1])], text)
    return re.sub(r"\(([^()]*) \(in Python\)\)", r"(in Python: \1)", text)


def _option(found: re.Match[str], name: str, options: Mapping[str, Any]) -> str:
    given = found["value"]
    value = None if given is None else given.strip("'\"")
    option = options.get(name)
    if option is not None:
        if value is None:
            return str(option.name)
        if value in ("True", "False"):
            sides = (option.name,) if value == "True" else option.negatives
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
        return " ".join(f"{option.name} {shlex.quote(word)}" for word in words)
    if value is None:
        return found[0]
    if value in options and options[value].is_flag():
        return str(options[value].name)  # invalid='normalize' is --normalize
    for part in ("option", "space"):
        if part in options and name not in _NEVER_PART:
            shown = value.lower() if value in ("True", "False") else value
            return f"{options[part].name} {name}={shown}"
    return f"{found[0]} (in Python)"
