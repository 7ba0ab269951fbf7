"""How fast is a whole search, as users call it: the command `edo search`, and `edokit.search`?

    python benchmarks/search.py                  # against the literal search; needs torch
    python benchmarks/search.py --spaces         # the default space beside the paper's
    python benchmarks/search.py --grid           # the paper's full grid, on two cores
    python benchmarks/search.py --growth FILE    # cost against items, members and trials; a figure

Prints Markdown tables, the first two also into ``RESULTS.md``. How to read them:
``docs/search.md``.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import numpy as np
from gumbel_pools import Pool, make_pool
from joblib import Parallel, delayed
from results import machine, write_section
from seconds import Seconds, timed

from edokit.analysis.compare.method import make_method
from edokit.analysis.search import search
from edokit.analysis.search.options import SearchOptions
from edokit.analysis.search.space import SearchSpace
from edokit.analysis.search.statistics import Evaluator
from edokit.datasets.read import write_annotations
from edokit.datasets.simulate.regimes import REGIMES
from edokit.datasets.simulate.simulation import simulate
from edokit.fitdata.data import FitData
from edokit.metrics import ce
from edokit.objective.pools import softmax
from edokit.objective.summaries import Summaries
from edokit.predictions.core import Predictions
from edokit.predictions.files import write_predictions

if TYPE_CHECKING:
    import optuna

TRIALS = 50
POPULATION = 10


def literal(pool: Pool, space: SearchSpace, seed: int = 0) -> list[tuple[float, float, float]]:
    """The search as one would write it: a PyTorch loop per trial inside study.optimize."""
    import optuna
    import torch
    from gumbel_literal import OwnNoise, fit_literally

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    alpha = Summaries.from_arrays(*pool).class_weights()
    labels = np.eye(pool.q.shape[1])[pool.y]
    tensors = [torch.from_numpy(part).float() for part in (pool.P, pool.q, labels, alpha)]
    judge = FitData.from_arrays(*pool)
    plan = SearchOptions(space=space, population=POPULATION, random_state=seed).plan()

    def objective(trial: optuna.Trial) -> tuple[float, ...]:
        settings_of_trial = {}
        for name, distribution in plan.space.distributions().items():
            settings_of_trial[name] = suggested(trial, name, distribution)
        config = plan.fit_config(settings_of_trial, len(pool.y))
        settings = config.objective.resolve(config.pool)
        steps = config.solver.resolve(len(pool.y))
        weights, _ = fit_literally(*tensors, settings, steps, OwnNoise(trial.number))
        scores = judge.scores(weights[None], [config.pool]).estimates()[0]
        return tuple(scores[measure] for measure in ("f1", "ce", "md"))

    sampler = optuna.samplers.NSGAIISampler(population_size=POPULATION, seed=seed)
    study = optuna.create_study(directions=["maximize", "minimize", "minimize"], sampler=sampler)
    study.optimize(objective, n_trials=TRIALS)
    return [tuple(trial.values) for trial in study.trials]


def suggested(
    trial: optuna.Trial, name: str, distribution: optuna.distributions.BaseDistribution
) -> str | float | bool:
    """The value that a trial suggests for a setting."""
    if hasattr(distribution, "choices"):
        return trial.suggest_categorical(name, distribution.choices)
    return trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)


def lowest_literal_ce(pool: Pool, space: SearchSpace) -> float:
    """The lowest CE of the trials of the literal search."""
    return min(ce for _, ce, _ in literal(pool, space))


def ratios(rounds: int) -> None:
    """Compare the whole search with the literal one and with WEL's."""
    import torch

    # With steps this small more threads only slow PyTorch down.
    torch.set_num_threads(1)
    pool = make_pool("crowd", "graded")
    items, members, classes = pool.P.shape
    table = [
        "| space | other search | edokit | times faster | edokit, five folds | times faster "
        "| lowest CE: other | edokit |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(table))
    spaces = {"the paper's": SearchSpace.paper()}
    for kind in ("mean", "all", "random"):
        spaces[f"ce = {kind}"] = SearchSpace.paper(ce=kind)
    rivals: list[tuple[str, SearchSpace, Callable[[], float]]] = []
    for name, space in spaces.items():
        rivals.append((f"{name}, literal loop", space, partial(lowest_literal_ce, pool, space)))
    rivals.append(("the paper's, WEL's search", SearchSpace.paper(), partial(wel, pool)))
    ratio_by_rival: dict[str, float] = {}
    rival_times: dict[str, Seconds] = {}
    for name, space, rival in rivals:
        ours, result = timed(partial(search, pool.P, pool.q, space=space, folds=0), rounds)
        folds, _ = timed(partial(search, pool.P, pool.q, space=space, folds=5), rounds)
        theirs, lowest_ce = timed(rival)
        rival_times[name] = theirs
        ratio_by_rival[name] = theirs.processor / ours.processor
        table.append(
            f"| {name} | {theirs} | {ours} | {theirs.times(ours)} | {folds} "
            f"| {theirs.times(folds)} | {lowest_ce:.4f} | {result.chosen.ce:.4f} |"
        )
        print(table[-1], flush=True)
    paper_ratio, *_, wel_ratio = ratio_by_rival.values()
    literal_time, *_ = rival_times.values()
    ways = as_users_call_it(pool, rounds)
    command = ways[DEFAULT_COMMAND]
    calls = [
        "| what is timed, in the paper's space | seconds | times faster than the literal loop |",
        "|---|---|---|",
        f"| the literal loop | {literal_time} | |",
    ]
    for way, seconds in ways.items():
        clock_ratio = literal_time.clock / seconds.clock
        processor_ratio = literal_time.processor / seconds.processor
        calls.append(f"| {way} | {seconds} | {clock_ratio:.1f} / {processor_ratio:.1f} |")
    print("\n".join(["", *calls]), flush=True)
    text = [
        "    python benchmarks/search.py",
        "",
        machine("numpy", "torch", "optuna"),
        "",
        f"- `edokit.search` in memory and without folds: {paper_ratio:.0f} times as fast as the"
        f" literal loop in the paper's space, {min(ratio_by_rival.values()):.0f} to"
        f" {max(ratio_by_rival.values()):.0f} times in all rows of the second table.",
        f"- The command `edo search` as people type it, with five folds, the page and the start of"
        f" Python: {literal_time.processor / command.processor:.1f} times.",
        f"- Against WEL's search (Optuna over differential evolution): {wel_ratio:.0f} times.",
        "",
        f"{TRIALS} trials, population {POPULATION}, {items} items × {members} members × {classes}"
        " classes, Optuna's bookkeeping in memory included; one thread. Seconds and ratios: on the"
        f" clock / of the processor; edokit's the median of {rounds}. The lines above compare the"
        " seconds of the processor, which other work on the machine lengthens less. *Literal loop*:"
        " the paper's algorithm as its formulas read, one PyTorch module, Adam and loop over"
        " mini-batches per trial. *WEL's search*: fifty trials over the weights of its loss, each a"
        " differential evolution over weights and size, in edokit's own implementation of it (many"
        " points at a time). *Lowest CE* on the fit data. The literal loop neither holds out"
        " folds nor writes"
        " files; its time begins after torch and Optuna are imported.",
        "",
        *calls,
        "",
        *table,
    ]
    write_section("The whole search (`search.py`)", "\n".join(text))


DEFAULT_COMMAND = "`edo search --space paper` as a process: five folds and the page"


def as_users_call_it(pool: Pool, rounds: int) -> dict[str, Seconds]:
    """Seconds of the solver alone, of the Python verb and of the command."""
    without_extras = ("--folds", "0", "--no-report")
    times: dict[str, Seconds] = {}
    plan = SearchOptions(space="paper", folds=0).plan()
    evaluator = Evaluator(FitData.from_arrays(*pool), plan)
    result = search(pool.P, pool.q, space="paper", folds=0)
    configurations = [trial.configuration for trial in result.trials]

    def solve_generations() -> None:
        for start in range(0, TRIALS, POPULATION):
            evaluator.evaluate(configurations[start : start + POPULATION])

    times["the inner function: five batches, no Optuna"], _ = timed(solve_generations, rounds)
    times["`edokit.search` in memory, no folds"], _ = timed(
        lambda: search(pool.P, pool.q, space="paper", folds=0), rounds
    )
    times["`edokit.search` in memory, five folds"], _ = timed(
        lambda: search(pool.P, pool.q, space="paper", folds=5), rounds
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = write_files(pool, folder)
        runs = 0

        def command(*options: str) -> list[str]:
            """A search with a folder of its own."""
            nonlocal runs
            runs += 1
            out = str(folder / f"run-{runs}")
            return ["search", *files, "--space", "paper", "--out", out, *options]

        times["`edo search --space paper` in process: no folds, no page"], _ = timed(
            lambda: run_in_process(command(*without_extras)), rounds
        )
        times["`edo search --space paper` in process: five folds and the page"], _ = timed(
            lambda: run_in_process(command()), rounds
        )
        times["`edo search --space paper` as a process: no folds, no page"] = timed_process(
            lambda: run_as_process(command(*without_extras)), rounds
        )
        times[DEFAULT_COMMAND] = timed_process(lambda: run_as_process(command()), rounds)
    return times


def write_files(pool: Pool, folder: Path) -> list[str]:
    """Options that name the files of a pool."""
    annotations = simulate("crowd", random_state=0).annotations.split("dev")
    predictions = Predictions.from_arrays(
        pool.P, items=annotations.items, classes=annotations.classes, layout="NKC"
    )
    write_predictions(predictions, folder / "dev.npz")
    write_annotations(annotations, folder / "dev.csv")
    return ["--predictions", str(folder / "dev.npz"), "--annotations", str(folder / "dev.csv")]


def run_in_process(words: list[str]) -> None:
    """A command in this process, where everything is imported already."""
    from edokit.cli import main as edo

    printed = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["edo", *words]),
        redirect_stdout(printed),
        redirect_stderr(printed),
    ):
        try:
            edo()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(printed.getvalue()) from end


