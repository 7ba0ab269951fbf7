"""Where a study is stored: in memory, in a file (Optuna's journal) or in a database."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from logging import CRITICAL, getLogger
from pathlib import Path
from typing import TYPE_CHECKING

import optuna
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from edokit._credentials import CREDENTIAL_PARAMETERS, is_connection
from edokit._errors import InputError, missing_extra
from edokit._io.atomic import cannot_read, cannot_write, remove_empty
from edokit._io.locks import FileLock, Timeout, drop_lock, take_lock

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

_TABLES_LOCK = 0xED0
"""Key of the advisory lock of PostgreSQL that is held while tables are made."""


@dataclass(frozen=True)
class StudyStorage:
    """An open storage."""

    storage: BaseStorage = field(repr=False)
    location: str
    """Where it is, for people; without credentials."""
    shared: bool = False
    """Whether several processes may use it at once."""


@contextmanager
def open_storage(location: str | Path | None = None) -> Iterator[StudyStorage]:
    """Open memory (None), a file (Optuna's journal) or a database (``postgresql://…``).

    A file is for one process at a time. If an error ends the ``with``, a new file without
    finished trials is removed.
    """
    place = find_storage(location)
    if place is None:
        yield StudyStorage(InMemoryStorage(), "memory")
    elif isinstance(place, Path):
        with _journal(place) as storage:
            yield StudyStorage(storage, str(place))
    else:
        with _database(place) as storage:
            yield StudyStorage(storage, masked(place), shared=True)


@contextmanager
def _journal(path: Path) -> Iterator[BaseStorage]:
    """Lock and read a journal; a new one without finished trials is removed after an error."""
    storage: BaseStorage | None = None
    try:
        new_paths = [place for place in (path, *path.parents) if not place.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = take_lock(path.with_name(f".{path.name}.lock"))
    except Timeout:
        raise InputError(
            f"{path} is in use by another search, and a file is for one search at a time",
            "wait for it, name another file, or share a study on PostgreSQL",
            code="locked-output",
        ) from None
    except (OSError, ValueError) as error:
        raise cannot_write(path, error) from error
    try:
        storage = _read_journal(path, lock)
        yield storage
    except OSError as error:
        raise cannot_write(path, error) from error
    except BaseException:
        if path in new_paths and (storage is None or not _has_finished(storage)):
            path.unlink(missing_ok=True)
        raise
    finally:
        drop_lock(lock)
        remove_empty(new_paths[1:])


def _read_journal(path: Path, lock: FileLock) -> BaseStorage:
    """The journal, without a last line that was not written to its end."""
    start = b'{"op_code":'
    if path.exists() and not path.is_file():
        raise InputError(
            f"{path} is a folder or a device, and no file to store a study in",
            "name a file that may be made",
            code="not-a-file",
        )
    try:
        if path.exists():
            with path.open("r+b") as stream:
                content = stream.read()
                if not content.startswith(start) and not start.startswith(content):
                    raise ValueError("it does not start like a journal")
                stream.truncate(content.rfind(b"\n") + 1)
        # The operating system drops this lock when the process ends; of a killed one, Optuna's own
        # locks would stay.
        backend = JournalFileBackend(str(path), lock_obj=lock)  # type: ignore[arg-type]
        storage = JournalStorage(backend)
        # Optuna copies the studies, which fails for lists nested too deeply.
        optuna.get_all_study_names(storage)
        return storage
    except OSError as error:
        raise cannot_read(path, error) from error
    except Exception as error:
        raise InputError(
            f"{path} is not a journal that this version of Optuna can read: {error!r}",
            "name another file, or one that does not exist yet",
            code="unreadable-file",
        ) from error


def _has_finished(storage: BaseStorage) -> bool:
    """Whether a trial of any study is finished, or may be."""
    try:
        for name in optuna.get_all_study_names(storage):
            study = optuna.load_study(study_name=name, storage=storage)
            if any(trial.state.is_finished() for trial in study.get_trials(deepcopy=False)):
                return True
    except OSError:
        return True
    return False


@contextmanager
def _database(url: URL) -> Iterator[BaseStorage]:
    """Connect to a database; its errors are raised without credentials."""
    from sqlalchemy.exc import SQLAlchemyError

    storage: RDBStorage | None = None
    try:
        storage = _connect(url)
        yield storage
    except (SQLAlchemyError, StorageInternalError) as error:
        raise _failure(url, error) from None
    finally:
        if storage is not None:
            storage.remove_session()
            storage.engine.dispose()


def _connect(url: URL) -> RDBStorage:
    """The database; its tables are made if there are none."""
    from sqlalchemy import create_engine, text

    is_postgres = url.drivername.startswith("postgresql")
    if is_postgres and find_spec("psycopg") is None:
        raise missing_extra(
            "a study in PostgreSQL needs the package psycopg, which is not installed", "postgres"
        )
    engine = create_engine(url)
    try:
        with engine.connect() as connection, quiet():
            if is_postgres:
                # Several workers may find an empty database at once: one of them makes the tables.
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_TABLES_LOCK})"))
            return RDBStorage(
                url.render_as_string(hide_password=False),
                engine_kwargs={"pool_pre_ping": True},
            )
    except RuntimeError:
        raise InputError(
            f"the tables in {masked(url)} were made by another version of Optuna",
            "use another database, or the version of Optuna that made them",
            code="other-version",
        ) from None
    finally:
        engine.dispose()


def _failure(url: URL, error: BaseException) -> InputError:
    """One line on what is wrong, without credentials: the message of the deepest cause."""
    reply = type(error).__name__
    cause = error.__cause__ or error.__context__
    while cause is not None:
        text = " ".join(str(cause).split())
        if any(map(str.isalpha, text)):
            reply = text
        cause = cause.__cause__ or cause.__context__
    for secret in (url.password, url.username):
        if secret:
            reply = reply.replace(str(secret), "***")
    return InputError(
        f"the storage {masked(url)} failed: {reply}",
        "check the URL and the server; everything finished is kept, run it again",
        code="unreachable-server",
    )


_DIALECTS = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
    "sqlite": "sqlite",
}


def find_storage(location: str | Path | None) -> Path | URL | None:
    """A file, a database, or None for memory.

    An address that is refused may have a password in it, so that no message quotes it.
    """
    if location is None:
        return None
    text = str(location).strip()
    scheme, _, address = text.partition("://")
    if scheme.lower() in _DIALECTS:
        return _database_url(_DIALECTS[scheme.lower()], address)
    # As paths, "postgresql:/x" and "host=… password=…" would be names of files, and would be shown.
    if not text or "://" in text or re.match("[A-Za-z+]{2,}:", text) or is_connection(text):
        kind = f"{scheme}://…" if scheme.isalpha() else "this address"
        raise InputError(
            f"{kind} is not a storage: a study is stored in a file or in PostgreSQL",
            "give the path of a file, or postgresql://USER@HOST/DATABASE",
            code="invalid-address",
        )
    return location if isinstance(location, Path) else Path(text)


def _database_url(dialect: str, address: str) -> URL:
    """The URL of a database, if it is of the form that hides its password in messages."""
    from sqlalchemy.engine import make_url

    try:
        url = make_url(f"{dialect}://{address}")
        int(str(url.query.get("port", 0)))
        # A password must not end up where it is not recognised as a secret.
        if set(address.rpartition("@")[0]) & set("@/?") or "@" in f"{url.host}{url.database}":
            raise ValueError("special characters must be quoted")
        if CREDENTIAL_PARAMETERS & url.query.keys():
            raise ValueError("credentials stand before the host")
    except Exception:
        # The library's own message may quote a piece of the password.
        raise InputError(
            "the storage is not of the form postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
            "write special characters of a password as %XX, or keep it in PGPASSWORD or ~/.pgpass",
            code="invalid-address",
        ) from None
    return url


def masked(url: URL) -> str:
    """The address of a database without credentials and options."""
    public = url.create(url.get_backend_name(), host=url.host, port=url.port, database=url.database)
    return public.render_as_string()


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress log lines of Optuna and its database, and warnings of experimental methods.

    A lost database raises an error, so that no log line is needed.
    """
    level = optuna.logging.get_verbosity()
    pool_log = getLogger("sqlalchemy.pool")
    pool_level = pool_log.level
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    pool_log.setLevel(CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            yield
    finally:
        pool_log.setLevel(pool_level)
        optuna.logging.set_verbosity(level)
