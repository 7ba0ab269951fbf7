"""The summary says what the numbers say."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_cases import make_run, people_and_pool

from edokit import EDOEnsemble
from edokit.metrics import PairedTest
from edokit.report import collect
from edokit.report.collected import Collected
from edokit.report.words import gained, lead, learned, summarize


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Collected:
    return collect(make_run(tmp_path_factory.mktemp("words"), items=300))


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-0.02, -0.01, "a gain that chance does not explain"),
        (-0.02, 0.01, "no more than chance explains"),
        (0.01, 0.02, "a loss that chance does not explain"),
    ],
)
def test_a_gain_is_called_by_its_interval(
    found: Collected, low: float, high: float, words: str
) -> None:
    assert found.judged is not None
    test = PairedTest((low + high) / 2, low, high, 0.5, 300)
    judged = replace(found.judged, gains={**found.judged.gains, "ce": test})
    assert words in gained(judged)[0]


def test_the_lead_agrees_with_the_interval(found: Collected) -> None:
    judged = found.judged
    assert judged is not None
    gain = judged.gains["ce"]
    sentence = lead(found.ensemble, judged)
    assert ("closer to people’s answers than the plain mean" in sentence) == (gain.high < 0)
    worse = PairedTest(0.02, 0.01, 0.03, 0.01, 300)
    assert "the plain mean is closer" in lead(
        found.ensemble, replace(judged, gains={**judged.gains, "ce": worse})
    )


def test_the_gain_is_edo_less_uniform(found: Collected) -> None:
    judged = found.judged
    assert judged is not None
    rows = {row["name"]: row for row in judged.methods}
    assert judged.gains["ce"].difference == pytest.approx(rows["edo"]["ce"] - rows["uniform"]["ce"])


def test_the_heaviest_members_are_named_with_their_share(found: Collected) -> None:
    ensemble = found.ensemble
    assert ensemble is not None
    heaviest = ensemble.members_[int(np.argmax(ensemble.weights_))]
    sentence = learned(ensemble, found.judged)[1]
    assert sentence.startswith(f"“{heaviest}” ({ensemble.weights_.max():.3f})")


def test_even_weights_are_called_even(found: Collected) -> None:
    assert found.ensemble is not None
    even = copy(found.ensemble)
    even.weights_ = np.full(3, 1 / 3)
    even.size_ = 3
    assert learned(even, None)[1] == "They share it almost evenly (0.333 to 0.333)."


def test_members_without_weight_are_counted(found: Collected) -> None:
    ensemble = found.ensemble
    assert ensemble is not None
    without = len(ensemble.members_) - ensemble.size_
    assert without >= 1
    text = " ".join(learned(ensemble, None))
    assert f"{without} member{'s have' if without > 1 else ' has'} no weight" in text
    assert "would raise the loss" in text


def test_every_summary_ends_with_the_people(found: Collected) -> None:
    assert "does not replace them" in summarize(found).careful[-1]
    assert "does not replace them" in summarize(Collected("nothing")).careful[-1]


def test_cautions_follow_the_data(tmp_path: Path) -> None:
    few = summarize(collect(make_run(tmp_path / "few", items=20)))
    assert any("With 20 items the intervals are wide" in line for line in few.careful)
    people, pool = people_and_pool(60, members=["a", "b"])
    same = pool.probabilities.copy()
    same[:, 1] = same[:, 0]
    pool = replace(pool, probabilities=same)
    EDOEnsemble(ties="random").fit(pool, people).save(tmp_path / "alike")
    alike = summarize(collect(tmp_path / "alike", predictions=pool, annotations=people))
    assert any("answer nearly alike" in line for line in alike.careful)
