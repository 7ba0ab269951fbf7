"""What a search writes and says holds no credentials of its database."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from postgres import PASSWORD, QUOTED, USER, Server
from test_search_command import QUICK, edo, files

from edokit._errors import InputError, without_credentials
from edokit.runs import command_text

__all__ = ["files"]
SECRET = "geheim"


def test_nothing_that_a_search_leaves_holds_credentials(
    database_server: Server,
    files: list[Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = database_server.new_database()
    with caplog.at_level(logging.DEBUG):
        code, *said = edo(
            "search", *files, *(word for word in QUICK if word != "--no-report"), "--storage", url
        )
    assert code == 0, said
    written = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"run.json", "search.json", "report.html", "trials.parquet"} <= written.keys()
    assert b"***@" in written["run.json"]
    for secret in (PASSWORD, QUOTED, USER):
        for text in said:
            assert secret not in text
        for name, content in written.items():
            assert secret.encode() not in content, name
    assert PASSWORD not in caplog.text
    assert QUOTED not in caplog.text


@pytest.mark.parametrize(
    "storage",
    [
        f"postgresql://ann:{SECRET}@127.0.0.1:1/study",
        f"postgresql://{SECRET}@127.0.0.1:1/study",
        f"postgresql://127.0.0.1:1/study?user=ann&password={SECRET}",
        f"postgresql://127.0.0.1:1/study?sslpassword={SECRET}",
        f"postgresql://ann:{SECRET}@127.0.0.1:port/study",
        f"postgresql://ann:{SECRET} and@127.0.0.1:1/study",
        f"postgresql://ann:{SECRET}@[127.0.0.1/study",
        f"mysql://ann:{SECRET}@127.0.0.1:1/study",
        f"postgresql:/ann:{SECRET}@127.0.0.1:1/study",
        f"host=127.0.0.1 port=1 user=ann password={SECRET}",
        f" postgresql://ann:{SECRET}@127.0.0.1:1/study",
        f"\tpostgresql://ann:{SECRET}@127.0.0.1:1/study\n",
        f"runs/postgresql://ann:{SECRET}@127.0.0.1:1/study",
        f"host=127.0.0.1 user={SECRET} dbname=study",
        f"dbname=study user = {SECRET}",
        f"host=h password = 'two {SECRET}' user={SECRET}",
    ],
)
def test_a_database_that_is_not_reached_is_told_without_credentials(
    storage: str, files: list[Any], tmp_path: Path
) -> None:
    code, out, err = edo("search", *files, *QUICK, "--storage", storage)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert SECRET not in out + err
    for path in tmp_path.rglob("*"):
        assert SECRET not in path.name
        assert not path.is_file() or SECRET.encode() not in path.read_bytes()


@pytest.mark.parametrize("words", [(), ("--strange", "1"), ("--trials", "many")])
def test_a_mistyped_command_is_told_without_credentials(words: tuple[str, ...]) -> None:
    url = f"postgresql://ann:{SECRET}@host/study"
    for given in ((url,), ("--storage", url), (f"--storag={url}",), (f"--trials={url}",)):
        code, out, err = edo("search", *given, *words)
        assert code == 2
        assert SECRET not in out + err


def test_the_environment_is_never_shown(files: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    monkeypatch.setenv("PGUSER", SECRET)
    code, out, err = edo("search", *files, *QUICK, "--storage", "postgresql://127.0.0.1:1/study")
    assert code == 2
    assert SECRET not in out + err


def test_every_error_is_without_credentials_whoever_raises_it() -> None:
    url = f"postgresql://ann:{SECRET}@host/study?password={SECRET}"
    for text in (
        f"cannot open {url}, but",
        url,
        f"({url})",
        f"'{url}'",
        f"x=1 PGPASSWORD={SECRET}",
    ):
        assert SECRET not in str(InputError(text, text))
        assert SECRET not in without_credentials(text)
    assert "host/study" in str(InputError(url))
    folded = str(Path(f"postgresql://ann:{SECRET}@host/study"))
    for text in (folded, f"can't open {folded}"):
        assert SECRET not in without_credentials(text)
    connection = f"host=h user={SECRET} password='{SECRET} {SECRET}' dbname=study"
    for text in (connection, f"can't connect: {connection}"):
        assert SECRET not in without_credentials(text)
        assert "dbname=study" in without_credentials(text)
    assert without_credentials("--extra user=dev.npz,test.npz").endswith("user=dev.npz,test.npz")
    spaced = f"postgresql://ann:{SECRET} {SECRET}@host/study"
    assert SECRET not in command_text(["edo", "search", "--storage", spaced])
