"""A study survives its process, its file and its server; its credentials stay its own."""

from __future__ import annotations

import logging
import resource
import signal
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState
from postgres import PASSWORD, QUOTED, USER, Server
from sqlalchemy.engine import URL, make_url

from edokit import InputError, MissingExtraError
from edokit.analysis.search import storage as storage_module
from edokit.analysis.search.storage import StudyStorage, find_storage, masked, open_storage, quiet
from edokit.runs.record import command_text
from tests.errors import raises_code

optuna.logging.set_verbosity(optuna.logging.WARNING)
SPACE = {"x": FloatDistribution(0, 1)}


def begin(opened: StudyStorage) -> Any:
    return optuna.create_study(storage=opened.storage, study_name="edo", load_if_exists=True)


def finish_trials(study: Any, count: int) -> None:
    for _ in range(count):
        study.tell(study.ask(), 1.0)


def as_optuna_reads_it(path: Path) -> list[TrialState]:
    storage = JournalStorage(JournalFileBackend(str(path)))
    return [trial.state for trial in optuna.load_study(study_name="edo", storage=storage).trials]


# Where a study may be


def test_memory_is_the_default() -> None:
    with open_storage() as opened:
        finish_trials(begin(opened), 1)
        assert opened.location == "memory"


@pytest.mark.parametrize(
    "given_",
    [
        "",
        "mysql://ann:s3cret@db.example/edo",
        "postgresql:/ann:s3cret@db.example/edo",
        "ann:s3cret@db.example/edo",
        "postgresql://ann:s3cret@db.example:port/edo",
        "postgresql://db.example/edo?port=s3cret",
        "postgresql://ann:with@s3cret@db.example/edo",
        "postgresql://ann:with/s3cret@db.example/edo",
        "postgresql://db.example/edo?user=ann&password=s3cret",
    ],
)
def test_any_other_place_is_refused_without_its_credentials(given_: str) -> None:
    with pytest.raises(InputError) as refused, open_storage(given_):
        pass
    assert "s3cret" not in everything_said(refused.value)
    assert refused.value.hint


def everything_said(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + str(error) + repr(error)


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=1))
def test_no_part_of_a_password_is_shown(password: str) -> None:
    for written in (password, quote(password, safe="")):
        # The secret is recognised by a letter that stands nowhere else.
        url = f"postgresql://ann:Ω{written}Ω@db.example:5432/edo?sslmode=require"
        assert "Ω" not in what_is_said_of(url)
    # The command line as kept beside the results, for every URL that works.
    with suppress(InputError):
        find_storage(url)
        assert "Ω" not in command_text(["edo", "search", "--storage", url])


def what_is_said_of(url: str) -> str:
    try:
        found = find_storage(url)
    except InputError as refused:
        return everything_said(refused)
    assert isinstance(found, URL)
    return repr(found) + masked(found) + repr(found.query)


def test_a_masked_address_still_says_where() -> None:
    url = make_url("postgresql+psycopg://ann:pw@db.example:1/edo?sslmode=require")
    assert masked(url) == "postgresql://db.example:1/edo"


# A file


def test_a_line_torn_anywhere_costs_no_finished_trial(tmp_path: Path) -> None:
    path = tmp_path / "new" / "journal.log"
    with open_storage(path) as opened:
        finish_trials(begin(opened), 2)
    full_content = path.read_bytes()
    last = len(full_content.splitlines(keepends=True)[-1])
    for torn in range(1, last + 1):
        path.write_bytes(full_content[: len(full_content) - torn])
        with open_storage(str(path)) as opened:
            study = begin(opened)
            assert [t.state for t in study.trials] == [TrialState.COMPLETE, TrialState.RUNNING]
            study.tell(1, 1.0)
        assert as_optuna_reads_it(path) == [TrialState.COMPLETE] * 2


def test_a_first_line_may_be_torn_too(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    path.write_bytes(b'{"op_co')
    with open_storage(path) as opened:
        finish_trials(begin(opened), 1)
    assert as_optuna_reads_it(path) == [TrialState.COMPLETE]


@pytest.mark.parametrize("number", [1, 3])
def test_damage_in_the_middle_is_told_and_left_alone(tmp_path: Path, number: int) -> None:
    path = tmp_path / "journal.log"
    with open_storage(path) as opened:
        finish_trials(begin(opened), 2)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number - 1] = b"\0" * 40 + b"\n"
    path.write_bytes(b"".join(lines))
    with raises_code("unreadable-file"), open_storage(path):
        pass
    assert path.read_bytes() == b"".join(lines)


