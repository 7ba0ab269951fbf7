"""What tests expect of an error: the code of the broken rule, and the facts in its message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from edokit import EDOError


@contextmanager
def raises_code(
    code: str, *facts: str, kind: type[EDOError] = EDOError
) -> Iterator[pytest.ExceptionInfo[EDOError]]:
    """Expect an error with this code, whose message has these names, places and numbers."""
    with pytest.raises(kind) as raised:
        yield raised
    assert raised.value.code == code, raised.value
    for fact in facts:
        assert fact in str(raised.value)
