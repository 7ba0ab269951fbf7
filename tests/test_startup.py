"""Importing the package loads nothing that is slow to load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = "{'numpy', 'pandas', 'pyarrow', 'scipy', 'sklearn', 'optuna', 'plotly', 'torch'}"


def loaded_by(code: str) -> set[str]:
    """Which of the heavy packages a fresh Python has loaded after this code."""
    ask = f"import sys\n{code}\nprint(*({HEAVY} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import edokit") == set()


@pytest.mark.parametrize("name", ["EDOEnsemble", "read_annotations", "Predictions"])
def test_what_people_import_first_needs_no_torch_and_no_plotting(name: str) -> None:
    assert not loaded_by(f"from edokit import {name}") & {"torch", "plotly"}


def test_reading_a_table_loads_few_modules_and_no_other_reader(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,label\na,x,no\na,y,yes\n", encoding="utf-8")
    code = f"import sys, edokit\nedokit.read_annotations({str(path)!r})\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = [name for name in done.stdout.split() if name.startswith("edokit")]
    assert not {f"edokit.datasets.{name}" for name in ("lewidi", "label_studio", "argilla")} & {
        *ours
    }
    assert len(ours) <= 22
