"""Is this checkout slower than an earlier one? The same calls and commands, side by side.

    git worktree add ../earlier 50a361e9
    python benchmarks/versions.py ../earlier . --rounds 5

Every task runs in a process of its own with the ``src`` of one checkout on its path, and with the
same installed packages. The checkouts take turns; the median of the processor's seconds counts, on
one thread and without the start of Python where a call is timed. Written into RESULTS.md after
every task. What the earlier checkout needs and this one no longer does goes onto PYTHONPATH.

What defaults do has changed since: an ensemble also estimates how annotators differ, and pools have
other members. A command gets ``--no-people`` where it knows the flag; the pool is that of
``--quality fast`` in both, whose members are not the same. `edo evaluate` also looks for texts that
are near-duplicates, and imports scipy's sparse matrices for that. `edo search` writes a page whose
diagnosis permutes answers three times as often; the search itself is a row of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from results import machine, write_section

ROUNDS = 3
"""Processes of each checkout per task."""
ENOUGH = 1.5
"""Processor seconds of calls in a process, of which the quickest counts; at least two are made."""
SLOWER = 1.05
"""A ratio above this is called slower."""
ITEMS = 1_000
PER_ITEM = 5
REQUESTS = 300
TEXT = "the referee was kind to both teams today"


def prepare(folder: Path) -> None:
    """Write the table and the predictions that all tasks use."""
    import edokit
    from edokit.datasets.read import write_annotations

    simulation = edokit.simulate("crowd", items=(ITEMS, 1, 1))
    annotations = replace(simulation.annotations.split("train"), splits=None)
    write_annotations(annotations, folder / "table.csv")
    rng = np.random.default_rng(0)
    shares = np.asarray(annotations.soft_labels)
    logits = np.log(shares + 0.2)[:, None] + rng.normal(0, 1, (ITEMS, 20, 2))
    powers = np.exp(logits)
    probabilities = powers / powers.sum(axis=2, keepdims=True)
    np.savez(
        folder / "dev.npz",
        probabilities=probabilities,
        items=np.array(annotations.items, dtype=str),
        members=np.array([f"m{number}" for number in range(20)]),
        classes=np.array(annotations.classes),
    )
    pooled = edokit.Predictions.from_arrays(
        probabilities.mean(axis=1, keepdims=True),
        items=annotations.items,
        members=["pool"],
        classes=annotations.classes,
    )
    edokit.write_predictions(pooled, folder / "pool.npz")


# --- Calls, timed inside their process ------------------------------------------------------------


def fit_exact(folder: Path) -> Callable[[], object]:
    P, q = arrays(folder)
    return lambda: estimator().fit(P, q)


def fit_large(folder: Path) -> Callable[[], object]:
    P, q = arrays(folder)
    P = np.tile(P, (100, 1, 1))
    q = np.tile(q, (100, 1))
    return lambda: estimator().fit(P, q)


def fit_gumbel(folder: Path) -> Callable[[], object]:
    P, q = arrays(folder)
    return lambda: estimator(solver="gumbel").fit(P, q)


def search(folder: Path) -> Callable[[], object]:
    import edokit

    P, q = arrays(folder)
    return lambda: edokit.search(P, q, trials=50)


def evaluate(folder: Path) -> Callable[[], object]:
    import edokit

    annotations = edokit.read_annotations(folder / "table.csv")
    return lambda: edokit.evaluate(folder / "pool.npz", annotations)


def predict_proba(folder: Path) -> Callable[[], object]:
    P, q = arrays(folder)
    ensemble = estimator().fit(P, q)

    def calls() -> None:
        for _ in range(50):
            ensemble.predict_proba(P)

    return calls


def arrays(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The predictions [N, K, C] and soft labels [N, C] as bare arrays."""
    import edokit

    with np.load(folder / "dev.npz") as stored:
        probabilities = stored["probabilities"]
    labels = edokit.read_annotations(folder / "table.csv").soft_labels
    return probabilities, np.array(labels)


def estimator(**parameters: str):
    import edokit

    return edokit.EDOEnsemble(**parameters)


CALLABLES = {
    "`EDOEnsemble().fit(P, q)`, 1,000 × 20 × 2": fit_exact,
    "… 100,000 × 20 × 2": fit_large,
    '… with `solver="gumbel"`, 1,000 × 20 × 2': fit_gumbel,
    "`edokit.search(P, q, trials=50)`": search,
    "`edokit.evaluate`, 1,000 items": evaluate,
    "`predict_proba`, 50 times 1,000 items": predict_proba,
}


def time_calls(make: Callable[[Path], Callable[[], object]], folder: Path) -> float:
    """The least processor time of a call; the first one, which imports, does not count."""
    call = make(folder)
    call()
    seconds = []
    while len(seconds) < 2 or sum(seconds) < ENOUGH:
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)


# --- Commands, timed as processes -----------------------------------------------------------------

