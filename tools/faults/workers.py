"""Worker processes that are killed in the middle: Dask's, and those beside the command."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from faults.cases import Case
from faults.disk import judge
from faults.kills import Disturbed, undisturbed
from faults.tally import Tally
from faults.zygote import Running, Zygote

Kill = Callable[[Running], bool]
"""Kills a worker; whether the command was still at work then."""


def dask_worker_dies(
    zygote: Zygote, cases: list[Case], out: Path, tally: Tally, *, times: int, rng: random.Random
) -> None:
    """One of two workers of a cluster is killed, so often for each command."""
    try:
        from distributed import LocalCluster
    except ImportError:
        tally.skipped.append("a Dask worker dying (Dask is not installed)")
        return

    @contextmanager
    def cluster(case: Case) -> Iterator[tuple[Case, Kill]]:
        with LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as running:

            def kill(command: Running) -> bool:
                workers = running.workers.values()
                victims = [
                    worker.process.pid
                    for worker in workers
                    if worker.process and worker.process.pid
                ]
                os.kill(rng.choice(victims), signal.SIGKILL)
                return not command.done()

            engine = running.scheduler_address.replace("tcp://", "dask://")
            yield _with(case, "--engine", engine), kill

    for case in cases:
        _some_die(
            zygote, replace(case, expected={}), out, tally, "Dask worker dies", cluster, times
        )


def own_worker_dies(
    zygote: Zygote, cases: list[Case], out: Path, tally: Tally, *, times: int, rng: random.Random
) -> None:
    """A process that the command started for itself is killed."""

    def kill(running: Running) -> bool:
        while not running.done():
            workers = _workers(running.pid)
            if workers:
                time.sleep(rng.uniform(0, 1))
                with suppress(ProcessLookupError):
                    os.kill(rng.choice(workers), signal.SIGKILL)
                    return True
            time.sleep(0.01)
        return False

    for case in cases:
        pair = nullcontext((_with(case, "--jobs", 2), kill))
        _some_die(
            zygote,
            replace(case, expected={}),
            out,
            tally,
            "own worker dies",
            lambda _, pair=pair: pair,
            times,
        )


def _some_die(
    zygote: Zygote,
    case: Case,
    out: Path,
    tally: Tally,
    fault: str,
    place: Callable[[Case], AbstractContextManager[tuple[Case, Kill]]],
    times: int,
) -> None:
    """``place``: where the command runs, and how one of its workers is killed there."""
    with place(case) as (there, _):
        peace = undisturbed(zygote, there, out)
    row = tally.row(fault, case.name)
    for k in range(times):
        with row.watched(), place(case) as (there, kill):
            disturbed = Disturbed(zygote, there, out)
            running = zygote.start(there.argv(out))
            if fault.startswith("Dask"):
                time.sleep((k + 0.5) / times * peace.seconds)
            hit = kill(running)
            judge(row, disturbed, running.wait())
            row.times -= not hit
            disturbed.finish()
            row.well += 1


def _with(case: Case, *more: object) -> Case:
    """The command with more words; the last one of an option counts."""
    return replace(case, argv=lambda out: [*case.argv(out), *more])


def _workers(pid: int) -> list[int]:
    """Processes of joblib that a process has started."""
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [
            int(child)
            for child in children
            if "popen_loky" in Path(f"/proc/{child}/cmdline").read_text()
        ]
    return []
