"""A folder of shards is known without being read, and every shard is checked when it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edokit import Predictions, write_predictions
from edokit.predictions.shards import Shards
from tests.errors import raises_code


def made_up(items: list[str], **names: Any) -> Predictions:
    rng = np.random.default_rng(len(items))
    array = rng.dirichlet(np.ones(2), (len(items), 3)).astype(np.float32)
    given: dict[str, Any] = {"members": ["x", "y", "z"], "classes": ["no", "yes"], **names}
    return Predictions.from_arrays(array, layout="NKC", items=items, **given)


@pytest.fixture(params=["npz", "parquet"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for number, items in enumerate((["a", "b"], ["c", "d", "e"], ["f"])):
        write_predictions(made_up(items), tmp_path / f"part-{number}.{request.param}")
    return tmp_path


def test_the_first_shard_tells_what_all_hold(folder: Path) -> None:
    shards = Shards.open(folder)
    assert (shards.members, shards.classes, shards.groups) == (("x", "y", "z"), ("no", "yes"), None)
    assert "3 files, 3 members" in repr(shards)


def test_shards_are_read_one_by_one(folder: Path) -> None:
    shards = Shards.open(folder)
    assert [shard.items.tolist() for shard in shards] == [["a", "b"], ["c", "d", "e"], ["f"]]
    assert [shards.read_rows(n).names for n in range(3)] == [["a", "b"], ["c", "d", "e"], ["f"]]


def test_a_single_file_is_one_shard(tmp_path: Path) -> None:
    write_predictions(made_up(["a"]), tmp_path / "p.npz")
    assert Shards.open(tmp_path / "p.npz").files == (tmp_path / "p.npz",)


def test_a_shard_that_disagrees_is_named_when_it_is_read(folder: Path) -> None:
    ending = next(folder.iterdir()).suffix
    write_predictions(made_up(["f"], members=["x", "y", "w"]), folder / f"part-2{ending}")
    shards = Shards.open(folder)
    with raises_code("shards-differ", f"part-0{ending} has 'z'", f"part-2{ending} has 'w'"):
        shards.read(2)


def test_a_parquet_shard_with_fewer_members_is_named(tmp_path: Path) -> None:
    write_predictions(made_up(["a", "b"]), tmp_path / "part-0.parquet")
    write_predictions(made_up(["c"]).select(["x", "y"]), tmp_path / "part-1.parquet")
    with raises_code("shards-differ", "part-0.parquet", "'z'", "part-1.parquet"):
        Shards.open(tmp_path).read(1)


def test_a_torn_shard_is_named(folder: Path) -> None:
    torn = sorted(folder.iterdir())[1]
    torn.write_bytes(torn.read_bytes()[:200])
    with raises_code("unreadable-file", torn.name):
        Shards.open(folder).read(1)


def test_what_memory_would_take_grows_with_the_items(folder: Path) -> None:
    assert Shards.open(folder).needs > 6 * 3 * 2 * (4 + 8 + 8)
