"""SIGKILL: at moments spread evenly over a run, and before each of its steps with a file."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from faults.cases import Case, check_whole, clear, hidden, result
from faults.tally import Tally
from faults.zygote import Ran, Zygote

WAYS = ANY, STEP, REPLACING = "at any moment", "at a step", "while replacing"


def undisturbed(zygote: Zygote, case: Case, out: Path) -> Ran:
    """Run a command in peace and keep what it wrote as what is wanted."""
    clear(out)
    ran = zygote.run(case.argv(out), watch=watched(case, out))
    assert ran.status == 0, ran.stderr
    check_whole(out)
    assert len(case.finished(out)) == case.finishes
    case.wanted.update(result(out))
    # The second one is what times are measured by: nothing is new to the system any more.
    clear(out)
    ran = zygote.run(case.argv(out), watch=watched(case, out))
    assert result(out) == case.wanted, f"two runs of {case.name} in peace differ"
    return ran


def watched(case: Case, out: Path) -> list[Path]:
    """Where a command writes."""
    return [out] if case.scratch is None else [out, case.scratch]


class Disturbed:
    """One folder that a command is killed in, again and again, before it may finish.

    ``before``: a folder that another command has filled, to begin with.
    """

    def __init__(self, zygote: Zygote, case: Case, out: Path, before: Path | None = None) -> None:
        self.zygote = zygote
        self.case = case
        self.out = out
        self.kept: dict[str, Any] = {}
        self.before: dict[str, Any] = {}
        clear(out)
        if before is not None:
            shutil.copytree(before, out)
            self.before = result(out)
            self.kept = case.finished(out)

    def kill_after(self, seconds: float, *, fresh: bool = False) -> bool:
        """Start, wait, kill; False if it ended before."""
        running = self.zygote.start(self.case.argv(self.out), fresh=fresh)
        time.sleep(max(0.0, seconds))
        running.kill()
        return self._look(running.wait())

    def kill_before(self, step: int) -> bool:
        """Start it and have it killed before its ``step``-th change of its folder."""
        return self._look(
            self.zygote.run(
                self.case.argv(self.out), watch=watched(self.case, self.out), kill_at=step
            )
        )

    def cut(self, file: Path, bytes_: int) -> None:
        """Take away the end of a file, as a power cut may."""
        with file.open("r+b") as stream:
            stream.truncate(bytes_)
        self.kept = self.case.finished(self.out)

    def finish(self) -> Ran:
        """Let the command end, and hold it against the run in peace."""
        ran = self.zygote.run(self.case.argv(self.out))
        assert ran.status == 0, ran.stderr
        self.after(ran)
        return ran

    def after(self, ran: Ran) -> None:
        """What must hold when the command has ended well."""
        check_whole(self.out)
        self._nothing_lost()
        outcome = result(self.out)
        differ = [
            name
            for name in {**outcome, **self.case.wanted}
            if outcome.get(name) != self.case.wanted.get(name)
        ]
        assert not differ, f"differs from the run in peace: {', '.join(differ)}"
        leftovers = hidden(self.out)
        assert not leftovers, f"left over: {', '.join(leftovers)}"
        scratch = self.case.scratch
        if scratch is not None and scratch.is_dir():
            assert not list(scratch.iterdir()), "the cache of a killed run is left over"

    def look(self) -> None:
        """What must hold at any moment."""
        check_whole(self.out)
        self._nothing_lost()
        self.kept = self.case.finished(self.out)

    def _look(self, ran: Ran) -> bool:
        assert ran.killed or ran.status == 0, f"exit status {ran.status}: {ran.stderr}"
        self.look()
        expected = self.case.wanted
        odd = [
            name
            for name, value in result(self.out).items()
            if value != expected.get(name) and value != self.before.get(name)
        ]
        assert not odd, f"neither as before nor as in peace: {', '.join(odd)}"
        return ran.killed

    def _nothing_lost(self) -> None:
        finished = self.case.finished(self.out)
        lost = [name for name, state in self.kept.items() if finished.get(name) != state]
        assert not lost, f"finished, then lost or done anew: {', '.join(lost)}"


def kill_often(
    zygote: Zygote,
    case: Case,
    out: Path,
    tally: Tally,
    *,
    times: int,
    rng: random.Random,
    ways: Sequence[str] = WAYS,
    end: float = float("inf"),
    peace: Ran | None = None,
) -> Ran:
    """Kill a command so many times in each way; one to three kills come before it may finish.

    ``peace``: what `undisturbed` gave, unless it is to be run here.
    """
    peace = peace or undisturbed(zygote, case, out)
    steps = list(range(1, peace.steps + 1))
    rng.shuffle(steps)
    for way in ways:
        row = tally.row(f"SIGKILL {way}", case.name)
        before = None
        if way == REPLACING:
            before = _earlier(zygote, case, out)
            # With results there already, it takes other steps.
            Disturbed(zygote, case, out, before)
            steps = list(range(1, zygote.run(case.argv(out), watch=watched(case, out)).steps + 1))
            rng.shuffle(steps)
        tried = 0
        while tried < times and row.failing < 3 and time.monotonic() < end:
            with row.watched():
                disturbed = Disturbed(zygote, case, out, before)
                for _ in range(rng.randint(1, 3)):
                    if way == ANY:
                        # A little beyond the end, too: that is where results are written.
                        share = (tried % times + rng.random()) / times
                        hit = disturbed.kill_after(1.02 * share * peace.seconds)
                    else:
                        hit = disturbed.kill_before(steps[tried % len(steps)])
                    tried += 1
                    row.times += hit
                disturbed.finish()
                row.well += 1
    return peace


def kill_new_processes(
    zygote: Zygote, case: Case, out: Path, tally: Tally, *, times: int, end: float = float("inf")
) -> None:
    """The same without the short cut: as processes that start by themselves, and start others."""
    row = tally.row("SIGKILL, new process", case.name)
    undisturbed(zygote, case, out)
    clear(out)
    peace = zygote.run(case.argv(out), fresh=True)
    for k in range(times):
        if time.monotonic() > end:
            return
        with row.watched():
            disturbed = Disturbed(zygote, case, out)
            # What comes first is imports.
            row.times += disturbed.kill_after(
                (0.4 + 0.6 * (k + 0.5) / times) * peace.seconds, fresh=True
            )
            disturbed.finish()
            row.well += 1


def _earlier(zygote: Zygote, case: Case, out: Path) -> Path:
    """A folder that the command with other options has filled."""
    folder = out.with_name("earlier")
    clear(folder)
    ran = zygote.run([*case.argv(folder), *case.earlier])
    assert ran.status == 0, ran.stderr
    return folder
