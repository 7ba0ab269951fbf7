"""What a release rests on: one version, data that travels with the package, files that parse."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import edokit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import audit  # noqa: E402
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
    wheel = tmp_path / "a.whl"
    sdist = tmp_path / "a.tar.gz"
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


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.name
)
def test_actions_are_pinned_by_commit_and_extras_exist(path: Path) -> None:
    content = path.read_text(encoding="utf-8")
    for action in re.findall(r"uses: (.+)", content):
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = settings["project"]["optional-dependencies"]
    for listed in re.findall(r'"\.\[([\w,]+)\]"', content):
        assert set(listed.split(",")) <= set(extras)


def test_the_container_installs_edo_from_the_clone_and_all_else_by_hash() -> None:
    lines = (ROOT / "examples" / "serving" / "Dockerfile").read_text().splitlines()
    installs = [line for line in lines if "pip install" in line and not line.startswith("#")]
    dependencies, package = installs
    assert "--require-hashes -r /edo/requirements-serve.txt" in dependencies
    assert "--no-deps --no-build-isolation --no-index /edo" in package


def test_versions_with_hashes_are_those_of_the_constraints() -> None:
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned = {
        (re.sub(r"[-_.]+", "-", name).lower(), version)
        for name, version in re.findall(r"^([\w.-]+)==(\S+)", constraints, re.MULTILINE)
    }
    requirements = (ROOT / "requirements-serve.txt").read_text(encoding="utf-8")
    blocks = re.split(r"\n(?=\S)", requirements.strip())[1:]
    for block in blocks:
        name, version = block.split(" ")[0].split("==")
        assert (name, version) in pinned
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block)


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


def pip_audit(folder: Path, known: dict[str, list[str]], service: str) -> Path:
    """A program that answers as pip-audit does where one service knows these advisories."""
    program = folder / "pip-audit"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        f"known, service = {known!r}, {service!r}\n"
        "given = dict(zip(sys.argv, sys.argv[1:]))\n"
        "names = open(given['--requirement']).read().split()\n"
        "is_reached = given['--vulnerability-service'] == service\n"
        "found = {name: known.get(name, []) if is_reached else [] for name in names}\n"
        "rows = [{'name': name, 'vulns': vulns} for name, vulns in found.items()]\n"
        "print(json.dumps({'dependencies': rows}))\n"
        "sys.exit(1 if any(found.values()) else 0)\n",
        encoding="utf-8",
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a script")
@pytest.mark.parametrize(
    ("known", "service", "status"),
    [
        ({audit.VULNERABLE: ["old"]}, "pypi", 0),
        ({audit.VULNERABLE: ["old"]}, "osv", 0),
        ({audit.VULNERABLE: ["old"], "numpy==1.0": ["new"]}, "osv", 1),
        ({"numpy==1.0": ["new"]}, "pypi", audit.NOT_AUDITED),
        ({}, "nobody", audit.NOT_AUDITED),
    ],
)
def test_versions_without_advisories_are_not_taken_for_safe(
    known: dict[str, list[str]], service: str, status: int, tmp_path: Path
) -> None:
    requirements = tmp_path / "constraints.txt"
    requirements.write_text("numpy==1.0\nscipy==1.0\n", encoding="utf-8")
    program = pip_audit(tmp_path, known, service)
    command = [sys.executable, audit.__file__, str(program), str(requirements)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert ("not audited" in done.stdout) == (status == audit.NOT_AUDITED)
