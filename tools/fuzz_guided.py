"""Damage files of every kind, and go on from those that reach code which none reached before.

Atheris watches which lines and branches of EDO's readers an input runs through. An input that
leads to anything but a valid object or a one-line error is kept, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import io
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import ModuleType

from fuzz_loaders import MEMORY, ROOT, SECONDS, bounded, in_memory

KINDS = [
    *("people.csv", "people.tsv", "people.jsonl", "people.parquet"),
    *("model.csv", "model.tsv", "model.jsonl", "model.parquet", "made.npz", "made.parquet"),
    *("tone_train.json", "studio.json", "argilla.json", "argilla.jsonl"),
    *("ensemble.json", "run.json", "search.json", "trials.parquet", "manifest.json"),
    *("member.json", "pool.toml", "texts.csv", "texts.txt"),
]
PACKAGES = [
    *(
        "edokit._io.npz",
        "edokit._io",
        "edokit._names",
        "edokit.annotations",
        "edokit.predictions",
    ),
    *("edokit.datasets", "edokit.runs", "edokit.ensemble", "edokit.report", "edokit.members"),
]
"""The code that is watched."""
LONGEST = 16_384
"""Bytes of an input."""


def watched() -> ModuleType:
    """The readers, watched by atheris; imported once, since it takes seconds."""
    import atheris

    sys.path.insert(0, str(ROOT / "tests"))
    # Libraries first: only what is named is watched, and looking at the others takes time.
    for name in ("pandas", "pyarrow.csv", "pyarrow.json", "pyarrow.parquet", "sklearn.base"):
        importlib.import_module(name)
    with (
        contextlib.redirect_stderr(io.StringIO()),
        atheris.instrument_imports(include=PACKAGES, enable_loader_override=False),
    ):
        return importlib.import_module("fuzz_cases")


def work(cases: ModuleType, folder: Path, name: str, options: list[str]) -> None:
    """Fuzz the readers of one kind of file, until libFuzzer ends the process."""
    import atheris

    # Forked from one that has imported the readers: what is saved again needs a folder of its own.
    place = folder / "input"
    corpus = folder / "corpus"
    cases._AGAIN = folder / "again"
    for new_folder in (place, corpus, cases._AGAIN):
        new_folder.mkdir()
    whole_files = cases.whole_files(place)
    (corpus / "whole").write_bytes(whole_files[name])
    path = place / name
    bounded()

    def read(content: bytes) -> None:
        path.write_bytes(content)
        try:
            cases.read_own(path)
        except BaseException:
            # Python may take seconds to end, and an alarm would then end it without the input.
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise

    def change(content: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.2:
            mutated: bytes = atheris.Mutate(content, most)
            return mutated
        return cases.another(name, content, rng)[:most]  # type: ignore[no-any-return]

    def cross(one: bytes, two: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        cut = rng.randrange(len(one) + 1)
        go_on = rng.randrange(len(two) + 1)
        return (one[:cut] + two[go_on:])[:most]

    atheris.Setup(
        [sys.argv[0], *options, str(corpus)],
        read,
        custom_mutator=change,
        custom_crossover=cross,
        internal_libfuzzer=True,
    )
    atheris.Fuzz()


class Kind:
    """One kind of file, fuzzed by a process of its own."""

    def __init__(self, cases: ModuleType, name: str, seconds: float, seed: int) -> None:
        self.name = name
        self.folder = Path(tempfile.mkdtemp(dir=in_memory()))
        options = [
            f"-max_total_time={max(1, round(seconds))}",
            f"-seed={seed}",
            f"-max_len={LONGEST}",
            f"-timeout={SECONDS}",
            f"-rss_limit_mb={MEMORY >> 20}",
            f"-artifact_prefix={self.folder}/found-",
            "-print_final_stats=1",
            "-len_control=0",
        ]
        sys.stdout.flush()
        self.process = os.fork()
        if self.process:
            return
        log = os.open(self.folder / "log", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        try:
            # After a find it leaves through the exit of Python, where libFuzzer keeps the input.
            work(cases, self.folder, name, options)
        except Exception:
            traceback.print_exc()
            os._exit(70)

    def ended(self, status: int, keep: Path) -> tuple[int, bool]:
        """The number of inputs, and whether all passed."""
        log = (self.folder / "log").read_text(errors="replace")
        crash_files = list(self.folder.glob("found-*"))
        for file in crash_files:
            kept_file = keep / self.name / (file.name[6:30] + Path(self.name).suffix)
            kept_file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, kept_file)
            print(f"{self.name}: kept as {kept_file}\n{_reason(log)}", flush=True)
        inputs = 0
        executed = re.search(r"number_of_executed_units: *(\d+)", log)
        if executed:
            inputs = int(executed[1])
        else:
            print(f"{self.name}: status {status}\n{log[-2000:]}", flush=True)
        coverage = ""
        reached = re.findall(r"cov: (\d+) ft: \d+", log)
        if reached:
            coverage = f", {reached[0]} → {reached[-1]} places reached"
        print(f"{self.name:>16}: {inputs:>9,} inputs{coverage}", flush=True)
        shutil.rmtree(self.folder)
        return inputs, status == 0 and inputs > 0 and not crash_files


def _reason(log: str) -> str:
    """The end of the traceback in what libFuzzer prints."""
    lines = log.splitlines()
    start = next((k for k, line in enumerate(lines) if "Uncaught Python" in line), 0)
    return "\n".join(line for line in lines[start : start + 40] if not line.startswith("#"))


def main() -> int:
    """Share the time among the kinds; the exit status says whether all went well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="for all kinds together")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this (repeatable)")
    parser.add_argument("--seed", type=int, default=None, help="another one each time unless given")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--keep", type=Path, default=Path("fuzz-found"), help="where finds are kept"
    )
    arguments = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print(
            "coverage-guided fuzzing needs atheris, which has wheels for Linux on x86-64:"
            " pip install atheris"
        )
        return 0
    seed = arguments.seed
    if seed is None:
        seed = random.SystemRandom().randrange(1, 2**31)
    started = time.monotonic()
    cases = watched()
    waiting = list(arguments.kind or KINDS)
    seconds_left = arguments.seconds - (time.monotonic() - started)
    share = seconds_left * arguments.jobs / len(waiting) - 2
    running: dict[int, Kind] = {}
    results: list[tuple[int, bool]] = []
    while waiting or running:
        while waiting and len(running) < arguments.jobs:
            kind = Kind(cases, waiting.pop(0), share, seed)
            running[kind.process] = kind
        process, status = os.wait()
        results.append(running.pop(process).ended(status, arguments.keep))
    total = sum(inputs for inputs, _ in results)
    took = time.monotonic() - started
    print(f"{'all':>16}: {total:>9,} inputs in {took:.0f} seconds, seed {seed}")
    return int(not all(passed for _, passed in results))


if __name__ == "__main__":
    sys.exit(main())
