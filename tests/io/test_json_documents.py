"""Single JSON documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit._io.documents import read_json, write_json
from tests.errors import raises_code

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_a_document_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    path = tmp_path_factory.getbasetemp() / "value.json"
    write_json(value, path)
    assert read_json(path) == value


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "bom.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(path) == {"a": 1}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1,\n "b": ', ("invalid-json", "line 2", "column 7")),
        (b'{"a": "caf\xe9"}', ("invalid-unicode", "UTF-8", "line 1", "byte 10", "latin1")),
        (b"[" * 200_000, ("invalid-json",)),
        (b"1" * 5000, ("invalid-json",)),
        (b"", ("empty-file",)),
    ],
)
def test_a_damaged_document_is_told_in_one_line(
    content: bytes, words: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with raises_code(*words):
        read_json(path)


def test_what_json_cannot_hold_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_json({"a": object()}, tmp_path / "value.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"a": 1, "b": 2, "a": 3}', ("duplicate-key", "'a'")),
        ('[{"x": 1}, {"x": {"y": 1, "y": 1}}]', ("duplicate-key", "'y'")),
    ],
)
def test_a_key_that_is_there_twice_is_refused(
    content: str, says: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(content)
    with raises_code(*says) as found:
        read_json(tmp_path / "a.json")
    assert "a.json" in found.value.message
