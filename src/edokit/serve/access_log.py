"""The access log: a line of JSON per request, with nothing of any text."""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from queue import Full, Queue

from edokit._errors import InputError, option

STDOUT = "-"
_METHODS = frozenset({"GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"})
_QUEUE_SIZE = 10_000
"""The largest number of lines that wait to be written; further lines are lost, and counted."""


@dataclass(frozen=True)
class Access:
    """The entry of a request in the log.

    Attributes
    ----------
    time : str
        When its head arrived, in UTC.
    method, path : str
        ``other`` where the server does not know it: a path may hold a text.
    status : int
        499 where the client went away before the answer.
    seconds : float
        From its head to its answer.
    texts : int or None
        How many were answered.
    """

    time: str
    method: str
    path: str
    status: int
    seconds: float
    texts: int | None


def utc_now() -> str:
    """The time to the millisecond, as ISO 8601 writes it."""
    current_time = datetime.now(UTC)
    return current_time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def known_method(method: str) -> str:
    """The method of a request, or ``other``."""
    return method if method in _METHODS else "other"


class AccessLog:
    """Writes a line for each request, in a thread: a full disk or pipe does not stop the server.

    Parameters
    ----------
    target : str or Path
        A file, to which lines are appended, or ``-`` for stdout.

    Raises
    ------
    InputError
        If the file can't be written.
    """

    def __init__(self, target: str | Path) -> None:
        if str(target) == STDOUT:
            self._descriptor = sys.stdout.fileno()
        else:
            try:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                self._descriptor = os.open(target, flags, 0o640)
            except OSError as error:
                raise InputError(
                    f"{option('log', str(target))}: can't be written: {error.strerror}",
                    "name a file in a folder that exists, or - for stdout",
                    code="unwritable-file",
                ) from error
        self._lines: Queue[bytes] = Queue(_QUEUE_SIZE)
        self._lost = 0
        threading.Thread(target=self._run, name="access log", daemon=True).start()

    def __call__(self, access: Access) -> None:
        entry = asdict(access)
        if self._lost:
            entry["lost_lines"] = self._lost
        try:
            self._lines.put_nowait(json.dumps(entry).encode() + b"\n")
            self._lost = 0
        except Full:
            self._lost += 1

    def flush(self, seconds: float = 2.0) -> None:
        """Wait until the lines are written, if that is soon."""
        waiter = threading.Thread(target=self._lines.join, daemon=True)
        waiter.start()
        waiter.join(seconds)

    def _run(self) -> None:
        """Write the waiting lines, one after the other."""
        while True:
            line = self._lines.get()
            with suppress(OSError):  # rather lose a line than stop
                os.write(self._descriptor, line)
            self._lines.task_done()
