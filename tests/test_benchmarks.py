"""Benchmarks that few runs would show to be broken still run, on small simulated data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edokit import simulate

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def _import_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_people_never_seen_are_answered_by_their_attributes() -> None:
    from unseen_people import KINDS, leave_people_out

    annotations = simulate("crowd", items=(80, 5, 5), random_state=0).annotations.split("train")
    rng = np.random.default_rng(0)
    anonymous = rng.dirichlet(np.ones(len(annotations.classes)), len(annotations.items))
    left_out = leave_people_out(annotations, anonymous)
    assert left_out.used == {"group"}
    losses = [left_out.by_person(kind) for kind in KINDS]
    assert not np.array_equal(losses[0], losses[1])


def test_a_member_that_learned_annotators_answers_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import perspectives

    monkeypatch.setattr(perspectives, "ITEMS", 60)
    monkeypatch.setattr(perspectives, "HELD_OUT", 5)
    divergences = perspectives.measured("two-camps", 6, seed=0)
    assert set(divergences) == set(perspectives.KINDS)
    assert divergences["known"] != divergences["anonymous"]
