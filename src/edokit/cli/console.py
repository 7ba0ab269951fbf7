"""What a person sees: tables on stdout, progress on stderr."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol

from edokit._errors import counted, money, printable, warn
from edokit._io.markup import Table

if TYPE_CHECKING:
    from pathlib import Path

    from rich.progress import Progress as ProgressBars

    from edokit._progress import Progress
    from edokit.panels import PanelComparison
    from edokit.predictions.core import Predictions

_FILE_WIDTH = 160
"""Characters of a table's line where stdout is a file."""


def write_line(text: str = "") -> None:
    """A line on stdout, at once."""
    print(text, flush=True)  # noqa: T201


def command_line() -> str:
    """The command as it was typed, for the record of a run."""
    from edokit.runs.record import command_text

    return command_text(["edo", *sys.argv[1:]])


def print_lines(lines: Iterable[str], *, copied: bool = False) -> None:
    """Lines on stdout; in a terminal they are broken between words, unless people copy them."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    for line in map(printable, lines):
        console.print(line, soft_wrap=copied or not console.is_terminal)


def print_json(value: object) -> None:
    """One JSON object on stdout."""
    from edokit._io.documents import json_text

    write_line(json_text(value, allow_nan=False))


def print_table(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    notes: Iterable[str] = (),
    headline: Iterable[str] = (),
) -> None:
    """A table below its title and ``headline``, which is highlighted, and above its ``notes``."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True)
    for position, name in enumerate(header):
        justify: Literal["left", "right"] = "left" if position == 0 else "right"
        table.add_column(printable(name), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    # Data may hold square brackets; they are text here, not markup.
    console = Console(highlight=False, markup=False)
    console.print(printable(title), style="bold")
    for line in headline:
        console.print(printable(line), style="bold yellow")
    if console.is_terminal:
        console.print(table)
    else:
        # In a file a name stays whole, so that it can be searched for.
        wide = Console(width=max(console.width, _FILE_WIDTH), highlight=False, markup=False)
        wide.print(table)
    for note in notes:
        console.print(printable(note))


def _cell(value: object) -> str:
    """A value in a table; names in the data may hold characters that steer a terminal."""
    if value is None:
        return "–"
    if isinstance(value, tuple | list):  # an interval
        return " … ".join(map(_cell, value))
    if isinstance(value, float):
        return f"{value:.4f}"
    return printable(str(value))


def print_records(
    title: str,
    records: Sequence[Mapping[str, object]],
    notes: Iterable[str] = (),
    headline: Iterable[str] = (),
) -> None:
    """A table with a row per record; columns in which no record has a value are left out."""
    table = Table.from_records(title, records)
    print_table(title, table.header, table.rows, notes, headline)


def print_tables(*tables: Table) -> None:
    """Tables with their titles and notes."""
    for table in tables:
        print_table(table.title, table.header, table.marked(), table.notes)


def print_predictions(predictions: Predictions, out: Path, json: bool, **facts: object) -> None:
    """Say what was written: items, annotators, members and classes.

    ``facts`` are further entries of the JSON.
    """
    rows = len(predictions)
    items = len(predictions.rows.items)
    annotators = len(predictions.rows.people)
    summary = {
        "out": str(out),
        "items": items,
        "rows": rows,
        "annotators": annotators or None,
        "members": list(predictions.members),
        "classes": list(predictions.classes),
        "scale": predictions.scale.to_text(predictions.classes),
        "member_info": {name: dict(info) for name, info in predictions.member_info.items()},
    }
    counts = [counted(items, "item")]
    if annotators:
        counts += [counted(annotators, "annotator"), counted(rows, "row")]
    counts.append(counted(len(predictions.members), "member"))
    line = f"{out}: {', '.join(counts)}, classes {', '.join(predictions.classes)}"
    print_result(summary | facts, line, json)


def print_request_costs(info: Mapping[str, Mapping[str, Any]]) -> None:
    """What members asked a server, and what that cost; nothing if none did."""
    columns = ("requests", "failures", "tokens_in", "tokens_out")
    records = []
    for name, details in info.items():
        if "tokens_in" not in details:
            continue
        record = {"member": name}
        for key in columns:
            if key in details:
                record[key.replace("_", " ")] = f"{details[key]:,}"
        if details.get("total_cost") is not None:
            record["cost"] = money(details["total_cost"])
        if details.get("cost") is not None:
            record["per item"] = money(details["cost"])
        records.append(record)
    if records:
        print_records("Requests to servers", records)


GROUP_TEST = (
    "To test whether groups of annotators differ beyond chance: edo diagnose ANNOTATIONS"
    " --by COLUMN"
)


def print_panels(
    comparison: PanelComparison, file: str = "", rows: int = 5, test_note: str = GROUP_TEST
) -> None:
    """Print how much two panels differ, and the items on which they differ most.

    ``test_note`` says how to test the difference, or what a test said; ``file`` has all items.
    """
    summary = comparison.summary()
    answers = comparison.answers
    items = summary["items"]
    n_different = summary["decisions_differ"]
    notes = [
        f"The two decide differently on {n_different} of {counted(items, 'item')}"
        f" ({n_different / items:.0%}); mean distance {summary['distance']:.3f}.",
    ]
    if summary["follows"] is not None and n_different:
        shares = ", ".join(f"{name} {count}" for name, count in summary["follows"].items())
        notes.append(f"There the anonymous answer decides as: {shares}.")
    notes += test_note.splitlines()
    if file:
        notes.append(f"All items, largest distance first: {file}")
    print_table(
        f"Whose view? {answers[0].panel} and {answers[1].panel}",
        ["differ most", *(answer.panel.name for answer in answers), "distance"],
        [_panel_row(comparison, position) for position in comparison.order[:rows]],
        notes,
    )


def _panel_row(comparison: PanelComparison, position: int) -> list[str]:
    """What each panel decides on the item at this position.

    Its probability stands beside it, unless the data are multi-label.
    """
    cells = []
    for labels, answer in zip(comparison.labels, comparison.answers, strict=True):
        cell = str(labels[position])
        if not comparison.scale.is_multi_label:
            cell += f" {answer.probabilities[position].max():.2f}"
        cells.append(cell)
    distance = f"{comparison.distances[position]:.3f}"
    return [str(comparison.first.items[position]), *cells, distance]


def arrows(classes: Mapping[str, str]) -> str:
    """``LABEL_0 → no, LABEL_1 → yes``."""
    return ", ".join(f"{label} → {target}" for label, target in classes.items())


def print_result(result: object, text: str | Callable[[], None], json: bool) -> None:
    """A result as JSON, or as a person reads it: a text, or what a function prints."""
    if json:
        print_json(result)
    elif isinstance(text, str):
        print_lines(text.splitlines())
    else:
        text()


class TabularResult(Protocol):
    """A result that is shown as sentences and tables."""

    @property
    def headline(self) -> Sequence[str]:
        """Its sentences."""

    def tables(self) -> Sequence[Table]:
        """Its tables."""

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values."""


def print_answer(result: TabularResult, json: bool) -> None:
    """The answer to a question: its sentences and tables, or everything as JSON."""

    def show() -> None:
        print_lines(result.headline)
        print_tables(*result.tables())

    print_result(result.to_dict(), show, json)


def _end_with_workers(signal_number: int, _frame: object) -> None:
    """End the worker processes and this one at once; finished results are already saved."""
    from multiprocessing import active_children

    for process in active_children():
        if process.pid is not None:
            os.kill(process.pid, signal.SIGKILL)  # joblib's workers lack a method kill
    sys.stderr.write("ended; what is finished is kept; run the same command again to resume\n")
    sys.stderr.flush()
    # Unwinding would wait for the workers.
    os._exit(128 + signal_number)


def _silence_resource_tracker() -> None:
    """Let joblib's tracker process remove what ended workers leave without a warning."""
    filters = os.environ.get("PYTHONWARNINGS", "").split(",")
    filters.append("ignore:resource_tracker:UserWarning")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, filters))


