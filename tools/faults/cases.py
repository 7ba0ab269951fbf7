"""The commands that are disturbed, and checks that their folders must always pass."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from edokit import simulate
from edokit._io.npz import read_arrays
from edokit._io.tables import write_table
from edokit.ensemble.estimator import EDOEnsemble
from edokit.predictions.files import write_predictions
from edokit.predictions.shards import read_predictions

TIMED = ("seconds",)
"""Names of values that differ between two undisturbed runs."""
MEMBERS = 3
SHARDS = 4
FAST = (
    *("--trials", 12, "--population", 6, "--folds", 2, "--seed", 3, "--space", "paper"),
    "--no-report",
)


Finished = dict[str, tuple[object, ...]]
"""Finished results by name."""
Contents = dict[str, object]
"""Files by name, each as bytes or values."""


@dataclass(frozen=True)
class Case:
    """A command, and how to inspect its results."""

    name: str
    argv: Callable[[Path], list[object]]
    """The words after ``edo``, for a folder to write to."""
    finished: Callable[[Path], Finished]
    """The finished results in a folder, each with a value that changes if it is computed anew."""
    finishes: int
    """The number of results that an undisturbed run finishes."""
    inputs: tuple[Path, ...] = ()
    earlier: tuple[object, ...] = ()
    """Options with which another command has filled the folder before."""
    scratch: Path | None = None
    """The folder of its temporary files."""
    expected: Contents = field(default_factory=dict)
    """What an undisturbed run writes, by file."""


def make_inputs(folder: Path) -> None:
    """Annotations, and predictions as a file and as shards."""
    simulation = simulate("partial-panel", random_state=0, items=(40, 40, 40))
    people = simulation.annotations
    write_table(people.to_table(), folder / "people.csv")
    truth = simulation.truth[simulation.rows("dev")]
    rng = np.random.default_rng(0)
    probabilities = np.stack([truth, 0.5 * truth + 0.25, rng.dirichlet([2, 2], len(truth))], axis=1)
    np.savez(
        folder / "p.npz",
        probabilities=probabilities / probabilities.sum(axis=2, keepdims=True),
        items=np.array(people.split("dev").items, dtype=str),
        members=np.array([f"m{k}" for k in range(probabilities.shape[1])]),
        classes=np.array(people.classes, dtype=str),
    )
    table = read_predictions(folder / "p.npz")
    for k, rows in enumerate(np.array_split(np.arange(len(table.items)), SHARDS)):
        write_predictions(table.take(rows), folder / "shards" / f"part-{k:05d}.npz")


def make_cases(folder: Path) -> dict[str, Case]:
    """By name; ``folder`` is where `make_inputs` wrote."""
    people = folder / "people.csv"
    table = folder / "p.npz"
    shards = folder / "shards"
    scratch = folder / "scratch"
    annotation_flags = ("--annotations", people, "--split", "dev")

    def train(out: Path, *more: object) -> list[object]:
        return ["train", people, "--recipe", "linear", "--jobs", 1, *more, "--out", out]

    def search(out: Path, *more: object) -> list[object]:
        return ["search", "--predictions", table, *annotation_flags, *FAST, *more, "--out", out]

    def fit(out: Path, where: Path, *more: object) -> list[object]:
        return [
            "fit",
            "--predictions",
            where,
            *annotation_flags,
            "--overwrite",
            *more,
            "--out",
            out,
        ]

    cases = [
        Case(
            "train",
            lambda out: train(out, "--members", MEMBERS),
            members,
            MEMBERS,
            (people,),
            ("--members", MEMBERS - 1),
        ),
        Case(
            "train --cross-fit",
            lambda out: train(out, "--members", 2, "--cross-fit", 2),
            members,
            4,
            (people,),
            ("--members", 1),
        ),
        Case(
            "search (gumbel)",
            lambda out: search(out, "--solver", "gumbel"),
            trials,
            12,
            (people, table),
            ("--trials", 6),
        ),
        Case(
            "search (exact)",
            lambda out: search(out, "--solver", "exact"),
            trials,
            12,
            (people, table),
            ("--trials", 6),
        ),
        Case("fit", lambda out: fit(out, table), nothing, 0, (people, table), ("--ce", "all")),
        Case(
            "fit --stream",
            lambda out: fit(out, shards, "--stream", "--scratch", scratch),
            nothing,
            0,
            (people, shards / "part-00001.npz"),
            ("--ce", "all"),
            scratch,
        ),
    ]
    return {case.name: case for case in cases}


def members(out: Path) -> Finished:
    """Trained members, each with the identity of its card: a new member has another file."""
    cards = [*out.glob("members/*/member.json"), *out.glob("members/*/fold-*/member.json")]
    return {
        card.relative_to(out).as_posix(): (card.stat().st_ino, card.stat().st_mtime_ns)
        for card in cards
        if card in seen(out)
    }


def trials(out: Path) -> Finished:
    """Complete trials of the journal by place, with number, parameters and result."""
    journal = out / "search" / "journal.log"
    if not journal.exists():
        return {}
    trial_by_number: dict[int, dict[str, object]] = {}
    done: Finished = {}
    number = -1
    for line in journal.read_bytes().splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break  # the last one, not written to its end
        entry = json.loads(line)
        if entry["op_code"] == _CREATE_TRIAL:
            number += 1
            trial_by_number[number] = {
                "place": entry["user_attrs"]["place"],
                "params": entry["params"],
            }
        elif entry["op_code"] == _SET_USER_ATTR:
            trial_by_number[entry["trial_id"]].update(entry["user_attr"])
        elif entry["op_code"] == _SET_STATE and entry["state"] == _COMPLETE:
            place = str(trial_by_number[entry["trial_id"]]["place"])
            assert place not in done, f"the trial at {place} was done twice"
            done[place] = (entry["trial_id"], trial_by_number[entry["trial_id"]], entry["values"])
    return done


# Optuna's journal, in its own numbers.
_CREATE_TRIAL = 4
_SET_STATE = 6
_SET_USER_ATTR = 8
_COMPLETE = 1


def nothing(out: Path) -> Finished:
    """The results of a command that writes everything at its end."""
    return {}


def seen(out: Path) -> list[Path]:
    """Files under their final names; a command that is running may remove folders meanwhile."""
    files = []
    for folder, _, names in os.walk(out):
        for name in names:
            file = Path(folder) / name
            is_hidden = any(part.startswith(".") for part in file.relative_to(out).parts)
            if file.is_file() and not is_hidden:
                files.append(file)
    return sorted(files)


def hidden(out: Path) -> list[str]:
    """The files of unfinished work."""
    return [str(path.relative_to(out)) for path in out.rglob(".*")]


def check_whole(out: Path) -> None:
    """Check that every file under its final name is complete, and that named files exist."""
    for file in seen(out):
        content(file)
    if (out / "manifest.json").exists():
        manifest = json.loads((out / "manifest.json").read_text())
        for place in manifest["predictions"].values():
            assert read_predictions(out / place).members == tuple(
                member["name"] for member in manifest["members"]
            )
        for member in manifest["members"]:
            place = out / "members" / member["name"]
            assert (place / "member.json").exists() or list(place.glob("fold-*/member.json"))
    if (out / "run.json").exists():
        kind = json.loads((out / "run.json").read_text())["kind"]
        ensemble = out / "ensemble"
        if kind == "fit":
            ensemble = out
        EDOEnsemble.load(ensemble)
        if kind == "search":
            search_result = json.loads((out / "search" / "search.json").read_text())
            assert (
                pq.read_table(out / "search" / "trials.parquet").num_rows == search_result["trials"]
            )
    if (out / "ensemble.json").exists():
        EDOEnsemble.load(out)


def result(out: Path) -> Contents:
    """The files of a finished folder whose contents should not differ between runs."""
    contents: Contents = {file.relative_to(out).as_posix(): content(file) for file in seen(out)}
    # Trials that were begun and not finished stay in the journal and take numbers.
    contents.pop("search/journal.log", None)
    return contents


def content(file: Path) -> object:
    """A whole file: its bytes, or its values without times and trial numbers."""
    if file.suffix == ".json":
        return _timeless(json.loads(file.read_text(encoding="utf-8")))
    if file.suffix == ".parquet":
        table = pq.read_table(file)
        assert table.num_rows
        return table.drop_columns(["number"]).to_pydict()
    if file.suffix == ".npz":
        read_arrays(file)
    elif file.suffix == ".log":
        lines = file.read_bytes().splitlines(keepends=True)
        for line in lines[:-1]:
            json.loads(line)
    return file.read_bytes()


def _timeless(value: object) -> object:
    """A value of JSON without times and trial numbers."""
    if isinstance(value, dict):
        return {
            name: _timeless(entry)
            for name, entry in value.items()
            if name not in (*TIMED, "number", "trial", "command")
        }
    if isinstance(value, list):
        return [_timeless(entry) for entry in value]
    return value


def clear(out: Path) -> None:
    """Remove a folder."""
    if out.is_dir():
        shutil.rmtree(out)
