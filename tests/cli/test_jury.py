"""A jury of language models on the command line: costs, sampled answers, what members earn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from test_commands import edo

from edokit import Predictions, read_predictions, write_predictions


def test_join_takes_costs_by_hand_and_from_a_table(tmp_path: Path) -> None:
    shares = np.full((2, 2, 2), 0.5)
    write_predictions(Predictions.from_arrays(shares, layout="NKC"), tmp_path / "one.npz")
    (tmp_path / "about.csv").write_text("member,model,cost\n0,tiny,3\n1,huge,0.5\n")
    join = ("predictions", "join", tmp_path / "one.npz", "--out")
    given = ("--cost", "0=0.002", "--member-info", tmp_path / "about.csv")
    done = edo(*join, tmp_path / "out.npz", *given)
    assert done.returncode == 0, done.stderr
    found = read_predictions(tmp_path / "out.npz").member_info
    assert found == {"0": {"model": "tiny", "cost": 0.002}, "1": {"model": "huge", "cost": 0.5}}
    for wrong, fault in (("0=cheap", "--cost 'cheap' is no number"), ("z=1", "describes 'z'")):
        done = edo(*join, tmp_path / "no.npz", "--cost", wrong)
        assert done.returncode == 2
        assert fault in " ".join(done.stderr.split())
