"""Disks that are full or read-only, and files that disappear under a running command."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.cases import Case, result, seen
from faults.kills import Disturbed
from faults.tally import Row, Tally
from faults.zygote import Ran, Zygote

PAGE = 4096
LOG = 2048
"""A limit on the size of files holds for what a command says, too."""


def can_mount(folder: Path) -> bool:
    """Whether small disks can be had here."""
    try:
        with SmallDisk(folder, 16 * PAGE):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


class SmallDisk:
    """A disk of ``size`` bytes that is removed afterwards."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        self.size = size

    def __enter__(self) -> SmallDisk:
        self.folder.mkdir(parents=True, exist_ok=True)
        _mount("-t", "tmpfs", "-o", f"size={self.size}", "tmpfs", str(self.folder))
        return self

    def __exit__(self, *error: object) -> None:
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True, capture_output=True)

    def again(self, options: str) -> None:
        """Mount it again with options: ``ro``, ``rw`` or ``size=…``."""
        _mount("-o", f"remount,{options}", str(self.folder))


class LockedFolder:
    """A folder that can be made read-only; not for root, whom permissions don't bind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> LockedFolder:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *error: object) -> None:
        self.again("rw")

    def again(self, options: str) -> None:
        """Make it read-only (``ro``) or writable (``rw``)."""
        mode = 0o755
        if options == "ro":
            mode = 0o555
        for path in [self.folder, *self.folder.rglob("*")]:
            if path.is_dir():
                path.chmod(mode)


def can_lock(folder: Path) -> bool:
    """Whether a folder can be made read-only here."""
    return os.geteuid() != 0 or can_mount(folder)


def _lockable(folder: Path) -> SmallDisk | LockedFolder:
    if can_mount(folder):
        return SmallDisk(folder, 1 << 26)
    return LockedFolder(folder)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)


def full_disk(zygote: Zygote, case: Case, folder: Path, tally: Tally, *, times: int) -> None:
    """Run on disks of growing size, from nearly none to almost the size that is needed."""
    row = tally.row("disk full", case.name)
    needed_pages = sum(
        -(-len(content) // PAGE) for content in _contents(zygote, case, folder / "out")
    )
    for k in range(times):
        pages = max(1, round((k + 0.5) / times * (needed_pages - 1)))
        with row.watched(), SmallDisk(folder / "disk", pages * PAGE) as disk:
            disturbed = Disturbed(zygote, case, disk.folder / "out")
            judge(row, disturbed, zygote.run(case.argv(disturbed.out)))
            disk.again("size=64m")
            disturbed.finish()
            row.well += 1


def full_scratch(zygote: Zygote, case: Case, folder: Path, tally: Tally, *, times: int) -> None:
    """Run with a cache on a disk that is full."""
    row = tally.row("scratch disk full", case.name)
    for k in range(times):
        with row.watched(), SmallDisk(folder / "disk", (k + 1) * PAGE) as disk:
            disturbed = Disturbed(zygote, case, folder / "out")
            words = [*case.argv(disturbed.out), "--scratch", disk.folder / "scratch"]
            judge(row, disturbed, zygote.run(words))
            assert not list(disk.folder.glob("scratch/*")), "a cache is left over"
            disturbed.finish()
            row.well += 1


def small_files(zygote: Zygote, case: Case, out: Path, tally: Tally, *, times: int) -> None:
    """Run with a limit on the size of a file, up to the size of the largest."""
    row = tally.row("file too large", case.name)
    largest = max(map(len, _contents(zygote, case, out)))
    for k in range(times):
        with row.watched():
            disturbed = Disturbed(zygote, case, out)
            limit = LOG + k * max(largest - LOG, 0) // times
            judge(row, disturbed, zygote.run(case.argv(out), largest=limit))
            disturbed.finish()
            row.well += 1


def read_only(zygote: Zygote, case: Case, folder: Path, tally: Tally, *, steps: list[int]) -> None:
    """A disk that is read-only after a run was killed at one of these steps: nothing changes."""
    row = tally.row("read-only folder", case.name)
    for step in steps:
        with row.watched(), _lockable(folder / "disk") as disk:
            disturbed = Disturbed(zygote, case, disk.folder / "out")
            disturbed.kill_before(step)
            before = result(disturbed.out)
            disk.again("ro")
            judge(row, disturbed, zygote.run(case.argv(disturbed.out)))
            assert result(disturbed.out) == before, "a file changed on a read-only disk"
            disk.again("rw")
            disturbed.finish()
            row.well += 1


def input_deleted(
    zygote: Zygote, case: Case, out: Path, tally: Tally, *, times: int, seconds: float
) -> None:
    """An input that is deleted at moments spread evenly over the run, and comes back later."""
    row = tally.row("input deleted", case.name)
    for k in range(times):
        path = case.inputs[k % len(case.inputs)]
        with row.watched():
            disturbed = Disturbed(zygote, case, out)
            running = zygote.start(case.argv(out))
            time.sleep((k + 0.5) / times * seconds)
            with _away(path):
                judge(row, disturbed, running.wait())
            disturbed.finish()
            row.well += 1


def input_overwritten(
    zygote: Zygote, case: Case, out: Path, tally: Tally, *, times: int, seconds: float
) -> None:
    """An input that is overwritten with noise while the command runs, and restored later."""
    row = tally.row("input overwritten", case.name)
    for k in range(times):
        path = case.inputs[k % len(case.inputs)]
        if path.is_dir():
            path = sorted(file for file in path.rglob("*") if file.is_file())[0]
        with row.watched():
            disturbed = Disturbed(zygote, case, out)
            running = zygote.start(case.argv(out))
            time.sleep((k + 0.5) / times * seconds)
            content = path.read_bytes()
            try:
                path.write_bytes(random.Random(k).randbytes(len(content)))
                judge(row, disturbed, running.wait())
            finally:
                path.write_bytes(content)
            disturbed.finish()
            row.well += 1


def output_deleted(
    zygote: Zygote, case: Case, out: Path, tally: Tally, *, times: int, rng: random.Random
) -> None:
    """Delete one of the results as soon as there is the first, the second and so on."""
    row = tally.row("output deleted", case.name)
    for k in range(times):
        with row.watched():
            disturbed = Disturbed(zygote, case, out)
            running = zygote.start(case.argv(out))
            while len(seen(out)) <= k and not running.done():
                time.sleep(0.001)
            files = seen(out)
            if files:
                rng.choice(files).unlink(missing_ok=True)
            # What was taken away is missing until the command is run again.
            judge(row, disturbed, running.wait(), look=False)
            disturbed.finish()
            row.well += 1


def torn_journal(
    zygote: Zygote,
    case: Case,
    out: Path,
    tally: Tally,
    *,
    times: int,
    steps: int,
    rng: random.Random,
) -> None:
    """A search is killed, and the end of its journal is lost as in a power cut."""
    row = tally.row("journal cut off", case.name)
    for _ in range(times):
        with row.watched():
            disturbed = Disturbed(zygote, case, out)
            disturbed.kill_before(rng.randint(steps // 4, steps))
            journal = out / "search" / "journal.log"
            disturbed.cut(journal, rng.randint(0, journal.stat().st_size))
            row.times += 1
            disturbed.finish()
            row.well += 1


def judge(row: Row, one: Disturbed, ran: Ran, *, look: bool = True) -> None:
    """A fault struck: the command ended well all the same, or with one line on what is wrong.

    ``look``: and its folder is as it must be.
    """
    row.times += 1
    if ran.status != 0:
        assert ran.one_line, f"exit status {ran.status}: {ran.stderr[-400:]}"
        row.refused += 1
    if look and ran.status == 0:
        one.after(ran)
    elif look:
        one.look()


def _contents(zygote: Zygote, case: Case, out: Path) -> list[bytes]:
    """Of all files that a command writes."""
    Disturbed(zygote, case, out).finish()
    return [file.read_bytes() for file in seen(out)]


@contextmanager
def _away(path: Path) -> Iterator[None]:
    """A file is not there for a while."""
    hidden = path.with_name(path.name + ".away")
    os.rename(path, hidden)
    try:
        yield
    finally:
        os.rename(hidden, path)
