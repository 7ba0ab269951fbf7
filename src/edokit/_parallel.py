"""Resources of the machine: free memory, cores, and workers for many tasks.

Workers are this process, further processes on this machine, or a Dask cluster.
"""

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
SHARD_MEMORY = 2 * 2**30  # bytes that all shards in progress may take
_TIMEOUT = 30  # seconds in which a cluster's first worker must answer
# Bytes of a process with its libraries loaded, and the memory that a shard takes while it is read
# and matched, in multiples of its probabilities in float64.
_PROCESS_BYTES = 300 * 2**20
_SHARD_COPIES = 4
# Below this many bytes, starting processes takes longer than they save.
_LEAST_PARALLEL_BYTES = 2**28
# Exceptions raised when a process was lost, as opposed to errors that the task raised.
_LOST_WORKER = {"TerminatedWorkerError", "BrokenProcessPool", "KilledWorker"}


def free_memory() -> float:
    """Bytes that this process may still allocate, as Linux reports them; elsewhere infinity."""
    limits = [float("inf")]
    with suppress(OSError, ValueError, IndexError):
        limits.append(1024 * int(_read("/proc/meminfo").split("MemAvailable:")[1].split()[0]))
    # A container has its own limit; file caches count as used, but can be dropped.
    with suppress(OSError, ValueError, IndexError):
        group = _read("/proc/self/cgroup").split("0::")[1].split()[0]
        folder = Path(f"/sys/fs/cgroup{group}")
        if not (folder / "memory.max").exists():
            folder = Path("/sys/fs/cgroup")
        maximum = int(_read(f"{folder}/memory.max"))
        current = int(_read(f"{folder}/memory.current"))
        cached = int(_read(f"{folder}/memory.stat").split("inactive_file ")[1].split()[0])
        limits.append(maximum - current + cached)
    return max(0.0, min(limits))


def _read(path: str) -> str:
    return Path(path).read_text(encoding="ascii")


class Workers(ExitStack):
    """Apply a function to many tasks, in parallel. Close it, or use it in a ``with`` statement.

    It is an exit stack, which holds the connection to a Dask cluster. ``engine`` is ``local`` for
    ``jobs`` processes on this machine (with one job, everything runs in this process), or
    ``dask://host:port``, whose workers must see the files under the same paths.
    """

    def __init__(self, jobs: int = 1, engine: str = LOCAL) -> None:
        if jobs < 1:
            raise InputError(
                f"{option('jobs', jobs)} is less than 1", "leave it out", code="invalid-number"
            )
        if engine != LOCAL and not engine.startswith(DASK):
            raise InputError(
                f"{option('engine', engine)} is neither 'local' nor 'dask://host:port'",
                "leave it out to work on this machine",
                code="invalid-address",
            )
        super().__init__()
        self.jobs = jobs
        self.engine = engine

    def run(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """The result of ``work`` for each task, in the order of the tasks."""
        try:
            if self.engine != LOCAL:
                for future in self._client.map(work, tasks, pure=False):
                    yield future.result()
            elif self.jobs == 1 or len(tasks) == 1:
                yield from map(work, tasks)
            else:
                from joblib import Parallel, delayed

                # Results in the order of the tasks: sums do not depend on which worker was faster.
                run: Any = Parallel(self.jobs, "loky", return_as="generator", batch_size=1)
                # Processes are kept between calls, and may have started in another folder.
                yield from run(delayed(_work_in_folder)(os.getcwd(), work, task) for task in tasks)
        except Exception as error:
            if type(error).__name__ not in _LOST_WORKER:
                raise
            raise InputError(
                f"a worker process died, perhaps out of memory ({type(error).__name__})",
                f"use fewer {option('jobs')}, or smaller shards",
                code="dead-worker",
            ) from error

    @cached_property
    def _client(self) -> Any:
        return self.enter_context(dask_client(self.engine))


def _work_in_folder(folder: str, work: Callable[[Task], Result], task: Task) -> Result:
    """Do the work in the caller's working directory, so that relative paths mean the same."""
    if folder != os.getcwd():
        os.chdir(folder)
    return work(task)


@contextmanager
def dask_client(engine: str) -> Iterator[Any]:
    """A client of the scheduler at ``dask://host:port``, once it has a worker."""
    try:
        from distributed import Client
    except ImportError as error:
        raise missing_extra(
            f"the engine {engine} needs Dask, but it can't be imported: {error}", "dask"
        ) from error
    address = engine.removeprefix(DASK)
    try:
        client = Client(f"tcp://{address}", timeout=_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address}: {error or type(error).__name__}",
            "start one with `dask scheduler`, and workers with `dask worker`",
            code="unreachable-server",
        ) from error
    with closing(client):
        try:
            client.wait_for_workers(1, timeout=_TIMEOUT)
        except TimeoutError as error:
            raise InputError(
                f"no worker of the Dask cluster at {address} answers",
                "start some with `dask worker`",
                code="unreachable-server",
            ) from error
        yield client


def available_cores() -> int:
    """Cores that this process may use, by its affinity and the limits of its container."""
    from joblib import cpu_count

    return int(cpu_count())


def may_use_threads() -> bool:
    """Whether threads would help: there are several cores, and this is not a worker process."""
    processes = sys.modules.get("multiprocessing.process")  # loaded in every worker
    return available_cores() > 1 and (processes is None or processes.parent_process() is None)


def choose_jobs(jobs: int | None, sizes: Sequence[int]) -> int:
    """The number of parallel jobs: ``jobs`` if it is set, else one per core within `SHARD_MEMORY`.

    ``sizes`` are the bytes of each shard in float64.
    """
    if jobs is not None:
        return jobs
    if sum(sizes) < _LEAST_PARALLEL_BYTES:
        return 1
    room = SHARD_MEMORY // (_PROCESS_BYTES + _SHARD_COPIES * max(sizes))
    return max(1, min(available_cores(), len(sizes), room))
