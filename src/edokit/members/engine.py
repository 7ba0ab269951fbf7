"""Where jobs run: in this process, in processes beside it, or on a Dask cluster."""

from __future__ import annotations

import atexit
import json
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from edokit._errors import InputError
from edokit._io.atomic import whole_folder
from edokit._parallel import DASK, LOCAL, dask_client
from edokit.members.jobs import JobContext, Outcome, TrainingJob, run_job, sizes_of
from edokit.members.pretrained import choose_device
from edokit.members.recipe import Progress

_START_SECONDS = 5.0  # what it takes to start workers and load the libraries there
_WORTH = 1.1  # times the throughput that twice as many members on a GPU must bring
_MOST_ON_GPU = 8  # members at a time on one GPU
_WORTH_WORKERS = 10_000  # items, counted in every epoch, that others must have to learn from
_TICK = 0.5  # seconds after which workers that send nothing are looked after
_RECIPES = "edokit.members.recipes."  # modules that workers load if this process has
_SPARE = 0.1  # share of a GPU's memory that is left free
_CONTEXT_BYTES = 2**29  # what a process takes on a GPU before its first tensor
_NEEDED = {"items_per_second", "began", "since", "memory"}  # in a report of a member's pace
Placed = Sequence[tuple[TrainingJob, str | None]]
"""Jobs, and the device that each runs on."""
Together = Callable[[Placed], Iterator[Outcome]]


def run_jobs(
    context: JobContext,
    todo: Sequence[TrainingJob],
    out: Path,
    *,
    engine: str = LOCAL,
    jobs: int | None = None,
    devices: Sequence[str | None] = (None,),
    by_work: bool = False,
    by_pace: bool = False,
    progress: Callable[[TrainingJob], Progress] | None = None,
) -> Iterator[Outcome]:
    """Outcomes as they come; each finished job is in its folder by then.

    Jobs take the devices in turn. A worker that dies takes its job with it, no other. With
    ``by_work`` they start in this process, and workers are started for the rest once that is
    worth it: by the longest job so far, the rest would take more time here than it costs. With
    ``by_pace`` others start beside the first as long as all together get faster: `Pace`.
    """
    if not todo:
        return
    placed = [(job, devices[k % len(devices)]) for k, job in enumerate(todo)]
    if engine.startswith(DASK):
        yield from _on_dask(context, placed, out, engine)
        return
    if engine != LOCAL:
        raise InputError(
            f"engine is {engine!r}, but must be 'local' or 'dask://host:port'",
            "leave it out to train on this machine",
            parameters=("engine",),
        )
    jobs, longest = min(jobs or 1, len(todo)), 0.0
    if by_pace and jobs > 1:
        together = _SideBySide(context, out, Pace(jobs, len(devices)), devices, progress)

        def alone(some: Placed) -> Iterator[Outcome]:
            pool = _SideBySide(context, out, Pace(1, 1), devices, progress)
            yield from pool.run(some, here=False)

        yield from _survive(placed, together.run, alone)
        return
    while placed and (jobs == 1 or by_work):
        (job, device), *placed = placed
        started = time.perf_counter()
        outcome = run_job(context, job, out, device, None if progress is None else progress(job))
        longest = max(longest, time.perf_counter() - started)
        yield outcome
        jobs = min(jobs, len(placed))
        by_work = by_work and longest * len(placed) * (1 - 1 / max(jobs, 1)) < _START_SECONDS
    if not placed:
        return

    yield from _survive(placed, _in_workers(context, out, jobs))


def _in_workers(context: JobContext, out: Path, jobs: int) -> Together:
    def together(some: Placed) -> Iterator[Outcome]:
        from joblib import Parallel, delayed

        # Two workers at least: with one, joblib would train in this process.
        parallel = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered")
        yield from parallel(delayed(run_job)(context, job, out, device) for job, device in some)

    return together


@dataclass
class Pace:
    """How many members train at once on GPUs.

    One for each GPU at first; then twice as many, as long as that brings a tenth more items a
    second and their memory allows it.
    """

    most: int
    now: int
    before: dict[str, float] = field(default_factory=dict)
    """Items a second of each member when fewer trained at once."""
    settled: bool = False

    def update(
        self, reports: Mapping[str, Mapping[str, float]], room: Callable[[float], int]
    ) -> bool:
        """Decide anew; False if the last reports of those that train do not allow it yet.

        ``room`` is how many more of so many bytes the GPUs have memory for.
        """
        if self.settled or len(reports) < self.now:
            return False
        # Only what was measured while all of them trained.
        began = max(one["began"] for one in reports.values())
        if any(one["since"] < began for one in reports.values()):
            return False
        rates = {name: one["items_per_second"] for name, one in reports.items()}
        if self.before and self._gain(rates) < _WORTH:
            self.settled, self.now = True, len(self.before)
            return True
        more = room(max(one["memory"] for one in reports.values()) + _CONTEXT_BYTES)
        self.before, before = rates, self.now
        self.now = min(2 * self.now, self.most, self.now + more)
        self.settled = self.now == before
        return True

    def _gain(self, rates: Mapping[str, float]) -> float:
        """Times the throughput before; members differ, so that of members in both, if any."""
        kept = [rates[name] / self.before[name] for name in rates if name in self.before]
        if kept:
            return sum(kept) / len(kept) * len(rates) / len(self.before)
        return sum(rates.values()) / sum(self.before.values())


