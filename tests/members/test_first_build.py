"""Members that the first build of EDO wrote load, score texts and are not trained again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from commands import invoke
from edokit import Annotations
from edokit.members import Texts, parse_groups, score_members, train_members
from edokit.predictions import read_predictions

KEPT = Path(__file__).parent / "fixtures" / "first_build"
TEXTS = (
    "a sunny day",
    "tea with a friend",
    "warm bread again",
    "music by the river",
    "a late bus again",
    "noisy and dull",
    "such a silly rule",
    "a boring day",
)
DEV = Texts(("t3", "t7"), (TEXTS[3], TEXTS[7]))


def annotations() -> Annotations:
    """What the members in the folder were trained on."""
    rows: dict[str, list[str]] = {n: [] for n in ("item", "annotator", "label", "text", "split")}
    for i, text in enumerate(TEXTS):
        for a in range(3):
            complaint = (i >= 4) != (a == i % 3 and i % 2 == 1)
            label = "complaint" if complaint else "praise"
            values = (f"t{i}", f"a{a}", label, text, "train" if i % 4 < 3 else "dev")
            for name, value in zip(rows, values, strict=True):
                rows[name].append(value)
    return Annotations.from_table(rows, classes=["praise", "complaint"])


def test_members_of_the_first_build_predict_what_they_predicted() -> None:
    kept = read_predictions(KEPT / "predictions" / "dev.npz")
    scored = score_members(KEPT, DEV)
    assert scored.members == kept.members == ("linear-01", "linear-02")
    assert (scored.classes, scored.groups) == (kept.classes, kept.groups)
    np.testing.assert_allclose(scored.probabilities, kept.probabilities, atol=1e-6)


def test_edo_score_reads_members_of_the_first_build(tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("\n".join(DEV.texts), encoding="utf-8")
    arguments = ["score", "--texts", str(tmp_path / "new.txt"), "--members", str(KEPT)]
    result = invoke(*arguments, "--out", tmp_path / "scored.npz")
    assert result.exit_code == 0, result.output
    kept = read_predictions(KEPT / "predictions" / "dev.npz")
    scored = read_predictions(tmp_path / "scored.npz")
    np.testing.assert_allclose(scored.probabilities, kept.probabilities, atol=1e-6)


def test_members_of_the_first_build_are_not_trained_again(tmp_path: Path) -> None:
    shutil.copytree(KEPT, tmp_path / "members")
    events: list[dict[str, Any]] = []
    groups = parse_groups("linear:2", options={"fewest": 1})
    train_members(annotations(), groups, out=tmp_path / "members", jobs=1, step=events.append)
    assert [event["kept"] for event in events] == [2]
