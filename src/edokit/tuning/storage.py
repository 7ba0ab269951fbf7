"""Where a study is kept: in memory, in a file or in PostgreSQL.

A file is Optuna's journal, for one process at a time, and intact after any crash.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from optuna.storages import InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend

from edokit._errors import CONNECTION, InputError, warn
from edokit._io import cannot_read, cannot_write, parse_json
from edokit._io.atomic import sync_folder
from edokit.tuning.study import Claims

T = TypeVar("T")


@dataclass(eq=False)
class Opened:
    """A storage that is open; leaving it (``with``, ``close``) lets others have it."""

    storage: Any = field(repr=False)
    """Optuna's storage."""
    shown: str
    """Where it is, for people; without credentials."""
    shared: bool = False
    """Whether several processes may use it at once."""
    claims: Callable[[], Claims] = field(default=Claims, repr=False)
    """How this process and the others that use the storage share the trials."""

    def alone(self, step: Callable[[], T]) -> T:
        """Do ``step`` (making or loading a study) while no other process does such a step."""
        return self.storage.alone(0, step) if self.shared else step()

    def close(self, failed: bool = False) -> None:
        """Free the file or the connections; after a failure, a file without results is removed."""
        if hasattr(self.storage, "close"):
            self.storage.close(failed)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self.close(failed=kind is not None)


def open_storage(
    where: str | Path | None = None,
    *,
    heartbeat: float = 10.0,
    grace: float = 60.0,
    patience: float = 60.0,
) -> Opened:
    """Open memory (None), a file (an Optuna journal) or PostgreSQL (``postgresql://…``).

    On PostgreSQL a trial whose process gave no ``heartbeat`` for ``grace`` seconds is taken over,
    and a server that goes away is waited for up to ``patience`` seconds.
    """
    if not 0 < 2 * heartbeat <= grace or patience < 0:
        raise InputError(
            f"heartbeat={heartbeat:g}, grace={grace:g} and patience={patience:g} do not fit:"
            " grace is at least two heartbeats, and no time is negative",
            "leave them out for 10, 60 and 60 seconds",
        )
    place = where_is(where)
    if place is None:
        return Opened(InMemoryStorage(), "memory")
    if isinstance(place, Path):
        return Opened(Journal(place), str(place))
    from edokit.tuning.postgres import SharedClaims, open_database

    storage = open_database(place, patience)
    claims = partial(SharedClaims, storage, heartbeat, grace)
    return Opened(storage, place.shown, shared=True, claims=claims)


_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")
_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")
_IN_OPTIONS = {"user", "password", "sslpassword"}


@dataclass(frozen=True)
class Database:
    """A PostgreSQL database; printed, it shows no credentials."""

    url: str = field(repr=False)
    """As SQLAlchemy takes it, credentials included: for connecting only."""
    shown: str
    """For messages, logs and reports."""
    secrets: tuple[str, ...] = field(repr=False)
    """Texts that no message may contain."""
    host: str
    port: int
    name: str


def where_is(given: str | Path | None) -> Path | Database | None:
    """A file, a database, or None for memory."""
    if given is None:
        return None
    text = str(given).strip()
    scheme = _SCHEME.match(text)
    if scheme is not None and scheme[1].lower() in _POSTGRES:
        return _database(text[scheme.end() :], text)
    # A path would fold "postgresql:/x" and the like into an innocent name, and would not mind
    # "host=… password=…".
    if not text or "://" in text or re.match("[A-Za-z+]{2,}:", text) or CONNECTION.search(text):
        raise InputError(
            f"{masked(text)!r} is no storage: a study is stored in a file or in PostgreSQL",
            "give the path of a file, or postgresql://USER@HOST/DATABASE",
        )
    return given if isinstance(given, Path) else Path(text)


def masked(text: str) -> str:
    """A storage's address without credentials and options, however it was mistyped."""
    if CONNECTION.search(text) and not _SCHEME.match(text):
        return "***"
    scheme = _SCHEME.match(text)
    head, rest = (scheme[0], text[scheme.end() :]) if scheme else ("", text)
    before, at, after = rest.rpartition("@")
    if not scheme and not (at and ":" in before):
        return text
    if "?" in before:
        # Either a password with "?" in it or an option with "@": nothing is safe to show.
        return head + "***"
    # A password may hold "@" and "/" of its own: all up to the last "@" goes.
    return head + at.replace("@", "***@") + after.partition("?")[0]


def _database(rest: str, given: str) -> Database:
    from sqlalchemy.engine import make_url

    try:
        url = make_url("postgresql+psycopg://" + rest)
        options = {key: value for key, value in url.query.items() if isinstance(value, str)}
        port = url.port or int(options.get("port", 5432))
        credentials = rest.rpartition("@")[0]
        # What is where a reader does not expect it is not recognised as secret elsewhere.
        if set(credentials) & set("@/?") or "@" in f"{url.host}{url.database}":
            raise ValueError("special characters must be quoted")
        if _IN_OPTIONS & options.keys():
            raise ValueError("credentials stand before the host")
    except Exception:
        # The library's own message may quote a piece of the password.
        raise InputError(
            f"{masked(given)} is not of the form postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
            "write special characters of a password as %XX, or keep it in PGPASSWORD or ~/.pgpass",
        ) from None
    texts = {str(text) for text in (url.username, url.password) if text}
    return Database(
        url=url.render_as_string(hide_password=False),
        shown=masked(given),
        secrets=tuple(sorted(texts | {unquote(text) for text in texts}, key=len, reverse=True)),
        host=url.host or options.get("host", ""),
        port=port,
        name=url.database or options.get("dbname", ""),
    )


