"""Write docs/commands: a page per command, made from the help that the commands themselves give.

    python tools/command_pages.py

A test compares the committed pages with what this writes, so they never go stale.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "commands"
# Where there is more than options can say.
TOPICS = {
    "compare": ("Every method side by side", "compare.md"),
    "data": ("Input formats", "formats.md"),
    "demo": ("Ten minutes", "guide.md"),
    "diagnose": ("What kind of disagreement is this?", "diagnose.md"),
    "evaluate": ("Metrics", "metrics.md"),
    "explain": ("Cost against loss", "report.md"),
    "fit": ("The method", "method.md"),
    "predict": ("Ten minutes", "guide.md"),
    "bundle": ("Bundles", "bundles.md"),
    "predictions": ("Input formats", "formats.md"),
    "report": ("The report", "report.md"),
    "score": ("Training members", "members.md"),
    "search": ("Searching", "search.md"),
    "serve": ("From notebook to endpoint", "serving.md"),
    "train": ("Training members", "members.md"),
}
KINDS = {Path: "PATH", int: "INTEGER", float: "NUMBER", str: "TEXT"}


def commands() -> Iterator[tuple[str, Any]]:
    """Every command under its full name, such as "data info"."""
    from edokit.cli.app import make_app

    def inside(command: Any, name: str) -> Iterator[tuple[str, Any]]:
        for word, inner in getattr(command, "commands", {}).items():
            full = f"{name} {word}".strip()
            if getattr(inner, "commands", None):
                yield from inside(inner, full)
            else:
                yield full, inner

    yield from sorted(inside(typer.main.get_command(make_app()), ""))


def pages() -> dict[str, str]:
    """File names and their contents."""
    found = {f"{file_name(name)}.md": page(name, command) for name, command in commands()}
    return {"index.md": overview(), **found}


def file_name(name: str) -> str:
    return name.replace(" ", "-")


def overview() -> str:
    """The page that lists all commands."""
    rows = [
        f"| [`edo {name}`]({file_name(name)}.md) | {cell(paragraphs(command)[0])} |"
        for name, command in commands()
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


def page(name: str, command: Any) -> str:
    """The page of one command."""
    kinds = value_kinds(command)
    arguments = [param for param in command.params if not param.opts[0].startswith("-")]
    options = [
        param
        for param in command.params
        if param.opts[0].startswith("-") and param.name != "help" and not param.hidden
    ]
    lines = [f"# edo {name}", "", *"\n\n".join(paragraphs(command)).splitlines(), ""]
    lines += ["```text", usage(name, arguments, options, kinds), "```", ""]
    if arguments:
        lines += ["| argument | what it is |", "|---|---|"]
        lines += [f"| `{placeholder(param)}` | {described(param)} |" for param in arguments] + [""]
    lines += ["| option | what it says |", "|---|---|"]
    lines += [f"| {written(param, kinds)} | {described(param)} |" for param in options]
    if (topic := TOPICS.get(name.split()[0])) is not None:
        lines += ["", "More: [{}](../{}).".format(*topic)]
    return "\n".join([*lines, ""])


def usage(name: str, arguments: list[Any], options: list[Any], kinds: dict[str, str]) -> str:
    """What must be given, in one line."""
    words = ["edo", name]
    for param in arguments:
        words.append(placeholder(param) if param.required else f"[{placeholder(param)}]")
    words += [f"{param.opts[0]} {kinds[param.name]}" for param in options if param.required]
    return " ".join([*words, "[OPTIONS]"])


def placeholder(param: Any) -> str:
    return str(param.metavar or param.name.upper() + ("..." if param.nargs == -1 else ""))


def written(param: Any, kinds: dict[str, str]) -> str:
    """An option as one types it."""
    both = " / ".join(f"`{name}`" for name in [*param.opts, *param.secondary_opts])
    value = "" if param.is_flag else f" `{param.metavar or kinds[param.name]}`"
    return cell(both + value)


def described(param: Any) -> str:
    """The help, whether it must be given, and the default."""
    text = cell(param.help or "")
    if param.required:
        return f"{text} **Required.**" if param.opts[0].startswith("-") else text
    if getattr(param, "is_flag", False):
        if param.secondary_opts and isinstance(param.default, bool) and param.show_default:
            chosen = (param.opts if param.default else param.secondary_opts)[0]
            return f"{text} Default: `{chosen}`."
        return text
    if param.default is None or param.show_default is False:
        return text
    return f"{text} Default: `{cell(str(param.default))}`."


def value_kinds(command: Any) -> dict[str, str]:
    """What kind of value each option takes, from the command's own annotations."""
    return {
        name: kind_of(hint)
        for name, hint in get_type_hints(command.callback, include_extras=True).items()
    }


def kind_of(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    inner = [part for part in get_args(hint) if part is not type(None)]
    if isinstance(hint, UnionType) or get_origin(hint) is list:
        return kind_of(inner[0])
    return KINDS.get(hint, "")


def paragraphs(command: Any) -> list[str]:
    """The command's help, a line each."""
    text = inspect.cleandoc(command.help or "")
    return [" ".join(part.split()) for part in text.split("\n\n")]


def cell(text: str) -> str:
    """Text that is safe in a table."""
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")
    print(f"{FOLDER}: {len(wanted)} pages")


if __name__ == "__main__":
    main()
