"""Shared fixtures, and the rule that in CI nothing of the default suite is skipped."""

from __future__ import annotations

import gc
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "edo", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("edo")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def lewidi() -> Path:
    """The folder of the real LeWiDi 2023 files; the test is skipped where there is none."""
    folder = Path(os.environ.get("EDO_LEWIDI2023", ROOT.parent / "shared" / "lewidi2023"))
    if not (folder / "HS-Brexit").is_dir():
        pytest.skip(
            f"the LeWiDi 2023 files are not at {folder}: set EDO_LEWIDI2023 to their folder "
            "(`edo data get lewidi2023 DIR` obtains them)"
        )
    return folder


@pytest.fixture(scope="session")
def lewidi2025(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the LeWiDi 2025 files, test labels left out; skipped where there is none."""
    archive = ROOT.parent / "shared" / "lewidi2025" / "lewidi2025.zip"
    folder = Path(os.environ.get("EDO_LEWIDI2025", ""))
    if "EDO_LEWIDI2025" not in os.environ and archive.is_file():
        folder = tmp_path_factory.mktemp("lewidi2025") / "lewidi2025"
        with zipfile.ZipFile(archive) as inside:
            inside.extractall(folder.parent)
    if not (folder / "CSC").is_dir():
        pytest.skip("the LeWiDi 2025 files are not at hand: set EDO_LEWIDI2025 to their folder")
    return folder


@pytest.fixture(scope="module", autouse=True)
def _frozen() -> None:
    """Leave what earlier modules imported out of garbage collections, which training asks for."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _short_diagnoses() -> Iterator[None]:
    """Permute little for the diagnosis on a page: it takes most of the time of making one.

    What permutations find, and how many are needed, is tested in tests/analysis/diagnosis.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edokit.report.data._PERMUTATIONS", 39)
        yield


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """On CI a skipped test is a failed run: what a test needs, the scripts install."""
    if hasattr(session.config, "workerinput") or not os.environ.get("CI"):
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and reporter.stats.get("skipped") and exitstatus == 0:
        reporter.write_line("CI is set and tests were skipped: install what they need", red=True)
        session.exitstatus = 1
