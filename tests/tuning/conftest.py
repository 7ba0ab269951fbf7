"""The database server of the tests, started once when the first test needs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from postgres import Server, running_server


@pytest.fixture(scope="session")
def database_server() -> Iterator[Server]:
    """A real PostgreSQL server with passwords."""
    with running_server() as server:
        yield server
