"""Workers of one search that are killed, or share a folder, end where nobody had disturbed them.

A search in a file that is killed is in tests/test_faults.py.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import psycopg
import pyarrow.parquet as pq
import pytest
from optuna.trial import TrialState
from postgres import QUOTED, USER, Server, silence_workers

from tests.commands import edo

TRIALS = 20
ITEMS = 60
MEMBERS = 4


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options that name a small problem's files, and how to search it."""
    folder = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(11)
    np.savez(
        folder / "p.npz",
        probabilities=rng.dirichlet([1, 1], size=(ITEMS, MEMBERS)),
        items=np.array([f"i{i}" for i in range(ITEMS)]),
        members=np.array([f"m{k}" for k in range(MEMBERS)]),
        classes=np.array(["no", "yes"]),
    )
    said = rng.choice(["no", "yes"], size=(ITEMS, 3))
    rows = [f"i{i},a{a},{said[i, a]}" for i in range(ITEMS) for a in range(3)]
    (folder / "a.csv").write_text("\n".join(["item,annotator,label", *rows]), encoding="utf-8")
    files = ["--predictions", str(folder / "p.npz"), "--annotations", str(folder / "a.csv")]
    files += ["--space", "paper"]
    return [*files, "--trials", str(TRIALS), "--population", "8", "--folds", "2", "--seed", "5"]


def command(*words: object) -> list[str]:
    code = "from edokit.cli import main; main()"
    return [sys.executable, "-W", "ignore", "-c", code, "search", *map(str, words)]


@contextmanager
def started(*words: object) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(true: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 300
    while not true() and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.001)


def table(out: Path) -> list[dict[str, Any]]:
    """The trials as kept, but for their numbers in the storage and for the last digits."""
    rows = pq.read_table(out / "search" / "trials.parquet").to_pylist()
    return [{name: almost(row[name]) for name in row if name != "number"} for row in rows]


def almost(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, str) and value.startswith("{"):
        return {name: almost(number) for name, number in json.loads(value).items()}
    return value


@pytest.fixture(scope="module")
def undisturbed(inputs: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    done = edo("search", *inputs, "--out", out)
    assert done.returncode == 0, done.stderr
    assert len(table(out)) == TRIALS
    return out


def no_place_is_done_twice(trials: list[Any]) -> bool:
    assert {trial.state for trial in trials} <= {TrialState.COMPLETE, TrialState.FAIL}
    done = [tuple(t.user_attrs["place"]) for t in trials if t.state is TrialState.COMPLETE]
    return len(done) == len(set(done)) == TRIALS


def test_a_killed_workers_trials_are_done_by_the_other(
    inputs: list[str], undisturbed: Path, tmp_path: Path, database_server: Server
) -> None:
    url = database_server.new_database()
    shared = [*inputs, "--storage", url, "--worker"]

    def is_running() -> bool:
        try:
            query = "SELECT count(*) FROM trials WHERE state = 'RUNNING'"
            return bool(connection.execute(query).fetchone()[0])  # type: ignore[index]
        except psycopg.errors.UndefinedTable:
            return False

    with psycopg.connect(url, autocommit=True) as connection, started(*shared) as victim:
        wait_until(is_running, victim)
        victim.send_signal(signal.SIGKILL)
        assert victim.wait() == -signal.SIGKILL
        # Instead of waiting until it is given up.
        silence_workers(url)
        done = edo("search", *shared, "--out", tmp_path / "run")
        assert done.returncode == 0, done.stderr
    storage = optuna.storages.RDBStorage(url.replace("postgresql://", "postgresql+psycopg://"))
    trials = optuna.load_study(study_name="edo", storage=storage).trials
    storage.engine.dispose()
    assert no_place_is_done_twice(trials)
    assert any(t.state is TrialState.FAIL for t in trials)
    assert table(tmp_path / "run") == table(undisturbed)
    kept = "".join(
        path.read_text(encoding="utf-8", errors="replace")
        for path in (tmp_path / "run").rglob("*")
        if path.is_file()
    )
    assert QUOTED not in kept
    assert USER not in kept


@pytest.mark.slow
def test_workers_may_share_the_folder_of_their_results(
    inputs: list[str], undisturbed: Path, tmp_path: Path, database_server: Server
) -> None:
    shared = [*inputs, "--storage", database_server.new_database(), "--worker"]
    shared += ["--out", str(tmp_path / "run")]
    how: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    workers = [subprocess.Popen(command(*shared), **how) for _ in range(3)]
    try:
        for worker in workers:
            said, _ = worker.communicate(timeout=300)
            assert worker.returncode == 0, said
            assert "could not be made" not in said
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert table(tmp_path / "run") == table(undisturbed)
    names = {path.relative_to(undisturbed) for path in undisturbed.rglob("*")}
    there = {path.relative_to(tmp_path / "run") for path in (tmp_path / "run").rglob("*")}
    assert there == names - {Path("search", "journal.log")}


def test_the_command_says_in_one_line_why_there_is_no_storage(
    inputs: list[str], database_server: Server
) -> None:
    url = database_server.url("postgres", password="s3cret")
    words = ["search", *inputs, "--storage", url, "--worker"]
    # In a process of its own, whatever libraries write into its stderr would be seen.
    plain_completed = subprocess.run(
        command(*words[1:]),
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )
    for done in (plain_completed, edo("--debug", *words)):
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith("edo: the storage postgresql://")
        assert "s3cret" not in done.stdout + done.stderr
        assert USER not in done.stdout + done.stderr
    assert len(plain_completed.stderr.splitlines()) == 1
