"""Commands in processes that start in a moment: one process imports everything, and forks.

It runs nothing itself, so that no thread is lost in a fork. ``Zygote`` is its other end.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEAVY = (
    "edokit.cli.app",
    "edokit.datasets.argilla",
    "edokit.datasets.label_studio",
    "edokit.datasets.lewidi",
    "edokit.datasets.read",
    "edokit.members.recipes.linear",
    "edokit.members.recipes.llm",
    "httpx2",
    "edokit.members.manifest",
    "edokit.analysis.search.storage",
    "edokit.analysis.search",
    "edokit.ensemble.estimator",
    "edokit.runs.record",
    "psycopg",
    "rich.progress",
    "rich.table",
    "scipy.optimize",
    "sklearn.linear_model",
)
# What a program does to a folder, as Python tells those who listen.
STEPS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.truncate")
KEY = "sk-planted-7f3a9c51e2d84b06"
"""The key of commands that ask a server: no file and no message may hold it."""
LIMIT = 300.0
"""Seconds after which a command counts as hanging."""


@dataclass
class Ran:
    """How a command ended."""

    status: int
    """Exit status, or minus the signal's number."""
    stderr: str
    seconds: float
    steps: int
    """How often it was about to touch something in the folders that were watched."""

    @property
    def killed(self) -> bool:
        return self.status == -signal.SIGKILL

    @property
    def one_line(self) -> bool:
        """Whether it was refused in one line, after notes; a mistake of EDO's own is none."""
        lines = self.stderr.strip().splitlines()
        errors = [line for line in lines if not line.startswith("note: ")]
        refused = self.status == 2 and len(errors) == 1 and errors[0].startswith("edo: ")
        return refused and "a mistake in edo" not in errors[0]


class Running:
    """A command on its way."""

    def __init__(self, zygote: Zygote, pid: int, log: Path, steps: Path) -> None:
        self.pid = pid
        self.log = log
        self._zygote = zygote
        self._steps = steps
        self._begun = time.perf_counter()

    def kill(self) -> None:
        """Kill it and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def done(self) -> bool:
        """Whether it has ended; `wait` tells how."""
        return not _alive(self.pid)

    def wait(self) -> Ran:
        """Until it has ended, however that is; a command that hangs is killed."""
        timer = threading.Timer(LIMIT, self.kill)
        timer.daemon = True
        timer.start()
        status = self._zygote.ask({"wait": self.pid})["status"]
        timer.cancel()
        seconds = time.perf_counter() - self._begun
        # Whatever it left running.
        self.kill()
        steps = 0
        if self._steps.exists():
            steps = int(self._steps.read_text() or 0)
        return Ran(status, self.log.read_text(errors="replace"), seconds, steps)


class Zygote:
    """Starts commands of `edo`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        folder.mkdir(parents=True, exist_ok=True)
        self.cache = folder / "cache"
        own_variables = {"TMPDIR": str(folder), "EDO_CACHE": str(self.cache), "OPENAI_API_KEY": KEY}
        variables = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **own_variables}
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
        )

    def start(
        self,
        argv: Sequence[object],
        *,
        watch: Sequence[Path] = (),
        kill_at: int | None = None,
        largest: int | None = None,
        fresh: bool = False,
    ) -> Running:
        """Start ``edo ARGV``.

        ``watch``: count its steps in these folders, and with ``kill_at`` kill it before that one.
        ``largest``: bytes that a file may have. ``fresh``: as a new process of its own.
        """
        self._count += 1
        log = self._folder / f"{self._count}.log"
        steps = self._folder / f"{self._count}.steps"
        log.touch()  # the command may be killed before it opens it
        request = {
            "argv": [str(word) for word in argv],
            "log": str(log),
            "watch": [str(folder) for folder in watch],
            "steps": str(steps),
            "kill_at": kill_at,
            "largest": largest,
            "fresh": fresh,
        }
        return Running(self, self.ask(request)["pid"], log, steps)

    def run(self, argv: Sequence[object], **how: Any) -> Ran:
        """Start a command and wait for its end."""
        return self.start(argv, **how).wait()

    def ask(self, request: dict[str, Any]) -> Any:
        """One request, one answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End it."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait(timeout=30)

    def __enter__(self) -> Zygote:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def _serve() -> None:
    for name in HEAVY:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    from edokit.members.registry import find_recipe

    find_recipe("linear")
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = {"status": os.waitstatus_to_exitcode(status)}
        else:
            pid = os.fork()
            if pid == 0:
                _child(request)
            answer = {"pid": pid}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _child(request: dict[str, Any]) -> None:
    """Be the command."""
    code = 70
    try:
        os.setsid()
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        os.dup2(log, 2)
        if request["largest"] is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest"], request["largest"]))
        words = request["argv"]
        if request["fresh"]:
            program = "from edokit.cli import main; main()"
            os.execv(sys.executable, [sys.executable, "-W", "ignore", "-c", program, *words])
        if request["watch"]:
            _listen(tuple(request["watch"]), request["steps"], request["kill_at"])
        from edokit.cli import main

        sys.argv = ["edo", *words]
        main()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _listen(folders: tuple[str, ...], note: str, kill_at: int | None) -> None:
    """Count what is about to be done to files in some folders; at a certain count, die."""
    count = 0
    note_file = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)

    def count_steps(event: str, args: tuple[Any, ...]) -> None:
        nonlocal count
        if event not in STEPS or not args or not str(args[0]).startswith(folders):
            return
        count += 1
        os.pwrite(note_file, str(count).encode(), 0)
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count_steps)


if __name__ == "__main__":
    _serve()
