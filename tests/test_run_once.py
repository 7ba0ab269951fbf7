"""A run hands its objects on: nothing is parsed, loaded, hashed or written twice.

The system is asked, not the code: an audit hook sees every file that Python opens and renames.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

import edokit
from edokit import RunOptions, pipeline, simulate
from edokit.datasets import read
from edokit.members import Group
from edokit.members.recipes.linear import LinearMember
from edokit.pipeline.pool import Ingredient

WRITING = os.O_WRONLY | os.O_RDWR
FOLDS = 5
watched: list[tuple[str, str]] = []
"""What happened to files while a run was watched: the event, and the path."""
is_watching = False


def listen(event: str, arguments: tuple[object, ...]) -> None:
    """Note files that are opened for reading, and the names that files and folders end up with."""
    if not is_watching:
        return
    if event == "open" and isinstance(arguments[0], str | Path):
        flags = arguments[2]
        if isinstance(flags, int) and not flags & WRITING:
            watched.append(("read", str(arguments[0])))
    elif event == "os.rename":
        watched.append(("written", str(arguments[1])))


def small_pool(options: RunOptions) -> list[Ingredient]:
    """Two members that learn in no time."""
    return [
        Ingredient(Group("linear", 1, "bold", "soft", options={"strength": 20.0})),
        Ingredient(Group("linear", 1, "drawn", "random-select")),
    ]


class Counts:
    """What one run did, and how often."""

    def __init__(self, folder: Path, votes: Path) -> None:
        self.folder = folder
        self.votes = votes
        self.parses = 0
        self.loads: Counter[str] = Counter()

    def reads(self, *parts: str) -> Counter[str]:
        """How often each file below a part of the run was opened for reading."""
        inside = str(self.folder.joinpath(*parts)) + os.sep
        paths = [path for event, path in watched if event == "read" and inside in path]
        return Counter(path for path in paths if Path(path).suffix)  # folders are synced, not read

    @property
    def writes(self) -> Counter[str]:
        """How often each file or folder of the run got its name."""
        inside = str(self.folder) + os.sep
        names = [path for event, path in watched if event == "written" and path.startswith(inside)]
        return Counter(name.removeprefix(inside) for name in names)


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Counts:
    """One run of a small table in this process."""
    global is_watching
    folder = tmp_path_factory.mktemp("once")
    votes = folder / "votes.csv"
    people = simulate("two-camps", random_state=0, items=(40, 20, 10)).annotations
    people.to_table().to_pandas().to_csv(votes, index=False)
    counted = Counts(folder / "RUN", votes)
    read_table = read.TABLE.read
    load = LinearMember.load.__func__  # type: ignore[attr-defined]

    def counted_read(*arguments: object, **options: object) -> object:
        counted.parses += 1
        return read_table(*arguments, **options)  # type: ignore[arg-type]

    def counted_load(cls: type, path: Path, **options: object) -> object:
        counted.loads["/".join(path.parts[-2:])] += 1
        return load(cls, path, **options)

    sys.addaudithook(listen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "default_pool", small_pool)
        patch.setattr(
            read, "TABLE", read.TABLE.__class__(**{**vars(read.TABLE), "read": counted_read})
        )
        patch.setattr(LinearMember, "load", classmethod(counted_load))
        is_watching = True
        try:
            result = edokit.run(votes, folder / "RUN", jobs=1)
            result.predict_proba(["what a lovely day"])
        finally:
            is_watching = False
    return counted


def test_the_table_is_parsed_once(counts: Counts) -> None:
    assert counts.parses == 1


def test_each_model_that_carries_weight_is_loaded_once(counts: Counts) -> None:
    ensemble = edokit.EDOEnsemble.load(counts.folder / "ensemble")
    expected = {
        f"{name}/fold-{fold}": 1 for name in ensemble.needed_members() for fold in range(FOLDS)
    }
    assert counts.loads == expected


def test_nothing_reads_the_models_that_were_copied_into_the_bundle(counts: Counts) -> None:
    # Their digests are on the cards of the members, and the models are in memory.
    listed = json.loads((counts.folder / "bundle" / "bundle.json").read_text())["files"]
    assert any(name.endswith("linear.npz") for name in listed)
    assert not any(path.endswith("linear.npz") for path in counts.reads("bundle"))


def test_cards_in_the_bundle_are_read_for_their_digests_alone(counts: Counts) -> None:
    reads = counts.reads("bundle")
    cards = {path: number for path, number in reads.items() if path.endswith("member.json")}
    assert len(cards) == sum(counts.loads.values())
    assert set(cards.values()) == {1}


def test_predictions_of_members_are_read_back_from_their_folders_alone(counts: Counts) -> None:
    reads = counts.reads("members", "predictions")
    assert {Path(path).name: number for path, number in reads.items()} == {"fit.npz": 1}  # digest


def test_each_file_is_written_once(counts: Counts) -> None:
    twice = {name for name, number in counts.writes.items() if number > 1}
    # It marks the folder as a run's before anything else is written.
    assert twice == {"summary.json"}
    assert counts.writes["summary.json"] == 2
    assert {"report.html", "run.json", "pool.toml"} <= counts.writes.keys()
