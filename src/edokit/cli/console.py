"""What a person sees: tables on stdout, progress on stderr."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from edokit._errors import InputError, counted, money, printable, warn

if TYPE_CHECKING:
    from rich.progress import Progress

    from edokit.panels import PanelComparison


def write_line(text: str = "") -> None:
    """A line on stdout, at once."""
    print(text, flush=True)  # noqa: T201


def command_line() -> str:
    """The command as it was typed, for the record of a run."""
    from edokit.runs import command_text

    return command_text(["edo", *sys.argv[1:]])


def print_lines(lines: Iterable[str]) -> None:
    """Lines on stdout; in a terminal they are broken between words, and go on indented."""
    from rich.console import Console

    console = Console()
    for line in map(printable, lines):
        for part in fitted(line, console.width) if console.is_terminal else [line]:
            write_line(part)


def fitted(line: str, width: int) -> list[str]:
    """A line in parts of this width at most; what follows is below its first word."""
    start = len(line) - len(line.lstrip())
    inside = start + (2 if start else 0)
    return wrap(
        line,
        width,
        subsequent_indent=" " * inside,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    ) or [""]


def print_json(value: Any) -> None:
    """One JSON object on stdout."""
    from edokit._io import json_text

    write_line(json_text(value, allow_nan=False))


def print_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str] = (),
    headline: Sequence[str] = (),
) -> None:
    """A table with text on the left and numbers on the right, and lines above and below it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True)
    for position, name in enumerate(map(printable, header)):
        table.add_column(name, justify="left" if position == 0 else "right", overflow="fold")
    # Names in the data may hold characters that steer a terminal.
    for row in rows:
        table.add_row(*map(printable, row))
    # Data may hold square brackets; they are text here, not markup.
    console = Console(highlight=False, markup=False)
    console.print(printable(title), style="bold")
    for line in headline:
        console.print(printable(line), style="bold yellow")
    console.print(table)
    for note in notes:
        console.print(printable(note))


def print_tables(*tables: Any) -> None:
    """Tables that know their title, header, rows and notes, such as those of a comparison."""
    for table in tables:
        print_table(table.title, table.header, table.shown(), table.notes)


def print_requests(previews: Sequence[dict[str, Any]], json: bool) -> None:
    """What members would ask servers: one prompt, and how many requests."""
    if not previews:
        raise InputError(
            "--dry-run shows the requests of members that ask a server, but there are none here",
            "leave it out",
        )
    new = sum(preview["requests"] - preview["cached"] for preview in previews)
    costs = [preview["cost"] for preview in previews if preview["cost"] is not None]
    cost = sum(costs) if costs else None
    tokens = {key: sum(map(itemgetter(key), previews)) for key in ("tokens_in", "tokens_out")}
    if json:
        print_json({"requests": new, **tokens, "cost": cost, "members": list(previews)})
        return
    example = max(previews, key=lambda preview: preview["requests"] > preview["cached"])
    for message in example["messages"]:
        for line in [f"[{message['role']}]", *message["content"].splitlines(), ""]:
            write_line(printable(line))
    columns, notes = _request_columns(previews, cost)
    print_table(
        f"Nothing was asked: {counted(new, 'new request')}, about {tokens['tokens_in']:,} tokens in"
        f" and {tokens['tokens_out']:,} out. Above is a prompt of {example['member']}.",
        ["member", *columns.values()],
        [_request_row(preview, columns) for preview in previews],
        notes,
    )


def _request_row(preview: dict[str, Any], columns: Iterable[str]) -> list[str]:
    cells = {**preview, "cost": money(preview["cost"])}
    return [str(cells[key]) for key in ("member", *columns)]


