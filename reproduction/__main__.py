"""`python -m reproduction TASK …`: one subcommand per shared task."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn

from edokit._errors import EDOError, EDOWarning, one_line
from reproduction.lewidi2023 import command as lewidi2023
from reproduction.lewidi2025 import command as lewidi2025

PROGRAM = "python -m reproduction"
TASKS = {"lewidi2023": lewidi2023, "lewidi2025": lewidi2025}
"""Modules with ``HELP``, ``add_arguments(parser)`` and ``run(arguments, typed)``."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Report a mistake in one line on stderr, as `edo` does."""
        self.exit(2, f"reproduction: {message}. See `{self.prog} --help`.\n")


def main(words: Sequence[str] | None = None) -> int:
    """Run a task; exit code 0, or 2 with one line on stderr."""
    if words is None:
        words = sys.argv[1:]
    arguments = parser().parse_args(words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", category=EDOWarning)
        warnings.showwarning = _show_warning
        try:
            TASKS[arguments.task].run(arguments, [*PROGRAM.split(), *words])
        except EDOError as error:
            _to_stderr(f"reproduction: {error}")
            return 2
    return 0


def parser() -> argparse.ArgumentParser:
    """The parser of all tasks."""
    argument_parser = _Parser(prog=PROGRAM, description=__doc__, allow_abbrev=False)
    tasks = argument_parser.add_subparsers(dest="task", required=True, metavar="TASK")
    for name, task in TASKS.items():
        task_parser = tasks.add_parser(
            name, help=task.HELP, description=task.HELP, allow_abbrev=False
        )
        task.add_arguments(task_parser)
    return argument_parser


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    _to_stderr(f"note: {message}")


def _to_stderr(line: str) -> None:
    sys.stderr.write(one_line(line) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