_START = b'{"op_code":'


class Journal(JournalStorage):
    """A study in a file that this process alone writes to."""

    def __init__(self, path: Path) -> None:
        self.file = _WholeLines(path)
        try:
            super().__init__(self.file)
        except BaseException as error:
            self.file.close()
            if isinstance(error, Exception) and not isinstance(error, OSError):
                raise InputError(
                    f"{path} is no journal that this version of Optuna can read: {error!r}",
                    "name another file, or one that is not there yet",
                ) from error
            raise

    def close(self, failed: bool = False) -> None:
        """Let others use the file; after a failure, a new one without finished trials goes away."""
        # Where the file can't even be read, that error is not the one to report.
        with suppress(OSError):
            if failed and self.file.is_new and not self._any_finished():
                self.file.withdraw()
        self.file.close()

    def _any_finished(self) -> bool:
        known = (self.get_all_trials(study._study_id) for study in self.get_all_studies())
        return any(trial.state.is_finished() for trials in known for trial in trials)


class _WholeLines(JournalFileBackend):
    """Appends whole lines only, through one handle whose lock dies with the process.

    Optuna's own locks are files that stay behind when their process is killed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        try:
            # The file and the folders above it that are not there yet, from the inside out.
            self._made = [one for one in (path, *path.parents) if not one.exists()]
            self.is_new = path in self._made
            path.parent.mkdir(parents=True, exist_ok=True)
            usable = self.is_new or path.is_file()
            self._handle = os.open(path, flags, 0o666) if usable else -1
            if self.is_new:
                # Trials that are on the disk are lost if the name of their file is not.
                sync_folder(path.parent)
        except (OSError, ValueError) as error:
            raise cannot_write(path, error) from error
        if not usable:
            raise InputError(
                f"{path} is a folder or a device, and no file to store a study in",
                "name a file that may be made",
            )
        try:
            _lock(self._handle, path)
            _mend(path)
            super().__init__(str(path))
        except BaseException:
            self.close()
            raise

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        lines = b"".join(json.dumps(log, separators=(",", ":")).encode() + b"\n" for log in logs)
        try:
            here = os.fstat(self._handle)
            if here.st_nlink == 0:
                raise OSError(errno.ENOENT, "it was removed or replaced meanwhile")
            try:
                written = 0
                while written < len(lines):
                    written += os.write(self._handle, lines[written:])
                # A killed process loses nothing that was written; a power cut may, so the end
                # of a trial and all that concerns the study go to the disk at once.
                if any("state" in log or "trial_id" not in log for log in logs):
                    os.fsync(self._handle)
            except OSError:
                os.ftruncate(self._handle, here.st_size)
                raise
        except OSError as error:
            raise cannot_write(self._path, error) from error

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def withdraw(self) -> None:
        """Remove the file, and the folders that came with it and hold nothing else."""
        if sys.platform == "win32":
            # An open file can't be removed there; elsewhere, nobody may begin to use it before.
            self.close()
        self._path.unlink()
        self.close()
        for folder in self._made[1:]:
            folder.rmdir()


def _lock(handle: int, path: Path) -> None:
    """Refuse a file that another search uses."""
    try:
        free = lock_file(handle)
    except OSError as error:
        warn(
            f"{path} can't be locked here ({error.strerror}): make sure that only one search"
            " uses it at a time"
        )
        return
    if not free:
        raise InputError(
            f"{path} is in use by another search, and a file is for one search at a time",
            "wait for it, name another file, or share a study on PostgreSQL",
        )


def _mend(path: Path) -> None:
    """Cut a last line that was not written to its end; refuse what is no journal."""
    whole = 0
    try:
        with path.open("rb") as stream:
            start = stream.read(len(_START))
            if not _START.startswith(start):
                raise _no_journal(path, 1)
            stream.seek(0)
            for number, line in enumerate(stream, start=1):
                if _is_entry(line):
                    whole += len(line)
                elif stream.read(1):
                    raise _no_journal(path, number)
        if whole < path.stat().st_size:
            os.truncate(path, whole)
    except OSError as error:
        raise cannot_read(path, error) from error


def _is_entry(line: bytes) -> bool:
    try:
        entry = parse_json(line.decode(), "an entry") if line.endswith(b"\n") else None
    except ValueError:
        return False
    return isinstance(entry, dict) and "op_code" in entry


def _no_journal(path: Path, line: int) -> InputError:
    return InputError(
        f"{path} is no Optuna journal: line {line} is no entry of one",
        "name another file, or one that is not there yet",
    )


# Beyond the end of any file: Windows keeps others from reading what is locked.
_FAR = 1 << 40


def lock_file(handle: int) -> bool:
    """Lock an open file for this process, until it is closed; False if another process has it.

    The system frees the lock when the process ends, however it ends. Where files can't be locked,
    as on some network file systems, that is an OSError.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(handle, _FAR, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True
