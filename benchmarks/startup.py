"""How long do `edo` and the import take, how much memory, and what is imported?

    python benchmarks/startup.py

Writes its table into ``benchmarks/RESULTS.md``. Every run is a process of its own; a bare Python
that does nothing is measured beside them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from results import machine, write_section

HEAVY = ("numpy", "scipy", "pandas", "pyarrow", "sklearn", "optuna", "altair", "torch")
# What a process has seen at its end, as its last line on stderr: most memory, and heavy imports.
REPORT = f"""
import atexit, sys
def tell():
    import resource, time
    try:
        with open("/proc/self/status") as status:
            most = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    except OSError:
        # KB on Linux, bytes on macOS.
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    loaded = [name for name in {HEAVY!r} if name in sys.modules]
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = time.process_time() + workers.ru_utime + workers.ru_stime
    print(most, processor, *loaded, file=sys.stderr)
atexit.register(tell)
"""
ANSWERS = 200
TRAININGS = {
    "`edo train --jobs 1` (300 texts, 4 linear members)": ("--jobs", "1"),
    "`edo train --jobs 2`": ("--jobs", "2"),
    "`edo train`": (),
}


def command(*arguments: str) -> str:
    """Code that does what the script `edo` does."""
    return f"import sys\nsys.argv = {['edo', *arguments]!r}\nfrom edokit.cli import main\nmain()"


def small_files(folder: Path) -> tuple[str, str]:
    """200 items, five members and three people."""
    import numpy as np

    from edokit.predictions.core import Predictions
    from edokit.predictions.files import write_predictions

    rng = np.random.default_rng(0)
    names = [f"i{number}" for number in range(ANSWERS)]
    P = rng.dirichlet([1.0, 1.0], size=(ANSWERS, 5))
    predictions = Predictions.from_arrays(
        P, layout="NKC", items=names, members=list("abcde"), classes=["no", "yes"]
    )
    write_predictions(predictions, folder / "dev.npz")
    lines = ["item,annotator,label"]
    for name in names:
        lines += [f"{name},p{person},{rng.choice(['no', 'yes'])}" for person in range(3)]
    (folder / "answers.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(folder / "dev.npz"), str(folder / "answers.csv")


def small_texts(folder: Path) -> str:
    """300 texts with three people's labels and splits."""
    from edokit import simulate, write_annotations

    people = simulate("two-camps", items=(180, 60, 60), random_state=0).annotations
    write_annotations(people, folder / "texts.csv")
    return str(folder / "texts.csv")


class Run(NamedTuple):
    seconds: float
    processor: float  # seconds of it, workers included, which other work lengthens less
    memory: float  # MB
    heavy: list[str]


def measure(code: str, rounds: int) -> Run:
    """Medians over as many processes."""
    # Modules are compiled once, as installers do, not in every process.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    taken = []
    heavy = []
    for _ in range(rounds):
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", REPORT + code], capture_output=True, text=True, env=environment
        )
        seconds = time.perf_counter() - start
        if done.returncode:
            raise RuntimeError(done.stderr)
        most, processor, *heavy = done.stderr.splitlines()[-1].split()
        taken.append((seconds, float(processor), float(most) / 1e3))
    return Run(*(statistics.median(each) for each in zip(*taken, strict=True)), heavy)


