"""Files of single models on every answer scale, side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edokit import Predictions, Scale, read_predictions, write_predictions
from edokit.predictions.join import join_models
from edokit.predictions.shards import describe_predictions
from tests.cli.test_commands import answer, edo
from tests.errors import raises_code

SETS = "item,p_rude,p_odd\na,0.9,0.8\nb,0.1,0.0\n"
LOGITS = "item,p_odd,p_rude\nb,-3,0\na,2,4\n"
POINTS = "item,p_1,p_2,p_10\na,0.5,0.25,0.25\nb,0,0,1\n"
NAMED = "item,p_high,p_low,p_mid\na,0.5,0.25,0.25\nb,0,0,1\n"


def written(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def test_probabilities_of_labels_need_not_sum_to_one(tmp_path: Path) -> None:
    files = [written(tmp_path / "one.csv", SETS), written(tmp_path / "two.csv", LOGITS)]
    joined = join_models(files, scale="multi-label:rude,odd", logits=[False, True])
    assert (joined.scale, joined.classes) == (Scale("multi-label"), ("rude", "odd"))
    np.testing.assert_allclose(joined.probabilities[:, 0], [[0.9, 0.8], [0.1, 0.0]])
    sigmoid = 1 / (1 + np.exp(-np.array([[4.0, 2.0], [0.0, -3.0]])))
    np.testing.assert_allclose(joined.probabilities[:, 1], sigmoid)
    with raises_code("invalid-probabilities"):
        join_models(files[:1])


def test_one_label_is_a_set_too(tmp_path: Path) -> None:
    file = written(tmp_path / "one.csv", "item,p_rude\na,0.9\nb,0.1\n")
    assert join_models([file], scale="multi-label").classes == ("rude",)
    with raises_code("missing-column"):
        join_models([file])


def test_points_keep_their_order_and_positions(tmp_path: Path) -> None:
    joined = join_models([written(tmp_path / "one.csv", POINTS)], scale="ordinal:1,2,10")
    assert joined.scale.positions == (1, 2, 10)
    file = written(tmp_path / "two.csv", NAMED)
    joined = join_models([file], scale="ordinal:low=0,mid=1,high=5")
    assert (joined.classes, joined.scale.positions) == (("low", "mid", "high"), (0, 1, 5))
    assert joined.probabilities[0, 0].tolist() == [0.25, 0.25, 0.5]
    with raises_code("not-a-number", "two.csv", "'high'"):
        join_models([file], scale="ordinal")
    with raises_code("classes-differ", "'mid'", "'never'"):
        join_models([file], scale="ordinal:low,never,high")


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_a_join_keeps_the_scale(suffix: str, tmp_path: Path) -> None:
    file = written(tmp_path / "one.csv", SETS)
    stored = tmp_path / f"stored.{suffix}"
    write_predictions(join_models([file], scale="multi-label"), stored)
    second_predictions = join_models([stored, file], names=["a", "b"], scale="multi-label")
    assert second_predictions.scale == read_predictions(stored).scale == Scale("multi-label")
    assert second_predictions.members == ("a", "b")


def test_a_table_may_note_its_scale(tmp_path: Path) -> None:
    content = 'item,answer_scale,p_rude,p_odd\na,"multi-label:rude,odd",0.9,0.8\n'
    model = join_models([written(tmp_path / "pooled.csv", content)])
    assert (model.scale, model.classes) == (Scale("multi-label"), ("rude", "odd"))
    with raises_code("invalid-probabilities"):
        join_models([tmp_path / "pooled.csv"], scale="ordinal:rude,odd")


def test_members_of_a_long_table_have_a_scale(tmp_path: Path) -> None:
    rows = "item,member,p_rude,p_odd\na,x,0.9,0.8\na,y,0.3,0.1\n"
    joined = join_models([written(tmp_path / "long.csv", rows)], scale="multi-label")
    assert (joined.shape, joined.scale) == ((1, 2, 2), Scale("multi-label"))


def test_mixed_scales_name_both(tmp_path: Path) -> None:
    points = join_models([written(tmp_path / "one.csv", POINTS)], scale="ordinal:1,2,10")
    write_predictions(points, tmp_path / "points.npz")
    files = [tmp_path / "points.npz", tmp_path / "one.csv"]
    with raises_code("scales-differ", "one.csv", "nominal", "points.npz"):
        join_models(files)
    with raises_code("scales-differ", "(1, 2, 10)"):
        join_models(files[:1], scale="multi-label")
    both = join_models(files, names=["a", "b"], scale="ordinal:1,2,10")
    assert (both.members, both.scale) == (("a", "b"), points.scale)


def test_stored_classes_in_another_order_than_the_scale_are_refused(tmp_path: Path) -> None:
    values = np.array([[[0.5, 0.2, 0.3]]])
    write_predictions(
        Predictions.from_arrays(values, layout="NKC", classes=["mid", "low", "high"]),
        tmp_path / "stored.npz",
    )
    with raises_code(
        "classes-differ", "stored.npz", "'mid', 'low', 'high'", "'low', 'mid', 'high'"
    ):
        join_models([tmp_path / "stored.npz"], scale="ordinal:low,mid,high")


def test_probabilities_of_labels_are_no_logits(tmp_path: Path) -> None:
    file = written(tmp_path / "one.csv", SETS)
    with raises_code("not-logits"):
        join_models([file], scale="multi-label", logits=True)


def test_sets_are_described_label_by_label(tmp_path: Path) -> None:
    joined = join_models([written(tmp_path / "one.csv", SETS)], scale="multi-label")
    write_predictions(joined, tmp_path / "sets.npz")
    found = describe_predictions(tmp_path / "sets.npz")
    assert found["scale"] == "multi-label:odd,rude"
    p = np.array([0.9, 0.8, 0.1])
    entropy = -(p * np.log(p) + (1 - p) * np.log(1 - p)).sum() / 4
    assert found["members"][0]["entropy"] == pytest.approx(entropy)
    assert found["members"][0]["mean"] == pytest.approx({"odd": 0.4, "rude": 0.5})


def test_the_command_declares_and_keeps_a_scale(tmp_path: Path) -> None:
    file = written(tmp_path / "one.csv", SETS)
    out = tmp_path / "out.npz"
    done = answer("predictions", "join", file, "--scale", "multi-label", "--out", out)
    assert done["scale"] == "multi-label:odd,rude"
    assert read_predictions(out).scale == Scale("multi-label")
    shown = edo("predictions", "info", out).stdout  # a long path breaks its line
    assert "2 classes (multi-label)" in " ".join(shown.split())
