"""Write docs/commands: a page per command, made from the help that the commands themselves give.

    python tools/command_pages.py

A test compares the committed pages with what this writes, so they never go stale.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from cyclopts import Argument

from edokit.cli.app import COMMANDS, arguments_of, make_app

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "commands"
# Where there is more than options can say.
TOPICS = {
    "audit": ("Is my jury several judges or one?", "audit.md"),
    "compare": ("Every method side by side", "compare.md"),
    "data": ("Input formats", "formats.md"),
    "demo": ("Ten minutes", "guide.md"),
    "diagnose": ("What kind of disagreement is this?", "diagnose.md"),
    "estimate": ("What share of our texts?", "shares.md"),
    "evaluate": ("Metrics", "metrics.md"),
    "fit": ("The method", "method.md"),
    "plan": ("How many annotators do I need?", "plan.md"),
    "predict": ("Ten minutes", "guide.md"),
    "bundle": ("Bundles", "bundles.md"),
    "predictions": ("Input formats", "formats.md"),
    "report": ("The report", "report.md"),
    "score": ("Training members", "members.md"),
    "run": ("One command", "run.md"),
    "search": ("Searching", "search.md"),
    "serve": ("From notebook to endpoint", "serving.md"),
    "train": ("Training members", "members.md"),
}
KINDS = {Path: "PATH", int: "INTEGER", float: "NUMBER", str: "TEXT"}


def summaries() -> Iterator[tuple[str, str]]:
    """Every command under its full name, such as "data info", and what it does."""
    app = make_app()
    for name in sorted(COMMANDS):
        command = app
        for word in name.split():
            command = command[word]
        yield name, inspect.getdoc(command.default_command) or ""


def pages() -> dict[str, str]:
    """File names and their contents."""
    written_pages = {f"{file_name(name)}.md": page(name, text) for name, text in summaries()}
    return {"index.md": overview(), **written_pages}


def file_name(name: str) -> str:
    return name.replace(" ", "-")


def overview() -> str:
    """The page that lists all commands."""
    rows = [
        f"| [`edo {name}`]({file_name(name)}.md) | {cell(paragraphs(text)[0])} |"
        for name, text in summaries()
    ]
    return "\n".join(
        [
            "# Commands",
            "",
            "Every command takes `--json` (one JSON object on stdout, nothing else there), and ends"
            " with exit",
            "code 0, or with 2 and one line that says what is wrong and what to do. `edo --debug"
            " COMMAND …` also",
            "shows where in the code an error arose.",
            "",
            "| command | does |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def page(name: str, text: str) -> str:
    """The page of one command."""
    arguments = arguments_of(make_app(), name.split(), help=True)
    options = [argument for argument in arguments if argument.name.startswith("--")]
    positional = [argument for argument in arguments if argument not in options]
    lines = [f"# edo {name}", "", *"\n\n".join(paragraphs(text)).splitlines(), ""]
    lines += ["```text", usage(name, positional, options), "```", ""]
    if positional:
        lines += ["| argument | what it is |", "|---|---|"]
        lines += [
            f"| `{placeholder(argument)}` | {described(argument)} |" for argument in positional
        ]
        lines.append("")
    lines += ["| option | what it says |", "|---|---|"]
    lines += [f"| {written(argument)} | {described(argument)} |" for argument in options]
    if (topic := TOPICS.get(name.split()[0])) is not None:
        lines += ["", "More: [{}](../{}).".format(*topic)]
    return "\n".join([*lines, ""])


def usage(name: str, positional: list[Argument], options: list[Argument]) -> str:
    """The command with its required arguments, in one line."""
    words = ["edo", name]
    for argument in positional:
        if argument.required:
            words.append(placeholder(argument))
        else:
            words.append(f"[{placeholder(argument)}]")
    words += [f"{option.name} {kind_of(option)}" for option in options if option.required]
    return " ".join([*words, "[OPTIONS]"])


def placeholder(argument: Argument) -> str:
    return argument.parameter.metavar or argument.name


def kind_of(argument: Argument) -> str:
    """What kind of value an option takes; a switch takes none."""
    if argument.parameter.metavar:
        return argument.parameter.metavar
    if choices := argument.get_choices(force=True):
        return "|".join(choices)
    kinds = [argument.hint, *get_args(argument.hint)]
    for kind in [*kinds]:
        kinds += get_args(kind)
    return next((KINDS[kind] for kind in kinds if kind in KINDS), "")


def written(argument: Argument) -> str:
    """An option as it is typed."""
    text = " / ".join(f"`{name}`" for name in argument.names)
    kind = kind_of(argument)
    if kind:
        text += f" `{kind}`"
    return cell(text)


def described(argument: Argument) -> str:
    """The help, with a note if the option is required, else with its default."""
    text = cell(argument.parameter.help or "")
    default = argument.field_info.default
    if argument.required:
        if argument.name.startswith("--"):
            return f"{text} **Required.**"
        return text
    if default is None or (default is False and not argument.negatives):
        return text
    if default is True:
        default = argument.name
    elif default is False:
        default = argument.negatives[0]
    return f"{text} Default: `{cell(str(default))}`."


def paragraphs(text: str) -> list[str]:
    """What a command does, a line each."""
    description = text.partition("\nParameters\n")[0].strip()
    return [" ".join(part.split()) for part in description.split("\n\n")]


def cell(text: str) -> str:
    """Text that is safe in a table."""
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    expected_pages = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in expected_pages:
            old.unlink()
    for name, text in expected_pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")
    print(f"{FOLDER}: {len(expected_pages)} pages")


if __name__ == "__main__":
    main()
