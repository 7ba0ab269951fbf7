"""The walk through a fit that CONTRIBUTING describes names the modules that a fit enters."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import edokit
from edokit import Annotations, Predictions, write_annotations, write_predictions

ROOT = Path(__file__).parents[1]
SOURCE = Path(edokit.__file__).parent
WALK = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## One fit, ")[1]
WALK = WALK.split("\n## ")[0]

# What the walk stands on, in its own words.
BASE = re.compile(r"_\w+(/|$)|metrics/|item_array$")
# Classes without code that runs: their methods are those of dataclasses.
WITHOUT_CALLS = {"solvers/__init__"}
COMMAND = {"cli/__init__", "cli/app", "cli/options", "cli/console", "cli/fit"}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Predictions and annotations of 60 items."""
    rng = np.random.default_rng(0)
    votes = rng.integers(0, 2, size=(60, 5))
    noise = rng.normal(0, [0.1, 0.4], size=(60, 2))
    members = np.clip(votes.mean(axis=1)[:, None] + noise, 0.05, 0.95)
    items = [f"post-{number}" for number in range(60)]
    write_annotations(Annotations.from_matrix(votes, items=items), tmp_path / "labels.csv")
    pool = Predictions.from_arrays(members, items=items, classes=["0", "1"], layout="NK")
    write_predictions(pool, tmp_path / "dev.npz")
    return tmp_path / "dev.npz", tmp_path / "labels.csv"


def entered_modules(files: tuple[Path, Path], out: Path) -> set[str]:
    """The modules of which a fit of these files calls a function, like ``ensemble/fitted``."""
    entered: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.suffix == ".py" and path.is_relative_to(SOURCE):
            entered.add(path.relative_to(SOURCE).with_suffix("").as_posix())

    edokit.fit(*files, out=out)  # imports whatever it needs
    sys.setprofile(note)
    try:
        edokit.fit(*files, out=out)
    finally:
        sys.setprofile(None)
    return entered


def test_a_fit_enters_the_modules_of_the_walk(files: tuple[Path, Path], tmp_path: Path) -> None:
    entered = entered_modules(files, tmp_path / "ensemble")
    modules = {name for name in entered if not BASE.match(name)} | WITHOUT_CALLS
    named = set(re.findall(r"\w+", WALK))
    assert {name for name in modules if name.rpartition("/")[2] not in named} == set()
    counts = re.search(r"These (\d+) modules do it \((\d+) from Python\)", WALK)
    assert counts is not None
    assert (int(counts[1]), int(counts[2])) == (len(modules | COMMAND), len(modules))


def test_every_file_that_the_walks_name_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    training = text.split("## One training, ")[1].split("\n## ")[0]
    paths = re.findall(r"`((?:\w+/)*\w+\.py)", training)
    assert len(paths) > 15
    assert [path for path in paths if not (SOURCE / path).is_file()] == []
