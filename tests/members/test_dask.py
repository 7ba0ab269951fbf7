"""Members train on a real Dask cluster of two worker processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from member_cases import small_people

pytest.importorskip("distributed", reason='needs Dask: pip install "edokit[dask]"')

from edokit._errors import InputError
from edokit.members.groups import parse_groups
from edokit.members.train import train_members


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    from distributed import LocalCluster

    # Workers find the tests' own recipes where this process does.
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), before]))
    try:
        with LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as running:
            yield running.scheduler_address.replace("tcp://", "dask://")
    finally:
        os.environ["PYTHONPATH"] = before


def test_a_cluster_gives_what_this_machine_gives(cluster: str, tmp_path: Path) -> None:
    people = small_people()
    here = train_members(people, parse_groups("linear:4"), jobs=1)
    there = train_members(people, parse_groups("linear:4"), out=tmp_path, engine=cluster)
    np.testing.assert_array_equal(
        there.predictions["test"].probabilities, here.predictions["test"].probabilities
    )
    assert (tmp_path / "members" / "linear-03" / "linear.npz").is_file()


def test_a_member_that_fails_there_is_told_and_the_others_finish(
    cluster: str, tmp_path: Path
) -> None:
    pool = parse_groups("member_cases:FailingMember:6")
    trained = train_members(small_people(), pool, out=tmp_path, engine=cluster)
    assert 0 < len(trained.failed) < 6
    assert trained.failed[0].reason == "RuntimeError: the dog ate the weights"
    assert len(trained.predictions["dev"].members) + len(trained.failed) == 6
    # What is there stays, and only the failed ones are tried again.
    again = train_members(small_people(), pool, out=tmp_path, engine=cluster)
    assert len(again.failed) == len(trained.failed)


def test_a_scheduler_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edokit._parallel._PATIENCE", 0.5)
    with pytest.raises(InputError, match=r"no Dask scheduler answers at 127\.0\.0\.1:9"):
        train_members(small_people(), parse_groups("linear:1"), engine="dask://127.0.0.1:9")
