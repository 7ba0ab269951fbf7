"""What a release rests on: one version, data that travels with the package, files that parse."""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import edokit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import release_contents  # noqa: E402


def test_the_version_stands_in_one_place() -> None:
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in settings
    assert 'path = "src/edokit/_package.py"' in settings
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == edokit.__version__
    assert f"## {edokit.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_package_is_more_than_its_modules() -> None:
    files = release_contents.package_files()
    assert {"edokit/py.typed", "edokit/report/assets/report.html"} <= files
    assert not any("reproduc" in name or name.endswith(".csv") for name in files)
    assert "reproduction/paper/benchmark.csv" in release_contents.IN_SDIST


@pytest.fixture
def built(tmp_path: Path) -> tuple[Path, Path]:
    """A wheel and an sdist with everything in them."""
    wheel, sdist = tmp_path / "a.whl", tmp_path / "a.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in release_contents.package_files():
            archive.writestr(name, "")
        archive.writestr("edokit-0.dist-info/licenses/LICENSE", "")
    with tarfile.open(sdist, "w:gz") as archive:
        for name in release_contents.package_files():
            archive.addfile(tarfile.TarInfo(f"edokit-0/src/{name}"))
        for name in release_contents.IN_SDIST:
            archive.addfile(tarfile.TarInfo(f"edokit-0/{name}"))
    return wheel, sdist


def test_whole_archives_pass(built: tuple[Path, Path]) -> None:
    assert release_contents.wrong_with(*built) == []


def test_what_an_archive_lacks_or_has_too_much_is_said(
    built: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(built[0], "a") as archive:
        archive.writestr("tests/test_docs.py", "")
    files = {*release_contents.package_files(), "edokit/new.html"}
    monkeypatch.setattr(release_contents, "package_files", lambda: files)
    assert release_contents.wrong_with(*built) == [
        "the wheel lacks edokit/new.html",
        "the wheel should not hold tests/test_docs.py",
        "the sdist lacks src/edokit/new.html",
    ]


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name
)
def test_workflows_and_templates_are_whole(path: Path) -> None:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.parent.name == "workflows":
        assert all(job["runs-on"] and job["steps"] for job in found["jobs"].values())
        for script in re.findall(r"bash (\S+\.sh)", path.read_text(encoding="utf-8")):
            assert (ROOT / script).is_file()
    elif path.name != "config.yml":
        assert found["name"]
        assert found["body"]


def test_tests_run_on_every_system_and_python_that_is_promised() -> None:
    found = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))
    matrix = found["jobs"]["everywhere"]["strategy"]["matrix"]
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert matrix["python"] == re.findall(r"Python :: (3\.\d+)\"", settings)
    assert {system.split("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_hooks_before_a_commit_are_those_of_the_tests() -> None:
    found = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    entries = [hook["entry"] for repo in found["repos"] for hook in repo["hooks"]]
    assert [entry.split(" --")[0] for entry in entries[:2]] == ["ruff check", "ruff format"]
