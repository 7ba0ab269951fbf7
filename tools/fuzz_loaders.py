"""Damage files of every kind for a while and hand them to every reader.

Each input is written before it is read, so that one which kills the process is still there. The
first input that leads to anything but a valid object or a one-line error is kept, and the exit
status is 1.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def work(folder: Path, seconds: float, seed: int) -> None:
    """Damage and read until the time is over."""
    sys.path.insert(0, str(ROOT / "tests"))
    from fuzz_cases import another, read_everywhere, whole_files

    (folder / "whole").mkdir(exist_ok=True)
    whole = whole_files(folder / "whole")
    place = folder / "input"
    place.mkdir(exist_ok=True)
    rng = random.Random(seed)
    end = time.monotonic() + seconds
    inputs = accepted = 0
    while time.monotonic() < end:
        name = rng.choice(sorted(whole))
        (place / name).write_bytes(another(name, whole[name], rng))
        (folder / "now.txt").write_text(name)
        accepted += read_everywhere(place / name) > 0
        inputs += 1
        (place / name).unlink()
    print(f"seed {seed}: {inputs} inputs, {accepted} of them read as valid by some reader")


def main() -> int:
    """Run for the time that is given; the exit status says whether all went well."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seconds", type=float, default=60.0)
    asked.add_argument("--seed", type=int, default=None, help="another one each time unless given")
    asked.add_argument("--keep", type=Path, default=Path("fuzz-found"), help="where finds are kept")
    asked.add_argument("--work", type=Path, default=None, help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.work is not None:
        work(given.work, given.seconds, given.seed)
        return 0
    seed = random.SystemRandom().randrange(2**31) if given.seed is None else given.seed
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, __file__, "--seconds", str(given.seconds)]
        # A process of its own: libraries written in C may end it.
        ran = subprocess.run([*command, "--seed", str(seed), "--work", name], check=False)
        if ran.returncode == 0:
            return 0
        now = folder / "now.txt"
        found = folder / "input" / now.read_text() if now.exists() else None
        if found is not None and found.exists():
            given.keep.mkdir(parents=True, exist_ok=True)
            kept = shutil.copy(found, given.keep / f"{seed}-{found.name}")
            print(f"seed {seed}: exit status {ran.returncode}; the input is kept as {kept}")
        else:
            print(f"seed {seed}: exit status {ran.returncode} outside a reader")
        return 1


if __name__ == "__main__":
    sys.exit(main())