def run_as_process(words: list[str]) -> None:
    """A command as a shell runs it, on one thread."""
    code = "from edokit.cli import main; main()"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, "-c", code, *words], check=True, capture_output=True, env=environment
    )


def timed_process(task: Callable[[], None], rounds: int) -> Seconds:
    """The median of a few rounds of a task that waits for another process."""
    clock = []
    processor = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        task()
        clock.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        user = after.ru_utime - before.ru_utime
        system = after.ru_stime - before.ru_stime
        processor.append(user + system)
    return Seconds(float(np.median(clock)), float(np.median(processor)))


def both_spaces(rounds: int) -> None:
    """Measure the cost of the default space on a few hundred items."""
    table = [
        "| items | members | paper, no folds | paper, five | thorough, no folds | thorough, five |",
        "|---|---|---|---|---|---|",
    ]
    print("\n".join(table))
    for items, members in ((150, 5), (300, 5), (300, 10), (1000, 10)):
        P, q = made(items, members)
        cells = []
        for space in ("paper", "thorough"):
            for folds in (0, 5):
                task = partial(search, P, q, space=space, folds=folds)
                seconds, _ = timed(task, rounds)
                cells.append(f"{seconds.processor:.2f}")
        table.append(f"| {items} | {members} | {' | '.join(cells)} |")
        print(table[-1], flush=True)
    text = [
        "    python benchmarks/search.py --spaces",
        "",
        machine("numpy", "optuna"),
        "",
        f"Seconds of the processor for {TRIALS} trials, one thread; the median of {rounds}. No"
        " folds: trials compete in-sample (`--folds 0`).",
        "",
        *table,
    ]
    write_section("The default search space (`search.py --spaces`)", "\n".join(text))


