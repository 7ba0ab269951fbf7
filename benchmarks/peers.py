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

from edokit import read_annotations, read_predictions
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
    name: str
    fit: Data
    held_out: Data


class Cell(NamedTuple):
    """Of one method on one problem."""

    seconds: float
    held_out: float
    above: float | None  # the objective less EDO's


def cases(lewidi: Path | None) -> Iterator[Case]:
    """The four dev sets (weights are learned on dev, evaluated on test), then made-up ones."""
    for dataset in DATASETS if lewidi else ():
        people = read_annotations(lewidi / dataset)
        parts = []
        for split in ("dev", "test"):
            own = people.split(split)
            answers = read_predictions(POOLS / dataset / "soft-ce" / f"{split}.npz").align(
                own.items
            )
            P = np.asarray(answers.probabilities, dtype=np.float64)
            parts.append(Data(P, np.asarray(own.soft_labels), np.asarray(own.hard_labels())))
        items, members, classes = parts[0].P.shape
        yield Case(f"{dataset} {items:,}×{members}×{classes}", *parts)
    for items, members, classes in SHAPES:
        whole = made(items + min(items, HELD_OUT), members, classes)
        learn, judge = (
            Data(*(part[rows] for part in whole)) for rows in (slice(items), slice(items, None))
        )
        yield Case(f"{items:,}×{members}×{classes}", learn, judge)


def is_ours(name: str) -> bool:
    return name.startswith(("EDO", "…"))


def timed(
    case: Case, prepared: FitData, peers: list[Peer], rounds: int
) -> dict[str, tuple[float, object]]:
    """Of each, in turns, the best round (in which nothing is compiled any more) and the result."""
    best: dict[str, tuple[float, object]] = {}
    slow = set()
    for number in range(rounds):
        for peer in peers:
            if peer.name in slow:
                continue
            start = time.perf_counter()
            found = peer.fit(prepared if peer.prepared else case.fit)
            took = time.perf_counter() - start
            if took > ENOUGH and (number or not is_ours(peer.name)):
                slow.add(peer.name)
            fastest = min(took / peer.divide, best.get(peer.name, (np.inf,))[0])
            best[peer.name] = fastest, found
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
        seconds, found = results[peer.name]
        if callable(found):
            cells[peer.name] = Cell(seconds, ce(found(case.held_out.P), case.held_out.q), None)
            continue
        weights = np.asarray(found)
        held_out = [ce(pool(case.held_out.P, v, "linear"), case.held_out.q) for v in weights]
        value = float(objective(weights, problem, peer.settings).mean())
        above = value - reached.setdefault(peer.settings, value)
        cells[peer.name] = Cell(seconds, float(np.mean(held_out)), above)
    return cells


def table(
    found: dict[str, dict[str, Cell]],
    show: Callable[[str, dict[str, Cell]], str],
    peers: list[Peer],
) -> str:
    """Methods down, problems across."""
    lines = [f"| | {' | '.join(found)} |", "|---" * (len(found) + 1) + "|"]
    for peer in peers:
        shown = [
            show(peer.name, cells) if peer.name in cells else TOO_LARGE for cells in found.values()
        ]
        lines.append(f"| {peer.name} | {' | '.join(shown)} |")
    return "\n".join(lines)


def ratio(name: str, cells: dict[str, Cell]) -> float:
    """Seconds beside those of EDO exact with the same objective."""
    settings = next(peer.settings for peer in PEERS if peer.name == name)
    return cells[name].seconds / cells[REFERENCE[settings]].seconds


def short_time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def shown_time(name: str, cells: dict[str, Cell]) -> str:
    if name in REFERENCE.values():
        return f"1 ({short_time(cells[name].seconds)})"
    return f"{ratio(name, cells):.3g}"


def shown_gap(name: str, cells: dict[str, Cell]) -> str:
    above = cells[name].above
    if above is None:
        return LEFT_OUT
    return "0" if above == 0 else f"{above:+.0e}"


def shown_ce(name: str, cells: dict[str, Cell]) -> str:
    return f"{cells[name].held_out:.4f}"


