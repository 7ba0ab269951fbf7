"""Damage files of every kind for a while and hand them to every reader.

Each input is written before it is read, so that one which kills the process is still there. An
input that leads to anything but a valid object or a one-line error is kept, one for each place in
the code, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MEMORY = 4 << 30
"""Address space that a reader may ask for beyond what the libraries take."""
SECONDS = 20
"""How long one input may take on a busy machine."""


def in_memory() -> str | None:
    """A folder in memory, where there is one: files are written faster than read."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def bounded() -> None:
    """Bound the memory of this process; one that grows without end fails in it."""
    if not sys.platform.startswith("linux"):
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def place_of(error: BaseException) -> str:
    """Where in EDO an error arose, as a name for a file."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/edokit/" in frame.filename] or frames
    last = own[-1]
    return f"{type(error).__name__}-{Path(last.filename).stem}-{last.lineno}"


def too_long(*_: Any) -> None:
    raise TimeoutError(f"an input took more than {SECONDS} seconds")


def work(folder: Path, keep: Path, seconds: float, seed: int) -> None:
    """Damage and read until the time is over."""
    sys.path.insert(0, str(ROOT / "tests"))
    from fuzz_cases import another, read_everywhere, read_own, whole_files

    place = folder / "input"
    place.mkdir(exist_ok=True)
    whole = whole_files(place)
    names = sorted(whole)
    rng = random.Random(seed)
    end = time.monotonic() + seconds
    inputs: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    bounded()
    signal.signal(signal.SIGALRM, too_long)
    while time.monotonic() < end:
        name = rng.choice(names)
        path = place / name
        path.write_bytes(another(name, whole[name], rng))
        (folder / "now.txt").write_text(name)
        # Most inputs go where they belong, some everywhere.
        read = read_own if rng.random() < 0.85 else read_everywhere
        signal.alarm(SECONDS)
        try:
            accepted[name] += bool(read(path))
        except Exception as error:
            kept = keep / name / (place_of(error) + path.suffix)
            if not kept.exists():
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, kept)
                traceback.print_exc()
                print(f"kept as {kept}", file=sys.stderr)
        finally:
            signal.alarm(0)
        inputs[name] += 1
        path.write_bytes(whole[name])
        if sum(inputs.values()) % 500 == 0:
            save(folder, inputs, accepted)
    save(folder, inputs, accepted)


Counts = tuple[Counter[str], Counter[str], Counter[str]]


def count(folder: Path, keep: Path, numbers: Sequence[int], seed: int, networks: bool) -> Counts:
    """Mutations of these numbers, as many of each kind of file: how many were tried, were used and
    saved again, and broke the rule.

    The rule: a reader that the file is meant for refuses it in one line that names it, or what it
    read can be used and saved again.
    """
    sys.path.insert(0, str(ROOT / "tests"))
    from fuzz_cases import another, read_own, whole_files, whole_folders

    place = folder / "input"
    whole = whole_files(place)
    whole |= whole_folders(place, networks=networks)
    names = sorted(whole)
    bounded()
    signal.signal(signal.SIGALRM, too_long)
    counts: Counts = (Counter(), Counter(), Counter())
    tried, used, broken = counts
    for number in numbers:
        name = names[number % len(names)]
        path = place / name
        path.write_bytes(another(name, whole[name], random.Random(f"{seed} {number}")))
        (folder / "now.txt").write_text(name)
        signal.alarm(SECONDS)
        try:
            used[name] += read_own(path, name)
        except BaseException as error:  # a panic in Rust is no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            broken[name] += 1
            traceback.print_exc()
            print(f"mutation {number}: {_kept(path, keep, name, place_of(error))}", flush=True)
        finally:
            signal.alarm(0)
        tried[name] += 1
        # A training that was begun again may have written more.
        resumed = [other for other in names if other.startswith("trained/")]
        for other in resumed if name in resumed else [name]:
            (place / other).parent.mkdir(parents=True, exist_ok=True)
            (place / other).write_bytes(whole[other])
    return counts


def _kept(path: Path, keep: Path, name: str, place: str) -> Path:
    """Where a find is kept, one for each place in the code."""
    kept = keep / name / (place + path.suffix)
    if path.exists() and not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, kept)
    return kept


def count_all(inputs: int, jobs: int, keep: Path, seed: int, networks: bool) -> int:
    """So many mutations in processes beside each other; 1 if any broke the rule."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    total: Counts = (Counter(), Counter(), Counter())
    with tempfile.TemporaryDirectory(dir=in_memory()) as name:
        folders = [Path(name) / str(job) for job in range(jobs)]
        for folder in folders:
            folder.mkdir()
        with ProcessPoolExecutor(jobs) as pool:
            running = [
                pool.submit(count, folder, keep, range(job, inputs, jobs), seed, networks)
                for job, folder in enumerate(folders)
            ]
            try:
                for one in running:
                    for sum_, part in zip(total, one.result(), strict=True):
                        sum_.update(part)
            except BrokenProcessPool:
                for folder in folders:
                    file = (folder / "now.txt").read_text()
                    kept = _kept(folder / "input" / file, keep, file, "dead")
                    print(f"a process died, perhaps of {kept}")
                return 1
    print(f"{'file':>44} {'mutations':>9} {'refused':>8} {'used and saved':>14} {'broken':>6}")
    for name in [*sorted(total[0]), "all"]:
        n, good, bad = (part.total() if name == "all" else part[name] for part in total)
        print(f"{name:>44} {n:>9,} {n - good - bad:>8,} {good:>14,} {bad:>6,}")
    return 1 if total[2].total() else 0


