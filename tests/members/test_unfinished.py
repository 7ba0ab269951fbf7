"""What is left of members that were being removed, copied or trained otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from member_cases import small_people

from edokit import EDOWarning, train_members
from edokit.members import parse_groups
from edokit.members.train import Trained
from tests.errors import raises_code


def train(out: Path, members: int = 2, **how: Any) -> Trained:
    return train_members(small_people(), parse_groups(f"linear:{members}"), out=out, jobs=1, **how)


def cards(out: Path) -> dict[str, int]:
    return {str(card): card.stat().st_mtime_ns for card in out.glob("members/**/member.json")}


def test_members_with_and_without_folds_never_share_a_folder(tmp_path: Path) -> None:
    train(tmp_path, cross_fit=2)
    with raises_code("other-settings", "'linear-01/fold-0'"):
        train(tmp_path)
    again = train(tmp_path, overwrite=True)
    assert not list(tmp_path.glob("members/*/fold-*"))
    np.testing.assert_array_equal(
        again.predictions["test"].probabilities, train(tmp_path).predictions["test"].probabilities
    )
    with raises_code("other-settings", "'linear-01'", "'linear-02'"):
        train(tmp_path, cross_fit=2)
    train(tmp_path, cross_fit=2, overwrite=True)
    assert len(cards(tmp_path)) == 4
    assert not list(tmp_path.glob("members/*/member.json"))


def test_what_is_left_of_a_member_does_not_keep_a_new_one_out(tmp_path: Path) -> None:
    wanted = train(tmp_path).predictions["dev"].probabilities
    (tmp_path / "members" / "linear-01" / "member.json").unlink()
    again = train(tmp_path)
    assert (tmp_path / "members" / "linear-01" / "member.json").is_file()
    np.testing.assert_array_equal(again.predictions["dev"].probabilities, wanted)


@pytest.mark.parametrize("file", ["linear.npz", "predictions.npz"])
def test_a_member_that_lost_a_part_is_trained_again_and_only_that(
    file: str, tmp_path: Path
) -> None:
    wanted = train(tmp_path).predictions["dev"].probabilities
    before = cards(tmp_path)
    path = tmp_path / "members" / "linear-02" / file
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.warns(EDOWarning, match="linear-02 "):
        again = train(tmp_path)
    np.testing.assert_array_equal(again.predictions["dev"].probabilities, wanted)
    kept = {name for name, time in cards(tmp_path).items() if before[name] == time}
    assert kept == {str(tmp_path / "members" / "linear-01" / "member.json")}


@pytest.mark.filterwarnings("ignore:.*of an earlier training:edokit._errors.EDOWarning")
def test_a_manifest_is_withdrawn_before_other_predictions_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tmp_path, members=3)
    manifest = tmp_path / "manifest.json"

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("edokit.predictions.files.write_predictions", stop)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, members=2)
    assert not manifest.is_file()
