"""Output that nobody reads any more, as in `edo … | head -1`."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

READER_LEFT = 141
"""The exit status then: 128 and the number of SIGPIPE, which is what a shell shows of most other
commands in this case. It is not 0, since a command may have been stopped by a note of its first
step, long before its results were written. Windows knows no such signal; the number is the same."""


def unless_unread(run: Callable[[], int]) -> int:
    """The exit status of ``run``; if its reader leaves, it stops there, and nothing more is said.

    typer and rich turn a broken pipe into an exit with status 1, which would look like a failure.
    """
    try:
        return run()
    except (OSError, SystemExit) as error:
        if not reader_left(error):
            raise
    _drop_output()
    return READER_LEFT


def reader_left(error: BaseException) -> bool:
    """Whether this says that nobody reads what is written, also if it became an exit since."""
    cause = error.__context__ if isinstance(error, SystemExit) else error
    if not isinstance(cause, OSError) or cause.filename is not None:
        return False
    # Windows calls it an invalid argument.
    return cause.errno == errno.EPIPE or (os.name == "nt" and cause.errno == errno.EINVAL)


def _drop_output() -> None:
    """Let what still waits to be written go nowhere, or Python would complain of it at the end."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is None:  # closed from the start
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
