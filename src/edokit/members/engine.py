"""Where jobs run: in this process, in processes beside it, or on a Dask cluster."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
_SILENCE = 10.0  # seconds after which workers that all ended without an answer are given up
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
        pace = Pace(jobs, len(devices))
        by_themselves = _by_pace(context, placed, out, pace, devices, progress)
        yield from _survive(placed, lambda _: by_themselves, _in_workers(context, out, 2))
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


def _by_pace(
    context: JobContext,
    placed: Placed,
    out: Path,
    pace: Pace,
    devices: Sequence[str | None],
    progress: Callable[[TrainingJob], Progress] | None,
) -> Iterator[Outcome]:
    """The first job in this process; once it has reported its pace, others in workers beside it.

    Workers start as soon as it reports that there is enough to learn from; where no job does, all
    run here. If a worker dies, what has finished comes first, then the error.
    """
    from joblib.externals.loky import FIRST_COMPLETED, ProcessPoolExecutor, wait

    waiting, running = list(placed), dict[Any, tuple[TrainingJob, Iterator[list[str]]]]()
    reports: dict[str, dict[str, float]] = {}
    executor: Any = None
    broken: Exception | None = None

    def note(job: TrainingJob, event: dict[str, Any]) -> None:
        nonlocal executor
        if event.keys() >= _NEEDED:
            reports[job.path] = event
        work = event.get("items", 0) * event.get("epochs", 0) * len(waiting)
        if executor is None and work >= _WORTH_WORKERS:
            # The libraries compute with one thread each: the cores are for the members.
            threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
            executor = ProcessPoolExecutor(pace.most, initializer=_load_libraries, env=threads)
            executor.submit(int)  # they start with the first task
        if progress is not None:
            progress(job)(event)

    def read(job: TrainingJob, lines: Iterator[list[str]]) -> None:
        for line in next(lines):
            note(job, json.loads(line))

    def grow(here: int) -> None:
        nonlocal broken
        for job, lines in running.values():
            read(job, lines)
        ended = [future for future in running if future.done()]
        if executor is None or broken or any(future.exception() for future in ended):
            return
        for future in ended:
            reports.pop(running[future][0].path, None)
        pace.update(reports, lambda size: _room(devices, size))
        while waiting and len(running) - len(ended) + here < pace.now:
            job, device = waiting[0]
            file = Path(folder) / str(len(waiting))
            try:
                future = executor.submit(_run_reporting, context, job, out, device, file)
            except Exception as error:  # a worker died before its first job; not the one here
                broken = error
                return
            running[future] = (job, _new_lines(file))
            del waiting[0]

    with tempfile.TemporaryDirectory(prefix="edo-") as folder:
        alive, silent = time.monotonic(), False
        try:
            while waiting or running:
                if not running:
                    job, device = waiting.pop(0)

                    def react(event: dict[str, Any], job: TrainingJob = job) -> None:
                        note(job, event)
                        grow(here=1)

                    outcome = run_job(context, job, out, device, react)
                    alive = time.monotonic()
                    reports.pop(job.path, None)
                    grow(here=0)
                    yield outcome
                done = wait(list(running), 0.5, FIRST_COMPLETED).done
                if done or not running or _any_alive(executor):
                    alive = time.monotonic()
                elif time.monotonic() - alive > _SILENCE:
                    silent = True
                    raise RuntimeError("all workers ended without an answer")
                for future in sorted(done, key=lambda one: one.exception() is not None):
                    job, lines = running.pop(future)
                    read(job, lines)
                    reports.pop(job.path, None)
                    yield future.result()
                if broken:
                    raise broken
                grow(here=0)
        finally:
            if executor is not None:
                executor.shutdown(wait=not silent, kill_workers=True)


def _any_alive(executor: Any) -> bool:
    processes = getattr(executor, "_processes", None)
    return processes is None or any(one.is_alive() for one in list(processes.values()))


def _load_libraries() -> None:
    """While the first member trains: what every worker needs, loaded side by side."""
    with suppress(Exception):  # a member that needs it says what is wrong
        from edokit.members.recipes import _trainer  # noqa: F401


def _new_lines(file: Path) -> Iterator[list[str]]:
    """Whenever asked, the whole lines that a file has got since."""
    at = 0
    while True:
        text = file.read_bytes()[at:] if file.exists() else b""
        whole, at = text[: text.rfind(b"\n") + 1], at + text.rfind(b"\n") + 1
        yield whole.decode().splitlines()


def _run_reporting(
    context: JobContext, job: TrainingJob, out: Path, device: str | None, file: Path
) -> Outcome:
    def report(event: dict[str, Any]) -> None:
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(event, default=_plain) + "\n")

    return run_job(context, job, out, device, report)


def _plain(value: Any) -> float | str:
    """A number of a library, or what is none, in JSON."""
    with suppress(TypeError, ValueError):
        return float(value)
    return str(value)


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
