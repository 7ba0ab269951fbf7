"""What a search writes and says holds no credentials of its database."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from postgres import PASSWORD, QUOTED, USER, Server
from search_cases import arrays
from test_search_command import QUICK, files

from commands import edo
from edokit import InputError, search
from edokit._credentials import without_credentials
from edokit.runs.record import command_text
from tests.errors import raises_code

__all__ = ["files"]
SECRET = "geheim"
P, Q, _ = arrays(items=40, seed=0)


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
        assert SECRET not in str(InputError(text, text, code="invalid-address"))
        assert SECRET not in without_credentials(text)
    assert "host/study" in str(InputError(url, code="invalid-address"))
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


def test_the_name_of_a_study_is_only_a_name(database_server: Server) -> None:
    url = database_server.new_database()
    how: Any = {"trials": 2, "population": 2, "folds": 0, "solver": "exact", "storage": url}
    first_search_result = search(P, Q, **how, study="first")
    for name in (
        "edo'; DROP TABLE studies; --",
        '"; %s %(x)s {0} \\',
        "été 工夫 🙂 two\nlines \x1b[2J\u202e",
    ):
        search_result = search(P, Q, **how, study=name)
        assert search(P, Q, **how, study=name).done_before == len(search_result.trials) == 2
    for name in ("x" * 600, "a\x00b", "\udcff", "", " "):
        with raises_code("invalid-name") as refused:
            search(P, Q, **how, study=name)
        assert not {"\x00", "\udcff"} & set(str(refused.value))
        assert PASSWORD not in str(refused.value)
    second_search_result = search(P, Q, **how, study="first")
    assert (second_search_result.done_before, second_search_result.chosen.ce) == (
        2,
        first_search_result.chosen.ce,
    )