def _request_columns(
    previews: Sequence[dict[str, Any]], cost: float | None
) -> tuple[dict[str, str], list[str]]:
    """The columns in which the requests of members differ, and notes on the others."""
    columns = {"model": "model", "base_url": "endpoint", "requests": "requests"}
    columns |= {"cached": "answered before", "tokens_in": "tokens in", "tokens_out": "out"}
    notes = [
        "Tokens of new requests are estimated: four characters each, and answers as long as"
        " max_tokens allows."
    ]
    for key, name in (("base_url", "Endpoint"), ("model", "Model")):
        if len({preview[key] for preview in previews}) == 1:
            del columns[key]  # an address is long
            notes.append(f"{name}: {previews[0][key]}")
    if cost is not None:
        columns["cost"] = "cost"
        notes.append(f"Cost: about {money(cost)}.")
    else:
        notes.append("The options price_in and price_out, per million tokens, add their cost.")
    if any(preview["logprobs"] is None for preview in previews):
        notes.append(
            "A server that gives no log-probabilities is asked several times: see the option"
            " samples."
        )
    return columns, notes


_REQUESTS = {
    "requests": ("requests", "{:,}".format),
    "failures": ("failures", "{:,}".format),
    "tokens_in": ("tokens in", "{:,}".format),
    "tokens_out": ("out", "{:,}".format),
    "total_cost": ("cost", money),
    "cost": ("per item", money),
}


def print_asked(info: Mapping[str, Mapping[str, Any]]) -> None:
    """What members asked a server, and what that cost; nothing if none did."""
    members = {name: details for name, details in info.items() if "tokens_in" in details}
    keys = [key for key in _REQUESTS if any(key in details for details in members.values())]
    rows = [
        [name, *(_REQUESTS[key][1](details[key]) if key in details else "" for key in keys)]
        for name, details in members.items()
    ]
    if rows:
        header = ["member", *(_REQUESTS[key][0] for key in keys)]
        print_table("Requests to servers", header, rows)


def print_panels(comparison: PanelComparison, files: str = "", rows: int = 5) -> None:
    """How far two panels part ways, and the items where they do so most."""
    summary, answers = comparison.summary(), comparison.answers
    n, differ = summary["items"], summary["decisions_differ"]
    notes = [
        f"The two decide differently on {differ} of {counted(n, 'item')} ({differ / n:.0%}); mean"
        f" distance {summary['distance']:.3f}.",
    ]
    if summary["follows"] is not None and differ:
        shares = ", ".join(f"{name} {count}" for name, count in summary["follows"].items())
        notes.append(f"There the anonymous answer decides as: {shares}.")
    notes.append(
        f"The {summary['level']:.0%} intervals of their votes are apart on"
        f" {counted(summary['beyond_chance'], 'item')}."
    )
    if files:
        notes.append(f"All items, largest distance first: {files}")
    print_table(
        f"Whose view? {answers[0].panel} and {answers[1].panel}",
        ["part ways most", *(answer.panel.name for answer in answers), "distance"],
        [_panel_row(comparison, item) for item in comparison.order[:rows]],
        notes,
    )


def _panel_row(comparison: PanelComparison, item: int) -> list[str]:
    """What each panel decides on an item, and how sure it is."""
    cells = []
    for answer, labels in zip(comparison.answers, comparison.labels, strict=True):
        cell = str(labels[item])
        if not comparison.scale.is_multi_label:  # of sets, the labels alone
            c = int(answer.probabilities[item].argmax())
            cell += f" {answer.probabilities[item, c]:.2f}"
            if answer is not comparison.anonymous:
                cell += f" ({answer.low[item, c]:.2f}–{answer.high[item, c]:.2f})"
        cells.append(cell)
    return [str(comparison.one.items[item]), *cells, f"{comparison.distances[item]:.3f}"]


def _per_item(counts: tuple[int, int]) -> str:
    low, high = counts
    return str(low) if low == high else f"{low}–{high}"


