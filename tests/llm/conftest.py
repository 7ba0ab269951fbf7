"""A real language model behind a real server, started once when the first test needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from language_model import FaultProxy, running_model


@pytest.fixture(scope="session")
def llm_server() -> Iterator[str]:
    """Gemma 3 270M behind llama.cpp's server: its address."""
    with running_model() as address:
        yield address


@pytest.fixture(scope="session")
def _memory() -> dict[tuple[str, int], bytes]:
    return {}


@pytest.fixture
def proxy(
    llm_server: str, _memory: dict[tuple[str, int], bytes]
) -> Iterator[Callable[..., FaultProxy]]:
    """Proxies in front of the server; it evaluates each request once in a session."""
    with ExitStack() as open_ones:
        yield lambda *plan, **options: open_ones.enter_context(
            FaultProxy(llm_server, *plan, **{"memory": _memory, **options})
        )
