"""A real PostgreSQL server on loopback, with passwords, during the tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

USER = "edo_tester"
PASSWORD = "p@ss/w:rd?%"
QUOTED = "p%40ss%2Fw%3Ard%3F%25"


@dataclass
class Server:
    """A server that can be stopped and started again, and databases in it."""

    programs: Path
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    databases: int = 0

    def url(self, database: str, password: str = QUOTED, host: str = "127.0.0.1") -> str:
        return f"postgresql://{USER}:{password}@{host}:{self.port}/{database}"

    def new_database(self) -> str:
        """The URL of an empty database."""
        import psycopg

        self.databases += 1
        name = f"edo_{os.getpid()}_{self.databases}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type,call-overload,unused-ignore]
        return self.url(name)

    def start(self) -> None:
        command = [str(self.programs / "postgres"), "-D", str(self.folder / "data")]
        command += ["-c", f"port={self.port}", "-c", "listen_addresses=127.0.0.1"]
        command += ["-c", f"unix_socket_directories={self.folder}", "-c", "fsync=off"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **_unprivileged())
        end = time.monotonic() + 20
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError((self.folder / "log").read_text(errors="replace")[-2000:])
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it immediately: connections are cut, as when a machine fails."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(timeout=20)
            self.process = None

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def silence_workers(url: str) -> None:
    """Make all workers look as if they had been silent for many years."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE trial_user_attributes SET value_json = '0' WHERE key = 'alive'")


@contextlib.contextmanager
def running_server() -> Iterator[Server]:
    """A new server, which is removed with its files afterwards."""
    programs = find_programs()
    if programs is None:
        missing = "no PostgreSQL server is installed: tools/test_services.sh installs it"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    # Not pytest's folder: an unprivileged server can't reach inside root's.
    folder = Path(tempfile.mkdtemp(prefix="edo-postgres-"))
    server = Server(programs, folder, _free_port())
    try:
        as_user = _unprivileged()
        if as_user:
            os.chown(folder, as_user["user"], as_user["group"])
        secret = folder / "password"
        secret.write_text(PASSWORD + "\n", encoding="utf-8")
        secret.chmod(0o644)
        command = [str(programs / "initdb"), "-D", str(folder / "data"), "-U", USER, "--no-sync"]
        command += ["-A", "scram-sha-256", "--pwfile", str(secret), "-E", "UTF8", "--locale=C"]
        subprocess.run(command, check=True, capture_output=True, cwd=folder, **as_user)
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def find_programs() -> Path | None:
    """The folder of the server's programs, the newest first."""
    initdb = shutil.which("initdb")
    if initdb and shutil.which("postgres"):
        return Path(initdb).parent
    versions = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name)
    )
    places = [*reversed(versions), *Path("/opt/homebrew/opt").glob("postgresql@*/bin")]
    return next((place for place in places if (place / "initdb").exists()), None)


def _unprivileged() -> dict[str, int]:
    """Another user for processes if this one is root, as whom PostgreSQL refuses to run."""
    if not hasattr(os, "getuid") or os.getuid() != 0:
        return {}
    import pwd

    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid}
    pytest.skip("PostgreSQL needs a user other than root")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