_DESCRIPTION: dict[str, Callable[[dict[str, Any]], str]] = {
    "items": lambda split: str(split["items"]),
    "annotators": lambda split: str(split["annotators"]),
    "annotations": lambda split: str(split["annotations"]),
    "per item": lambda split: _per_item(split["annotations_per_item"]),
    "largest : smallest": lambda split: f"{split['ratio']:.2f} : 1" if split["ratio"] else "–",
    "tied items": lambda split: str(split["ties"]["items"]),
    "unanimous items": lambda split: f"{split['unanimous']:.0%}",
    "mean entropy (nats)": lambda split: f"{split['entropy']:.3f}",
    "median coverage": lambda split: f"{split['coverage']['median']:.1%}",
}


def print_described(title: str, description: dict[str, Any]) -> None:
    """The figures of `edokit.datasets.describe_annotations`, a column per split."""
    # Train, dev and test in this order, all else after them.
    order = ["train", "dev", "test", *description["splits"]]
    names = sorted(description["splits"], key=order.index)
    splits = [description["splits"][name] for name in names]
    rows = [[name, *map(figure, splits)] for name, figure in _DESCRIPTION.items()]
    rows[4:4] = [
        [f"hard label {name}", *(str(split["classes"][name]) for split in splits)]
        for name in description["classes"]
    ]
    notes = [f"Answer scale: {description['scale']}."]
    for heading, key in (("Item columns", "columns"), ("Annotators' attributes", "attributes")):
        if description[key]:
            notes.append(f"{heading}: {', '.join(description[key])}.")
    print_table(title, ["", *names], rows, notes + _duplicates(description))


def _duplicates(description: dict[str, Any]) -> list[str]:
    """How many texts of each split have a near-duplicate in another."""
    duplicates = description.get("near_duplicates", {})
    notes = []
    for name, counts in duplicates.get("splits", {}).items():
        near = counts["near"]
        texts = counted(near, "text") if near else "No text"
        exactly = f" ({counts['verbatim']} word for word)" if near else ""
        split_name = "the items in no split" if name == "no split" else name
        notes.append(
            f"{texts} of {split_name} {'has' if near <= 1 else 'have'} a near-duplicate in"
            f" {duplicates['also_in']}{exactly}."
        )
    return notes


def done(result: dict[str, Any], line: str, json: bool) -> None:
    """What was made, as JSON or as one line."""
    if json:
        print_json(result)
    else:
        print_lines(line.splitlines())


@contextmanager
def kept_if_interrupted() -> Iterator[None]:
    """Of a command that resumes: say so when it is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        warn("what is finished is kept; run the same command again to resume")
        raise


@contextmanager
def progress() -> Iterator[Progress]:
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


def add_bar(bars: Progress, description: str, total: int | None = None) -> Callable[..., None]:
    """One more bar; call what comes back with what is done, of how many, and a detail."""
    task = bars.add_task(description, total=total, detail="")

    def update(
        done: int | None = None,
        total: int | None = None,
        detail: str = "",
        description: str | None = None,
    ) -> None:
        # Names of methods and members may hold characters that steer a terminal.
        text = description and printable(description)
        bars.update(task, completed=done, total=total, detail=printable(detail), description=text)

    return update


READER_LEFT = 141
"""Exit status when the output is closed, as in `edo … | head -1`: 128 and the number of SIGPIPE,
which is what a shell shows of most other commands. Not 0: the command may have stopped early."""


def unless_unread(run: Callable[[], int]) -> int:
    """The exit status of ``run``; if its reader leaves, it stops there, silently.

    rich turns a broken pipe into an exit with status 1, which would look like a failure.
    """
    try:
        return run()
    except (OSError, SystemExit) as error:
        if not reader_left(error):
            raise
    drop_output()
    return READER_LEFT


def reader_left(error: BaseException) -> bool:
    """Whether this says that nobody reads what is written, also if it became an exit since."""
    cause = error.__context__ if isinstance(error, SystemExit) else error
    if not isinstance(cause, OSError) or cause.filename is not None:
        return False
    # Windows calls it an invalid argument.
    return cause.errno == errno.EPIPE or (os.name == "nt" and cause.errno == errno.EINVAL)


def drop_output() -> None:
    """Let what still waits to be written go nowhere, or Python would complain of it at the end."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is None:  # closed from the start
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
