"""The site: built strictly, its pages of commands never stale, its links all leading somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import edokit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import command_pages  # noqa: E402
import docs_site  # noqa: E402


def test_pages_of_commands_are_what_the_commands_say_of_themselves() -> None:
    folder = ROOT / "docs" / "commands"
    written = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    assert written == command_pages.pages(), "run python tools/command_pages.py"


def test_every_exported_name_is_in_the_reference() -> None:
    folder = ROOT / "docs" / "reference"
    pages = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.md"))
    for name in set(edokit.__all__) - {"__version__"}:
        assert re.search(rf"\b{name}\b", pages), name


@pytest.mark.parametrize(
    ("place", "written", "turned"),
    [
        ("index.md", "[m](docs/method.md#a)", "[m](method.md#a)"),
        ("index.md", "![p](docs/images/p.png)", "![p](images/p.png)"),
        ("index.md", "[c](CITATION.cff)", "c"),
        ("index.md", "[w](https://semver.org)", "[w](https://semver.org)"),
        ("index.md", "[h](#here)", "[h](#here)"),
        ("method.md", "[b](../benchmarks/README.md#x)", "[b](benchmarks/index.md#x)"),
        ("method.md", "[r](../README.md)", "[r](index.md)"),
        ("commands/fit.md", "[m](../method.md)", "[m](../method.md)"),
        ("examples/sklearn-pool.md", "[y](../../docs/your-data.md)", "[y](../your-data.md)"),
        ("method.md", "```\n[c](../CITATION.cff)\n```\n", "```\n[c](../CITATION.cff)\n```\n"),
        ("method.md", "[gone](../gone.md)", "[gone](../gone.md)"),
    ],
)
def test_links_between_files_become_links_between_pages(
    place: str, written: str, turned: str
) -> None:
    assert docs_site.relinked(written, place) == turned


def test_the_site_builds_strictly_and_fetches_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr + done.stdout
    outside = re.compile(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(?:https?:)?//")
    for page in tmp_path.rglob("*.html"):
        assert not outside.search(page.read_text(encoding="utf-8")), page
    method = (tmp_path / "reference" / "ensemble" / "index.html").read_text(encoding="utf-8")
    assert 'id="edokit.EDOEnsemble.fit"' in method


def test_a_broken_link_fails_the_build() -> None:
    # What --strict turns into errors is chosen in mkdocs.yml.
    chosen = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("validation:")[1]
    levels = re.findall(r"(\w+): (\w+)$", chosen.split("nav:\n  - Home")[0], re.MULTILINE)
    assert {level for _, level in levels} == {"warn"}
    assert {"omitted_files", "not_found", "anchors", "unrecognized_links"} <= {n for n, _ in levels}
