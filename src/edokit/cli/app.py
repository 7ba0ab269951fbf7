"""The commands put together, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TextIO, get_args, get_type_hints

import typer

from edokit._errors import (
    EDOError,
    EDOWarning,
    InputError,
    TieWarning,
    in_bytes,
    local_path,
    one_line,
    option,
    show_options,
)
from edokit._parallel import address_space, free_memory
from edokit._version import __version__
from edokit.cli.console import reader_left, unless_unread

USAGE = 2
INTERRUPTED = 130
_ADDRESSES = 1 << 29
_IMPORTS = 1 << 30
"""Bytes with less of which importing the libraries may fail."""
# typer brings its own click in some versions; its exceptions are reached through typer's names.
_UsageError: Any = typer.BadParameter.__mro__[1]
_ClickException: Any = typer.BadParameter.__mro__[2]

_VALUE = (
    r"""=(?P<value>\{['"][^{}]*\}|\[['"][^\]]*\]|'[^']*'|"[^"]*"|-?\d[\w.+-]*(?<!\.)"""
    r"""|True\b|False\b|[A-Z]+\b)"""
)
OPTIONS = {"random_state": "seed", "columns": "column", "samples": "bootstrap"}
"""Parameters whose option has another name."""
_NEVER_PART = frozenset({"ties"})  # of a recipe or of a search space

_noted: set[str] = set()
_ties: dict[str, TieWarning] = {}


COMMANDS = (
    "demo",
    "diagnose",
    "train",
    "score",
    "fit",
    "search",
    "explain",
    "predict",
    "bundle",
    "evaluate",
    "report",
    "serve",
    "compare",
    "data info",
    "data convert",
    "data split",
    "data get",
    "data simulate",
    "predictions join",
    "predictions info",
)
"""The module of `edokit.cli` and, where it has another name, the function of each command."""
GROUPS = {
    "data": "See, convert, split, obtain and simulate data.",
    "predictions": "Join and inspect predictions.",
}


def make_app(arguments: Sequence[str] = ()) -> typer.Typer:
    """The command line with the command that the arguments name, else with all commands.

    Only the modules of these commands are imported.
    """
    root = typer.Typer(
        name="edo",
        help="Learn from people who disagree.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    root.callback()(_root)
    words = [word for word in arguments if word != "--debug"]
    typed = [" ".join(words[:1]), " ".join(words[:2])]
    asked = [name for name in COMMANDS if name in typed] or COMMANDS
    groups: dict[str, typer.Typer] = {}
    for name in asked:
        module, _, function = name.partition(" ")
        found = getattr(import_module(f"edokit.cli.{module}"), function or module)
        if function and module not in groups:
            groups[module] = typer.Typer(help=GROUPS[module], no_args_is_help=True)
            root.add_typer(groups[module], name=module)
        groups.get(module, root).command(function or module)(_local(found))
    return root


def _local(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with every path that it takes checked: none is empty or an address."""
    command.__annotations__ = get_type_hints(command, include_extras=True)
    for hint in command.__annotations__.values():
        kinds = get_args(hint)[:1]
        if kinds and (kinds[0] is Path or Path in get_args(kinds[0])):
            for info in hint.__metadata__:
                info.parser = path
    return command


def path(given: str) -> Path:
    """A path, as an option takes it."""
    try:
        return local_path(given)
    except InputError as error:
        raise typer.BadParameter(str(error)) from error


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"edo {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the code an error arose.")
    ] = False,
) -> None:
    """Learn from people who disagree."""


def main() -> None:
    """Run the command line: exit 0, or 2 with one line on what is wrong and what to do.

    Two exits say nothing of the work: 130 if it was interrupted, 141 if nobody reads its output.
    """
    debug = "--debug" in sys.argv[1:]
    with warnings.catch_warnings():
        # Users see what EDO decided for them, not what libraries tell programmers.
        warnings.simplefilter("default" if debug else "ignore")
        warnings.filterwarnings("always", category=EDOWarning)
        _noted.clear()
        _ties.clear()
        warnings.showwarning = _note
        code = unless_unread(lambda: _note_ties(_run(debug)))
    raise SystemExit(code)


def _run(debug: bool) -> int:
    if (left := address_space()) < _ADDRESSES:
        # With less, some libraries neither load nor fail.
        return _fail(
            f"the limit on this process's memory leaves {in_bytes(left)}, too little to load the"
            f" libraries; raise it to {in_bytes(4 * _ADDRESSES)} (ulimit -v)",
            debug,
        )
    try:
        code = make_app(sys.argv[1:])(standalone_mode=False)
    except EDOError as error:
        return _fail(_rendered(error.text, error.parameters), debug)
    except _UsageError as error:
        where = error.ctx.command_path if error.ctx else "edo"
        message = _usage(error)
        if not message:  # no command was given, and the help has been shown
            return USAGE
        stop = "" if message.endswith((".", "?", "!")) else "."
        return _fail(f"{message}{stop} See `{where} --help`.", debug)
    except _ClickException as error:
        return _fail(error.format_message(), debug)
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except OSError as error:
        if reader_left(error):
            raise
        # A full disk for temporary files, a connection that broke.
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return _fail(
            f"{reason}; check the disk and the network, then run it again",
            debug,
        )
    except Exception as error:
        if lacking := _lacking(error):
            return _fail(lacking, debug)
        # What it says may quote somebody's text; where it arose does not.
        place = traceback.extract_tb(error.__traceback__)[-1]
        return _fail(
            f"unexpected {type(error).__name__} in line {place.lineno} of"
            f" {os.path.basename(place.filename)}; this is a bug in edo: please report it with what"
            " `edo --debug …` shows",
            debug,
        )
    if code == INTERRUPTED:  # typer's own word for it
        return _interrupted()
    return code if isinstance(code, int) else 0


