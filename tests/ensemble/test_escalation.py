"""What is answered keeps the promise; everything else is handed to people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

import edokit
from commands import edo
from edokit import Annotations, EDOEnsemble, Predictions, Scale
from edokit._io.documents import read_json, write_json
from edokit.ensemble.escalation import (
    Escalation,
    _betting_p_values,
    _last_rejected,
    overruled_shares,
    parse_share,
)
from edokit.ensemble.held_out import HeldOut
from edokit.scales import NOMINAL
from tests.errors import raises_code

ORDINAL = Scale("ordinal", (1.0, 2.0, 3.0))
SETS = Scale("multi-label")


def simulated(
    rng: np.random.Generator, n_items: int, *, group_size: int = 1, raters: int = 5
) -> HeldOut:
    """Answers that are calibrated, and votes of so many raters; the items of a group agree."""
    n_groups = n_items // group_size
    yes = rng.beta(0.25, 0.7, n_groups).repeat(group_size)
    votes = rng.binomial(raters, yes[::group_size]).repeat(group_size) / raters
    groups = None
    if group_size > 1:
        groups = np.arange(n_groups).repeat(group_size)
    answers = np.stack([1 - yes, yes], axis=1)
    return HeldOut(answers, np.stack([1 - votes, votes], axis=1), groups)


def true_rate(escalation: Escalation, population: HeldOut) -> float:
    """The share of the answered items of a population that is overruled."""
    if escalation.threshold is None:
        return 0.0
    is_answered = population.answers.max(axis=1) > escalation.threshold
    losses = overruled_shares(population.answers, population.shares, NOMINAL, escalation.against)
    return float(losses[is_answered].mean()) if is_answered.any() else 0.0


@pytest.mark.parametrize("against", ["majority", "annotator"])
@pytest.mark.parametrize("group_size", [1, 4])
def test_the_promise_is_kept_in_95_percent_of_simulations(against: Any, group_size: int) -> None:
    rng = np.random.default_rng(group_size)
    population = simulated(rng, 100_000)
    limit = {"majority": 0.05, "annotator": 0.12}[against]
    escalations = []
    for _ in range(50):
        held_out = simulated(rng, 800, group_size=group_size)
        escalations.append(Escalation.fit(held_out, NOMINAL, limit, against))
    kept = [true_rate(escalation, population) <= limit for escalation in escalations]
    assert np.mean(kept) >= 0.95  # benchmarks/coverage.py counts more
    if group_size == 1:
        assert np.mean([escalation.answered for escalation in escalations]) > 0.3


def test_items_of_a_group_do_not_count_as_several() -> None:
    rng = np.random.default_rng(0)
    once = simulated(rng, 300)
    copies = HeldOut(
        once.answers.repeat(5, axis=0), once.shares.repeat(5, axis=0), np.arange(300).repeat(5)
    )
    alone = Escalation.fit(HeldOut(copies.answers, copies.shares), NOMINAL, 0.05)
    together = Escalation.fit(copies, NOMINAL, 0.05)
    assert together.answered <= alone.answered
    assert together.groups == 300


def test_few_items_promise_nothing() -> None:
    answers = np.tile([0.99, 0.01], (50, 1))
    escalation = Escalation.fit(HeldOut(answers, np.round(answers)), NOMINAL, 0.05)
    assert escalation.threshold is None
    assert "no threshold can promise" in str(escalation)
    pooled = (
        EDOEnsemble().fit(answers[:, None], [[0, 0, 0], [0, 1, 1]] * 25).describe(answers[:, None])
    )
    assert list(escalation.decide(pooled).decisions) == ["people"] * 50


def test_where_a_limit_promises_nothing_the_next_one_that_does_is_named() -> None:
    held_out = simulated(np.random.default_rng(0), 400)
    strict = Escalation.fit(held_out, NOMINAL, 0.001)
    assert strict.threshold is None
    assert strict.alternative is not None
    limit, answered = strict.alternative
    assert Escalation.fit(held_out, NOMINAL, limit).answered == answered > 0
    assert f"at {100 * limit:.0f} % it would answer {100 * answered:.0f} %" in str(strict)
    for smaller in (0.1, 0.2, 0.3):
        if smaller < limit:
            assert Escalation.fit(held_out, NOMINAL, smaller).threshold is None


def test_what_a_majority_overrules_depends_on_the_scale() -> None:
    answers = np.array([[0.5, 0.3, 0.2]])
    split = np.array([[0.4, 0.3, 0.3]])
    assert overruled_shares(answers, split, NOMINAL, "majority") == [1.0]
    assert overruled_shares(answers, split, ORDINAL, "majority") == [1.0]
    middle = np.array([[0.2, 0.6, 0.2]])
    around = np.array([[0.3, 0.4, 0.3]])
    assert overruled_shares(middle, around, NOMINAL, "majority") == [1.0]
    assert overruled_shares(middle, around, ORDINAL, "majority") == [0.0]
    np.testing.assert_allclose(overruled_shares(middle, around, ORDINAL, "annotator"), [0.6])
    chosen = np.array([[0.9, 0.2, 0.4]])
    assert overruled_shares(chosen, np.array([[0.6, 0.5, 0.1]]), SETS, "majority") == [0.0]
    assert overruled_shares(chosen, np.array([[0.6, 0.6, 0.1]]), SETS, "majority") == [1.0]
    ties = np.array([[0.5, 0.5]])
    assert overruled_shares(np.array([[0.9, 0.1]]), ties, NOMINAL, "majority") == [0.0]


def test_a_rejection_passes_its_level_on() -> None:
    assert _last_rejected([0.001] * 50) == 49
    assert _last_rejected([1.0] * 50) is None
    assert _last_rejected([1.0] * 4 + [0.009] * 6 + [1.0] * 40) == 9
    # The second start has 1 % alone, and 2 % once the first one has been rejected.
    assert _last_rejected([1.0] * 4 + [0.009] * 7 + [0.015] + [1.0] * 38) == 11
    assert _last_rejected([1.0] * 11 + [0.015] + [1.0] * 38) is None


def test_bets_reject_false_hypotheses_rarely() -> None:
    rng = np.random.default_rng(0)
    draws = (rng.random((500, 200)) < 0.05).astype(float)
    counts = np.array([200])
    p_values = [_betting_p_values(row - 0.05, counts, 0.95)[0] for row in draws]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05
    (p_value,) = _betting_p_values(np.full(150, -0.05), np.array([150]), 0.95)
    assert p_value < 0.01


@pytest.mark.parametrize("limit", ["0", "0%", "100%", "5", "many", "-1%", "nan"])
def test_a_limit_that_is_no_share_is_refused(limit: str) -> None:
    with raises_code("invalid-number", "0", "100"):
        parse_share(limit)


def test_one_annotator_of_sets_is_refused() -> None:
    shares = np.array([[0.5, 0.5]])
    with raises_code("inapplicable-option", "multi-label"):
        Escalation.fit(HeldOut(shares, shares), SETS, 0.05, "annotator")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ensemble, predictions and texts of 600 items."""
    folder = tmp_path_factory.mktemp("escalation")
    rng = np.random.default_rng(1)
    yes = rng.choice([0.03, 0.5, 0.97], 600)
    items = [f"post-{number}" for number in range(600)]
    votes = (rng.random((600, 5)) < yes[:, None]).astype(int)
    labels = Annotations.from_matrix(votes, items=items)
    P = np.stack([1 - yes, yes], axis=1)[:, None].repeat(2, axis=1)
    predictions = Predictions.from_arrays(P, items=items, classes=["0", "1"], layout="NKC")
    edokit.write_predictions(predictions, folder / "dev.npz")
    edokit.fit(predictions, labels, out=folder / "ensemble")
    lines = "".join(f"{item},the bus was late {item}\n" for item in items)
    (folder / "texts.csv").write_text("item,text\n" + lines)
    return folder


