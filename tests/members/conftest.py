"""What several tests of members start from."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_transformer import tiny_model


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a tiny encoder."""
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that the test shares with nobody."""
    monkeypatch.setenv("EDO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
