"""A study survives its process, its file and its server; its credentials stay its own."""

from __future__ import annotations

import json
import os
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
from sqlalchemy.engine import make_url

from edokit._errors import EDOWarning, InputError, MissingExtraError
from edokit.runs import command_text
from edokit.tuning.postgres import is_gone, own_mark
from edokit.tuning.storage import Database, Opened, masked, open_storage, where_is

optuna.logging.set_verbosity(optuna.logging.WARNING)
SPACE = {"x": FloatDistribution(0, 1)}


def begin(opened: Opened) -> Any:
    return optuna.create_study(storage=opened.storage, study_name="edo", load_if_exists=True)


def finish_trials(study: Any, count: int) -> None:
    for _ in range(count):
        study.tell(study.ask(SPACE), 1.0)


def as_optuna_reads_it(path: Path) -> list[TrialState]:
    storage = JournalStorage(JournalFileBackend(str(path)))
    return [trial.state for trial in optuna.load_study(study_name="edo", storage=storage).trials]


# Where a study may be


def test_memory_is_the_default() -> None:
    with open_storage() as opened:
        finish_trials(begin(opened), 1)
        assert opened.shown == "memory"


@pytest.mark.parametrize(
    "given_",
    [
        "",
        "mysql://ann:s3cret@db.example/edo",
        "sqlite:///edo.db",
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
    with pytest.raises(InputError) as refused:
        open_storage(given_)
    assert "s3cret" not in everything_said(refused.value)
    assert refused.value.hint


def everything_said(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + str(error) + repr(error)


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=1))
def test_no_part_of_a_password_is_shown(password: str) -> None:
    for written in (password, quote(password, safe="")):
        # The secret is recognised by a letter that stands nowhere else.
        url = f"postgresql://ann:Ω{written}Ω@db.example:5432/edo?sslmode=require"
        assert "Ω" not in masked(url)
        assert "Ω" not in what_is_said_of(url)
    # The command line as kept beside the results, for every URL that works.
    with suppress(InputError):
        where_is(url)
        assert "Ω" not in command_text(["edo", "search", "--storage", url])


def what_is_said_of(url: str) -> str:
    try:
        found = where_is(url)
    except InputError as refused:
        return everything_said(refused)
    assert isinstance(found, Database)
    options = make_url(found.url).query
    return repr(found) + found.shown + found.host + found.name + repr(options)


def test_a_masked_address_still_says_where() -> None:
    assert masked("postgresql://ann:pw@db.example/edo") == "postgresql://***@db.example/edo"
    assert masked("postgresql://db.example/edo?password=pw") == "postgresql://db.example/edo"
    assert masked("runs/journal.log") == "runs/journal.log"
    assert masked("runs/me@home.log") == "runs/me@home.log"


def test_grace_covers_at_least_two_heartbeats() -> None:
    with pytest.raises(InputError, match="two heartbeats"):
        open_storage(heartbeat=10, grace=15)


# A file


def test_a_finished_trial_is_on_the_disk_before_the_next_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.log"
    fsync, on_disk = os.fsync, [b""]

    def synced(handle: int) -> None:
        fsync(handle)
        on_disk[0] = path.read_bytes()

    monkeypatch.setattr(os, "fsync", synced)
    with open_storage(path) as opened:
        study = optuna.create_study(storage=opened.storage, study_name="one")
        assert on_disk[0] == path.read_bytes(), "that there is a study"
        for number in range(3):
            study.tell(study.ask(), float(number))
            assert on_disk[0] == path.read_bytes(), "and each end of a trial"


def test_a_line_torn_anywhere_costs_no_finished_trial(tmp_path: Path) -> None:
    path = tmp_path / "new" / "journal.log"
    with open_storage(path) as opened:
        finish_trials(begin(opened), 2)
    whole = path.read_bytes()
    last = len(whole.splitlines(keepends=True)[-1])
    for torn in range(1, last + 1):
        path.write_bytes(whole[: len(whole) - torn])
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
    with pytest.raises(InputError, match=f"line {number} "):
        open_storage(path)
    assert path.read_bytes() == b"".join(lines)


@pytest.mark.parametrize(
    "content",
    [b"item,label", b"item,label\n1,no\n", b"\x89PNG", b'{"op_code":77,"worker_id":"a"}\n', b"{}"],
)
def test_another_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(InputError, match="journal"):
            open_storage(path)
    assert path.read_bytes() == content


def test_a_folder_or_a_place_that_can_not_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder or a device"):
        open_storage(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="can't write"):
        open_storage(tmp_path / "file" / "journal.log")


def test_a_file_is_for_one_search_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    with open_storage(path), pytest.raises(InputError, match="one search at a time"):
        open_storage(path)
    open_storage(path).close()


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    code = (
        "import sys, time; from edokit.tuning.storage import open_storage;"
        f" opened = open_storage({str(path)!r}); print('open', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(InputError, match="one search at a time"):
            open_storage(path)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with open_storage(path) as opened:
        finish_trials(begin(opened), 1)


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_storage(path) as opened:
        study = begin(opened)
        finish_trials(study, 2)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 30, hard))
            with pytest.raises(InputError, match="can't write"):
                finish_trials(study, 1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        finish_trials(study, 1)
    assert all(json.loads(line) for line in path.read_text().splitlines())
    assert as_optuna_reads_it(path).count(TrialState.COMPLETE) == 3


def test_a_file_removed_meanwhile_is_not_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    with open_storage(path) as opened:
        study = begin(opened)
        finish_trials(study, 1)
        path.unlink()
        with pytest.raises(InputError, match="removed"):
            opened.storage.set_study_user_attr(study._study_id, "a", 1)
    assert not path.exists()


# A database


def test_a_study_in_a_database_is_found_again(database_server: Server) -> None:
    url = database_server.new_database()
    with open_storage(url) as opened:
        finish_trials(begin(opened), 2)
        assert PASSWORD not in repr(opened) + opened.shown + repr(opened.storage)
    with open_storage(url.replace("postgresql://", "postgres://")) as opened:
        assert [t.state for t in begin(opened).trials] == [TrialState.COMPLETE] * 2


def test_the_password_may_come_from_the_environment(
    database_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = database_server.new_database()
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    open_storage(url.replace(f":{QUOTED}@", "@")).close()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda url: url.replace(QUOTED, "s3cret"), "refused the user or the password"),
        (lambda url: url.replace(USER, "s3cret"), "refused the user or the password"),
        (lambda url: url.replace(f":{QUOTED}@", "@"), "refused the user or the password"),
        (lambda url: url + "_nowhere", "it has no database"),
        (lambda url: url.replace("127.0.0.1", "nowhere.invalid"), "no host 'nowhere.invalid'"),
        (lambda url: url.partition("127.0.0.1")[0] + "127.0.0.1:1/edo", "nothing answers at"),
        (lambda url: url + "?sslmode=s3cret", "the server replies"),
        (lambda url: url + "?s3cret=1", "storage|form"),
    ],
)
def test_what_keeps_a_database_away_is_said_in_one_line_without_credentials(
    database_server: Server, change: Any, says: str
) -> None:
    url = change(database_server.url("postgres"))
    with pytest.raises(InputError, match=says) as refused:
        open_storage(url)
    said = everything_said(refused.value)
    assert "\n" not in str(refused.value)
    for secret in (PASSWORD, QUOTED, USER, "s3cret:", ":s3cret@"):
        assert secret not in said


