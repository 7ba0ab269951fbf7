"""A study in PostgreSQL: a server that goes away is waited for, and errors show no credentials."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib.util import find_spec
from inspect import isfunction
from typing import Any, TypeVar

from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from edokit._errors import InputError, MissingExtraError, warn
from edokit.tuning.storage import Database

T = TypeVar("T")

# First number of every advisory lock; the second is the study, 0 the tables themselves.
_LOCK = 0xED0
_ANSWER_WITHIN = 10
_CONNECT = {
    "connect_timeout": _ANSWER_WITHIN,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "application_name": "edo search",
}


def open_database(database: Database, patience: float) -> PatientStorage:
    """The database, its tables made if need be; one line on what is wrong if it can't be opened."""
    if find_spec("psycopg") is None:
        raise MissingExtraError(
            "a study in PostgreSQL needs the package psycopg, which is not installed",
            'install it with: pip install "edokit[postgres]"',
        )
    try:
        return PatientStorage(database, patience)
    except (SQLAlchemyError, StorageInternalError) as error:
        raise explained(database, error) from None
    except RuntimeError:
        raise InputError(
            f"the tables in {database.shown} were made by another version of Optuna",
            "use another database, or the version of Optuna that made them",
        ) from None


class PatientStorage(RDBStorage):
    """Optuna's database storage, each operation tried again while the server is away."""

    def __init__(self, database: Database, patience: float) -> None:
        self.database = database
        self._patience = patience
        self._here = threading.local()
        options = {"pool_pre_ping": True, "connect_args": _connect_args(database)}
        with self._tables_alone(options):
            try:
                super().__init__(database.url, engine_kwargs=options)
            except BaseException:
                self.close()
                raise
        # Heartbeats are compared with the server's clock, so all write them in one time zone.
        event.listen(self.engine, "connect", _in_utc)
        self.engine.dispose()

    def __repr__(self) -> str:
        return f"PatientStorage({self.database.shown!r})"

    def close(self) -> None:
        """End all connections."""
        if hasattr(self, "scoped_session"):
            self.remove_session()
        if hasattr(self, "engine"):
            self.engine.dispose()

    def running(self, study_id: int) -> dict[int, float | None]:
        """Seconds since the last heartbeat of each running trial; None where there was none."""
        query = text(
            "SELECT t.trial_id, EXTRACT(EPOCH FROM (LOCALTIMESTAMP - h.heartbeat))"
            " FROM trials t LEFT JOIN trial_heartbeats h ON h.trial_id = t.trial_id"
            " WHERE t.study_id = :study AND t.state = 'RUNNING'"
        )

        def ask() -> dict[int, float | None]:
            with self.engine.connect() as connection:
                rows = connection.execute(query, {"study": study_id}).all()
            return {int(trial): None if age is None else float(age) for trial, age in rows}

        return self.patiently(ask)

    def alone(self, study_id: int, step: Callable[[], T]) -> T:
        """Do ``step`` while nobody else does a step on this study.

        The lock is lost with the connection; the step is then done again from its beginning.
        """

        def attempt() -> T:
            with self.engine.connect() as connection:
                lock(connection, study_id, self._patience)
                done = step()
                # An answer on this connection proves that the lock was held all the time.
                connection.execute(text("SELECT 1"))
                return done

        return self.patiently(attempt)

    def patiently(self, step: Callable[[], T]) -> T:
        """Do ``step``; if the server is away, wait for it and do it again.

        Steps within a step are not done again by themselves.
        """
        if getattr(self._here, "busy", False):
            return step()
        end, pause = time.monotonic() + self._patience, 0.1
        warned = False
        while True:
            self._here.busy = True
            try:
                return step()
            except (SQLAlchemyError, StorageInternalError) as error:
                if not went_away(error) or time.monotonic() + pause > end:
                    raise explained(self.database, error) from None
            finally:
                self._here.busy = False
            if not warned and threading.current_thread() is threading.main_thread():
                warn(
                    f"{self.database.shown} does not answer; waiting for it up to"
                    f" {self._patience:g} seconds"
                )
                warned = True
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    @contextmanager
    def _tables_alone(self, options: dict[str, Any]) -> Iterator[None]:
        """Several workers may find an empty database at once: one of them makes the tables."""
        engine = create_engine(self.database.url, **options)
        try:
            with engine.connect() as connection:
                lock(connection, 0, self._patience)
                yield
        finally:
            engine.dispose()


