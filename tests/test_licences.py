"""What EDO needs when it runs may be combined with its own licence."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from licences import Package, runtime_packages


def test_every_package_needed_at_run_time_has_a_permissive_licence() -> None:
    packages = runtime_packages()
    names = {package.name for package in packages}
    assert {"numpy", "pyarrow", "scikit-learn", "pydantic"} <= names
    assert [package for package in packages if not package.is_fine] == []


def test_other_licences_are_noticed() -> None:
    assert not Package("a", "1", "GPL-3.0-or-later").is_fine
    assert not Package("a", "1", "GNU Affero General Public License v3").is_fine
    assert not Package("a", "1", "unknown").is_fine
    assert not Package("a", "1", "LGPL-3.0-only").is_fine
    assert Package("a", "1", "Apache-2.0 OR BSD-2-Clause").is_fine


def test_contributing_says_why_each_dependency_is_there() -> None:
    root = Path(__file__).resolve().parents[1]
    project = (root / "pyproject.toml").read_text(encoding="utf-8")
    declared = project.split("\ndependencies = [")[1].split("\n[project.scripts]")[0]
    names = set(re.findall(r'"([A-Za-z][\w-]*)(?:\[\w+\])?>=', declared))
    assert {"numpy", "zensical", "pytest"} <= names
    section = (root / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## Dependencies\n")[1]
    rows = re.findall(r"^\| ([^|]+) \|", section.split("\n## ")[0], re.MULTILINE)
    reasons = {name for row in rows for name in re.findall(r"[A-Za-z][\w-]*", row)}
    assert names - reasons == set()