def wel(pool: Pool) -> float:
    """The CE of WEL as published."""
    method = make_method("wel")
    method.fit(pool.P, pool.q)
    return ce(method.predict_proba(pool.P), pool.q)


def grid(jobs: int) -> None:
    """Time 4 datasets × 3 kinds of CE × 2 signs × 5 seeds × 50 trials."""
    pools = [make_pool(regime, "graded") for regime in REGIMES]
    kinds = ("mean", "all", "random")
    signs = ("preserve", "suppress")
    tasks = [
        (pool, SearchSpace.paper(ce=kind, diversity=sign), seed)
        for pool, kind, sign, seed in product(pools, kinds, signs, range(5))
    ]
    sizes = ", ".join(str(len(pool.P)) for pool in pools)
    print(f"{len(tasks)} searches of {TRIALS} trials; {sizes} items; {jobs} processes.\n")
    print("| folds | seconds |\n|---|---|")
    for folds in (0, 5):
        start = time.perf_counter()
        Parallel(jobs)(delayed(quietly)(*task, folds) for task in tasks)
        print(f"| {folds} | {time.perf_counter() - start:.1f} |")


def quietly(pool: Pool, space: SearchSpace, seed: int, folds: int) -> None:
    """Run a search without warnings of ties, which would appear 240 times."""
    warnings.simplefilter("ignore")
    search(pool.P, pool.q, space=space, folds=folds, random_state=seed)


