"""Commands in this process, as the installed script runs them."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NamedTuple
from unittest import mock

import pytest
from cyclopts import Argument

from edokit.cli import main
from edokit.cli.app import arguments_of, call, make_app


class Done(NamedTuple):
    """The exit code and the output of a finished command."""

    returncode: int
    stdout: str
    stderr: str


def status(*words: object) -> int:
    """Run a command, and return its exit code; its output is printed."""
    with (
        mock.patch.object(sys, "argv", ["edo", *map(str, words)]),
        mock.patch.dict(os.environ, {"COLUMNS": "120"}),
        pytest.raises(SystemExit) as stop,
    ):
        main()
    return int(stop.value.code or 0)


def edo(*words: object) -> Done:
    """Run a command to its end."""
    out = io.StringIO()
    err = io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = status(*words)
    return Done(code, out.getvalue(), err.getvalue())


class Result(NamedTuple):
    """The output of a command, and the error that it raised."""

    exit_code: int
    stdout: str
    stderr: str
    exception: Exception | None = None

    @property
    def output(self) -> str:
        """Everything that was printed."""
        return self.stdout + self.stderr


def invoke(*words: object) -> Result:
    """Run a command, and return its exception in the result if it raised one."""
    out = io.StringIO()
    err = io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = call(make_app(), [str(word) for word in words])
            error = None
        except Exception as raised:
            code = 1
            error = raised
    return Result(code, out.getvalue(), err.getvalue(), error)


def arguments(name: str) -> list[Argument]:
    """The arguments and options of a command such as ``"data info"``."""
    return arguments_of(make_app(), name.split())


def printed(*words: object) -> str:
    """The stdout of a command; its error is raised."""
    done = invoke(*words)
    if done.exception is not None:
        raise done.exception
    return done.stdout


def answer(*words: object) -> Any:
    """The JSON object that a command prints; nothing else may be on stdout."""
    done = edo(*words, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout)


def assert_one_line(done: Done, *words: str) -> None:
    """Check for exit code 2, nothing on stdout, and one line on stderr with these words.

    Notes and logged steps are not counted.
    """
    assert done.returncode == 2, done
    assert done.stdout == ""
    lines = [
        line
        for line in done.stderr.splitlines()
        if not line.startswith("note: ") and not re.match(r" *\d+ s  ", line)
    ]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("edo: ")
    for word in words:
        assert word in lines[0], lines[0]