def _patient(operation: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(operation)
    def waiting(self: PatientStorage, *args: Any, **kwargs: Any) -> Any:
        tried = 0

        def attempt() -> Any:
            nonlocal tried
            tried += 1
            try:
                return operation(self, *args, **kwargs)
            except RuntimeError:
                # Optuna's word for a trial that has ended.
                if tried > 1 and operation.__name__ == "set_trial_state_values":
                    # It was done the first time; only the answer was lost.
                    return True
                raise

        return self.patiently(attempt)

    return waiting


for _name, _operation in vars(RDBStorage).items():
    # Optuna's cache calls private ones, too, and which ones differs between versions.
    if isfunction(_operation) and not _name.startswith("__"):
        setattr(PatientStorage, _name, _patient(_operation))


def lock(connection: Connection, key: int, patience: float) -> None:
    """Hold the lock until the connection's transaction ends; wait for it, but not for ever."""
    connection.execute(text(f"SET LOCAL lock_timeout = {int(1000 * max(patience, 1))}"))
    connection.execute(text("SELECT pg_advisory_xact_lock(:a, :b)"), {"a": _LOCK, "b": key})


def went_away(error: BaseException) -> bool:
    """Whether the server may be back in a moment."""
    cause = _database_error(error)
    if cause is None:
        return False
    state = getattr(cause.orig, "sqlstate", None) or ""
    # No state: the connection itself failed. 08, 57P0x: it was closed or is starting up;
    # 40: two transactions met; 53: out of connections, memory or disk.
    return cause.connection_invalidated or state[:2] in ("", "08", "40", "53") or "57P0" in state


def explained(database: Database, error: BaseException) -> InputError:
    """One line on what is wrong, without credentials."""
    shown = database.shown
    cause = _database_error(error)
    if cause is None:
        return InputError(
            f"the storage {shown} failed: {_scrubbed(database, error)}",
            "check the database; everything finished is kept, run it again",
        )
    state = getattr(cause.orig, "sqlstate", None)
    reply = _scrubbed(database, cause.orig if cause.orig is not None else cause)
    if state == "42501":
        return InputError(
            f"the user is not allowed to make tables in {shown}: {reply}",
            "use a database that this user owns, or grant it: GRANT CREATE ON SCHEMA public TO …",
        )
    if state == "55P03":
        return InputError(
            f"another worker of {shown} holds the lock for too long",
            "see whether a worker hangs; everything finished is kept, run it again",
        )
    if state:
        return InputError(
            f"the storage {shown} failed with: {reply}",
            "check the database; everything finished is kept, run it again",
        )
    reason, hint = _unreachable(database, reply)
    return InputError(f"the storage {shown} can't be used: {reason}", hint)


def _unreachable(database: Database, reply: str) -> tuple[str, str]:
    """Why no connection came about; the server's own words may be in any language."""
    host, port = database.host, database.port
    if host and not host.startswith("/") and "," not in host:
        try:
            socket.getaddrinfo(host, port)
        except OSError:
            return f"no host {host!r} is known", "check the name of the host"
        try:
            socket.create_connection((host, port), timeout=_ANSWER_WITHIN).close()
        except OSError:
            return (
                f"nothing answers at {host}:{port}",
                "check that the server runs and may be reached from here",
            )
    if any(word in reply for word in ("password", "authentication", "role")):
        return (
            "the server refused the user or the password",
            "check them in the URL, in PGPASSWORD or in ~/.pgpass",
        )
    if "database" in reply and "exist" in reply:
        return f"it has no database {database.name!r}", "make it first: createdb NAME"
    return f"the server replies: {reply}", "check the URL and the server's log"


def _scrubbed(database: Database, error: BaseException) -> str:
    """The first line of a message, every secret replaced."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[-1 if _multi(error) else 0]
    for secret in database.secrets:
        line = line.replace(secret, "***")
    return line


def _multi(error: BaseException) -> bool:
    # psycopg lists every address it tried, the last one last.
    return "Multiple connection attempts failed" in str(error)


def _database_error(error: BaseException | None) -> DBAPIError | None:
    while error is not None:
        if isinstance(error, DBAPIError):
            return error
        error = error.__cause__ or error.__context__
    return None


def _connect_args(database: Database) -> dict[str, Any]:
    query = make_url(database.url).query
    return {key: value for key, value in _CONNECT.items() if key not in query}


def _in_utc(connection: Any, record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET TIME ZONE 'UTC'")
    connection.commit()
