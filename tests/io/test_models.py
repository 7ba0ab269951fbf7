"""Documents of a declared form."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import Field

from edokit._io.documents import Count, Document, Json, Names, read_model
from tests.errors import raises_code


class Member(Document):
    name: str
    size: Count | None = None


class Pool(Document):
    kind: str
    members: tuple[Member, ...] = ()
    names: Names = Field(default_factory=list)
    score: float | str = 0.0
    options: dict[str, Json] = Field(default_factory=dict)


def read(folder: Path, text: str, name: str = "pool.json") -> Pool:
    (folder / name).write_text(text, encoding="utf-8")
    return read_model(folder / name, Pool, title="a pool", hint="fit it again")


def test_a_document_of_the_right_form_is_a_model(tmp_path: Path) -> None:
    text = '{"kind": "k", "members": [{"name": "a", "size": 3}], "score": 1, "unknown": null}'
    pool = read(tmp_path, text)
    assert (pool.kind, pool.members[0].size, pool.score) == ("k", 3, 1.0)
    toml = 'kind = "k"\n[[members]]\nname = "a"\n'
    assert read(tmp_path, toml, "pool.toml").members[0].name == "a"


@pytest.mark.parametrize(
    ("text", "code", "fact"),
    [
        ("{}", "wrong-content", "kind"),
        ("[]", "wrong-content", "a list"),
        ('{"kind": 7}', "wrong-content", "kind is 7"),
        ('{"kind": "\\ud800"}', "invalid-unicode", "pool.json"),
        ('{"kind": "k", "members": [{"name": "a"}, {}]}', "wrong-content", "members[1].name"),
        (
            '{"kind": "k", "members": [{"name": "a", "size": -1}]}',
            "wrong-content",
            "members[0].size is -1",
        ),
        (
            '{"kind": "k", "members": [{"name": "a", "size": "3"}]}',
            "wrong-content",
            "members[0].size is '3'",
        ),
        (
            '{"kind": "k", "members": [{"name": "a", "size": 9007199254740993}]}',
            "wrong-content",
            "size is 9007",
        ),
        ('{"kind": "k", "score": []}', "wrong-content", "score"),
        ('{"kind": "k", "score": NaN}', "wrong-content", "score is nan"),
        ('{"kind": "k", "names": ["a", "a"]}', "wrong-content", "names"),
        ('{"kind": "k", "options": {"x": [1e999]}}', "wrong-content", "options.x"),
        ('{"kind": "a", "kind": "b"}', "duplicate-key", "'kind'"),
    ],
)
def test_an_error_names_the_file_the_place_and_the_value(
    tmp_path: Path, text: str, code: str, fact: str
) -> None:
    with raises_code(code, "pool.json", fact):
        read(tmp_path, text)


def test_an_error_does_not_quote_long_text(tmp_path: Path) -> None:
    with raises_code("wrong-content", "300 characters") as caught:
        read(tmp_path, '{"kind": "k", "members": "%s"}' % ("word " * 60))
    assert "word word" not in str(caught.value)
