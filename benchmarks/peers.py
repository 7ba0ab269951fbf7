"""How fast are EDO's solvers beside other ways to find ensemble weights, and how good?

    python benchmarks/peers.py LEWIDI_FOLDER

Writes its tables into ``benchmarks/RESULTS.md``. Without the folder only made-up predictions are
fitted. torch, cvxpy (with Clarabel) and autogluon.core are peers if they are installed; else they
are left out. AutoGluon wants an older pandas than the newest, so give it an environment of its own:

    pip install -e ".[bench]" autogluon.core torch
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from exact import pool as made
from peers_methods import CONFIGURATIONS, LITERAL, PEERS, REFERENCE, Data, Peer, objective
from results import machine, save_figure, write_section
from threadpoolctl import threadpool_limits

from edokit import Annotations, read_annotations, read_predictions
from edokit.fitdata.data import FitData
from edokit.metrics import ce
from edokit.objective.pools import pool
from edokit.objective.settings import Objective
from edokit.objective.summaries import Problem

POOLS = Path(__file__).resolve().parent / "lewidi2023"
DATASETS = ("ArMIS", "HS-Brexit", "ConvAbuse", "MD-Agreement")
SHAPES = [
    (1_000, 5, 2),
    (1_000, 20, 2),
    (1_000, 200, 2),
    (2_000, 10, 20),
    (10_000, 50, 2),
    (100_000, 20, 5),
    (100_000, 200, 2),
    (1_000_000, 10, 2),
    (10_000_000, 10, 2),
]
HELD_OUT = 10_000
ROUNDS = 3
ENOUGH = 1.0  # seconds; what took longer is not repeated
WITHIN = 1e-9  # two objectives nearer than the solver's own tolerance are equal
LITERAL_NAME = "literal PyTorch loop, a configuration"
GUMBEL_NAME = "EDO gumbel, a configuration of 50"
LEFT_OUT = "–"
TOO_LARGE = "·"


class Case(NamedTuple):
    """A problem: items to fit on, and held-out ones."""

    name: str
    fit: Data
    held_out: Data


class Cell(NamedTuple):
    """The result of one method on one problem."""

    seconds: float
    held_out: float  # cross-entropy on held-out items
    above: float | None  # the objective less EDO's


def cases(lewidi: Path | None) -> Iterator[Case]:
    """The four dev sets (weights are learned on dev, evaluated on test), then made-up ones."""
    if lewidi is not None:
        for dataset in DATASETS:
            people = read_annotations(lewidi / dataset)
            dev = split_data(people, dataset, "dev")
            test = split_data(people, dataset, "test")
            items, members, classes = dev.P.shape
            yield Case(f"{dataset} {items:,}×{members}×{classes}", dev, test)
    for items, members, classes in SHAPES:
        P, q, y = made(items + min(items, HELD_OUT), members, classes)
        fit = Data(P[:items], q[:items], y[:items])
        held_out = Data(P[items:], q[items:], y[items:])
        yield Case(f"{items:,}×{members}×{classes}", fit, held_out)


def split_data(people: Annotations, dataset: str, split: str) -> Data:
    """The pool `soft-ce` and the labels of a split."""
    annotations = people.split(split)
    answers = read_predictions(POOLS / dataset / "soft-ce" / f"{split}.npz")
    P = np.asarray(answers.align(annotations.items).probabilities, dtype=np.float64)
    return Data(P, np.asarray(annotations.soft_labels), np.asarray(annotations.hard_labels()))


def is_ours(name: str) -> bool:
    return name.startswith(("EDO", "…"))


def timed(
    case: Case, prepared: FitData, peers: list[Peer], rounds: int
) -> dict[str, tuple[float, object]]:
    """The seconds of the best round and the result of each peer; the peers take turns."""
    best: dict[str, tuple[float, object]] = {}
    slow = set()
    for number in range(rounds):
        for peer in peers:
            if peer.name in slow:
                continue
            data = prepared if peer.prepared else case.fit
            start = time.perf_counter()
            result = peer.fit(data)
            seconds = time.perf_counter() - start
            # Ours are compiled in the first round.
            if seconds > ENOUGH and (number > 0 or not is_ours(peer.name)):
                slow.add(peer.name)
            fastest = seconds / peer.divide
            if peer.name in best:
                fastest = min(fastest, best[peer.name][0])
            best[peer.name] = (fastest, result)
    return best


def measure(case: Case, peers: list[Peer]) -> dict[str, Cell]:
    """Every method that is not too slow for a problem of this size."""
    problem = Problem.from_arrays(*case.fit)
    cells: dict[str, Cell] = {}
    reached: dict[object, float] = {}
    able = [peer for peer in peers if case.fit.P.size <= peer.most]
    prepared = FitData.from_arrays(*case.fit)
    prepared.problem(Objective().resolve())
    results = timed(case, prepared, able, ROUNDS)
    for peer in able:
        seconds, result = results[peer.name]
        if callable(result):
            cells[peer.name] = Cell(seconds, ce(result(case.held_out.P), case.held_out.q), None)
            continue
        weights = np.asarray(result)
        held_out = [ce(pool(case.held_out.P, v, "linear"), case.held_out.q) for v in weights]
        value = float(objective(weights, problem, peer.settings).mean())
        above = value - reached.setdefault(peer.settings, value)
        cells[peer.name] = Cell(seconds, float(np.mean(held_out)), above)
    return cells


Results = dict[str, dict[str, Cell]]
"""The results by problem and method."""


def table(
    results: Results, cell_text: Callable[[str, dict[str, Cell]], str], peers: list[Peer]
) -> str:
    """A table with a row for each method and a column for each problem."""
    lines = [f"| | {' | '.join(results)} |", "|---" * (len(results) + 1) + "|"]
    for peer in peers:
        texts = []
        for cells in results.values():
            if peer.name in cells:
                texts.append(cell_text(peer.name, cells))
            else:
                texts.append(TOO_LARGE)
        lines.append(f"| {peer.name} | {' | '.join(texts)} |")
    return "\n".join(lines)


def ratio(name: str, cells: dict[str, Cell]) -> float:
    """Seconds beside those of EDO exact with the same objective."""
    settings = next(peer.settings for peer in PEERS if peer.name == name)
    return cells[name].seconds / cells[REFERENCE[settings]].seconds


def short_time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.3g} ms"


def shown_time(name: str, cells: dict[str, Cell]) -> str:
    if name in REFERENCE.values():
        return f"1 ({short_time(cells[name].seconds)})"
    return f"{ratio(name, cells):.3g}"


def shown_gap(name: str, cells: dict[str, Cell]) -> str:
    above = cells[name].above
    if above is None:
        return LEFT_OUT
    if above == 0:
        return "0"
    return f"{above:+.0e}"


def shown_ce(name: str, cells: dict[str, Cell]) -> str:
    return f"{cells[name].held_out:.4f}"


def draw(results: Results, peers: list[Peer]) -> Path:
    """Draw times as multiples of EDO exact's, a mark for every method and problem."""
    import altair as alt

    names = [peer.name for peer in peers if not is_ours(peer.name)]
    rows = []
    for problem, cells in results.items():
        for name in names:
            if name in cells:
                rows.append({"method": name, "problem": problem, "time": ratio(name, cells)})
    points = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, opacity=0.85)
        .encode(
            alt.X(
                "time:Q", scale=alt.Scale(type="log"), title="time, as a multiple of EDO exact's"
            ),
            alt.Y("method:N", sort=names, title=None, axis=alt.Axis(labelLimit=240)),
            alt.Color("problem:N", sort=list(results)),
            yOffset=alt.YOffset("problem:N", sort=list(results)),
        )
    )
    ours = alt.Chart().mark_rule().encode(x=alt.datum(1))
    return save_figure((points + ours).properties(width=420, height=24 * len(names)), "peers")