def test_a_user_who_may_not_make_tables_is_told(database_server: Server) -> None:
    import psycopg

    url = database_server.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        connection.execute("CREATE ROLE reader LOGIN PASSWORD 'quiet'")
    with pytest.raises(InputError, match="allowed to make tables"):
        open_storage(url.replace(f"{USER}:{QUOTED}", "reader:quiet"))


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from edokit.tuning import postgres as room

    monkeypatch.setattr(room, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"edokit\[postgres\]"):
        open_storage("postgresql://db.example/edo")


def test_workers_may_find_an_empty_database_at_once(database_server: Server) -> None:
    url = database_server.new_database()
    failures: list[BaseException] = []

    def start() -> None:
        try:
            open_storage(url).close()
        except BaseException as error:
            failures.append(error)

    together(*[start] * 4)
    assert not failures


def together(*tasks: Any) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_server_that_comes_back_is_waited_for(database_server: Server) -> None:
    with open_storage(database_server.new_database(), patience=20) as opened:
        study = begin(opened)
        trial = study.ask(SPACE)
        database_server.stop()
        back = threading.Timer(1.0, database_server.start)
        back.start()
        with pytest.warns(EDOWarning, match="does not answer"):
            study.tell(trial, 1.0)
        back.join()
        assert [t.state for t in study.trials] == [TrialState.COMPLETE]


def test_a_server_that_stays_away_is_given_up(database_server: Server) -> None:
    with open_storage(database_server.new_database(), patience=0.5) as opened:
        study = begin(opened)
        finish_trials(study, 1)
        database_server.stop()
        try:
            with (
                pytest.warns(EDOWarning, match="does not answer"),
                pytest.raises(InputError, match="nothing answers") as refused,
            ):
                study.ask(SPACE)
            assert QUOTED not in everything_said(refused.value)
        finally:
            database_server.start()
        assert len(study.trials) == 1


def test_a_step_whose_lock_was_lost_is_done_again(database_server: Server) -> None:
    seen: list[int] = []
    with open_storage(database_server.new_database(), patience=20) as opened:
        study = begin(opened)

        def step() -> int:
            seen.append(len(study.trials))
            if len(seen) == 1:
                database_server.stop()
                database_server.start()
                # This very operation works: only the lock is gone.
                opened.storage.engine.dispose()
                return len(study.trials)
            return -1

        with pytest.warns(EDOWarning, match="does not answer"):
            assert opened.storage.alone(1, step) == -1
    assert seen == [0, 0]


def test_steps_on_one_study_never_overlap(database_server: Server) -> None:
    url = database_server.new_database()
    inside, most = 0, 0

    def work() -> None:
        with open_storage(url) as opened:

            def step() -> None:
                nonlocal inside, most
                inside += 1
                most = max(most, inside)
                threading.Event().wait(0.02)
                inside -= 1

            for _ in range(5):
                opened.storage.alone(1, step)

    together(work, work, work)
    assert most == 1


def test_an_ending_whose_answer_was_lost_counts_as_done() -> None:
    from edokit.tuning.postgres import _patient

    class Twice:
        def patiently(self, step: Any) -> Any:
            try:
                return step()
            except ConnectionError:
                return step()

    calls = iter([ConnectionError(), RuntimeError("it has ended")])

    def set_trial_state_values(self: object) -> bool:
        raise next(calls)

    assert _patient(set_trial_state_values)(Twice()) is True


# A process


def test_a_process_is_known_by_more_than_its_number() -> None:
    mark = own_mark()
    assert not is_gone(mark)
    host, place, pid, start = mark.rsplit("/", 3)
    assert is_gone(f"{host}/{place}/{pid}/{int(start) + 1}")
    assert not is_gone(f"{host}/elsewhere/{pid}/{int(start) + 1}")
    assert not is_gone("anything else")


def test_a_process_that_ended_is_gone() -> None:
    code = "from edokit.tuning.postgres import own_mark; print(own_mark())"
    mark = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert is_gone(mark.stdout.strip())
