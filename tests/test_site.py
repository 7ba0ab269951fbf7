"""The site: built strictly, its pages of commands never stale, its links all leading somewhere."""

from __future__ import annotations

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


def test_the_site_builds_strictly_and_fetches_nothing() -> None:
    built = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "docs_site.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr + built.stdout
    outside = re.compile(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(?:https?:)?//")
    site = ROOT / "site"
    for page in site.rglob("*.html"):
        assert not outside.search(page.read_text(encoding="utf-8")), page
    ensembles = (site / "reference" / "ensemble" / "index.html").read_text(encoding="utf-8")
    assert 'id="edokit.EDOEnsemble.fit"' in ensembles
    method = (site / "method" / "index.html").read_text(encoding="utf-8")
    assert "edokit" in method


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pages of the site, in a folder that may be changed."""
    monkeypatch.setattr(docs_site, "PAGES", tmp_path / "pages")
    docs_site.gather()
    assert docs_site.missing_images() == []
    assert docs_site.pages_outside_navigation() == []
    return tmp_path / "pages"


def test_what_zensical_overlooks_is_named(pages: Path) -> None:
    (pages / "lost.md").write_text("# Lost\n\n![chart](images/none.png)\n", encoding="utf-8")
    assert docs_site.pages_outside_navigation() == ["lost.md"]
    assert docs_site.missing_images() == ["lost.md: images/none.png"]


@pytest.mark.parametrize("link", ["[x](nowhere.md)", "[x](#nowhere)", "[edokit.Nowhere][]"])
def test_a_broken_link_fails_the_build(link: str, tmp_path: Path) -> None:
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[0]
    config = config.replace("docs_dir: build/pages", "docs_dir: pages")
    (tmp_path / "mkdocs.yml").write_text(config, encoding="utf-8")
    (tmp_path / "pages").mkdir()
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    for text, is_broken in (("# Home\n", False), (f"# Home\n\n{link}\n", True)):
        (tmp_path / "pages" / "index.md").write_text(text, encoding="utf-8")
        built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (built.returncode != 0) == is_broken, built.stderr + built.stdout
