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
IN_SCRIPT = "…"
"""Begins the titles of the commands of a script."""
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
    """The cost of a process."""

    seconds: float
    processor: float  # seconds of it, workers included, which other work lengthens less
    memory: float  # MB
    heavy: list[str]


def measure(code: str) -> Run:
    """The cost of a process that runs this code."""
    # Modules are compiled once, as installers do, not in every process.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", REPORT + code], capture_output=True, text=True, env=environment
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(done.stderr)
    memory, processor, *heavy = done.stderr.splitlines()[-1].split()
    return Run(seconds, float(processor), float(memory) / 1e3, heavy)


def median_run(runs: list[Run]) -> Run:
    """The medians of several runs of the same code."""
    return Run(
        statistics.median(run.seconds for run in runs),
        statistics.median(run.processor for run in runs),
        statistics.median(run.memory for run in runs),
        runs[0].heavy,
    )


def verdict(is_reached: bool) -> str:
    """Whether an aim was reached, in a word."""
    return "reached" if is_reached else "missed"


def codes(folder: Path) -> dict[str, str]:
    """The code of every task by its title."""
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
    for name, arguments in script.items():
        tasks[f"{IN_SCRIPT} `edo {name}`"] = command(*name.split(), *arguments)
    train = ("train", small_texts(folder), "--members", "4", "--overwrite")
    for title, options in TRAININGS.items():
        out = str(folder / f"members {len(tasks)}")
        new_folder = f"import shutil\nshutil.rmtree({out!r}, ignore_errors=True)\n"
        tasks[title] = new_folder + command(*train, "--out", out, *options)
    return tasks


def measure_in_turns(rounds: int) -> dict[str, Run]:
    """The median cost of every task.

    Tasks take turns, so that other work on the machine lengthens all of them alike.
    """
    runs: dict[str, list[Run]] = {}
    with tempfile.TemporaryDirectory() as name:
        tasks = codes(Path(name))
        for _ in range(rounds):
            for title, code in tasks.items():
                runs.setdefault(title, []).append(measure(code))
    return {title: median_run(task_runs) for title, task_runs in runs.items()}


def verdicts(runs: dict[str, Run]) -> list[str]:
    """The aims, and whether they were reached."""
    base = runs["`import sklearn.base`"].processor
    fit = runs["`edo fit` (200 items, 5 members)"].processor
    ensemble = runs["`from edokit import EDOEnsemble`"].processor
    help_seconds = runs["`edo --help`"].processor
    import_seconds = runs["`import edokit`"].processor
    script = sum(run.processor for title, run in runs.items() if title.startswith(IN_SCRIPT))
    one_job, two_jobs, chosen_jobs = (runs[title].processor for title in TRAININGS)
    with_torch = [title for title, run in runs.items() if "torch" in run.heavy]
    torch_verdict = "reached"
    if with_torch:
        torch_verdict = f"missed by {', '.join(with_torch)}"
    return [
        f"- `edo --help` under 0.5 s: {verdict(help_seconds < 0.5)}.",
        f"- `import edokit` under 1 s: {verdict(import_seconds < 1)}. What a name needs"
        " is imported when it is first used.",
        f"- `from edokit import EDOEnsemble`, a scikit-learn estimator, takes"
        f" {ensemble / base:.2f} times as long as `import sklearn.base`, `edo fit` on a"
        f" few hundred items {fit / base:.2f} times.",
        "- A script of five commands (info, fit, predict, evaluate, report) under 8 s:"
        f" {verdict(script < 8)}, {script:.2f} s.",
        "- A small training starts no workers: `edo train` of four linear members takes"
        f" {chosen_jobs / one_job:.2f} times as long as with `--jobs 1`; with two workers it"
        f" would be {two_jobs / one_job:.1f} times.",
        f"- torch is not imported: {torch_verdict}.",
    ]


def table(runs: dict[str, Run]) -> list[str]:
    """The cost of every task."""
    numpy = runs["`import numpy`"].processor
    base = runs["`import sklearn.base`"].processor
    lines = [
        "| | seconds | of the processor | × `import numpy` | × `import sklearn.base` | most memory"
        " | imports |",
        "|---|---|---|---|---|---|---|",
    ]
    for title, run in runs.items():
        cells = [
            title,
            f"{run.seconds:.3f}",
            f"{run.processor:.3f}",
            f"{run.processor / numpy:.1f}",
            f"{run.processor / base:.2f}",
            f"{run.memory:.0f} MB",
            ", ".join(run.heavy) or "none of these",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Measure, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="the median counts")
    rounds = parser.parse_args().rounds
    runs = measure_in_turns(rounds)
    text = "\n\n".join(
        [
            "    python benchmarks/startup.py",
            f"{machine('numpy', 'cyclopts', 'scikit-learn')} Medians of {rounds} processes each,"
            " in turns; verdicts and multiples are of seconds of the processor, which other work on"
            " the machine lengthens less than those on the clock.",
            "\n".join(verdicts(runs)),
            "\n".join(table(runs)),
            f"*Imports*: which of {', '.join(HEAVY)} the process had loaded at its end.",
        ]
    )
    write_section("Start-up (`startup.py`)", text)


if __name__ == "__main__":
    main()