def verdicts(results: Results) -> list[str]:
    """The aims, and how far each was reached, worst case first."""
    return [*objective_verdict(results), *speed_verdict(results), *batch_verdict(results)]


def objective_verdict(results: Results) -> Iterator[str]:
    """Whether no peer reached a lower objective."""
    gaps = []
    for case, cells in results.items():
        for name, cell in cells.items():
            if cell.above is not None and not is_ours(name):
                gaps.append((cell.above, name, case))
    least, closest_peer, case = min(gaps)
    verdict = "reached" if least >= -WITHIN else "missed"
    yield (
        f"- Exact is at an equal or lower objective than every peer on every problem: {verdict}."
        f" The peer that came closest: {closest_peer} on {case}, {least:+.1e} (the solver's"
        f" tolerance is {WITHIN:.0e})."
    )


def speed_verdict(results: Results) -> Iterator[str]:
    """Whether every peer is slower, and the range of each peer's times."""
    ratios_by_peer: dict[str, list[tuple[float, str]]] = {}
    for case, cells in results.items():
        members = int(case.split("×")[-2])
        if members < 10:
            continue
        for name in cells:
            if not is_ours(name):
                ratios_by_peer.setdefault(name, []).append((ratio(name, cells), case))
    peer_lines = []
    n_faster = 0
    n_compared = 0
    for peer, ratios in ratios_by_peer.items():
        low, low_case = min(ratios)
        high, high_case = max(ratios)
        n_peer_faster = sum(value > 1 for value, _ in ratios)
        n_faster += n_peer_faster
        n_compared += len(ratios)
        peer_lines.append(
            f"    - {peer}: {low:.2g} ({low_case}) to {high:.2g} ({high_case}); EDO is faster on"
            f" {n_peer_faster} of {len(ratios)}"
        )
    verdict = "reached" if n_faster == n_compared else "missed"
    yield (
        f"- Exact is faster than all of them from ten members on: {verdict}; it is in {n_faster}"
        f" of {n_compared} comparisons. Times EDO's, from the quickest to the slowest problem:"
    )
    yield from peer_lines


