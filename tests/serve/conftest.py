"""A bundle, and a server for it in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the extra serve")
pytest.importorskip("httptools", reason="needs the extra serve")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from serve_soak import Server, make_bundle

TOKEN = "a-token-that-nobody-guesses"


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of three linear members."""
    return make_bundle(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def server(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`edo serve` as people start it."""
    with Server(bundle, tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="session")
def guarded(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One with a token and narrow limits."""
    limits = ["--max-texts", "3", "--max-length", "50", "--max-bytes", "1000"]
    folder = tmp_path_factory.mktemp("guarded")
    with Server(bundle, folder, *limits, EDO_SERVE_TOKEN=TOKEN) as running:
        yield running
