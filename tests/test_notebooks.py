"""The notebooks of the examples run as they stand, and show what they were kept with."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from example_cases import EXAMPLES

NOTEBOOKS = sorted((EXAMPLES / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]
MOST_BYTES = 100_000
# What their prose says of their outputs.
TRUE_OF = {
    "jury": [
        "4 members count as 2.0 independent judges",
        "The average is clearly worse without 'wren'",
        "can replace an annotator",
        "Matches your annotators clearly better than a plain average",
    ],
    "members": [
        "clearly better than the same answer for every text",
        "not clearly better than a plain average",
    ],
    "your-table": [
        "400 items, 30 annotators, 2000 annotations",
        "partly structured: annotators have different views",
        "Matches your annotators clearly better than a plain average",
    ],
}


@pytest.fixture(scope="module")
def tool() -> Any:
    for package in ("nbclient", "ipykernel"):
        pytest.importorskip(package, reason="needs the extra dev")
    sys.path.insert(0, str(EXAMPLES.parent / "tools"))
    try:
        return importlib.import_module("notebooks")
    finally:
        sys.path.pop(0)


def shown(notebook: Any) -> list[list[str]]:
    """The kinds of outputs of each cell with code."""
    kinds = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            kinds.append(
                [kind for output in cell.outputs for kind in sorted(output.get("data", ["text"]))]
            )
    return kinds


def text_of(notebook: Any) -> str:
    """All that cells show, without the base64 of charts."""
    parts = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            parts.append(output.get("text", ""))
            parts += [output.get("data", {}).get(kind, "") for kind in ("text/plain", "text/html")]
    return re.sub(r"base64,[\w+/=]+", "", "\n".join(parts))


def test_there_are_three_and_the_overview_names_them() -> None:
    assert NAMES == ["jury", "members", "your-table"]
    overview = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"(notebooks/{name}.ipynb)" in overview for name in NAMES)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_a_notebook_runs_and_shows_what_was_kept(
    path: Path, tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tests run on every core already: worker processes of the kernel would only load libraries.
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    if path.stem == "members":
        pytest.importorskip("transformers", reason="needs the extra transformers")
    kept = tool.nbformat.read(path, as_version=4)
    ran = tool.run_notebook(path, tmp_path)
    assert shown(ran) == shown(kept)
    assert all(
        output.get("name") != "stderr" for cell in ran.cells for output in cell.get("outputs", [])
    )
    for sentence in TRUE_OF[path.stem]:
        assert sentence in text_of(ran)
        assert sentence in text_of(kept)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_kept_outputs_are_small_and_name_no_place_of_the_machine(path: Path, tool: Any) -> None:
    assert path.stat().st_size < MOST_BYTES
    kept = tool.nbformat.read(path, as_version=4)
    text = text_of(kept)
    assert not re.search(r"/(home|root|tmp|work|Users)/|0x[0-9a-f]{6}", text)
    counts = [cell.execution_count for cell in kept.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert "image/svg+xml" in "".join(path.read_text(encoding="utf-8").split())
