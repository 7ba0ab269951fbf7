"""What is known about members (model, prompt, persona, cost) goes wherever predictions go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edokit import InputError, Predictions, read_predictions, write_predictions
from edokit.predictions.join import join_models
from tests.errors import raises_code

INFO: dict[str, dict[str, Any]] = {
    "a": {"model": "small", "persona": "a nurse", "cost": 0.001},
    "b": {"model": "large", "prompt": "plain", "cost": 0.02, "requests": 8, "failures": 1},
}


def jury(n: int = 8, **more: Any) -> Predictions:
    array = np.random.default_rng(n).dirichlet(np.ones(2), (n, 3))
    names = {"items": [f"i{i}" for i in range(n)], "members": ["a", "b", "c"], "member_info": INFO}
    return Predictions.from_arrays(array, layout="NKC", classes=["no", "yes"], **{**names, **more})


def test_it_follows_its_members() -> None:
    assert jury().take([1, 0]).member_info == INFO
    assert jury().select(["c", "b"]).member_info == {"b": INFO["b"]}
    assert jury().renamed(["x", "y", "z"]).member_info == {"x": INFO["a"], "y": INFO["b"]}
    more = jury().with_info({"a": {"cost": 0.5}, "c": {"model": "tiny"}})
    assert more.member_info["a"] == {**INFO["a"], "cost": 0.5}
    assert list(more.member_info) == ["a", "b", "c"]


def test_pairs_keep_it_and_anonymous_answers_are_of_the_same_model() -> None:
    pairs = jury(5, items=["x", "x", "y", "x", "y"], annotators=["p", "q", "p", "", ""])
    assert pairs.pairs().member_info == INFO
    both = pairs.pairs(anonymous=True)
    assert both.member_info["b (anonymous)"] == INFO["b"]
    assert pairs.panel_means().member_info == INFO


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_what_all_shards_say_is_kept(suffix: str, tmp_path: Path) -> None:
    for number, rows in enumerate((range(6), range(6, 8))):
        part = jury().take(list(rows)).with_info({"b": {"requests": number}})
        write_predictions(part, tmp_path / f"part-{number}.{suffix}")
    common = {key: value for key, value in INFO["b"].items() if key != "requests"}
    assert read_predictions(tmp_path).member_info == {**INFO, "b": common}


@pytest.mark.parametrize(
    ("info", "fault"),
    [
        ({"z": {}}, ("unknown-member", "'z'", "'a', 'b', 'c'")),
        ({"a": {"cost": -0.1}}, ("wrong-content", "a.cost", "-0.1")),
        ({"a": {"cost": "cheap"}}, ("wrong-content", "a.cost", "'cheap'")),
        ({"a": {"model": ["x"]}}, ("wrong-content", "a.model")),
        ({"a": {"requests": 0.5}}, ("wrong-content", "a.requests", "0.5")),
    ],
)
def test_what_is_no_plain_value_is_refused(info: Any, fault: tuple[str, ...]) -> None:
    with raises_code(*fault):
        jury(member_info=info)


def test_a_file_with_damaged_info_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "p.npz"
    write_predictions(jury(), path)
    with np.load(path) as held:
        arrays = dict(held)
    for wrong in ("{", "[1]", json.dumps({"z": {"cost": 1}}), json.dumps({"a": 3})):
        np.savez(path, **{**arrays, "member_info": np.array([wrong])})
        with pytest.raises(InputError, match=r"p\.npz.*member_info"):
            read_predictions(path)


def test_join_keeps_it_and_adds_to_it(tmp_path: Path) -> None:
    write_predictions(jury(), tmp_path / "one.npz")
    joined = join_models([tmp_path / "one.npz"] * 2, names=["x", "y"])
    assert joined.member_info["y-b"] == INFO["b"]
    added = {"a": {"model": "tiny"}, "c": {"model": "huge", "cost": 0.5, "requests": 12}}
    found = join_models([tmp_path / "one.npz"]).with_info(added).member_info
    assert found["a"] == {**INFO["a"], "model": "tiny"}
    assert found["c"] == {"model": "huge", "cost": 0.5, "requests": 12}
