"""What several tests of members start from."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tiny_transformer import tiny_model

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a tiny encoder."""
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a real encoder, all-MiniLM-L6-v2.

    The weights are those that shared/tools/get_weights.sh puts on disk: EDO_WEIGHTS names their
    folder; without it the script is run.
    """
    folder = os.environ.get("EDO_WEIGHTS")
    if not folder:
        script = ROOT.parent / "shared" / "tools" / "get_weights.sh"
        if not script.exists():
            pytest.skip("no pretrained weights: set EDO_WEIGHTS to the folder of all-MiniLM-L6-v2")
        folder = str(tmp_path_factory.mktemp("weights"))
        subprocess.run(["bash", str(script), "minilm", folder], check=True, capture_output=True)
    return str(Path(folder) / "all-MiniLM-L6-v2")


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that the test shares with nobody."""
    monkeypatch.setenv("EDO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
