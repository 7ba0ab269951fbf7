"""SIGKILL: at moments spread evenly over a run, and before each of its steps with a file."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from faults.cases import Case, Contents, Finished, check_whole, clear, hidden, result
from faults.tally import Tally
from faults.zygote import Ran, Zygote

ANY = "at any moment"
STEP = "at a step"
REPLACING = "while replacing"
WAYS = (ANY, STEP, REPLACING)


def undisturbed(zygote: Zygote, case: Case, out: Path) -> Ran:
    """Run a command undisturbed, and keep its results as those to expect."""
    clear(out)
    ran = zygote.run(case.argv(out), watch=watched(case, out))
    assert ran.status == 0, ran.stderr
    check_whole(out)
    assert len(case.finished(out)) == case.finishes
    case.expected.update(result(out))
    # Times are measured on a second run, when files are in the cache of the system.
    clear(out)
    ran = zygote.run(case.argv(out), watch=watched(case, out))
    assert result(out) == case.expected, f"two undisturbed runs of {case.name} differ"
    return ran


def watched(case: Case, out: Path) -> list[Path]:
    """The folders that a command writes to."""
    if case.scratch is None:
        return [out]
    return [out, case.scratch]


class Disturbed:
    """A folder in which a command is killed repeatedly before it may finish.

    ``before`` is a folder with the results of another command to start from.
    """

    def __init__(self, zygote: Zygote, case: Case, out: Path, before: Path | None = None) -> None:
        self.zygote = zygote
        self.case = case
        self.out = out
        self.finished: Finished = {}
        self.before: Contents = {}
        clear(out)
        if before is not None:
            shutil.copytree(before, out)
            self.before = result(out)
            self.finished = case.finished(out)

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
        self.finished = self.case.finished(self.out)

    def finish(self) -> Ran:
        """Let the command end, and compare its results with those of an undisturbed run."""
        ran = self.zygote.run(self.case.argv(self.out))
        assert ran.status == 0, ran.stderr
        self.after(ran)
        return ran

    def after(self, ran: Ran) -> None:
        """Check the folder after the command has ended successfully."""
        check_whole(self.out)
        self._nothing_lost()
        outcome = result(self.out)
        expected = self.case.expected
        differing = [
            name for name in {**outcome, **expected} if outcome.get(name) != expected.get(name)
        ]
        assert not differing, f"differs from the undisturbed run: {', '.join(differing)}"
        leftovers = hidden(self.out)
        assert not leftovers, f"left over: {', '.join(leftovers)}"
        scratch = self.case.scratch
        if scratch is not None and scratch.is_dir():
            assert not list(scratch.iterdir()), "the cache of a killed run is left over"

    def look(self) -> None:
        """Check the folder at any moment."""
        check_whole(self.out)
        self._nothing_lost()
        self.finished = self.case.finished(self.out)

    def _look(self, ran: Ran) -> bool:
        assert ran.killed or ran.status == 0, f"exit status {ran.status}: {ran.stderr}"
        self.look()
        expected = self.case.expected
        unexpected = [
            name
            for name, value in result(self.out).items()
            if value != expected.get(name) and value != self.before.get(name)
        ]
        assert not unexpected, f"neither the old nor the new result: {', '.join(unexpected)}"
        return ran.killed

    def _nothing_lost(self) -> None:
        finished = self.case.finished(self.out)
        lost = [name for name, state in self.finished.items() if finished.get(name) != state]
        assert not lost, f"finished, then lost or computed again: {', '.join(lost)}"


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
    """Kill a command ``times`` in each way, one to three times before it may finish.

    ``peace`` is the result of `undisturbed`, which else runs here.
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
    """Kill commands that run as new processes instead of forks of the zygote."""
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
    """A folder with the results of the command with other options."""
    folder = out.with_name("earlier")
    clear(folder)
    ran = zygote.run([*case.argv(folder), *case.earlier])
    assert ran.status == 0, ran.stderr
    return folder
