"""On a GPU, members train side by side as long as that is faster."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joblib.externals.loky.backend as loky
import joblib.externals.loky.backend.utils  # noqa: F401
import numpy as np
import pytest
from member_cases import small_people

from edokit.members import engine, train
from edokit.members.engine import Pace
from edokit.members.groups import Group
from edokit.members.jobs import Outcome, TrainingJob


def reports(rates: dict[str, float], began: float = 0.0, since: float = 1.0) -> dict[str, Any]:
    each = {"began": began, "since": since, "memory": 2**30}
    return {name: {"items_per_second": rate, **each} for name, rate in rates.items()}


def decide(speed: Any, most: int = 8, room: int = 100) -> Pace:
    """Where a pool ends up whose n members have together ``speed(n)`` items a second."""
    pace = Pace(most, 1)
    while not pace.settled:
        n = pace.now
        left = max(0, room - n)
        assert pace.update(reports({str(k): speed(n) / n for k in range(n)}), lambda _, x=left: x)
    return pace


@pytest.mark.parametrize(
    ("speed", "most", "room", "chosen"),
    [
        (lambda n: 100.0 * n, 8, 100, 8),
        (lambda n: 100.0 * n, 5, 100, 5),
        (lambda n: 100.0 * n, 8, 3, 3),
        (lambda n: 100.0 * min(n, 4), 8, 100, 4),
        (lambda n: 100.0, 8, 100, 1),
        (lambda n: 100.0 * n, 8, 0, 1),
    ],
)
def test_more_train_at_once_as_long_as_it_pays_and_memory_allows(
    speed: Any, most: int, room: int, chosen: int
) -> None:
    assert decide(speed, most, room).now == chosen


def test_what_was_measured_with_fewer_members_does_not_count() -> None:
    pace = Pace(8, 2)
    assert not pace.update(reports({"a": 10.0}), lambda size: 9)
    early = reports({"a": 10.0}, 0, 5) | reports({"b": 10.0}, 6, 6)
    assert not pace.update(early, lambda size: 9)
    assert pace.update(reports({"a": 10.0}, 0, 7) | reports({"b": 10.0}, 6, 6), lambda size: 9)
    assert (pace.now, pace.before) == (4, {"a": 10.0, "b": 10.0})


def test_members_of_other_speed_count_by_what_those_before_lose() -> None:
    pace = Pace(8, 1)
    pace.update(reports({"small": 1000.0}), lambda size: 9)
    # Together they see fewer items, as one is large; but the small one has hardly slowed down.
    pace.update(reports({"small": 800.0, "large": 10.0}), lambda size: 9)
    assert (pace.now, pace.settled) == (4, False)


def jobs(n: int) -> list[TrainingJob]:
    return [
        TrainingJob(f"m-{k}", "m", "transformer", {}, "soft", "epoch", seed=k) for k in range(n)
    ]


class Worker(threading.Thread):
    """A thread in place of a process."""

    def __init__(self, target: Any, args: Any, env: object) -> None:
        pipe, *rest = args
        own = Connection(os.dup(pipe.fileno()))  # as a process has
        super().__init__(target=target, args=(own, *rest), daemon=True)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Members that report their pace and wait until enough train beside them."""
    together, most, here = [0], [0], []
    lock = threading.Condition()
    monkeypatch.setattr(loky, "get_context", lambda _: SimpleNamespace(Process=Worker))
    monkeypatch.setattr(loky.utils, "kill_process_tree", str)
    monkeypatch.setattr(engine, "_room", lambda devices, size: 100)

    def run_job(context: Any, job: TrainingJob, out: Path, device: Any, progress: Any) -> Outcome:
        if threading.current_thread() is threading.main_thread():
            here.append(job.path)
        with lock:
            together[0] += 1
            most[0] = max(most[0], together[0])
            lock.notify_all()
        progress({"items": context["items"], "epochs": 10})
        # As recipes of others may: with less in it, and with what can't be pickled.
        progress({"items_per_second": np.float32(1.0), "how": run_job})
        for tick in range(3000):
            now = {"items_per_second": context["rate"], "began": 0.0, "since": float(tick)}
            progress({**now, "memory": 1})
            with lock:
                if lock.wait_for(lambda: most[0] >= context["wanted"], timeout=0.01):
                    break
        progress({"epoch": 1, "device": device})
        with lock:
            together[0] -= 1
        return Outcome(job)

    monkeypatch.setattr(engine, "run_job", run_job)

    def train(
        n: int, devices: Any = ("cuda:0", "cuda:1"), **context: Any
    ) -> tuple[list[Outcome], int, list[str], list[Any]]:
        events: list[Any] = []
        outcomes = engine.run_jobs(
            {"rate": 1.0, "items": 1000, "wanted": 4, **context},  # type: ignore[arg-type]
            jobs(n),
            Path("."),
            jobs=4,
            devices=devices,
            by_pace=True,
            progress=lambda job: lambda event: events.append((job.path, event)),
        )
        return list(outcomes), most[0], here, events

    return train


def test_the_first_member_trains_here_and_others_join_it(trained: Any) -> None:
    outcomes, most, here, events = trained(6)
    assert sorted(one.job.path for one in outcomes) == [job.path for job in jobs(6)]
    assert (most, here) == (4, ["m-0"])
    epochs = {name: event["device"] for name, event in events if "epoch" in event}
    assert epochs == {f"m-{k}": f"cuda:{k % 2}" for k in range(6)}


def test_reports_of_other_recipes_may_have_less_in_them(trained: Any) -> None:
    outcomes, most, here, _ = trained(2, devices=("cuda",), wanted=2)
    assert ([one.reason for one in outcomes], most, here) == (["", ""], 2, ["m-0"])


def test_little_work_starts_no_workers(trained: Any) -> None:
    outcomes, most, here, _ = trained(3, items=10, wanted=1)
    assert (len(outcomes), most, here) == (3, 1, ["m-0", "m-1", "m-2"])


def test_a_worker_that_dies_takes_no_finished_member_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_RECIPES", "none of those that are loaded")
    monkeypatch.setattr(engine, "_room", lambda devices, size: 100)
    monkeypatch.setattr(engine, "on_gpus", lambda devices: True)
    monkeypatch.setattr(engine, "how_many_jobs", lambda *given: 2)
    group = Group("member_cases:PacedMember", 2, "paced", "soft")
    trained = train.train_members(small_people(), [group], out=tmp_path)
    assert [one.job.member for one in trained.failed] == ["paced-02"]
    assert "its worker died, perhaps out of memory" in trained.failed[0].reason
    assert trained.predictions["dev"].members == ("paced-01",)


@pytest.mark.parametrize(("dead", "jobless"), [(1, False), (3, False), (1, True), (3, True)])
def test_members_of_workers_that_are_gone_are_trained_by_others_or_alone(
    trained: Any, dead: int, jobless: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []

    class Mortal(Worker):
        """So many of the first three end: at once, or when they are given a job."""

        def run(self) -> None:
            started.append(self)
            if len(started) > dead:
                super().run()
            elif not jobless:
                with suppress(EOFError):
                    self._args[0].recv()

    monkeypatch.setattr(loky, "get_context", lambda _: SimpleNamespace(Process=Mortal))
    outcomes, *_ = trained(4, wanted=1)
    assert sorted(one.job.path for one in outcomes) == [job.path for job in jobs(4)]
    assert {one.reason for one in outcomes} == {""}
