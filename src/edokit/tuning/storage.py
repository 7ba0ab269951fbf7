"""Where a study is kept: in memory, in a file or in PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import unquote

from edokit._errors import InputError
from edokit.tuning.study import Claims

T = TypeVar("T")


class Opened:
    """A storage that is open; leaving it (``with``, ``close``) lets others have it."""

    storage: Any
    """Optuna's storage."""
    shown: str
    """Where it is, for people; without credentials."""

    def __init__(self, where: Path | Database | None, heartbeat: float, grace: float, wait: float):
        self._heartbeat, self._grace = heartbeat, grace
        if where is None:
            from optuna.storages import InMemoryStorage

            self.shown, self.storage = "memory", InMemoryStorage()
        elif isinstance(where, Path):
            from edokit.tuning.journal import Journal

            self.shown, self.storage = str(where), Journal(where)
        else:
            from edokit.tuning.postgres import open_database

            self.shown, self.storage = where.shown, open_database(where, wait)
        self.shared = isinstance(where, Database)
        """Whether several processes may use it at once."""

    def __repr__(self) -> str:
        return f"Opened({self.shown!r})"

    def claims(self) -> Claims:
        """How this process and the others that use the storage share the trials."""
        if not self.shared:
            return Claims()
        from edokit.tuning.workers import SharedClaims

        return SharedClaims(self.storage, self._heartbeat, self._grace)

    def alone(self, step: Callable[[], T]) -> T:
        """Do ``step`` (making or loading a study) while no other process does such a step."""
        return self.storage.alone(0, step) if self.shared else step()

    def close(self) -> None:
        """Free the file or the connections."""
        if hasattr(self.storage, "close"):
            self.storage.close()

    def __enter__(self) -> Opened:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and hasattr(self.storage, "close_after_error"):
            self.storage.close_after_error()
        else:
            self.close()


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
    return Opened(where_is(where), heartbeat, grace, patience)


_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")
_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")
_IN_OPTIONS = {"user", "password", "sslpassword"}
_CHOICES = "give the path of a file, or postgresql://USER@HOST/DATABASE"


@dataclass(frozen=True, repr=False)
class Database:
    """A PostgreSQL database; printed, it shows no credentials."""

    url: str
    """As SQLAlchemy takes it, credentials included: for connecting only."""
    shown: str
    """For messages, logs and reports."""
    secrets: tuple[str, ...]
    """Texts that no message may contain."""
    host: str
    port: int
    name: str

    def __repr__(self) -> str:
        return f"Database({self.shown!r})"


def where_is(given: str | Path | None) -> Path | Database | None:
    """A file, a database, or None for memory."""
    if given is None or isinstance(given, Path):
        return given
    scheme = _SCHEME.match(given)
    if scheme is None:
        # Path() would fold "postgresql:/x" and the like into an innocent name.
        # Nor would it mind "host=… password=…".
        if not given.strip() or re.match(r"^[A-Za-z+]{2,}:|.*\bpass\w*=", given):
            raise _refused(given)
        return Path(given)
    if scheme[1].lower() not in _POSTGRES:
        raise _refused(given)
    return _database(given[scheme.end() :], given)


def masked(text: str) -> str:
    """A storage's address without credentials and options, however it was mistyped."""
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
        # What stands where a reader does not expect it is not recognised as secret elsewhere.
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


def _refused(given: str) -> InputError:
    return InputError(
        f"{masked(given)!r} is no storage: a study is stored in a file or in PostgreSQL",
        _CHOICES,
    )
