"""Several processes, on one machine or many, at work on one study in PostgreSQL."""

from __future__ import annotations

import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from edokit._errors import EDOError
from edokit.tuning.study import Claims

if TYPE_CHECKING:
    from edokit.tuning.postgres import PatientStorage

T = TypeVar("T")

_POLL = 0.25


class SharedClaims(Claims):
    """Trials are claimed one process at a time, and kept by giving signs of life."""

    def __init__(self, storage: PatientStorage, heartbeat: float, grace: float) -> None:
        # One process may hold several claims, in threads.
        self.name = f"{uuid4().hex[:8]}@{own_mark()}"
        self._storage = storage
        self._heartbeat, self._grace = heartbeat, grace

    def locked(self, study: Any, step: Callable[[], T]) -> T:
        """Do ``step`` while no other process does one on this study."""

        def and_beat() -> T:
            done = step()
            # The first sign of life comes before others can look.
            for trial in _running(study):
                if trial.user_attrs.get("by") == self.name:
                    self._storage.record_heartbeat(trial._trial_id)
            return done

        return self._storage.alone(study._study_id, and_beat)

    def free_stale(self, study: Any) -> int:
        """Fail running trials whose process is gone; to be done inside ``locked``."""
        from optuna.trial import TrialState

        ages = self._storage.running(study._study_id)
        freed = 0
        for trial in _running(study):
            by, age = trial.user_attrs.get("by"), ages.get(trial._trial_id)
            # Who claims holds the lock until the first heartbeat: without one, it has died. And
            # this process looks for work only when it has none.
            if by == self.name or age is None or age > self._grace or (by and is_gone(by)):
                # Optuna's word for a trial that has ended meanwhile.
                with suppress(RuntimeError):
                    freed += self._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
        return freed

    @contextmanager
    def alive(self, study: Any, trial_ids: Sequence[int]) -> Iterator[None]:
        """Give signs of life for these trials meanwhile."""
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
        """Others are at work on what is left of this generation."""
        time.sleep(_POLL * random.uniform(0.5, 1.5))


def _running(study: Any) -> list[Any]:
    from optuna.trial import TrialState

    return list(study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)))


def own_mark() -> str:
    """This process, as ``HOST/PLACE/PID/START``."""
    host = socket.gethostname().replace("/", "-") or "host"
    return f"{host}/{_place()}/{os.getpid()}/{_start(os.getpid())}"


def is_gone(mark: str) -> bool:
    """Whether the marked process has surely ended; False where that can't be told from here."""
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
        # The name of the program stands in parentheses and may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        state, *rest = fields.rpartition(")")[2].split()
        if state not in "ZX":
            return rest[18]
    return ""