@dataclass
class _SideBySide:
    """Trains jobs in processes beside this one, as many at a time as pays.

    Each process has its own pipe, so that one that dies takes no more than its job with it.
    """

    context: JobContext
    out: Path
    pace: Pace
    devices: Sequence[str | None]
    progress: Callable[[TrainingJob], Progress] | None
    waiting: list[tuple[TrainingJob, str | None]] = field(default_factory=list)
    workers: dict[Any, Any] = field(default_factory=dict)
    """The process at the other end of each pipe."""
    running: dict[Any, TrainingJob] = field(default_factory=dict)
    """The job at the other end of a pipe."""
    finished: list[Outcome] = field(default_factory=list)
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    started: int = 0

    def run(self, placed: Placed, here: bool = True) -> Iterator[Outcome]:
        """Outcomes as they come; if a worker dies, those of the others, then an error.

        With ``here`` jobs are trained in this process until one reports that there is enough to
        learn from to start workers.
        """
        self.waiting = list(placed)
        try:
            if not here:
                self._start()
            while (self.waiting or self.running) and (self.workers or not self.started):
                if self.started:
                    self._receive(_TICK)
                else:
                    job, device = self.waiting.pop(0)
                    react = partial(self._react, job)
                    self._finish(run_job(self.context, job, self.out, device, react))
                self._assign()
                yield from self.finished
                self.finished.clear()
            if len(self.workers) < self.started:
                raise RuntimeError("a worker has died")
        finally:
            self._stop()

    def _start(self) -> None:
        """Workers for all that may train at once load their libraries side by side."""
        from multiprocessing import Pipe

        from joblib.externals.loky.backend import get_context
        from joblib.externals.loky.backend.reduction import dumps

        # In a file: through a pipe, this process would wait until it has been read.
        self.folder = tempfile.TemporaryDirectory(prefix="edo-")
        file = Path(self.folder.name) / "context"
        file.write_bytes(dumps((self.context, self.out)))
        loaded = [name for name in list(sys.modules) if name.startswith(_RECIPES)]
        # The libraries compute with one thread each: the cores are for the members.
        threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
        atexit.register(self._stop)  # if nobody closes the generator
        self.started = min(self.pace.most, len(self.waiting))
        for _ in range(self.started):
            pipe, theirs = Pipe()
            # Unlike those of multiprocessing, it does not run the user's script again.
            process = get_context("loky").Process(
                target=_work, args=(theirs, file, loaded), env=threads
            )
            with suppress(OSError):  # no process can be started, or it has died already
                process.start()
                self.workers[pipe] = process
            theirs.close()

    def _stop(self) -> None:
        if self.started:
            from joblib.externals.loky.backend.utils import kill_process_tree

            for process in self.workers.values():
                kill_process_tree(process)
            self.workers.clear()
            self.folder.cleanup()
            atexit.unregister(self._stop)

    def _react(self, job: TrainingJob, event: dict[str, Any]) -> None:
        """The job in this process has reported something: others may start beside it."""
        self._note(job, event)
        work = event.get("items", 0) * event.get("epochs", 0) * len(self.waiting)
        if not self.started and work >= _WORTH_WORKERS:
            self._start()
        if self.started:
            self._receive(0)
            self._assign(here=1)

    def _note(self, job: TrainingJob, event: dict[str, Any]) -> None:
        if event.keys() >= _NEEDED:
            self.reports[job.path] = event
        if self.progress is not None:
            self.progress(job)(event)

    def _finish(self, outcome: Outcome) -> None:
        self.reports.pop(outcome.job.path, None)
        self.finished.append(outcome)

    def _receive(self, seconds: float) -> None:
        """Read what workers have sent, waiting for it so long, and forget those that died."""
        from multiprocessing.connection import wait

        wait(list(self.workers), seconds)
        for pipe, process in list(self.workers.items()):
            alive, sent = process.is_alive(), []  # what it sent before it died is in the pipe
            try:
                while pipe.poll():
                    sent.append(pipe.recv())
            except (EOFError, OSError):
                alive = False
            for message in sent:
                if isinstance(message, Outcome):
                    del self.running[pipe]
                    self._finish(message)
                else:
                    self._note(self.running[pipe], message)
            if not alive:
                del self.workers[pipe]
                if pipe in self.running:
                    self.reports.pop(self.running.pop(pipe).path, None)

    def _assign(self, here: int = 0) -> None:
        """Give jobs to workers that have none, while ``here`` jobs are trained in this process."""
        self.pace.update(self.reports, partial(_room, self.devices))
        for pipe in self.workers.keys() - self.running.keys():
            if self.waiting and len(self.running) + here < self.pace.now:
                with suppress(OSError):  # it has died, which is noticed when its pipe is read
                    pipe.send(self.waiting[0])
                    self.running[pipe] = self.waiting.pop(0)[0]


