"""Where units are trained: in this process, in processes beside it, or on a Dask cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from edokit._errors import InputError
from edokit._parallel import dask_client
from edokit.members.jobs import JobContext, Outcome, TrainingJob, run_job
from edokit.members.recipe import Progress
from edokit.members.storing import whole_folder

LOCAL = "local"
_DASK = "dask://"
_PATIENCE = 30  # seconds in which a scheduler and its first worker must answer


def run_jobs(
    room: JobContext,
    units: Sequence[TrainingJob],
    members: Path,
    *,
    engine: str = LOCAL,
    jobs: int | None = None,
    devices: Sequence[str | None] = (None,),
    progress: Callable[[TrainingJob], Progress] | None = None,
) -> Iterator[Outcome]:
    """Outcomes as they come; each finished unit is in its folder by then.

    Units take the devices in turn. A worker that dies takes its unit with it, no other.
    """
    if not units:
        return
    placed = [(unit, devices[k % len(devices)]) for k, unit in enumerate(units)]
    if engine.startswith(_DASK):
        yield from _on_dask(room, placed, members, engine)
        return
    if engine != LOCAL:
        raise InputError(
            f"the engine must be 'local' or 'dask://host:port', but got {engine!r}",
            "leave it out to train on this machine",
        )
    jobs = min(jobs or 1, len(units))
    if jobs == 1:
        for unit, device in placed:
            note = None if progress is None else progress(unit)
            yield run_job(room, unit, members, device, note)
        return

    def together(some: Sequence[tuple[TrainingJob, str | None]]) -> Iterator[Outcome]:
        from joblib import Parallel, delayed

        # Two workers at least: with one, joblib would train in this process.
        parallel = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered")
        yield from parallel(delayed(run_job)(room, u, members, d) for u, d in some)

    yield from _survive(placed, together)


def _survive(
    placed: Sequence[tuple[TrainingJob, str | None]],
    together: Callable[[Sequence[tuple[TrainingJob, str | None]]], Iterator[Outcome]],
) -> Iterator[Outcome]:
    """All at once; after a crash each of the rest alone, so that the guilty one is known."""
    waiting = {unit.path: (unit, device) for unit, device in placed}
    try:
        for outcome in together(placed):
            del waiting[outcome.unit.path]
            yield outcome
    except Exception:  # a unit's own errors are outcomes; this is a worker that died
        for unit, device in list(waiting.values()):
            try:
                yield from together([(unit, device)])
            except Exception as error:  # it died again, on this unit alone
                reason = " ".join(str(error).split())[:200]
                yield Outcome(unit, f"its worker died, perhaps out of memory: {reason}")


def _on_dask(
    room: JobContext, placed: Sequence[tuple[TrainingJob, str | None]], members: Path, engine: str
) -> Iterator[Outcome]:
    with dask_client(engine) as client:

        def together(some: Sequence[tuple[TrainingJob, str | None]]) -> Iterator[Outcome]:
            from joblib import Parallel, delayed, parallel_config

            with parallel_config(
                backend="dask", client=client, scatter=[room], wait_for_workers_timeout=_PATIENCE
            ):
                parallel = Parallel(return_as="generator_unordered")
                for outcome in parallel(delayed(_train_far_away)(room, u, d) for u, d in some):
                    yield _bring_home(outcome, members)

        yield from _survive(placed, together)


def _train_far_away(room: JobContext, unit: TrainingJob, device: str | None) -> Outcome:
    """Train on a machine that may not see our folders; its files travel back."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_job(room, unit, Path(folder), device)
        place = Path(folder) / unit.path
        files = {
            file.relative_to(place).as_posix(): file.read_bytes()
            for file in place.rglob("*")
            if file.is_file()
        }
        return Outcome(unit, outcome.reason, outcome.notes, files)


def _bring_home(outcome: Outcome, members: Path) -> Outcome:
    if outcome.reason:
        return outcome
    with whole_folder(members / outcome.unit.path) as folder:
        for name, content in (outcome.files or {}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    return Outcome(outcome.unit, notes=outcome.notes)


def how_many_jobs(jobs: int | None, on_device: bool, devices: Sequence[str | None]) -> int:
    """Jobs at a time: as asked; else one for each device, or for each core."""
    if jobs is not None:
        if jobs < 1:
            raise InputError(f"jobs must be at least 1, but got {jobs}", "leave it out")
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
    if count < 2:
        return (device,)
    return tuple(f"cuda:{number}" for number in range(count))
