"""Damage files of every kind and hand them to their readers, some of them to every reader.

Each input is written before it is read, so that one which kills the process is still there. An
input that leads to anything but a valid object or a one-line error is kept, one for each place in
the code, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEMORY = 4 << 30
"""Address space that a reader may ask for beyond what the libraries take."""
SECONDS = 20
"""Seconds of a processor that one input may take."""


def in_memory() -> str | None:
    """A folder in memory if there is one, since writing files takes longer than reading them."""
    if Path("/dev/shm").is_dir():
        return "/dev/shm"
    return None


def bounded() -> None:
    """Bound the memory of this process; one that grows without end fails in it."""
    if not sys.platform.startswith("linux"):
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def place_of(error: BaseException) -> str:
    """Where in EDO an error arose, as a name for a file."""
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if "/edokit/" in frame.filename] or frames
    last_frame = own_frames[-1]
    return f"{type(error).__name__}-{Path(last_frame.filename).stem}-{last_frame.lineno}"


def too_long(*_: object) -> None:
    raise TimeoutError(f"an input took more than {SECONDS} seconds of a processor")


Counts = tuple[Counter[str], Counter[str], Counter[str]]


def count(folder: Path, keep: Path, numbers: Sequence[int], seed: int, networks: bool) -> Counts:
    """Try the mutations of these numbers, as many of each kind of file.

    Returns, by file, the numbers of mutations that were tried, that were used and saved again, and
    that broke the rule. The rule is that a reader of this kind of file refuses it in one line that
    names it, or that its result can be used and saved again.
    """
    sys.path.insert(0, str(ROOT / "tests"))
    from fuzz_cases import another, read_everywhere, read_own, whole_files, whole_folders

    place = folder / "input"
    originals = whole_files(place)
    originals |= whole_folders(place, networks=networks)
    names = sorted(originals)
    bounded()
    signal.signal(signal.SIGALRM, too_long)
    signal.signal(signal.SIGPROF, too_long)
    counts: Counts = (Counter(), Counter(), Counter())
    tried, n_used, broken = counts
    for number in numbers:
        name = names[number % len(names)]
        path = place / name
        rng = random.Random(f"{seed} {number}")
        path.write_bytes(another(name, originals[name], rng))
        (folder / "now.txt").write_text(name)
        # The alarm ends what waits for ever; other processes may have the processor.
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(30 * SECONDS)
        try:
            n_used[name] += read_own(path, name)
            if "/" not in name and rng.random() < 0.15:
                read_everywhere(path)
        except BaseException as error:  # a panic in Rust is not an Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            broken[name] += 1
            traceback.print_exc()
            print(f"mutation {number}: {_kept(path, keep, name, place_of(error))}", flush=True)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
        tried[name] += 1
        # A training that was begun again may have written more.
        changed_names = [name]
        if name.startswith("trained/"):
            changed_names = [other for other in names if other.startswith("trained/")]
        for changed_name in changed_names:
            (place / changed_name).parent.mkdir(parents=True, exist_ok=True)
            (place / changed_name).write_bytes(originals[changed_name])
    return counts


def _kept(path: Path, keep: Path, name: str, place: str) -> Path:
    """Where a find is kept, one for each place in the code."""
    kept_file = keep / name / (place + path.suffix)
    if path.exists() and not kept_file.exists():
        kept_file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, kept_file)
    return kept_file


def count_all(inputs: int, jobs: int, keep: Path, seed: int, networks: bool) -> int:
    """Try ``inputs`` mutations in several processes; returns 1 if any broke the rule."""
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
                for process in running:
                    for sum_, part in zip(total, process.result(), strict=True):
                        sum_.update(part)
            except BrokenProcessPool:
                for folder in folders:
                    file = (folder / "now.txt").read_text()
                    kept_file = _kept(folder / "input" / file, keep, file, "dead")
                    print(f"a process died, perhaps of {kept_file}")
                return 1
    print(f"{'file':>44} {'mutations':>9} {'refused':>8} {'used and saved':>14} {'broken':>6}")
    tried, n_used, broken = total
    for name in sorted(tried):
        print(count_line(name, tried[name], n_used[name], broken[name]))
    print(count_line("all", tried.total(), n_used.total(), broken.total()))
    n_refused = tried.total() - n_used.total() - broken.total()
    print(
        f"{tried.total():,} mutations: {n_refused:,} refused, {n_used.total():,} used and saved,"
        f" {broken.total():,} broken"
    )
    return int(broken.total() > 0)


def count_line(name: str, tried: int, n_used: int, broken: int) -> str:
    """A row of the table of counts."""
    return f"{name:>44} {tried:>9,} {tried - n_used - broken:>8,} {n_used:>14,} {broken:>6,}"


def main() -> int:
    """Try mutations; the exit status is 1 if any broke the rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000, help="mutations")
    parser.add_argument("--seed", type=int, default=None, help="another one each time unless given")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--keep", type=Path, default=Path("fuzz-found"), help="where finds are kept"
    )
    parser.add_argument("--networks", action="store_true", help="safetensors, too")
    arguments = parser.parse_args()
    seed = arguments.seed
    if seed is None:
        seed = random.SystemRandom().randrange(2**31)
    print(f"seed {seed}", flush=True)
    return count_all(arguments.inputs, arguments.jobs, arguments.keep, seed, arguments.networks)


if __name__ == "__main__":
    sys.exit(main())
