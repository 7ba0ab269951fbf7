"""What a person sees: tables on stdout, progress on stderr."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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


def print_requests(previews: Sequence[dict[str, Any]], json: bool) -> None:
    """What members would ask servers: one prompt, and how many requests."""
    if not previews:
        raise InputError(
            "--dry-run shows the requests of members that ask a server, but there are none here",
            "leave it out",
        )
    new = sum(one["requests"] - one["cached"] for one in previews)
    known = [one["cost"] for one in previews if one["cost"] is not None]
    cost = sum(known) if known else None
    tokens = {key: sum(one[key] for one in previews) for key in ("tokens_in", "tokens_out")}
    if json:
        print_json({"requests": new, **tokens, "cost": cost, "members": list(previews)})
        return
    first = next((one for one in previews if one["requests"] > one["cached"]), previews[0])
    for message in first["messages"]:
        for line in [f"[{message['role']}]", *message["content"].splitlines(), ""]:
            write_line(printable(line))
    columns = {"model": "model", "base_url": "endpoint", "requests": "requests"}
    columns |= {"cached": "answered before", "tokens_in": "tokens in", "tokens_out": "out"}
    notes = [
        "Tokens of new requests are estimated: four characters each, and answers as long as"
        " max_tokens allows."
    ]
    for key, name in (("base_url", "Endpoint"), ("model", "Model")):
        if len({one[key] for one in previews}) == 1:
            del columns[key]  # an address is long
            notes.append(f"{name}: {first[key]}")
    if cost is not None:
        columns["cost"] = "cost"
        notes.append(f"Cost: about {money(cost)}.")
    else:
        notes.append("The options price_in and price_out, per million tokens, add their cost.")
    if any(one["logprobs"] is None for one in previews):
        notes.append(
            "A server that gives no log-probabilities is asked several times: see the option"
            " samples."
        )
    print_table(
        f"Nothing was asked: {counted(new, 'new request')}, about {tokens['tokens_in']:,} tokens in"
        f" and {tokens['tokens_out']:,} out. Above is a prompt of {first['member']}.",
        ["member", *columns.values()],
        [
            [money(one[key]) if key == "cost" else str(one[key]) for key in ("member", *columns)]
            for one in previews
        ],
        notes,
    )


_ASKED = {
    "requests": ("requests", "{:,}".format),
    "failures": ("failures", "{:,}".format),
    "tokens_in": ("tokens in", "{:,}".format),
    "tokens_out": ("out", "{:,}".format),
    "total_cost": ("cost", money),
    "cost": ("per item", money),
}


def print_asked(info: Mapping[str, Mapping[str, Any]]) -> None:
    """What members asked a server, and what that cost; nothing if none did."""
    asked = {name: about for name, about in info.items() if "tokens_in" in about}
    shown = {key: how for key, how in _ASKED.items() if any(key in one for one in asked.values())}
    rows = [
        [name, *(form(one[key]) if key in one else "" for key, (_, form) in shown.items())]
        for name, one in asked.items()
    ]
    if rows:
        print_table("Requests to servers", ["member", *(name for name, _ in shown.values())], rows)


def print_panels(compared: PanelComparison, made: str = "", rows: int = 5) -> None:
    """How far two panels part ways, and the items where they do so most."""
    found, scale = compared.summary(), compared.scale
    n, differ = found["items"], found["decisions_differ"]
    one, other = (str(each.panel) for each in compared.answers[:2])
    top = []
    for i in compared.order[:rows]:
        cells = []
        for answer, labels in zip(compared.answers, compared.labels, strict=True):
            shown = str(labels[i])
            if not scale.is_multi_label:  # of sets, the labels alone
                c = int(answer.probabilities[i].argmax())
                shown += f" {answer.probabilities[i, c]:.2f}"
                if answer is not compared.anonymous:
                    shown += f" ({answer.low[i, c]:.2f}–{answer.high[i, c]:.2f})"
            cells.append(shown)
        top.append([str(compared.one.items[i]), *cells, f"{compared.distances[i]:.3f}"])
    notes = [
        f"The two decide differently on {differ} of {counted(n, 'item')} ({differ / n:.0%}); mean"
        f" distance {found['distance']:.3f}.",
    ]
    if found["follows"] is not None and differ:
        shares = ", ".join(f"{name} {count}" for name, count in found["follows"].items())
        notes.append(f"There the anonymous answer decides as: {shares}.")
    notes.append(
        f"The {found['level']:.0%} intervals of their votes are apart on"
        f" {counted(found['beyond_chance'], 'item')}."
    )
    print_table(
        f"Whose view? {one} and {other}",
        ["part ways most", *(each.panel.name for each in compared.answers), "distance"],
        top,
        [*notes, *([f"All items, largest distance first: {made}"] if made else [])],
    )


def print_described(title: str, result: dict[str, Any]) -> None:
    """The figures of `edokit.datasets.describe_annotations`, a column per split."""
    # Train, dev and test in this order, whatever else after them.
    usual = ["train", "dev", "test"]
    order = sorted(result["splits"], key=lambda name: [*usual, name].index(name))
    splits = {name: result["splits"][name] for name in order}
    per_item = [part["annotations_per_item"] for part in splits.values()]
    ratios = [part["ratio"] for part in splits.values()]
    rows = [
        ["items", *(str(part["items"]) for part in splits.values())],
        ["annotators", *(str(part["annotators"]) for part in splits.values())],
        ["annotations", *(str(part["annotations"]) for part in splits.values())],
        ["per item", *(str(low) if low == high else f"{low}–{high}" for low, high in per_item)],
    ]
    rows += [
        [f"hard label {name}", *(str(part["classes"][name]) for part in splits.values())]
        for name in result["classes"]
    ]
    rows += [
        ["largest : smallest", *(f"{r:.2f} : 1" if r else "–" for r in ratios)],
        ["tied items", *(str(part["ties"]["items"]) for part in splits.values())],
        ["unanimous items", *(f"{part['unanimous']:.0%}" for part in splits.values())],
        ["mean entropy (nats)", *(f"{part['entropy']:.3f}" for part in splits.values())],
        ["median coverage", *(f"{part['coverage']['median']:.1%}" for part in splits.values())],
    ]
    notes = [f"Answer scale: {result['scale']}."]
    notes += [
        f"{what}: {', '.join(result[key])}."
        for what, key in (("Item columns", "columns"), ("Annotators' attributes", "attributes"))
        if result[key]
    ]
    duplicates = result.get("near_duplicates", {})
    for name, counts in duplicates.get("splits", {}).items():
        near, known = counts["near"], duplicates["also_in"]
        verb = "has" if near <= 1 else "have"
        some = counted(near, "text") if near else "No text"
        exactly = f" ({counts['verbatim']} word for word)" if near else ""
        name = "the items in no split" if name == "no split" else name
        notes.append(f"{some} of {name} {verb} a near-duplicate in {known}{exactly}.")
    print_table(title, ["", *splits], rows, notes)


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
        # Names of methods and members are shown as they are given.
        what = description and printable(description)
        bars.update(task, completed=done, total=total, detail=printable(detail), description=what)

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
    _drop_output()
    return READER_LEFT


def reader_left(error: BaseException) -> bool:
    """Whether this says that nobody reads what is written, also if it became an exit since."""
    cause = error.__context__ if isinstance(error, SystemExit) else error
    if not isinstance(cause, OSError) or cause.filename is not None:
        return False
    # Windows calls it an invalid argument.
    return cause.errno == errno.EPIPE or (os.name == "nt" and cause.errno == errno.EINVAL)


def _drop_output() -> None:
    """Let what still waits to be written go nowhere, or Python would complain of it at the end."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is None:  # closed from the start
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
