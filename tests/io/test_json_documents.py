"""Single JSON documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit._errors import InputError
from edokit._io.documents import read_json, write_json

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
        (b'{"a": 1,\n "b": ', r"line 2, column 7.*may be cut off"),
        (b'{"a": "caf\xe9"}', r"is not UTF-8 text \(first in line 1, at byte 10\).*latin1"),
        (b"[" * 200_000, "nested too deeply"),
        (b"1" * 5000, "number that can't be read"),
        (b"", "is empty"),
    ],
)
def test_a_damaged_document_is_told_in_one_line(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_json(path)


def test_what_json_cannot_hold_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_json({"a": object()}, tmp_path / "value.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"a": 1, "b": 2, "a": 3}', "the key 'a' twice"),
        ('[{"x": 1}, {"x": {"y": 1, "y": 1}}]', "the key 'y' twice"),
    ],
)
def test_a_key_that_is_there_twice_is_refused(content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(InputError, match=says) as found:
        read_json(tmp_path / "a.json")
    assert "a.json" in found.value.message