def test_decisions_are_a_column_and_tasks_for_people(fitted: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    given = ["predict", fitted / "ensemble", "--predictions", fitted / "dev.npz", "--out", out]
    done = edo(*given, "--texts", fitted / "texts.csv", "--escalate", "5%", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    table = pyarrow.csv.read_csv(
        out, convert_options=pyarrow.csv.ConvertOptions(column_types={"label": "string"})
    ).to_pandas()
    assert table.text[0] == f"the bus was late {table['item'][0]}"
    for_people = table.decision == "people"
    assert (table.decision[~for_people] == table.label[~for_people].astype(str)).all()
    tasks = read_json(tmp_path / "out-review.json")
    assert {task["data"]["item"] for task in tasks} == {*table.item[for_people]}
    assert all("bus" in task["data"]["text"] for task in tasks)
    assert result["people"] == len(tasks) == for_people.sum()
    escalation = result["escalation"]
    assert (escalation["limit"], escalation["against"]) == (0.05, "majority")
    assert escalation["answered"] == pytest.approx(1 - for_people.mean(), abs=0.02)
    said = edo(*given, "--texts", fitted / "texts.csv", "--escalate", "5%").stdout
    assert "answered" in said
    assert "at most 5 % of the answers would be overruled by a majority" in " ".join(said.split())


def test_a_limit_too_strict_hands_everything_over(fitted: Path, tmp_path: Path) -> None:
    given = ["predict", fitted / "ensemble", "--predictions", fitted / "dev.npz"]
    done = edo(
        *given, "--texts", fitted / "texts.csv", "--escalate", "0.1%", "--out", tmp_path / "out.csv"
    )
    assert done.returncode == 0, done.stderr
    assert "no threshold can promise" in " ".join(done.stdout.split())
    assert len(read_json(tmp_path / "out-review.json")) == 600


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--escalate", "0"], "--escalate 0 is not a share"),
        (["--escalate", "5%", "--against", "nobody"], "--against must be one of"),
        (["--escalate", "5%", "--as", "ann"], "--as asks for the view of some"),
        (["--against", "annotator"], "--escalate, which is not given"),
    ],
)
def test_bad_options_get_one_line(
    words: list[str], message: str, fitted: Path, tmp_path: Path
) -> None:
    given = ["predict", fitted / "ensemble", "--predictions", fitted / "dev.npz"]
    done = edo(*given, "--out", tmp_path / "out.csv", *words)
    assert done.returncode == 2
    assert message in done.stderr