def _work(pipe: Any, file: Path, loaded: Sequence[str]) -> None:
    """Train what comes through the pipe, until the process at its other end closes it."""
    with suppress(EOFError, OSError, KeyboardInterrupt):
        for name in loaded:  # before there is a job: workers start while another is trained
            import_module(name)
        context, out = pickle.loads(file.read_bytes())
        while True:
            job, device = pipe.recv()
            pipe.send(run_job(context, job, out, device, lambda event: pipe.send(_plain(event))))


def _plain(event: dict[str, Any]) -> Any:
    """A report as JSON has it: a recipe may report what no pipe takes, or a tensor on a GPU."""

    def value(other: Any) -> float | str:
        with suppress(TypeError, ValueError):
            return float(other)
        return str(other)

    return json.loads(json.dumps(event, default=value))


def _survive(
    placed: Placed, together: Together, alone: Together | None = None
) -> Iterator[Outcome]:
    """All at once; after a crash each of the rest alone, so that the guilty one is known."""
    waiting = {job.path: (job, device) for job, device in placed}
    try:
        for outcome in together(placed):
            del waiting[outcome.job.path]
            yield outcome
    except Exception:  # a job's own errors are outcomes; this is a worker that died
        for job, device in list(waiting.values()):
            try:
                yield from (alone or together)([(job, device)])
            except Exception as error:  # it died again, on this job alone
                reason = " ".join(str(error).split())[:200]
                yield Outcome(job, f"its worker died, perhaps out of memory: {reason}")


def _on_dask(context: JobContext, placed: Placed, out: Path, engine: str) -> Iterator[Outcome]:
    with dask_client(engine) as client:

        def together(some: Placed) -> Iterator[Outcome]:
            from joblib import Parallel, delayed, parallel_config

            with parallel_config(backend="dask", client=client, scatter=[context]):
                parallel = Parallel(return_as="generator_unordered")
                for outcome in parallel(delayed(_run_remotely)(context, j, d) for j, d in some):
                    if not outcome.reason:
                        with whole_folder(out / outcome.job.folder) as folder:
                            for name, content in outcome.files.items():
                                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                                (folder / name).write_bytes(content)
                    yield replace(outcome, files={})

        yield from _survive(placed, together)


def _run_remotely(context: JobContext, job: TrainingJob, device: str | None) -> Outcome:
    """Run on a machine that may not see our folders; the files travel back."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_job(context, job, Path(folder), device)
        own = Path(folder) / job.folder
        return replace(outcome, files={name: (own / name).read_bytes() for name in sizes_of(own)})


def how_many_jobs(
    jobs: int | None, on_device: bool, devices: Sequence[str | None], by_pace: bool = False
) -> int:
    """Jobs at a time: as asked; else one for each device, or for each core.

    ``by_pace``: the most that may train at once on these GPUs.
    """
    if jobs is not None:
        if jobs < 1:
            raise InputError(
                f"jobs is {jobs}, but must be at least 1", "leave it out", parameters=("jobs",)
            )
        return jobs
    if on_device and not by_pace:
        return len(devices)
    from joblib import cpu_count

    cores = int(cpu_count())
    return max(len(devices), min(cores, _MOST_ON_GPU * len(devices))) if by_pace else cores


def on_gpus(devices: Sequence[str | None]) -> bool:
    """Whether these devices are GPUs whose memory can be asked for."""
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available() and all(str(one or "cuda")[:4] == "cuda" for one in devices)


def _room(devices: Sequence[str | None], size: float) -> int:
    """How many more of so many bytes the GPUs have memory for."""
    import torch

    room = []
    for device in devices:
        free, total = torch.cuda.mem_get_info(choose_device(device))
        room.append(int(max(0.0, free - _SPARE * total) // size))
    return len(room) * min(room)


def devices_for(on_device: bool, device: str | None) -> tuple[str | None, ...]:
    """The devices to take turns on: the one asked for, or every GPU that there is."""
    if not on_device or device not in (None, "cuda"):
        return (device,)
    try:
        import torch
    except ImportError:
        return (device,)
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return (device,) if count < 2 else tuple(f"cuda:{number}" for number in range(count))
