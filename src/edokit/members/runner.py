"""Run training jobs: in this process, or several at a time in processes of their own."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from edokit._errors import check_number
from edokit._parallel import available_cores
from edokit._progress import Progress, no_progress
from edokit.members.jobs import Outcome, run_job
from edokit.members.plan import TrainingJob, TrainingPlan
from edokit.members.pretrained import choose_device, weight_bytes
from edokit.members.registry import find_recipe

_START_SECONDS = 5.0  # to start worker processes and load the libraries there
_MAX_PER_GPU = 8  # beyond this, members on one GPU slow each other down
_SPARE_MEMORY = 0.1  # share of a GPU's memory that stays free
_ACTIVATION_BYTES = 4 * 2**30  # of a batch, and of the CUDA context of the process
# Jobs with the device that each runs on.
PlacedJobs = Sequence[tuple[TrainingJob, str | None]]


def run_jobs(
    plan: TrainingPlan,
    jobs: Sequence[TrainingJob],
    out: Path,
    progress: Progress = no_progress,
) -> Iterator[Outcome]:
    """Yield outcomes of jobs of one kind as they finish; their folders are complete by then.

    The options of the plan say how many run at a time. If they do not, on GPUs as many run as fit
    into their memory; on CPUs, jobs run in this process until worker processes, one per core, would
    save time. If a worker dies, only its own job fails. Servers are asked by this process alone,
    which counts the costs. ``progress`` is called with the progress of jobs in this process.
    """
    capabilities = find_recipe(jobs[0].recipe).capabilities
    on_device = capabilities.trains_on_device
    devices: Sequence[str | None] = (plan.options.device,)
    if on_device:
        devices = available_devices(plan.options.device)
    waiting = [(job, devices[number % len(devices)]) for number, job in enumerate(jobs)]
    requested_jobs = plan.options.jobs
    if capabilities.endpoint:
        requested_jobs = 1
    shared_devices = None
    if on_device:
        shared_devices = devices
    n_jobs = min(count_jobs(requested_jobs, jobs, shared_devices), len(jobs))
    # Whether to start without workers, to learn how long a job takes.
    may_start_here = requested_jobs is None and not on_device
    longest_seconds = 0.0
    while waiting and (n_jobs == 1 or may_start_here):
        job, device = waiting.pop(0)
        started = time.perf_counter()
        yield run_job(plan, job, out, device, partial(_report, progress, job.path))
        longest_seconds = max(longest_seconds, time.perf_counter() - started)
        n_jobs = max(1, min(n_jobs, len(waiting)))
        saved_seconds = longest_seconds * len(waiting) * (1 - 1 / n_jobs)
        may_start_here = may_start_here and saved_seconds < _START_SECONDS
    if waiting:
        # Workers of an earlier call may be in another working directory.
        run = partial(run_job, plan, out=out.absolute())
        yield from _run_in_workers(run, waiting, n_jobs)


def _report(progress: Progress, member: str, done: int, total: int, task: str) -> None:
    """Pass on the progress of a member, with its name."""
    progress(done, total, f"{member}, {task}")


def _run_in_workers(
    run_job: Callable[..., Outcome], placed: PlacedJobs, n_jobs: int
) -> Iterator[Outcome]:
    """Run all jobs in workers; after a crash one by one, to find the job that crashes."""
    from joblib import Parallel, delayed

    def run(some_jobs: PlacedJobs) -> Iterator[Outcome]:
        # At least two workers: with one, joblib would run the job in this process.
        parallel = Parallel(max(n_jobs, 2), backend="loky", return_as="generator_unordered")
        outcomes = parallel(delayed(run_job)(job, device=device) for job, device in some_jobs)
        try:
            # `yield from` would close the outcomes itself, where the warning is not ignored.
            for outcome in outcomes:  # noqa: UP028
                yield outcome
        finally:  # joblib warns of jobs that the caller no longer waits for
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                outcomes.close()

    waiting = {job.path: (job, device) for job, device in placed}
    try:
        for outcome in run(placed):
            del waiting[outcome.job.path]
            yield outcome
    except Exception:  # errors of a job are outcomes, so a worker has died
        for job, device in list(waiting.values()):
            try:
                yield from run([(job, device)])
            except Exception as error:
                reason = " ".join(str(error).split())[:200]
                yield Outcome(job, f"its worker died, perhaps out of memory: {reason}")


def count_jobs(
    n_jobs: int | None, jobs: Sequence[TrainingJob], devices: Sequence[str | None] | None
) -> int:
    """Number of jobs to run at a time: ``n_jobs`` if set, else by the GPUs' memory or the cores.

    A member on a GPU needs about four times its weights (with gradients and the two moments of
    Adam), and the activations of a batch.
    """
    if n_jobs is not None:
        check_number("jobs", n_jobs, 1, whole=True)
        return n_jobs
    if devices is None:
        return available_cores()
    member_bytes = 4 * max(_weight_bytes(job) for job in jobs) + _ACTIVATION_BYTES
    fitting = min(_free_bytes(device) // member_bytes for device in devices)
    per_device = max(1, min(fitting, _MAX_PER_GPU, available_cores() // len(devices)))
    return int(per_device) * len(devices)


def _weight_bytes(job: TrainingJob) -> int:
    """The size of the pretrained weights that a job names; 0 if it names none."""
    name = find_recipe(job.recipe).capabilities.pretrained
    if name is None:
        return 0
    return weight_bytes(job.options.get(name))


def _free_bytes(device: str | None) -> int:
    """Memory of a GPU that members may use; 0 on other devices, where they run one by one."""
    import torch

    chosen_device = choose_device(device)
    if chosen_device.type != "cuda":
        return 0
    free_bytes, total_bytes = torch.cuda.mem_get_info(chosen_device)
    return int(free_bytes - _SPARE_MEMORY * total_bytes)


def available_devices(device: str | None) -> tuple[str | None, ...]:
    """The devices that jobs take in turn: the one asked for, or every GPU."""
    if device not in (None, "cuda"):
        return (device,)
    try:
        import torch
    except ImportError:
        return (device,)
    n_gpus = 0
    if torch.cuda.is_available():
        n_gpus = torch.cuda.device_count()
    if n_gpus < 2:
        return (device,)
    return tuple(f"cuda:{number}" for number in range(n_gpus))