def batch_verdict(results: Results) -> Iterator[str]:
    """Whether a batch of Gumbel fits is 100 times as fast as the literal loop."""
    ratios = []
    for case, cells in results.items():
        if LITERAL_NAME in cells and GUMBEL_NAME in cells:
            ratios.append((cells[LITERAL_NAME].seconds / cells[GUMBEL_NAME].seconds, case))
    if not ratios:
        return
    low, low_case = min(ratios)
    high, high_case = max(ratios)
    verdict = "reached" if low >= 100 else "missed on some"
    yield (
        f"- A batch of {CONFIGURATIONS} Gumbel fits is 100 times as fast as the literal loop:"
        f" {verdict}; from {low:.0f} times ({low_case}) to {high:.0f} times ({high_case})."
    )


NOTES = f"""
Problems are items × members × classes: the dev sets of LeWiDi 2023 with the pool `soft-ce`
(held-out: test), and made-up members of unequal quality (held-out: as many new items, at most
{HELD_OUT:,}). Every method gets the same arrays in memory and gives weights; EDO's time includes
checking them and laying them out member by member, and *its solver alone* does not. Linear algebra
runs on one thread for everybody, since the threads of small products mostly wait for each other.
Methods take turns, and the best of up to {ROUNDS} calls counts; what takes more than {ENOUGH:g} s
is called once (EDO twice, so that compiling does not count). `{TOO_LARGE}`: left out on a problem
of this size, where it takes too long for a benchmark of minutes. `{LEFT_OUT}`: has an objective of
its own.

- *CE only*: cross-entropy of the pool, and nothing else. *Default*: EDO's default objective (CE,
  0.3 of soft F1, 0.03 of the squared norm). Multiples of time are of EDO exact with the same
  objective; those of the regression, of *EDO exact, CE only*.
- *scipy SLSQP* has the gradient written out and stops at 1e-10; *cvxpy* models the logarithms
  as exponential cones, its own time for that included.
- *AutoGluon's EnsembleSelection*: the class of that name in autogluon.core, 100 rounds, on soft
  labels. *The same, EDO's method `greedy`* of `edo compare` follows its rules (ties apart), faster.
- *WEL's differential evolution* is one search (100 generations, 15 points per dimension) of the
  fifty that WEL makes, on the CE.
- *Literal PyTorch loop*: the paper's algorithm as its formulas read, settings from the paper's
  search space; time per configuration, of {LITERAL}. *EDO gumbel*: {CONFIGURATIONS} of them in one
  call, divided by {CONFIGURATIONS}. Their objective and CE are means over the configurations.
- *Stacking logistic regression*: scikit-learn's LogisticRegression (defaults, at most 1000
  steps) on the members' probabilities as StackingClassifier would give them, people's answers as
  sample weights. Its answers need not lie between those of the members.
"""


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of its parent
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lewidi", type=Path, nargs="?", help="folder with the LeWiDi 2023 data")
    lewidi = parser.parse_args().lewidi
    # scikit-learn says when it stopped early; the table shows what it reached.
    warnings.simplefilter("ignore")
    peers = []
    absent = []
    for peer in PEERS:
        lacking = [name for name in peer.needs if not _is_there(name)]
        if lacking:
            absent.append(
                f"- Left out: {peer.name}, since {' and '.join(lacking)} is not installed."
            )
        else:
            peers.append(peer)
    if lewidi is None:
        absent.append("- Left out: the LeWiDi dev sets, since no folder was given.")
    start = time.perf_counter()
    results: Results = {}
    # Imports and first calls are not part of any fitting time.
    warm_up = Data(*made(64, 3, 2))
    measure(Case("", warm_up, warm_up), peers)
    for case in cases(lewidi):
        print(case.name, flush=True)
        with threadpool_limits(1):
            results[case.name] = measure(case, peers)
    seconds = time.perf_counter() - start
    packages = ("numpy", "scipy", "scikit-learn", "torch", "cvxpy", "autogluon.core")
    text = "\n\n".join(
        [
            "    python benchmarks/peers.py LEWIDI_FOLDER",
            f"{machine(*packages)} The whole took {seconds:.0f} s.",
            "\n".join([*verdicts(results), *absent]),
            "### Time, as a multiple of EDO exact's\n" + table(results, shown_time, peers),
            f"![Time of every method on every problem](figures/{draw(results, peers).name})",
            "### Objective less EDO exact's (more than 0: worse)\n"
            + table(results, shown_gap, peers),
            "### CE on held-out items\n" + table(results, shown_ce, peers),
            "### What was measured\n" + NOTES.strip(),
        ]
    )
    write_section("Fitting ensemble weights, side by side (`peers.py`)", text)


if __name__ == "__main__":
    main()
