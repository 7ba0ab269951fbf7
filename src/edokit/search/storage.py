"""Opening the place where a study is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from edokit._errors import InputError
from edokit.search.address import Database, where_is
from edokit.search.study import Claims

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
            from edokit.search.journal import Journal

            self.shown, self.storage = str(where), Journal(where)
        else:
            from edokit.search.postgres import open_database

            self.shown, self.storage = where.shown, open_database(where, wait)
        self.shared = isinstance(where, Database)
        """Whether several processes may use it at once."""

    def __repr__(self) -> str:
        return f"Opened({self.shown!r})"

    def claims(self) -> Claims:
        """How this process and the others that use the storage share the trials."""
        if not self.shared:
            return Claims()
        from edokit.search.workers import SharedClaims

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
            "grace must be at least two heartbeats, and no time negative, but got"
            f" heartbeat={heartbeat:g}, grace={grace:g}, patience={patience:g}",
            "leave them out for 10, 60 and 60 seconds",
        )
    return Opened(where_is(where), heartbeat, grace, patience)