def save(folder: Path, inputs: Counter[str], accepted: Counter[str]) -> None:
    """Keep the counts where they outlive the process."""
    (folder / "counts.json").write_text(json.dumps([inputs, accepted]))


def run(folder: Path, keep: Path, seconds: float, seed: int) -> list[Any]:
    """Work in a process of its own, since libraries written in C may end it; and again after."""
    end = time.monotonic() + seconds
    total: list[Counter[str]] = [Counter(), Counter()]
    while (left := end - time.monotonic()) > 1:
        command = [sys.executable, __file__, "--work", str(folder), "--keep", str(keep)]
        options = ["--seconds", str(left), "--seed", str(seed)]
        ran = subprocess.run([*command, *options], check=False)
        counts = folder / "counts.json"
        if counts.exists():
            for sum_, part in zip(total, json.loads(counts.read_text()), strict=True):
                sum_.update(part)
            counts.unlink()
        if ran.returncode == 0:
            break
        now = folder / "now.txt"
        if not now.exists():
            raise SystemExit(f"seed {seed}: exit status {ran.returncode} outside a reader")
        name = now.read_text()
        kept = keep / name / f"status-{-ran.returncode}-{seed}{Path(name).suffix}"
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "input" / name, kept)
        print(f"exit status {ran.returncode}: kept as {kept}", file=sys.stderr)
        now.unlink()
        seed += 1000
    return total


def show(inputs: Counter[str], accepted: Counter[str]) -> None:
    """How many inputs of each kind there were."""
    for name in sorted(inputs):
        print(f"{name:>16}: {inputs[name]:>9,} inputs, {accepted[name]:>9,} of them read as valid")
    print(f"{'all':>16}: {inputs.total():>9,} inputs, {accepted.total():>9,} of them read as valid")


def main() -> int:
    """Run for the time that is given; the exit status says whether all went well."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seconds", type=float, default=60.0)
    asked.add_argument("--seed", type=int, default=None, help="another one each time unless given")
    asked.add_argument("--jobs", type=int, default=1, help="processes")
    asked.add_argument("--keep", type=Path, default=Path("fuzz-found"), help="where finds are kept")
    asked.add_argument("--inputs", type=int, default=None, help="so many instead of a time")
    asked.add_argument("--networks", action="store_true", help="with --inputs: safetensors, too")
    asked.add_argument("--work", type=Path, default=None, help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.work is not None:
        work(given.work, given.keep, given.seconds, given.seed)
        return 0
    if given.inputs is not None:
        how = (given.keep, given.seed or 0, given.networks)
        return count_all(given.inputs, given.jobs, *how)
    from concurrent.futures import ThreadPoolExecutor

    seed = random.SystemRandom().randrange(2**31) if given.seed is None else given.seed
    before = {*given.keep.glob("*/*")}
    with tempfile.TemporaryDirectory(dir=in_memory()) as name:
        folders = [Path(name) / str(job) for job in range(given.jobs)]
        for folder in folders:
            folder.mkdir()
        with ThreadPoolExecutor(given.jobs) as pool:
            done = [
                pool.submit(run, folder, given.keep, given.seconds, seed + job)
                for job, folder in enumerate(folders)
            ]
        inputs, accepted = (
            sum(part, Counter()) for part in zip(*(one.result() for one in done), strict=True)
        )
    show(inputs, accepted)
    found = sorted({*given.keep.glob("*/*")} - before)
    print(f"seed {seed}: {len(found)} finds" + "".join(f"\n  {path}" for path in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