@pytest.mark.parametrize(
    "content",
    [b"item,label", b"item,label\n1,no\n", b"\x89PNG", b'{"op_code":77,"worker_id":"a"}\n', b"{}"],
)
def test_another_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    for _ in range(2):
        with raises_code("unreadable-file"), open_storage(path):
            pass
    assert path.read_bytes() == content


def test_a_folder_or_a_place_that_can_not_be_is_refused(tmp_path: Path) -> None:
    with raises_code("not-a-file"), open_storage(tmp_path):
        pass
    (tmp_path / "file").write_text("x")
    with raises_code("unwritable-file"), open_storage(tmp_path / "file" / "a.log"):
        pass


def test_a_file_is_for_one_search_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    again = open_storage(path)
    with open_storage(path), raises_code("locked-output"), again:
        pass
    with open_storage(path):
        pass
    assert list(tmp_path.iterdir()) == [path]


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    code = (
        "import sys, time; from edokit.analysis.search.storage import open_storage;"
        f" opened = open_storage({str(path)!r}); opened.__enter__(); print('open', flush=True);"
        " time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with raises_code("locked-output"), open_storage(path):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with open_storage(path) as opened:
        finish_trials(begin(opened), 1)


def test_a_full_disk_is_said_in_one_line_and_costs_no_finished_trial(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill_the_disk() -> None:
        with open_storage(path) as opened:
            study = begin(opened)
            finish_trials(study, 2)
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 30, hard))
            finish_trials(study, 1)

    try:
        with raises_code("unwritable-file", str(path)):
            fill_the_disk()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with open_storage(path) as opened:
        finish_trials(begin(opened), 1)
    assert as_optuna_reads_it(path).count(TrialState.COMPLETE) == 3


# A database


def test_a_study_in_a_database_is_found_again(database_server: Server) -> None:
    url = database_server.new_database()
    with open_storage(url) as opened:
        finish_trials(begin(opened), 2)
        assert PASSWORD not in repr(opened) + opened.location + repr(opened.storage)
    with open_storage(url.replace("postgresql://", "postgres://")) as opened:
        assert [t.state for t in begin(opened).trials] == [TrialState.COMPLETE] * 2


def test_the_password_may_come_from_the_environment(
    database_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = database_server.new_database()
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with open_storage(url.replace(f":{QUOTED}@", "@")):
        pass


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda url: url.replace(QUOTED, "s3cret"), "password authentication failed"),
        (lambda url: url.replace(USER, "s3cret"), "password authentication failed"),
        (lambda url: url + "_nowhere", "does not exist"),
        (lambda url: url.replace("127.0.0.1", "nowhere.invalid"), "resolve host"),
        (lambda url: url.partition("127.0.0.1")[0] + "127.0.0.1:1/edo", "refused"),
        (lambda url: url + "?s3cret=1", '"s3cret"'),
    ],
)
def test_what_keeps_a_database_away_is_said_in_one_line_without_credentials(
    database_server: Server, change: Any, reason: str
) -> None:
    url = change(database_server.url("postgres"))
    with raises_code("unreachable-server", reason) as refused, open_storage(url):
        pass
    message = everything_said(refused.value)
    assert "\n" not in str(refused.value)
    for secret in (PASSWORD, QUOTED, USER, "s3cret:", ":s3cret@"):
        assert secret not in message


def test_a_database_that_goes_away_ends_the_search_in_one_line(
    database_server: Server,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    def work() -> None:
        with open_storage(url) as opened, quiet():
            study = begin(opened)
            finish_trials(study, 1)
            database_server.stop()
            capfd.readouterr()
            optuna.logging.get_logger("optuna.storages").error("lost")
            logging.getLogger("sqlalchemy.pool.impl.QueuePool").error("can't be closed")
            finish_trials(study, 1)

    url = database_server.new_database()
    try:
        with raises_code("unreachable-server") as refused:
            work()
    finally:
        database_server.start()
    assert QUOTED not in everything_said(refused.value)
    assert (*capfd.readouterr(), caplog.text) == ("", "", ""), "not a log line"
    with open_storage(url) as opened:
        assert len(begin(opened).trials) == 1


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_module, "find_spec", lambda name: None)
    with (
        raises_code("missing-package", "psycopg", "[postgres]", kind=MissingExtraError),
        open_storage("postgresql://db.example/edo"),
    ):
        pass


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_workers_may_find_an_empty_database_at_once(database_server: Server) -> None:
    url = database_server.new_database()
    failures: list[BaseException] = []

    def start() -> None:
        try:
            with open_storage(url):
                pass
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_study_in_sqlite_is_found_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'study.db'}"
    for count in (1, 2):
        with open_storage(url) as opened:
            study = begin(opened)
            finish_trials(study, 1)
            assert len(study.trials) == count
