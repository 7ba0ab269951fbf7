"""Check what a wheel and an sdist hold: `release_contents.py WHEEL SDIST`.

The wheel has every file of the package, data included, and nothing else; the sdist has the source
of the wheel, and what the tests and the documentation are made from.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IN_SDIST = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "Makefile",
    "constraints.txt",
    "requirements-serve.txt",
    "mkdocs.yml",
    "docs/method.md",
    "docs/commands/index.md",
    "docs/reference/index.md",
    "tests/test_docs.py",
    "tools/command_pages.py",
    "tools/docs_site.py",
    "examples/sklearn-pool/run.py",
    "benchmarks/README.md",
    "reproduction/README.md",
    "reproduction/paper/benchmark.csv",
)
MOST = 20_000_000
"""Bytes of an sdist, without the predictions of the benchmarks."""


def package_files() -> set[str]:
    """The files of the package as they lie in the repository."""
    files = (path for path in (ROOT / "src").rglob("*") if path.is_file())
    kept_paths = (path for path in files if "__pycache__" not in path.parts)
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in kept_paths
        if ".egg-info" not in str(path)
    }


def wrong_with(wheel: Path, sdist: Path) -> list[str]:
    """A line for each thing that is wrong."""
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
        licensed = any(name.endswith("licenses/LICENSE") for name in archive.namelist())
    files = package_files()
    lines = [f"the wheel lacks {name}" for name in sorted(files - inside)]
    lines += [f"the wheel should not hold {name}" for name in sorted(inside - files)]
    if not licensed:
        lines.append("the wheel lacks the licence")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = {*IN_SDIST, *(f"src/{name}" for name in files)}
    lines += [f"the sdist lacks {name}" for name in sorted(expected - names)]
    if sdist.stat().st_size > MOST:
        lines.append(f"the sdist has {sdist.stat().st_size:,} bytes, more than {MOST:,}")
    return lines


def main() -> None:
    wheel = Path(sys.argv[1])
    sdist = Path(sys.argv[2])
    lines = wrong_with(wheel, sdist)
    for line in lines:
        print(line)
    if lines:
        raise SystemExit(1)
    print(
        f"{wheel.name} {wheel.stat().st_size:,} bytes, {sdist.name} {sdist.stat().st_size:,} bytes"
    )


if __name__ == "__main__":
    main()
