"""Paths that a command takes are names on this machine, and what it writes replaces nothing."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import typer.main
from test_commands import edo

from edokit.cli.app import COMMANDS, make_app
from edokit.cli.messages import invoked

SECRET = "geheim"


def paths_of(name: str) -> list[str]:
    """The parameters of a command that are paths."""
    module, _, function = COMMANDS[name].partition(":")
    hints = get_type_hints(getattr(import_module(f"edokit.cli.{module}"), function or module))
    return [one for one, hint in hints.items() if hint is Path or Path in get_args(hint)]


def call(name: str, **given: str) -> list[str]:
    """A command line with these paths, and with something for all else that is needed."""
    root = typer.main.get_command(make_app(name.split()))
    words: list[str] = []
    for one in invoked(root, name.split()).params:
        parameter: Any = one
        if parameter.name in given or parameter.required:
            if parameter.opts[0].startswith("--"):
                words.append(parameter.opts[0])
            words.append(given.get(parameter.name, "nothing"))
    return [*name.split(), *words]


@pytest.mark.parametrize(
    ("name", "parameter"), [(name, one) for name in COMMANDS for one in paths_of(name)]
)
def test_no_path_is_empty_or_an_address(
    name: str, parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path, wrong in (
        ("", "empty"),
        (" ", "empty"),
        (f" postgresql://ann:{SECRET}@host/study", "address"),
        (f"https://ann:{SECRET} {SECRET}@host/x.csv", "address"),
        (f"here/s3://{SECRET}", "address"),
    ):
        done = edo(*call(name, **{parameter: path}))
        assert done.returncode == 2
        assert wrong in done.stderr
        assert SECRET not in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [("predictions", "join"), ("compare", "--extra")])
def test_nor_is_a_path_inside_of_another_word(words: tuple[str, ...], tmp_path: Path) -> None:
    address = f"https://ann:{SECRET}@host/x.npz"
    if words[0] == "compare":
        more = [f"soft={address},{tmp_path / 't.npz'}", *call("compare")[1:]]
    else:
        more = [f"soft={address}", "--out", str(tmp_path / "p.npz")]
    done = edo(*words, *more)
    assert (done.returncode, "address" in done.stderr) == (2, True)
    assert SECRET not in done.stdout + done.stderr
