"""Run the notebooks of the examples and keep what they show: ``python tools/notebooks.py``.

Each runs in a new folder, in a kernel of this Python. ``--html FOLDER`` also writes pages to look
at (this needs nbconvert).
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

NOTEBOOKS = Path(__file__).resolve().parent.parent / "examples" / "notebooks"
SECONDS = 120
"""How long a cell may take."""


def run_notebook(path: Path, folder: Path) -> NotebookNode:
    """Run a notebook in a folder of its own, beside a copy of the tables it reads."""
    shutil.copy(path.with_name("invented.py"), folder)
    notebook = nbformat.read(path, as_version=4)
    environment = {**os.environ, "PYTHONHASHSEED": "0", "TOKENIZERS_PARALLELISM": "false"}
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
    )
    client.execute(env=environment)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = kept_outputs(cell.outputs)
    return notebook


def kept_outputs(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """The outputs of a cell without the parts that differ from run to run."""
    kept_cells: list[NotebookNode] = []
    for output in outputs:
        for kind, text in output.get("data", {}).items():
            if kind == "text/plain":
                output.data[kind] = re.sub(r" at 0x[0-9a-f]+", "", text)
        if "transient" in output:
            del output["transient"]
        kept_cells.append(output)
    return kept_cells


def main() -> None:
    """Write the notebooks with their outputs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="such as jury; all of them otherwise")
    parser.add_argument("--html", type=Path, help="a folder for the pages")
    arguments = parser.parse_args()
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if arguments.names and path.stem not in arguments.names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            notebook = run_notebook(path, Path(folder))
        nbformat.write(notebook, path)
        print(f"{path.name}: {path.stat().st_size:,} bytes", file=sys.stderr)
        if arguments.html:
            exporter = importlib.import_module("nbconvert").HTMLExporter()
            page, _ = exporter.from_notebook_node(notebook)
            arguments.html.mkdir(parents=True, exist_ok=True)
            (arguments.html / f"{path.stem}.html").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