@contextmanager
def resumable() -> Iterator[None]:
    """Say how to resume a command that is interrupted; SIGTERM ends its workers, too."""
    # Elsewhere than in the main thread, as in tests, no handler can be set.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end_with_workers)
        _silence_resource_tracker()
    try:
        yield
    except KeyboardInterrupt:
        warn("what is finished is kept; run the same command again to resume")
        raise


@contextmanager
def progress() -> Iterator[ProgressBars]:
    """Progress bars on stderr, silent when it is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}", markup=False),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as bars:
        yield bars


def add_bar(bars: ProgressBars, description: str, total: int | None = None) -> Progress:
    """Add a bar that shows its description, and after it the current task."""
    bar = bars.add_task(description, total=total, detail="")

    def update(done: int, total: int, task: str) -> None:
        # Names of members may hold characters that steer a terminal.
        bars.update(bar, completed=done, total=total, detail=printable(task))

    return update


def add_steps(bars: ProgressBars, description: str) -> Progress:
    """Add a bar as `add_stages` does; where stderr is a file, write a line for each step instead.

    A line has the seconds since the start. The description has no line of its own, so that a
    command that refuses its input writes nothing but the reason.
    """
    if not bars.disable:
        return add_stages(bars, description)
    started = time.monotonic()
    current = ""

    def update(done: int, total: int, task: str) -> None:
        nonlocal current
        if task and task != current:
            current = task
            seconds = time.monotonic() - started
            sys.stderr.write(f"{seconds:6.0f} s  {printable(task)}\n")
            sys.stderr.flush()

    return update


def add_stages(bars: ProgressBars, description: str, total: int | None = None) -> Progress:
    """Add a bar that shows the current task instead of its description."""
    bar = bars.add_task(description, total=total, detail="")

    def update(done: int, total: int, task: str) -> None:
        # Names of methods may hold characters that steer a terminal.
        bars.update(bar, completed=done, total=total, description=printable(task))

    return update
