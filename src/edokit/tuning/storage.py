"""Where a study is kept: in memory, in a file or in PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from optuna.storages import InMemoryStorage

from edokit._errors import InputError
from edokit.tuning.journal import Journal
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
    if given is None or isinstance(given, Path):
        return given
    scheme = _SCHEME.match(given)
    if scheme is not None:
        known = scheme[1].lower() in _POSTGRES
    else:
        # Path() would fold "postgresql:/x" and the like into an innocent name.
        # Nor would it mind "host=… password=…".
        known = bool(given.strip()) and not re.match(r"^[A-Za-z+]{2,}:|.*\bpass\w*=", given)
    if not known:
        raise InputError(
            f"{masked(given)!r} is no storage: a study is stored in a file or in PostgreSQL",
            "give the path of a file, or postgresql://USER@HOST/DATABASE",
        )
    return Path(given) if scheme is None else _database(given[scheme.end() :], given)


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
