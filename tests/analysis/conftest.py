"""A small run, whose ensemble answers for new texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_cases import quick_run

import edokit
from edokit import Annotations

ITEMS = (200, 60, 150)


@pytest.fixture(scope="session")
def camps() -> Annotations:
    """Simulated annotators in two camps, with splits."""
    return edokit.simulate("two-camps", items=ITEMS, random_state=1).annotations


@pytest.fixture(scope="session")
def small_run(camps: Annotations, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on train and dev that is as quick as possible."""
    folder = tmp_path_factory.mktemp("small")
    return quick_run(camps, folder / "run")
