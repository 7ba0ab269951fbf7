"""Where jobs run: in this process, in processes beside it, or on a Dask cluster."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from edokit._errors import InputError
from edokit._io.atomic import whole_folder
from edokit._parallel import dask_client
from edokit.members.jobs import JobContext, Outcome, TrainingJob, run_job, sizes_of
from edokit.members.recipe import Progress

LOCAL = "local"
_DASK = "dask://"
_START_SECONDS = 5.0  # what it takes to start workers and load the libraries there
_PATIENCE = 30  # seconds in which a cluster's first worker must answer
Placed = Sequence[tuple[TrainingJob, str | None]]
"""Jobs, and the device that each runs on."""


def run_jobs(
    context: JobContext,
    todo: Sequence[TrainingJob],
    out: Path,
    *,
    engine: str = LOCAL,
    jobs: int | None = None,
    devices: Sequence[str | None] = (None,),
    by_work: bool = False,
    progress: Callable[[TrainingJob], Progress] | None = None,
) -> Iterator[Outcome]:
    """Outcomes as they come; each finished job is in its folder by then.

    Jobs take the devices in turn. A worker that dies takes its job with it, no other. With
    ``by_work`` they start in this process, and workers are started for the rest once that is
    worth it: by the longest job so far, the rest would take more time here than it costs.
    """
    if not todo:
        return
    placed = [(job, devices[k % len(devices)]) for k, job in enumerate(todo)]
    if engine.startswith(_DASK):
        yield from _on_dask(context, placed, out, engine)
        return
    if engine != LOCAL:
        raise InputError(
            f"engine is {engine!r}, but must be 'local' or 'dask://host:port'",
            "leave it out to train on this machine",
            parameters=("engine",),
        )
    jobs, longest = min(jobs or 1, len(todo)), 0.0
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

    def together(some: Placed) -> Iterator[Outcome]:
        from joblib import Parallel, delayed

        # Two workers at least: with one, joblib would train in this process.
        parallel = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered")
        yield from parallel(delayed(run_job)(context, job, out, device) for job, device in some)

    yield from _survive(placed, together)


def _survive(placed: Placed, together: Callable[[Placed], Iterator[Outcome]]) -> Iterator[Outcome]:
    """All at once; after a crash each of the rest alone, so that the guilty one is known."""
    waiting = {job.path: (job, device) for job, device in placed}
    try:
        for outcome in together(placed):
            del waiting[outcome.job.path]
            yield outcome
    except Exception:  # a job's own errors are outcomes; this is a worker that died
        for job, device in list(waiting.values()):
            try:
                yield from together([(job, device)])
            except Exception as error:  # it died again, on this job alone
                reason = " ".join(str(error).split())[:200]
                yield Outcome(job, f"its worker died, perhaps out of memory: {reason}")


def _on_dask(context: JobContext, placed: Placed, out: Path, engine: str) -> Iterator[Outcome]:
    with dask_client(engine) as client:

        def together(some: Placed) -> Iterator[Outcome]:
            from joblib import Parallel, delayed, parallel_config

            with parallel_config(
                backend="dask", client=client, scatter=[context], wait_for_workers_timeout=_PATIENCE
            ):
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


def how_many_jobs(jobs: int | None, on_device: bool, devices: Sequence[str | None]) -> int:
    """Jobs at a time: as asked; else one for each device, or for each core."""
    if jobs is not None:
        if jobs < 1:
            raise InputError(
                f"jobs is {jobs}, but must be at least 1", "leave it out", parameters=("jobs",)
            )
        return jobs
    if on_device:
        return len(devices)
    from joblib import cpu_count

    return int(cpu_count())


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
