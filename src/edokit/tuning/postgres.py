"""A study in PostgreSQL, shared by processes on one machine or many.

A server that goes away is waited for, and errors show no credentials.
"""

from __future__ import annotations

import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from importlib.util import find_spec
from inspect import isfunction
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.study import Study
from optuna.trial import TrialState
from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from edokit._errors import EDOError, InputError, MissingExtraError, warn
from edokit.tuning.storage import Database
from edokit.tuning.study import BY, Claims, running

T = TypeVar("T")

_POLL = 0.25
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
        self.database, self._patience = database, patience
        self._here = threading.local()
        given = make_url(database.url).query
        connect = {key: value for key, value in _CONNECT.items() if key not in given}
        options = {"pool_pre_ping": True, "connect_args": connect}
        engine = create_engine(database.url, **options)
        try:
            # Several workers may find an empty database at once: one of them makes the tables.
            with engine.connect() as connection:
                lock(connection, 0, patience)
                super().__init__(database.url, engine_kwargs=options)
        except BaseException:
            self.close()
            raise
        finally:
            engine.dispose()
        # Heartbeats are compared with the server's clock, so all write them in one time zone.
        event.listen(self.engine, "connect", _in_utc)
        self.engine.dispose()

    def __repr__(self) -> str:
        return f"PatientStorage({self.database.shown!r})"

    def close(self, failed: bool = False) -> None:
        """End all connections."""
        if hasattr(self, "scoped_session"):
            self.remove_session()
        if hasattr(self, "engine"):
            self.engine.dispose()

    def heartbeats(self, study_id: int) -> dict[int, float | None]:
        """Seconds since the last heartbeat of each running trial; None where there was none."""
        query = text(
            "SELECT t.trial_id, EXTRACT(EPOCH FROM (LOCALTIMESTAMP - h.heartbeat))"
            " FROM trials t LEFT JOIN trial_heartbeats h ON h.trial_id = t.trial_id"
            " WHERE t.study_id = :study AND t.state = 'RUNNING'"
        )

        def ask() -> Sequence[Any]:
            with self.engine.connect() as connection:
                return connection.execute(query, {"study": study_id}).all()

        found = self.patiently(ask)
        return {int(trial): None if age is None else float(age) for trial, age in found}

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
        end, pause, warned = time.monotonic() + self._patience, 0.1, False
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
                # Optuna's word for a trial that has ended. The second time, it was done the first
                # time, and only the answer was lost.
                if tried > 1 and operation.__name__ == "set_trial_state_values":
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
    shown, cause = database.shown, _database_error(error)
    original = error if cause is None else cause.orig or cause
    lines = str(original).strip().splitlines() or [type(original).__name__]
    # psycopg lists every address it tried, the last one last.
    reply = lines[-1 if "Multiple connection attempts failed" in str(original) else 0]
    for secret in database.secrets:
        reply = reply.replace(secret, "***")
    state = getattr(original, "sqlstate", None)
    if state == "42501":
        wrong = f"the user is not allowed to make tables in {shown}: {reply}"
        hint = "use a database that this user owns, or GRANT CREATE ON SCHEMA public TO it"
    elif state == "55P03":
        wrong = f"another worker of {shown} holds the lock for too long"
        hint = "see whether a worker hangs; everything finished is kept, run it again"
    elif state or cause is None:
        wrong = f"the storage {shown} failed with: {reply}"
        hint = "check the database; everything finished is kept, run it again"
    else:
        reason, hint = _unreachable(database, reply)
        wrong = f"the storage {shown} can't be used: {reason}"
    return InputError(wrong, hint)


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
            hint = "check that the server runs and may be reached from here"
            return f"nothing answers at {host}:{port}", hint
    if any(word in reply for word in ("password", "authentication", "role")):
        hint = "check them in the URL, in PGPASSWORD or in ~/.pgpass"
        return "the server refused the user or the password", hint
    if "database" in reply and "exist" in reply:
        return f"it has no database {database.name!r}", "make it first: createdb NAME"
    return f"the server replies: {reply}", "check the URL and the server's log"


def _database_error(error: BaseException | None) -> DBAPIError | None:
    while error is not None:
        if isinstance(error, DBAPIError):
            return error
        error = error.__cause__ or error.__context__
    return None


def _in_utc(connection: Any, record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET TIME ZONE 'UTC'")
    connection.commit()


class SharedClaims(Claims):
    """Trials are claimed one process at a time, and kept by giving signs of life."""

    def __init__(self, storage: PatientStorage, heartbeat: float, grace: float) -> None:
        # One process may hold several claims, in threads.
        self.name = f"{uuid4().hex[:8]}@{own_mark()}"
        self._storage = storage
        self._heartbeat, self._grace = heartbeat, grace

    def locked(self, study: Study, step: Callable[[], T]) -> T:
        def and_beat() -> T:
            done = step()
            # The first sign of life comes before others can look.
            for trial in running(study):
                if trial.user_attrs.get(BY) == self.name:
                    self._storage.record_heartbeat(trial._trial_id)
            return done

        return self._storage.alone(study._study_id, and_beat)

    def free_stale(self, study: Study) -> int:
        ages = self._storage.heartbeats(study._study_id)
        freed = 0
        for trial in running(study):
            by, age = trial.user_attrs.get(BY), ages.get(trial._trial_id)
            # Who claims holds the lock until the first heartbeat: without one, it has died. And
            # this process looks for work only when it has none.
            if by == self.name or age is None or age > self._grace or (by and is_gone(by)):
                # Optuna's word for a trial that has ended meanwhile.
                with suppress(RuntimeError):
                    freed += self._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
        return freed

    @contextmanager
    def alive(self, trial_ids: Sequence[int]) -> Iterator[None]:
        done = threading.Event()

        def beat() -> None:
            while not done.wait(self._heartbeat):
                for trial_id in trial_ids:
                    # Where the database stays away, the main thread will say so.
                    with suppress(EDOError, KeyError):
                        self._storage.record_heartbeat(trial_id)

        thread = threading.Thread(target=beat, daemon=True, name="edo heartbeat")
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join(timeout=self._heartbeat)

    def wait(self) -> None:
        time.sleep(_POLL * random.uniform(0.5, 1.5))


def own_mark() -> str:
    """This process, as ``HOST/PLACE/PID/START``."""
    host = socket.gethostname().replace("/", "-") or "host"
    return f"{host}/{_place()}/{os.getpid()}/{_start(os.getpid())}"


def is_gone(mark: str) -> bool:
    """Whether the marked process has surely ended; False where that is unknown."""
    parts = mark.rsplit("/", 3)
    if len(parts) != 4 or parts[1] != _place() or not _place() or not parts[2].isdecimal():
        return False
    return _start(int(parts[2])) != parts[3]


def _place() -> str:
    """One running system and its numbering of processes; empty where it has no name."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}.{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _start(pid: int) -> str:
    """When the process began, in ticks since the machine did; empty if there is none."""
    if sys.platform != "linux":
        return ""
    with suppress(OSError):
        # The name of the program is in parentheses and may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        state, *rest = fields.rpartition(")")[2].split()
        if state not in "ZX":
            return rest[18]
    return ""