INPUTS = ["--predictions", "{data}/dev.npz", "--annotations", "{data}/table.csv"]
COMMANDS = {
    "`edo run --quality fast`, 5,000 annotations": [
        "run", "{data}/table.csv", "--quality", "fast", "--jobs", "1", "--out", "{out}"
    ],
    "`edo fit`": ["fit", *INPUTS, "--out", "{out}"],
    "`edo fit --solver gumbel`": ["fit", *INPUTS, "--solver", "gumbel", "--out", "{out}"],
    "`edo search --trials 50`": ["search", *INPUTS, "--trials", "50", "--out", "{out}"],
    "`edo evaluate`": [
        "evaluate", "--probabilities", "{data}/pool.npz", "--annotations", "{data}/table.csv"
    ],
}  # fmt: skip
OLD_DEFAULTS = ("--no-people",)
"""Flags that ask a later version for what the earlier one did."""
EDO = [sys.executable, "-c", "from edokit.cli import main; main()"]


def environment(checkout: Path) -> dict[str, str]:
    """The environment of a process that imports this checkout."""
    one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    folders = [str(checkout / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, **one_thread, "PYTHONPATH": os.pathsep.join(folders)}


def run_command(checkout: Path, arguments: list[str], data: Path, out: Path) -> float:
    """The processor time of a command with its children."""
    filled = [part.format(data=data, out=out) for part in arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*EDO, *filled], env=environment(checkout), check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def old_defaults(checkout: Path, command: str) -> list[str]:
    """The flags of `OLD_DEFAULTS` that a command of this checkout has."""
    page = subprocess.run(
        [*EDO, command, "--help"], env=environment(checkout), capture_output=True, text=True
    )
    return [flag for flag in OLD_DEFAULTS if flag in page.stdout]


def serve(checkout: Path, bundle: Path) -> float:
    """The processor time of a server for `REQUESTS` requests of one text each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [*EDO, "serve", str(bundle), "--port", str(port)],
        env=environment(checkout),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        ask(port, attempts=1200)
        before = processor_seconds(server.pid)
        for _ in range(REQUESTS):
            ask(port)
        return processor_seconds(server.pid) - before
    finally:
        server.terminate()
        server.wait()


def ask(port: int, attempts: int = 1) -> None:
    """Ask the server about one text; while it starts, ask again every half second."""
    body = json.dumps({"texts": [TEXT]}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/predict", body, headers)
    for attempt in range(attempts):
        try:
            with urllib.request.urlopen(request) as answer:
                answer.read()
            return
        except urllib.error.URLError:
            if attempt + 1 == attempts:
                raise
            time.sleep(0.5)


def processor_seconds(pid: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- Side by side ---------------------------------------------------------------------------------


def make_tasks(checkouts: Sequence[Path], data: Path) -> dict[str, Callable[[int], float]]:
    """Every task by name: the seconds that it takes in one of the checkouts, by its number."""
    tasks: dict[str, Callable[[int], float]] = {}
    for name, arguments in COMMANDS.items():

        def command(side: int, arguments: list[str] = arguments) -> float:
            flags = old_defaults(checkouts[side], arguments[0])
            out = data / f"{arguments[0]}-{side}"
            shutil.rmtree(out, ignore_errors=True)
            return run_command(checkouts[side], [*arguments, *flags], data, out)

        tasks[name] = command

    def served(side: int) -> float:
        return serve(checkouts[side], data / f"run-{side}")

    tasks[f"`edo serve`, {REQUESTS} requests of one text"] = served
    for name in CALLABLES:

        def call(side: int, name: str = name) -> float:
            program = [sys.executable, __file__, "--call", name, str(data)]
            printed = subprocess.check_output(program, env=environment(checkouts[side]), text=True)
            return float(printed.split()[-1])

        tasks[name] = call
    return tasks


def write_results(seconds: dict[str, list[list[float]]], earlier: str, rounds: int) -> None:
    """Write the rows that are measured so far."""
    rows = []
    slower = []
    for name, sides in seconds.items():
        before, after = (statistics.median(side) for side in sides)
        ratio = after / before
        rows.append(f"| {name} | {before:.3g} | {after:.3g} | {ratio:.2f} |")
        if ratio > SLOWER:
            slower.append(f"{name} ({ratio:.2f})")
    print(rows[-1], flush=True)
    paragraphs = (__doc__ or "").split("\n\n")
    lines = [
        f"    python benchmarks/versions.py EARLIER . --rounds {rounds}",
        machine("numpy", "scipy", "scikit-learn", "optuna"),
        f"Beside commit {earlier}, slower than {SLOWER} times is {', '.join(slower) or 'nothing'}.",
        *paragraphs[2:],
        "\n".join(
            ["| task | earlier (s) | later (s) | later / earlier |", "|---|---|---|---|", *rows]
        ),
    ]
    text = "\n\n".join(line.strip("\n") for line in lines)
    write_section("Beside an earlier version (`versions.py`)", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, help="the earlier and the later one")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--call", nargs=2, metavar=("TASK", "DATA"), help="one task, in here")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.call:
        name, folder = arguments.call
        print(time_calls(CALLABLES[name], Path(folder)))
        return
    checkouts = [folder.resolve() for folder in arguments.checkouts]
    seconds: dict[str, list[list[float]]] = {}
    with tempfile.TemporaryDirectory() as place:
        prepare(Path(place))
        for name, task in make_tasks(checkouts, Path(place)).items():
            seconds[name] = [[], []]
            for _ in range(arguments.rounds):
                for side in range(2):
                    seconds[name][side].append(task(side))
            write_results(seconds, commit(checkouts[0]), arguments.rounds)


def commit(checkout: Path) -> str:
    """The short name of the commit that is checked out."""
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
