"""Documents of a declared form."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import Field

from edokit import InputError
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
    ("text", "problem"),
    [
        ("{}", "kind is missing"),
        ("[]", "it is a list"),
        ('{"kind": 7}', "kind is 7, but should be a valid string"),
        ('{"kind": "\\ud800"}', "half a character"),
        ('{"kind": "k", "members": [{"name": "a"}, {}]}', r"members\[1\]\.name is missing"),
        ('{"kind": "k", "members": [{"name": "a", "size": -1}]}', r"members\[0\]\.size is -1"),
        ('{"kind": "k", "members": [{"name": "a", "size": "3"}]}', r"members\[0\]\.size is '3'"),
        ('{"kind": "k", "members": [{"name": "a", "size": 9007199254740993}]}', "size is 9007"),
        ('{"kind": "k", "score": []}', "score is a list"),
        ('{"kind": "k", "score": NaN}', "score is nan"),
        ('{"kind": "k", "names": ["a", "a"]}', "names holds a name twice"),
        ('{"kind": "k", "options": {"x": [1e999]}}', r"options\.x holds a number that is not fini"),
        ('{"kind": "a", "kind": "b"}', "'kind' twice"),
    ],
)
def test_an_error_names_the_file_the_place_and_the_value(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(InputError, match=rf"pool\.json .*{problem}"):
        read(tmp_path, text)


def test_an_error_does_not_quote_long_text(tmp_path: Path) -> None:
    with raises_code("wrong-content", "300 characters") as caught:
        read(tmp_path, '{"kind": "k", "members": "%s"}' % ("word " * 60))
    assert "word word" not in str(caught.value)