def test_the_server_refuses_who_overrules_without_a_promise(fitted: Path) -> None:
    done = edo("serve", fitted / "ensemble", "--against", "annotator")
    assert done.returncode == 2
    assert "--escalate, which is not given" in done.stderr


def test_an_ensemble_of_an_earlier_version_says_what_it_lacks(fitted: Path, tmp_path: Path) -> None:
    ensemble = EDOEnsemble.load(fitted / "ensemble")
    kept = ensemble.fitted_.held_out
    assert kept is not None
    assert len(kept) == 600
    document = read_json(fitted / "ensemble" / "ensemble.json")
    del document["held_out"]
    write_json(document, tmp_path / "ensemble.json")
    with raises_code("missing-held-out"):
        EDOEnsemble.load(tmp_path).escalation("5%")
    document["held_out"] = {"answers": [[0.5]], "shares": [[1.0, 0.0]]}
    write_json(document, tmp_path / "ensemble.json")
    with raises_code("wrong-content", "held_out"):
        EDOEnsemble.load(tmp_path)


def test_threads_of_the_annotations_are_groups() -> None:
    rng = np.random.default_rng(0)
    yes = rng.random(60)
    votes = (rng.random((60, 3)) < yes[:, None]).astype(int)
    rows: dict[str, list[str]] = {"item": [], "annotator": [], "label": [], "group": []}
    for item, row in enumerate(votes):
        for annotator, label in enumerate(row):
            rows["item"].append(f"i{item}")
            rows["annotator"].append(f"a{annotator}")
            rows["label"].append(str(label))
            rows["group"].append(f"thread-{item // 3}")
    labels = Annotations.from_table(rows, columns={"group": "group"})
    P = np.stack([1 - yes, yes], axis=1)[:, None]
    predictions = Predictions.from_arrays(
        P, items=[f"i{item}" for item in range(60)], classes=["0", "1"], layout="NKC"
    )
    ensemble = EDOEnsemble().fit(predictions, labels)
    assert ensemble.escalation("20%").groups == 20
