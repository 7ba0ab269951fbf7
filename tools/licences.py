"""The licences of all packages that EDO needs when it runs, with its extras.

    python tools/licences.py

Packages are those installed in this environment. The exit status is 1 if a licence is not one that
may be combined with Apache-2.0 freely.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from edokit._io.documents import parse_toml

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
NOT_OF_RUNTIME = ("dev", "docs", "bench")
PERMISSIVE = re.compile(
    r"\b(MIT|BSD|0BSD|Apache|ISC|PSF|Python Software Foundation|CNRI-Python|Zlib|CC0|BSL-1\.0"
    r"|MPL-2\.0|MPL 2\.0)\b"
)
NAMED = {
    # Its metadata say no more than that it is approved; its file LICENSE is the MIT licence.
    "skops": "MIT",
}
ALLOWED = {"psycopg": "LGPL-3.0-only", "psycopg-binary": "LGPL-3.0-only"}
"""Libraries of the extra `postgres`, which are used unmodified and can be replaced."""


@dataclass(frozen=True)
class Package:
    """An installed package and its licence."""

    name: str
    version: str
    licence: str

    @property
    def is_fine(self) -> bool:
        """Whether its licence may be combined with Apache-2.0."""
        if self.name in ALLOWED:
            return self.licence == ALLOWED[self.name]
        return bool(PERMISSIVE.search(self.licence)) and "GPL" not in self.licence


def runtime_packages() -> list[Package]:
    """What is installed of all that EDO needs, directly or not."""
    project = parse_toml(PROJECT.read_text(encoding="utf-8"), PROJECT.name)["project"]
    lines = list(project["dependencies"])
    for extra, requirements in project["optional-dependencies"].items():
        if extra not in NOT_OF_RUNTIME:
            lines += requirements
    waiting = [Requirement(line) for line in lines]
    packages: dict[str, Package] = {}
    while waiting:
        requirement = waiting.pop()
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name in packages:
            continue
        try:
            version = distribution(name).version
        except PackageNotFoundError:
            continue  # for another system or another Python
        packages[name] = Package(name, version, _licence(name))
        waiting += _requirements(name, ["", *requirement.extras])
    return sorted(packages.values(), key=lambda package: package.name)


def _requirements(name: str, extras: list[str]) -> list[Requirement]:
    requirements = []
    for line in distribution(name).requires or []:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
            requirements.append(requirement)
    return requirements


def _licence(name: str) -> str:
    if name in NAMED:
        return NAMED[name]
    metadata = distribution(name).metadata
    expression = metadata.get("License-Expression")
    if expression:
        return str(expression)
    classifiers = metadata.get_all("Classifier") or []
    licences = [line.split("::")[-1].strip() for line in classifiers if line.startswith("License")]
    if licences:
        return "; ".join(licences)
    return str(metadata.get("License") or "unknown").splitlines()[0]


def main() -> int:
    packages = runtime_packages()
    for package in packages:
        mark = ""
        if not package.is_fine:
            mark = "  <- look at this one"
        print(f"{package.name} {package.version}: {package.licence}{mark}")
    troubles = [package.name for package in packages if not package.is_fine]
    print(f"{len(packages)} packages, {', '.join(troubles) or 'none'} to look at")
    return bool(troubles)


if __name__ == "__main__":
    raise SystemExit(main())