def draw(found: dict[str, dict[str, Cell]], peers: list[Peer]) -> Path:
    """Time beside EDO exact's, a mark for every method and problem."""
    import altair as alt

    names = [peer.name for peer in peers if not is_ours(peer.name)]
    rows = [
        {"method": name, "problem": problem, "time": ratio(name, cells)}
        for problem, cells in found.items()
        for name in names
        if name in cells
    ]
    points = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, opacity=0.85)
        .encode(
            alt.X(
                "time:Q", scale=alt.Scale(type="log"), title="time, as a multiple of EDO exact's"
            ),
            alt.Y("method:N", sort=names, title=None, axis=alt.Axis(labelLimit=240)),
            alt.Color("problem:N", sort=list(found)),
            yOffset=alt.YOffset("problem:N", sort=list(found)),
        )
    )
    ours = alt.Chart().mark_rule().encode(x=alt.datum(1))
    return save_figure((points + ours).properties(width=420, height=24 * len(names)), "peers")


def verdicts(found: dict[str, dict[str, Cell]]) -> list[str]:
    """The aims, and how far each was reached, worst case first."""
    gaps = [
        (cell.above, name, case)
        for case, cells in found.items()
        for name, cell in cells.items()
        if cell.above is not None and not is_ours(name)
    ]
    least, who, where = min(gaps)
    held = "reached" if least >= -WITHIN else "missed"
    lines = [
        f"- Exact is at an equal or lower objective than every peer on every problem: {held}. The "
        f"peer that came closest: {who} on {where}, {least:+.1e} (the solver's tolerance is "
        f"{WITHIN:.0e})."
    ]
    many = [
        (ratio(name, cells), name, case)
        for case, cells in found.items()
        if int(case.split("×")[-2]) >= 10
        for name in cells
        if not is_ours(name)
    ]
    won = [entry for entry in many if entry[0] > 1]
    held = "reached" if len(won) == len(many) else "missed"
    lines.append(
        f"- Exact is faster than all of them from ten members on: {held}; it is in {len(won)} of "
        f"{len(many)} comparisons. Times EDO's, from the quickest to the slowest problem:"
    )
    for peer in dict.fromkeys(name for _, name, _ in many):
        own = sorted(entry for entry in many if entry[1] == peer)
        lines.append(
            f"    - {peer}: {own[0][0]:.2g} ({own[0][2]}) to {own[-1][0]:.2g} ({own[-1][2]}); EDO "
            f"is faster on {sum(entry[0] > 1 for entry in own)} of {len(own)}"
        )
    both = [
        (cells[LITERAL_NAME].seconds / cells[GUMBEL_NAME].seconds, case)
        for case, cells in found.items()
        if LITERAL_NAME in cells and GUMBEL_NAME in cells
    ]
    if both:
        low = min(both)
        high = max(both)
        held = "reached" if low[0] >= 100 else "missed on some"
        lines.append(
            f"- A batch of {CONFIGURATIONS} Gumbel fits is 100 times as fast as the literal loop: "
            f"{held}; from {low[0]:.0f} times ({low[1]}) to {high[0]:.0f} times ({high[1]})."
        )
    return lines


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
    found = {}
    # Imports and first calls are nobody's fitting time.
    measure(Case("", *[Data(*made(64, 3, 2))] * 2), peers)
    for case in cases(lewidi):
        print(case.name, flush=True)
        with threadpool_limits(1):
            found[case.name] = measure(case, peers)
    took = time.perf_counter() - start
    packages = ("numpy", "scipy", "scikit-learn", "torch", "cvxpy", "autogluon.core")
    text = "\n\n".join(
        [
            "    python benchmarks/peers.py LEWIDI_FOLDER",
            f"{machine(*packages)} The whole took {took:.0f} s.",
            "\n".join([*verdicts(found), *absent]),
            "### Time, as a multiple of EDO exact's\n" + table(found, shown_time, peers),
            f"![Time of every method on every problem](figures/{draw(found, peers).name})",
            "### Objective less EDO exact's (more than 0: worse)\n"
            + table(found, shown_gap, peers),
            "### CE on held-out items\n" + table(found, shown_ce, peers),
            "### What was measured\n" + NOTES.strip(),
        ]
    )
    write_section("Fitting ensemble weights, side by side (`peers.py`)", text)


if __name__ == "__main__":
    main()
