"""Do to EDO's commands what happens on real machines, for some minutes, and count the outcomes.

Commands are killed, disks run full, files, databases and workers go away. Each time the command is
run again, and must end with the result of a run in peace without doing anything finished anew. The
exit status is 1 if something was lost or wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from soak import put_between

from faults import disk, kills
from faults.cases import Case, make_cases, make_inputs
from faults.database import database_away
from faults.endpoint import endpoint_fails
from faults.tally import Tally
from faults.workers import dask_worker_dies, own_worker_dies
from faults.zygote import Ran, Zygote

ROUND = 12
"""Kills in one way before the next command has its turn."""
OTHERS = 0.6
"""The share of the time after which no fault but a kill begins."""


def main() -> int:
    """Run for the time that is given."""
    parser = argparse.ArgumentParser(prog="python tools/faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None, help="another one each time unless given")
    parser.add_argument(
        "--write", type=Path, default=None, help="put the table into this page, between its marks"
    )
    arguments = parser.parse_args()
    seed = arguments.seed
    if seed is None:
        seed = random.SystemRandom().randrange(2**31)
    began = time.monotonic()
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="edo-faults-") as name:
        folder = Path(name)
        make_inputs(folder / "in")
        with Zygote(folder / "zygote") as zygote:
            cases = make_cases(folder / "in")
            # Whatever stops it, what was counted until then is shown.
            with tally.row("the harness itself", "").watched():
                rng = random.Random(seed)
                disturb(zygote, cases, folder, tally, rng, began, 60 * arguments.minutes)
    took = (time.monotonic() - began) / 60
    print(tally.table())
    for line in [f"not tried: {reason}" for reason in tally.skipped] + tally.troubles:
        print(line)
    print(f"seed {seed}, {took:.1f} minutes, {tally.killed} kills")
    if arguments.write is not None:
        write(arguments.write, tally, took)
    return int(bool(tally.troubles))


def disturb(
    zygote: Zygote,
    cases: dict[str, Case],
    folder: Path,
    tally: Tally,
    rng: random.Random,
    began: float,
    seconds: float,
) -> None:
    """Every fault once or a few times, then kills for the rest of the time."""
    out = folder / "out"
    end = began + seconds

    def late() -> bool:
        return time.monotonic() > began + OTHERS * seconds

    peace = {
        name: kills.kill_often(zygote, case, out, tally, times=4, rng=rng, end=end)
        for name, case in cases.items()
    }
    if not late():
        database_away(zygote, cases["search (exact)"], out, tally, seconds=(1, 10, 10))
    if not late():
        endpoint_fails(zygote, folder, tally, times=4, rng=rng, end=began + OTHERS * seconds)
    shared = [cases["train"], cases["fit --stream"]]
    if not late():
        dask_worker_dies(zygote, [cases["fit --stream"]], out, tally, times=3, rng=rng)
    if not late():
        own_worker_dies(zygote, shared, out, tally, times=2, rng=rng)
    if not disk.can_mount(folder / "disk"):
        tally.skipped.append("full disks (none can be mounted here)")
    for name, case in cases.items():
        if not late():
            _disks_and_files(zygote, case, folder, tally, rng, peace[name])
    for case in (_in_processes(cases["train"]), cases["search (gumbel)"], cases["fit --stream"]):
        kills.kill_new_processes(zygote, case, out, tally, times=4, end=end)
    while time.monotonic() < end and len(tally.troubles) < 20:
        for case in cases.values():
            kills.kill_often(zygote, case, out, tally, times=ROUND, rng=rng, end=end)


def _disks_and_files(
    zygote: Zygote, case: Case, folder: Path, tally: Tally, rng: random.Random, peace: Ran
) -> None:
    out = folder / "out"
    small = folder / "disk"
    disk.small_files(zygote, case, out, tally, times=2)
    disk.input_deleted(zygote, case, out, tally, times=4, seconds=peace.seconds)
    disk.input_overwritten(zygote, case, out, tally, times=4, seconds=peace.seconds)
    disk.output_deleted(zygote, case, out, tally, times=3, rng=rng)
    if disk.can_mount(small):
        disk.full_disk(zygote, case, folder, tally, times=4)
        if case.scratch is not None:
            disk.full_scratch(zygote, case, folder, tally, times=4)
    if disk.can_lock(small):
        steps = [1, peace.steps // 3, 2 * peace.steps // 3, peace.steps]
        disk.read_only(zygote, case, folder, tally, steps=steps)
    if case.name.startswith("search"):
        disk.torn_journal(zygote, case, out, tally, times=4, steps=peace.steps, rng=rng)


def _in_processes(case: Case) -> Case:
    return replace(case, argv=lambda out: [*case.argv(out), "--jobs", 2], expected={})


def write(page: Path, tally: Tally, minutes: float) -> None:
    """Put the table into a page, between its marks."""
    tried = "".join(f"\n\nNot tried: {reason}." for reason in tally.skipped)
    lines = f"{tally.killed} kills among {tally.times} faults, in {minutes:.0f} minutes:"
    put_between(page, "faults", f"{lines}\n\n{tally.table()}{tried}")


if __name__ == "__main__":
    sys.exit(main())
