"""Whatever takes long reports its progress in the same way: done, total, task."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pytest
from rich.console import Console
from rich.progress import Progress as ProgressBars

from edokit import Predictions, compare, diagnose, search, simulate
from edokit._progress import Progress
from edokit.cli import console

SIMULATED = simulate("two-camps", items=(40, 30, 10), random_state=1)
ANNOTATIONS = SIMULATED.annotations.split("dev")


def predictions() -> Predictions:
    """Two members that answer at random."""
    rng = np.random.default_rng(0)
    n = len(ANNOTATIONS.items)
    c = len(ANNOTATIONS.classes)
    return Predictions.from_arrays(
        rng.dirichlet(np.ones(c), size=(n, 2)),
        items=ANNOTATIONS.items,
        classes=ANNOTATIONS.classes,
        layout="NKC",
    )


def run_compare(progress: Progress) -> None:
    compare(predictions(), ANNOTATIONS, methods=("uniform", "best-single"), progress=progress)


def run_diagnose(progress: Progress) -> None:
    diagnose(ANNOTATIONS, permutations=39, progress=progress)


def run_search(progress: Progress) -> None:
    search(predictions(), ANNOTATIONS, trials=4, population=2, progress=progress)


@pytest.mark.parametrize("verb", [run_compare, run_diagnose, run_search])
def test_a_verb_reports_steps_up_to_their_total(verb: Callable[[Progress], None]) -> None:
    reports: list[tuple[int, int, str]] = []
    verb(lambda done, total, task: reports.append((done, total, task)))
    counts = [done for done, _, _ in reports]
    assert counts == sorted(counts)
    assert counts[-1] == reports[-1][1]
    assert all(task for _, _, task in reports)


@pytest.mark.parametrize("add", [console.add_bar, console.add_stages])
def test_bars_show_what_is_reported(add: Callable[[ProgressBars, str], Progress]) -> None:
    bars = ProgressBars(
        "{task.description}", "{task.fields[detail]}", console=Console(file=io.StringIO())
    )
    progress = add(bars, "working")
    progress(2, 5, "linear-03 \x1b[31m")
    (bar,) = bars.tasks
    assert (bar.completed, bar.total) == (2, 5)
    shown = f"{bar.description} {bar.fields['detail']}"
    assert "linear-03" in shown
    assert "\x1b" not in shown
