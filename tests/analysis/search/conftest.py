"""The database server of the tests, started once when the first test needs it."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from postgres import Server, running_server

ENDLESS = 600
"""Seconds: many times what the longest test takes."""


@pytest.fixture(scope="session")
def database_server() -> Iterator[Server]:
    """A real PostgreSQL server with passwords."""
    with running_server() as server:
        yield server


@pytest.fixture(autouse=True)
def no_endless_search() -> Iterator[None]:
    """A search that never ends fails its test instead of stopping the suite."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(*_: object) -> None:
        pytest.fail(f"no end in sight after {ENDLESS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(ENDLESS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
