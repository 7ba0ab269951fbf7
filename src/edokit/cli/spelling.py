"""Hints are written for Python; on the command line they are spelled as its options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_KEYWORD = re.compile(
    r"""(?<![\w'"=.,-])(?P<name>[a-z][a-z_0-9]*)="""
    r"""(?P<value>'[^']*'|"[^"]*"|-?\d[\w.+-]*(?<!\.)|True\b|False\b|NAME\b)"""
)
_COLUMNS = re.compile(r"columns=\{'(\w+)': '([^']+)'\}")
_BOTH = re.compile(rf"{_KEYWORD.pattern} \((?P<flag>--[a-z-]+)\)")
_FLAG = re.compile(r"--[a-z-]+ $")
# Of the readers and methods, never an option of a recipe or a part of a search's space.
_NO_PART = frozenset({"ties"})
_SIMPLE = re.compile(r"[\w./:@%+-]+")


def spelled(text: str, command: Any) -> str:
    """The text with ``duplicates='first'`` as ``--duplicates first``, if the command takes it.

    What it takes for a part of itself is spelled ``--option name=value`` or ``--space name=value``;
    what it does not take at all is left as it is, and said to be Python.
    """
    text = _COLUMNS.sub(r"--column \1=\2", text)
    text = _BOTH.sub(lambda found: found["flag"], text)
    flags = {one.name: one for one in command.params if one.opts[0].startswith("--")}
    return _KEYWORD.sub(lambda found: _spelled(found, flags), text)


def invoked(root: Any, arguments: Sequence[str]) -> Any:
    """The command that these arguments name."""
    command = root
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    return command


def _spelled(found: re.Match[str], flags: dict[str, Any]) -> str:
    if _FLAG.search(found.string[: found.start()]):
        return found[0]
    name, value = found["name"], found["value"].strip("'\"")
    shown = value if _SIMPLE.fullmatch(value) else found["value"]
    if name in flags:
        option = flags[name]
        if value in ("True", "False"):
            sides = option.opts if value == "True" else option.secondary_opts
            return str(sides[0]) if sides else found[0]
        return f"{option.opts[0]} {shown}"
    if value in flags and flags[value].is_flag:
        return str(flags[value].opts[0])  # invalid='normalize' is --normalize
    for part in ("option", "space"):
        if part in flags and name not in _NO_PART:
            return f"--{part} {name}={shown.lower() if value in ('True', 'False') else shown}"
    # A number may as well be a part of something else, as in train=0.8,dev=0.2.
    return found[0] if value[:1].isdigit() else f"{found[0]} (in Python)"