def _usage(error: Any) -> str:
    """What is wrong with the words of the command line; only close names are suggested."""
    name, known = getattr(error, "option_name", None), getattr(error, "possibilities", None)
    if not (name and known is not None and error.ctx):
        return str(error.format_message())
    names = [one for each in error.ctx.command.params for one in each.opts if one.startswith("--")]
    near = get_close_matches(name, names, cutoff=0.75)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"No such option: {name}.{meant}"


def _lacking(error: BaseException | None) -> str:
    """What the machine lacks, memory or a package, if that is what the error comes from."""
    free = free_memory()
    short = f"{in_bytes(free)} of memory are free: close other programs, or raise the limit"
    while error is not None:
        if isinstance(error, MemoryError):
            return f"out of memory; {short}, use a smaller file, or shards with --memory"
        if isinstance(error, ImportError):
            name = (error.name or "a library").partition(".")[0]
            again = f"install it again: pip install --force-reinstall {name}"
            # Libraries that don't fit into memory say so in many ways.
            remedy = short if free < _IMPORTS else again if error.name else "install edokit again"
            return f"can't import {name}: {error}; {remedy}"
        error = error.__cause__ or error.__context__
    return ""


def _interrupted() -> int:
    typer.echo("edo: interrupted", err=True)
    return INTERRUPTED


def _fail(line: str, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    typer.echo(f"edo: {one_line(line)}", err=True)
    return USAGE


def _note(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning is one line on stderr, shown once."""
    if isinstance(message, TieWarning):
        _ties[str(message)] = message
    elif str(message) not in _noted:
        _noted.add(str(message))
        text = _rendered(getattr(message, "text", str(message)), getattr(message, "parameters", ()))
        typer.echo(f"note: {one_line(text)}", err=True)


def _note_ties(code: int) -> int:
    """One note on tied items, also where a command reads several files."""
    if _ties:
        found = [text.rpartition("; ")[0] for text in _ties]
        last, warning = list(_ties.items())[-1]
        text = f"{', and '.join(found)}; {last.rpartition('; ')[2]}"
        typer.echo(f"note: {one_line(_rendered(text, warning.parameters))}", err=True)
    return code


def _rendered(text: str, parameters: Sequence[str]) -> str:
    """A message with the options of the invoked command in place of these parameters."""
    if not parameters and "⟦" not in text:
        return text
    root = typer.main.get_command(make_app(sys.argv[1:]))
    command = invoked(root, sys.argv[1:])
    return show_options(render(text, parameters, command), partial(_shown, command=command))


def _shown(name: str, *value: Any, command: Any) -> str:
    """An option as the invoked command takes it; one it does not take is marked as Python."""
    options = {each.name: each for each in command.params if each.opts[0].startswith("--")}
    parameter = options.get(OPTIONS.get(name, name))
    if parameter is None:
        for part in ("option", "space"):
            if part in options and value and name not in _NEVER_PART:
                shown = str(value[0]).lower() if isinstance(value[0], bool) else value[0]
                return f"--{part} {name}={shown}"
        return f"{show_options(option(name, *value))} (in Python)" if value else name
    if not value:
        return str(parameter.opts[0])
    if isinstance(value[0], bool):
        sides = parameter.opts if value[0] else parameter.secondary_opts
        return str(sides[0]) if sides else show_options(option(name, *value))
    if isinstance(value[0], dict):
        words = [f"{old}={new}" for old, new in value[0].items()]
    elif isinstance(value[0], list):
        words = [
            ",".join(
                f'"{part}"' if part.strip() != part or "," in part else part for part in value[0]
            )
        ]
    else:
        words = [str(value[0])]
    return " ".join(f"{parameter.opts[0]} {shlex.quote(word)}" for word in words)


def render(text: str, parameters: Sequence[str], command: Any) -> str:
    """The text with ``duplicates='first'`` as ``--duplicates first``, if the command takes it.

    Only the named parameters are replaced. One that belongs to a recipe or to a search space is
    shown as ``--option name=value`` or ``--space name=value``; one that the command does not take
    is marked as Python.
    """
    options = {one.name: one for one in command.params if one.opts[0].startswith("--")}
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