def verdict(seconds: float, aim: float) -> str:
    return f"{'reached' if seconds < aim else 'missed'}, {seconds:.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="the median counts")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        predictions, answers = small_files(folder)
        fit = ["fit", "--predictions", predictions, "--annotations", answers]
        tasks = {
            "a bare Python": "pass",
            "`import numpy`": "import numpy",
            "`import sklearn.base`": "import sklearn.base",
            "`import edokit`": "import edokit",
            "`from edokit import EDOEnsemble`": "from edokit import EDOEnsemble",
            "`edo --help`": command("--help"),
            "`edo fit` (200 items, 5 members)": command(*fit, "--out", str(folder / "run")),
        }
        script = {
            "data info": [answers],
            "fit": [*fit[1:], "--out", str(folder / "five"), "--overwrite"],
            "predict": [
                *(str(folder / "five"), "--predictions", predictions),
                *("--out", str(folder / "dev.csv")),
            ],
            "evaluate": ["--probabilities", str(folder / "dev.csv"), "--annotations", answers],
            "report": [str(folder / "five"), "--out", str(folder / "report.html")],
        }
        for name, given in script.items():
            tasks[f"… `edo {name}`"] = command(*name.split(), *given)
        train = ("train", small_texts(folder), "--members", "4", "--overwrite")
        for what, more in TRAININGS.items():
            out = str(folder / f"members {len(tasks)}")
            fresh = f"import shutil\nshutil.rmtree({out!r}, ignore_errors=True)\n"
            tasks[what] = fresh + command(*train, "--out", out, *more)
        # In turns, so that other work on the machine lengthens all of them alike.
        turns = [{what: measure(code, 1) for what, code in tasks.items()} for _ in range(rounds)]
        found = {
            what: Run(
                *(
                    statistics.median(values)
                    for values in zip(*(turn[what][:3] for turn in turns), strict=True)
                ),
                turns[0][what].heavy,
            )
            for what in tasks
        }
    numpy, base = (found[f"`import {name}`"].processor for name in ("numpy", "sklearn.base"))
    five = [run for what, run in found.items() if what.startswith("… ")]
    lines = [
        "| | seconds | of the processor | × `import numpy` | × `import sklearn.base` | most memory"
        " | imports |",
        "|---|---|---|---|---|---|---|",
    ]
    for what, run in found.items():
        cells = f"{run.seconds:.3f} | {run.processor:.3f}"
        cells += f" | {run.processor / numpy:.1f} | {run.processor / base:.2f}"
        loaded = ", ".join(run.heavy) or "none of these"
        lines.append(f"| {what} | {cells} | {run.memory:.0f} MB | {loaded} |")
    fitted = found["`edo fit` (200 items, 5 members)"]
    ensemble = found["`from edokit import EDOEnsemble`"]
    helped = found["`edo --help`"].processor
    imported = found["`import edokit`"].processor
    alone, workers, decided = (found[what].processor for what in TRAININGS)
    unasked = [what for what, run in found.items() if "torch" in run.heavy]
    verdicts = [
        f"- `edo --help` under 0.5 s: {'reached' if helped < 0.5 else 'missed'}.",
        f"- `import edokit` under 1 s: {'reached' if imported < 1 else 'missed'}. What a name needs"
        " is imported when it is first used.",
        f"- `from edokit import EDOEnsemble`, a scikit-learn estimator, takes"
        f" {ensemble.processor / base:.2f} times as long as `import sklearn.base`, `edo fit` on a"
        f" few hundred items {fitted.processor / base:.2f} times.",
        "- A script of five commands (info, fit, predict, evaluate, report) under 8 s:"
        f" {verdict(sum(run.processor for run in five), 8)}.",
        "- A small training starts no workers: `edo train` of four linear members takes"
        f" {decided / alone:.2f} times as long as with `--jobs 1`; with two workers it"
        f" would be {workers / alone:.1f} times.",
        f"- torch is not imported: {'missed by ' + ', '.join(unasked) if unasked else 'reached'}.",
    ]
    text = "\n\n".join(
        [
            "    python benchmarks/startup.py",
            f"{machine('numpy', 'cyclopts', 'scikit-learn')} Medians of {rounds} processes each,"
            " in turns; verdicts and multiples are of seconds of the processor, which other work on"
            " the machine lengthens less than those on the clock.",
            "\n".join(verdicts),
            "\n".join(lines),
            f"*Imports*: which of {', '.join(HEAVY)} the process had loaded at its end.",
        ]
    )
    write_section("Start-up (`startup.py`)", text)


if __name__ == "__main__":
    main()