def made(items: int, members: int) -> tuple[np.ndarray, np.ndarray]:
    """Simulated predictions of members from good to bad, and soft labels."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([2.0, 1.0], size=items)
    errors = np.linspace(0.3, 2.0, members)[:, None] * rng.normal(size=(items, members, 2))
    q = rng.multinomial(5, truth) / 5
    return softmax(np.log(truth + 1e-3)[:, None] + errors), q


def growth(figure: Path) -> None:
    """Measure and draw the cost by items, members and trials, each with the others fixed."""
    axes = {
        "items": [100, 300, 1000, 3000, 10_000, 30_000],
        "members": [5, 10, 20, 40, 80],
        "trials": [10, 50, 200, 1000],
    }
    fixed_sizes = {"items": 1104, "members": 10, "trials": TRIALS}
    seconds_by_axis: dict[str, list[float]] = {}
    print("| what grows | value | seconds of the processor | times the one before |")
    print("|---|---|---|---|")
    for name, values in axes.items():
        axis_seconds: list[float] = []
        for value in values:
            sizes = {**fixed_sizes, name: value}
            P, q = made(sizes["items"], sizes["members"])
            space = SearchSpace.paper(max_members=sizes["members"])
            task = partial(search, P, q, space=space, trials=sizes["trials"], folds=0)
            seconds = timed(task, 3)[0].processor
            ratio = ""
            if axis_seconds:
                ratio = f"{seconds / axis_seconds[-1]:.2f}"
            axis_seconds.append(seconds)
            print(f"| {name} | {value} | {seconds:.3f} | {ratio} |")
        seconds_by_axis[name] = axis_seconds
    draw(figure, axes, seconds_by_axis)


def draw(path: Path, axes: dict[str, list[int]], seconds_by_axis: dict[str, list[float]]) -> None:
    """Draw a panel for each axis, with a line of proportional cost."""
    import altair as alt

    panels = []
    for name, values in axes.items():
        axis_seconds = seconds_by_axis[name]
        slope = axis_seconds[-1] / values[-1]
        rows = []
        for value, seconds in zip(values, axis_seconds, strict=True):
            rows.append({"size": value, "seconds": seconds, "line": "measured"})
            rows.append({"size": value, "seconds": slope * value, "line": "proportional"})
        panel = alt.Chart(alt.Data(values=rows)).mark_line(point=True)
        axis = alt.Axis(values=values, format=",", labelAngle=-45)
        panel = panel.encode(
            alt.X("size:Q", scale=alt.Scale(type="log"), title=name, axis=axis),
            alt.Y("seconds:Q", scale=alt.Scale(type="log")),
            alt.Color("line:N", title=None),
            alt.StrokeDash("line:N", title=None),
        )
        panels.append(panel.properties(width=220, height=180))
    alt.hconcat(*panels).save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spaces", action="store_true", help="the default space and the paper's")
    parser.add_argument("--grid", action="store_true", help="the paper's full grid")
    parser.add_argument("--growth", type=Path, metavar="FILE", help="cost against size; a figure")
    parser.add_argument("--rounds", type=int, default=5, help="of edokit; the median counts")
    parser.add_argument("--jobs", type=int, default=2, help="processes of --grid")
    arguments = parser.parse_args()
    if arguments.spaces:
        both_spaces(arguments.rounds)
    elif arguments.grid:
        grid(arguments.jobs)
    elif arguments.growth:
        growth(arguments.growth)
    else:
        ratios(arguments.rounds)


if __name__ == "__main__":
    main()
