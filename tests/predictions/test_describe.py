"""What is in a predictions file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edokit import Predictions, write_predictions
from edokit.predictions.shards import describe_predictions


def test_a_description_is_the_same_for_one_file_and_for_shards(tmp_path: Path) -> None:
    array = np.random.default_rng(0).dirichlet([1, 2, 3], (7, 4))
    predictions = Predictions.from_arrays(array, layout="NKC", groups=["g", "g", "h", ""])
    whole = tmp_path / "whole.npz"
    folder = tmp_path / "shards"
    write_predictions(predictions, whole)
    for start in (0, 3, 6):
        write_predictions(
            predictions.take(range(start, min(start + 3, 7))), folder / f"{start}.parquet"
        )
    one = describe_predictions(whole)
    many = describe_predictions(folder)
    assert (one["items"], one["shards"], many["shards"]) == (7, 1, 3)
    assert one["classes"] == many["classes"] == ["0", "1", "2"]
    for k, (first, second) in enumerate(zip(one["members"], many["members"], strict=True)):
        p = array[:, k]
        assert first["name"] == second["name"] == str(k)
        assert first["group"] == ["g", "g", "h", ""][k]
        assert first["mean"] == pytest.approx(second["mean"])
        assert list(first["mean"].values()) == pytest.approx(p.mean(axis=0).tolist())
        assert first["entropy"] == pytest.approx(float(-(p * np.log(p)).sum(axis=1).mean()))
        distance = np.abs(p - array.mean(axis=1)).sum(axis=1).mean()
        assert first["distance"] == pytest.approx(float(distance))
        assert second["entropy"] == pytest.approx(first["entropy"])
        assert second["distance"] == pytest.approx(first["distance"])


def test_certain_members_have_an_entropy_of_zero(tmp_path: Path) -> None:
    predictions = Predictions.from_arrays([[[1.0, 0.0]]], layout="NKC")
    write_predictions(predictions, tmp_path / "p.npz")
    member = describe_predictions(tmp_path / "p.npz")["members"][0]
    assert (member["entropy"], member["distance"], member["group"]) == (0, 0, None)
