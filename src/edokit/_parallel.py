"""What the machine offers: memory, and workers for many tasks: this process, processes beside it,
or a Dask cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from edokit._errors import InputError, missing_extra, option

Task = TypeVar("Task")
Result = TypeVar("Result")

LOCAL = "local"
DASK = "dask://"
SHARD_MEMORY = 2 * 2**30  # bytes that shards in work may take
_PATIENCE = 30  # seconds in which a cluster's first worker must answer
# A process with the libraries loaded, and what a shard takes while it is read and matched, beside
# its probabilities in float64.
_PROCESS_BYTES = 300 * 2**20
_SHARD_COPIES = 4
# Below so many bytes, starting processes takes longer than they save.
_WORTH_PROCESSES = 2**28
# Errors which say that a process was lost, not that it found something wrong.
_DEATHS = {"TerminatedWorkerError", "BrokenProcessPool", "KilledWorker"}


def free_memory() -> float:
    """Bytes that this process may still take, as far as Linux says; else infinity."""
    limits = [float("inf")]
    with suppress(OSError, ValueError, IndexError):
        limits.append(1024 * int(_read("/proc/meminfo").split("MemAvailable:")[1].split()[0]))
    # A container has a limit of its own, less what it holds and can't drop.
    with suppress(OSError, ValueError, IndexError, StopIteration):
        group = _read("/proc/self/cgroup").split("0::")[1].split()[0]
        folders = (Path(f"/sys/fs/cgroup{group}"), Path("/sys/fs/cgroup"))
        folder = next(folder for folder in folders if (folder / "memory.max").exists())
        dropped = int(_read(f"{folder}/memory.stat").split("inactive_file ")[1].split()[0])
        maximum, current = (int(_read(f"{folder}/memory.{name}")) for name in ("max", "current"))
        limits.append(maximum - current + dropped)
    return max(0.0, min(limits))


def _read(path: str) -> str:
    return Path(path).read_text(encoding="ascii")


class Workers(ExitStack):
    """Does one thing with many tasks, results in their order. Close it, or use it in a ``with``.

    ``engine``: ``local`` for ``jobs`` processes on this machine (one: no process but this), or
    ``dask://host:port``, whose workers must see the files under the same paths.
    """

    def __init__(self, jobs: int = 1, engine: str = LOCAL) -> None:
        if jobs < 1:
            raise InputError(f"{option('jobs', jobs)} is less than 1", "leave it out")
        if engine != LOCAL and not engine.startswith(DASK):
            raise InputError(
                f"{option('engine', engine)} is neither 'local' nor 'dask://host:port'",
                "leave it out to work on this machine",
            )
        super().__init__()
        self.jobs, self.engine = jobs, engine

    def run(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """``work`` of each task, in their order."""
        try:
            if self.engine != LOCAL:
                for future in self._client.map(work, tasks, pure=False):
                    yield future.result()
            elif self.jobs == 1 or len(tasks) == 1:
                yield from map(work, tasks)
            else:
                from joblib import Parallel, delayed

                # Small results in order: what they add up to does not depend on who was faster.
                run: Any = Parallel(self.jobs, "loky", return_as="generator", batch_size=1)
                # Processes are kept between calls, and may have started somewhere else.
                yield from run(delayed(_at)(os.getcwd(), work, task) for task in tasks)
        except Exception as error:
            if type(error).__name__ not in _DEATHS:
                raise
            raise InputError(
                f"a worker process died, perhaps out of memory ({type(error).__name__})",
                f"use fewer {option('jobs')}, or smaller shards",
            ) from error

    @cached_property
    def _client(self) -> Any:
        return self.enter_context(dask_client(self.engine))


def _at(folder: str, work: Callable[[Task], Result], task: Task) -> Result:
    """The work where relative paths mean what they mean to the one who asked."""
    if folder != os.getcwd():
        os.chdir(folder)
    return work(task)


@contextmanager
def dask_client(engine: str) -> Iterator[Any]:
    """A client of the scheduler at ``dask://host:port``, which has a worker."""
    from asyncio import TimeoutError as Late  # another one than Python's own, before 3.11

    try:
        from distributed import Client
    except ImportError as error:
        raise missing_extra(
            f"the engine {engine} needs Dask, but it can't be imported: {error}", "dask"
        ) from error
    address = engine.removeprefix(DASK)
    try:
        client = Client(f"tcp://{address}", timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address}: {error or type(error).__name__}",
            "start one with `dask scheduler`, and workers with `dask worker`",
        ) from error
    with closing(client):
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except (Late, TimeoutError) as error:
            raise InputError(
                f"no worker of the Dask cluster at {address} answers",
                "start some with `dask worker`",
            ) from error
        yield client


def available_cores() -> int:
    """Cores that this process may use, by its affinity and the limits of its container."""
    from joblib import cpu_count

    return int(cpu_count())


def may_use_threads() -> bool:
    """Whether there are cores for threads: this process is no worker, and has more than one."""
    processes = sys.modules.get("multiprocessing.process")  # loaded in every worker
    return available_cores() > 1 and (processes is None or processes.parent_process() is None)


def how_many_jobs(jobs: int | None, sizes: Sequence[int]) -> int:
    """Jobs at a time: as asked; else one per core, as far as `SHARD_MEMORY` goes.

    ``sizes`` are those of the shards in float64, in bytes.
    """
    if jobs is not None:
        return jobs
    if sum(sizes) < _WORTH_PROCESSES:
        return 1
    room = SHARD_MEMORY // (_PROCESS_BYTES + _SHARD_COPIES * max(sizes))
    return max(1, min(available_cores(), len(sizes), room))
