"""Shards are summed up on a real Dask cluster of two worker processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shard_cases import cut

pytest.importorskip("distributed", reason='needs Dask: pip install ".[dask]"')

from edokit._parallel import Workers
from edokit.fitdata.data import FitData
from tests.errors import raises_code


class NoWorkers:
    """A client of a cluster in which nobody works."""

    def __init__(self, address: str, **how: object) -> None:
        pass

    def wait_for_workers(self, count: int, timeout: float) -> None:
        raise TimeoutError

    def close(self) -> None:
        pass


def test_a_cluster_without_workers_is_named_with_what_to_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("distributed.Client", NoWorkers)
    engine: Any = "dask://127.0.0.1:9"
    with raises_code("unreachable-server", "127.0.0.1:9"):
        list(Workers(1, engine).run(len, [[1]]))


@pytest.mark.filterwarnings("ignore:.* tied:edokit._errors.EDOWarning")
def test_a_cluster_gives_what_this_process_gives(tmp_path: Path) -> None:
    from distributed import LocalCluster

    made = cut(tmp_path, 60, [7, 20, 41, 50])
    v = np.array([[0.4, 0.3, 0.2, 0.1]])
    with FitData.open(made.predictions, made.annotations, jobs=1) as here:
        wanted = here.expansions(v)[0]
        metrics = here.evaluate(v[0])
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        FitData.open(
            made.predictions,
            made.annotations,
            engine=cluster.scheduler_address.replace("tcp://", "dask://"),
            scratch=tmp_path / "shared",
        ) as there,
    ):
        where = set(there._workers.run(eval, ["__import__('os').getpid()"] * 6))
        assert os.getpid() not in where
        found = there.expansions(v)[0]
        np.testing.assert_allclose(found.hessian, wanted.hessian, rtol=1e-14)
        assert there.evaluate(v[0]) == pytest.approx(metrics, abs=1e-14)
