"""`edokit.estimate`: shares that cover the truth, never wider than labels alone; bad input."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_cases import quick_run

import edokit
from commands import answer, assert_one_line, edo
from edokit import Annotations
from edokit.analysis.estimate.options import EstimateOptions
from edokit.analysis.estimate.statistics import (
    ShareEstimate,
    estimate_share,
    largest_gap,
    regression_estimate,
    shares_of_one,
    transported_share,
)
from edokit.metrics.sample_mean import sample_mean
from edokit.metrics.score_interval import score_interval
from tests.errors import raises_code

# --- Statistics -----------------------------------------------------------------------------------


def drawn_items(rng: Any, items: int, shape: float) -> tuple[Any, Any, Any]:
    """Shares of people's answers, three votes of each, and answers that follow them."""
    truth = rng.beta(shape, 3 * shape, items)
    votes = rng.binomial(3, truth) / 3
    answers = np.clip(0.6 * truth + 0.1 + rng.normal(0, 0.05, items), 0, 1)
    return truth, votes, answers


@pytest.mark.parametrize("labelled", [20, 80])
def test_the_interval_covers_the_share_of_all_texts(labelled: int) -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        truth, votes, answers = drawn_items(rng, 600, 0.8)
        chosen = rng.choice(600, labelled, replace=False)
        share = estimate_share(votes[chosen], answers[chosen], answers.mean(), None, 0.95)
        covered += share.low <= truth.mean() <= share.high
    assert covered >= 276  # 95 % of 300, three standard errors below


def test_the_interval_is_never_wider_than_that_of_the_sample_mean() -> None:
    rng = np.random.default_rng(1)
    for run in range(100):
        _, votes, answers = drawn_items(rng, 200, 0.4)
        if run % 2:
            answers = rng.permutation(answers)  # which say nothing about the labels
        chosen = rng.choice(200, 12, replace=False)
        share = estimate_share(votes[chosen], answers[chosen], answers.mean(), None, 0.95)
        alone = sample_mean(votes[chosen], None)
        low, high = score_interval(alone.mean, alone.variance, alone.size, level=0.95)
        assert share.width <= high - low
        assert share.label_width == pytest.approx(high - low)


def test_perfect_answers_give_the_share_of_all_texts() -> None:
    rng = np.random.default_rng(2)
    truth = rng.random(500)
    share = estimate_share(truth[:40], truth[:40], truth.mean(), None, 0.95)
    assert share.share == pytest.approx(truth.mean())
    assert share.width < 0.4 * share.label_width


def test_items_of_a_group_count_as_one() -> None:
    rng = np.random.default_rng(3)
    labels = np.repeat(rng.random(20), 5)
    answers = np.repeat(rng.random(20), 5)
    groups = np.repeat(np.arange(20), 5)
    assert sample_mean(labels, groups).size == 20
    apart = regression_estimate(labels, answers, 0.5, None)
    together = regression_estimate(labels, answers, 0.5, groups)
    assert apart is not None
    assert together is not None
    assert together.variance > 3 * apart.variance


def test_answers_that_are_all_equal_leave_the_labels() -> None:
    labels = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0])
    share = estimate_share(labels, np.full(6, 0.5), 0.5, None, 0.95)
    assert share.share == pytest.approx(labels.mean())
    assert share.width == share.label_width


def test_without_labels_other_texts_follow_their_answers() -> None:
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(200):
        _, votes, answers = drawn_items(rng, 300, 0.8)
        truth, _, targets = drawn_items(rng, 200, 1.2)
        share = transported_share(votes, answers, targets, None, 0.95)
        covered += share.low <= truth.mean() <= share.high
    assert covered >= 180


def test_shares_sum_to_one_and_stay_in_their_intervals() -> None:
    rng = np.random.default_rng(6)
    for _ in range(50):
        # The answers confuse the last two classes, which are rarer or more frequent elsewhere.
        fit_truth = rng.dirichlet([0.5, 1, 2], 500)
        text_truth = rng.dirichlet([2, 1, 0.5], 800)
        labels = np.stack([rng.multinomial(3, row) / 3 for row in fit_truth])
        confused = np.array([[1, 0, 0], [0, 0.6, 0.4], [0, 0.4, 0.6]])
        answers = fit_truth @ confused
        targets = text_truth @ confused
        estimates = [
            transported_share(labels[:, c], answers[:, c], targets[:, c], None, 0.95)
            for c in range(3)
        ]
        shares = shares_of_one(estimates)
        lowest_sum = sum(estimate.low for estimate in estimates)
        highest_sum = sum(estimate.high for estimate in estimates)
        assert shares.sum() == pytest.approx(np.clip(1, lowest_sum, highest_sum))
        for share, estimate in zip(shares, estimates, strict=True):
            assert estimate.low - 1e-9 <= share <= estimate.high + 1e-9


def test_the_least_certain_share_takes_up_what_is_missing() -> None:
    certain = ShareEstimate(0.6, 0.58, 0.62, 0.04)
    vague = ShareEstimate(0.05, 0.0, 0.7, 0.7)
    assert shares_of_one([certain, vague]) == pytest.approx([0.6, 0.4], abs=0.01)
    apart = [ShareEstimate(0.2, 0.1, 0.3, 0.2), ShareEstimate(0.2, 0.1, 0.3, 0.2)]
    assert shares_of_one(apart) == pytest.approx([0.3, 0.3])


def test_a_random_sample_of_a_few_texts_is_rarely_said_to_be_none() -> None:
    rng = np.random.default_rng(5)
    answers = rng.beta(0.4, 2.0, 3000)
    population = np.stack([answers, 1 - answers], axis=1)
    samples = [population[rng.choice(3000, 5, replace=False)] for _ in range(500)]
    noticed = [largest_gap(sample, None, population) is not None for sample in samples]
    assert sum(noticed) <= 15  # 3 %; by normal quantiles it would be 10 %
    picked = population[np.argsort(-answers)[:20]]
    gap = largest_gap(picked, None, population)
    assert gap is not None
    assert abs(gap.sample - gap.population) > 0.5


# --- The verb -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(camps: Annotations, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """all.csv: the texts of test with a country; some.csv: the labels of fifty of them."""
    folder = tmp_path_factory.mktemp("texts")
    test = camps.split("test")
    assert test.texts is not None
    rng = np.random.default_rng(0)
    countries = rng.choice(["north", "south"], len(test.items)).tolist()
    countries[0] = "island"
    with (folder / "all.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["item", "text", "country"])
        writer.writerows(zip(test.items, test.texts, countries, strict=True))
    chosen = rng.choice(np.arange(1, len(test.items)), 50, replace=False)
    edokit.write_annotations(test.take(chosen), folder / "some.csv")
    return folder


def test_labels_and_answers_give_shares_that_sum_to_one(
    small_run: Path, files: Path, camps: Annotations
) -> None:
    result = edokit.estimate(small_run, files / "all.csv", labels=files / "some.csv")
    assert sum(row["share"] for row in result.shares.values()) == pytest.approx(1)
    truth = camps.split("test").soft_labels.mean(axis=0)
    for share, row in zip(truth, result.shares.values(), strict=True):
        assert row["low"] is not None
        assert row["high"] is not None
        assert row["low"] <= share <= row["high"]
    assert result.labels_worth is not None
    assert result.labels_worth >= 1
    assert "random sample" in result.notes[0]


def test_the_command_shows_what_python_finds(small_run: Path, files: Path) -> None:
    words = ("estimate", small_run, "--texts", files / "all.csv", "--labels", files / "some.csv")
    output = answer(*words, "--by", "country")
    result = edokit.estimate(small_run, files / "all.csv", labels=files / "some.csv", by="country")
    assert output["shares"] == result.to_dict()["shares"]
    assert output["labels_worth"] == result.labels_worth
    assert [part["value"] for part in output["slices"]] == ["island", "north", "south"]
    assert output["slices"][0]["basis"] == "fit"  # no labels of its own
    assert any("island" in note for note in output["notes"])
    shown = edo(*words).stdout
    assert "People would label" in shown
    assert "random sample" in shown


def test_a_panel_counts_the_labels_of_its_people(small_run: Path, files: Path) -> None:
    source = files / "some.csv"
    shares = {}
    for name in ("bystanders", "concerned"):
        result = edokit.estimate(small_run, files / "all.csv", labels=source, panel=f"group={name}")
        shares[name] = result.shares["offensive"]["share"]
        assert result.panel is not None
    assert shares["concerned"] > shares["bystanders"] + 0.05


def test_without_labels_the_fit_says_how_far_answers_are_off(small_run: Path, files: Path) -> None:
    of_run = edokit.estimate(small_run, files / "all.csv")
    assert of_run.total.basis == "fit"
    assert of_run.shares["offensive"]["low"] is not None
    assert "assumes" in of_run.notes[0]
    assert of_run.labels_worth is None
    texts = ["What a lovely day.", "Go away, you fool."]
    bundle = edokit.Bundle.load(small_run)
    bundle.folder = None  # as if it were elsewhere
    assert edokit.estimate(bundle, texts).total.basis == "fit"
    panel = {"group": "concerned"}
    of_panel = edokit.estimate(bundle, texts, panel=panel)  # whose labels it does not have
    assert of_panel.shares["offensive"]["low"] is None
    assert of_panel.shares["offensive"]["share"] == pytest.approx(
        bundle.predict_proba(texts, panel=panel)[:, 1].mean()
    )
    assert edokit.estimate(small_run, texts, panel=panel).total.basis == "fit"


@pytest.mark.parametrize("at_hand", [True, False], ids=["run", "bundle"])
def test_answers_to_texts_of_the_fit_are_held_out(
    at_hand: bool, small_run: Path, camps: Annotations, tmp_path: Path
) -> None:
    folder = small_run
    if not at_hand:
        folder = Path(shutil.copytree(small_run / "bundle", tmp_path / "bundle"))
    learned = camps.split("train", "dev")
    edokit.write_annotations(learned, tmp_path / "learned.csv")
    estimate = edokit.estimate(folder, tmp_path / "learned.csv", labels=learned)
    noted = [note for note in estimate.notes if "260 of 260 labelled texts were in the fit" in note]
    assert len(noted) == at_hand
    assert any("did not learn from" in note for note in estimate.notes) != at_hand
    if at_hand:
        ensemble = edokit.EDOEnsemble.load(small_run / "ensemble")
        held_out = ensemble.fitted_.held_out
        assert held_out is not None
        expected = estimate_share(
            held_out.shares[:, 1],
            held_out.answers[:, 1],
            held_out.answers[:, 1].mean(),
            held_out.groups,
            0.95,
        )
        assert estimate.shares["offensive"]["share"] == pytest.approx(expected.share, abs=1e-4)


def test_texts_that_were_picked_for_their_answers_are_noticed(
    small_run: Path, camps: Annotations
) -> None:
    bundle = edokit.Bundle.load(small_run)
    test = camps.split("test")
    assert test.texts is not None
    texts = edokit.members.texts.Texts.from_source(test)
    worst = np.argsort(-bundle.predict_proba(list(test.texts))[:, 1])[:50]
    result = edokit.estimate(bundle, texts, labels=test.take(np.sort(worst)))
    assert any("do not look like a random sample" in note for note in result.notes)


@pytest.mark.parametrize(
    "kind", ["seven-points", pytest.param("three-labels", marks=pytest.mark.slow)]
)
def test_other_scales(kind: str, tmp_path: Path) -> None:
    people = edokit.simulate(kind, items=(120, 40, 60), random_state=0).annotations
    quick_run(people, tmp_path / "run")
    test = people.split("test")
    texts = edokit.members.texts.Texts.from_source(test)
    result = edokit.estimate(tmp_path / "run", texts, labels=test.take(np.arange(30)))
    assert set(result.shares) == set(people.classes)
    if kind == "seven-points":
        expected = result.total.expected
        assert expected is not None
        assert expected["low"] is not None
        assert expected["high"] is not None
        assert 1 <= expected["low"] <= expected["expected"] <= expected["high"] <= 7
        assert "on average" in result.headline[0]
    else:
        assert result.total.expected is None
        assert sum(row["share"] for row in result.shares.values()) < 3


def test_bad_input_gets_one_clear_line(small_run: Path, files: Path, camps: Annotations) -> None:
    words = ["estimate", small_run, "--texts", files / "all.csv", "--labels"]
    edokit.write_annotations(camps.split("dev"), files / "dev.csv")
    assert_one_line(edo(*words, files / "dev.csv"), "dev.csv", "not among the texts")
    few = camps.split("test").take([0, 1, 2])
    edokit.write_annotations(few, files / "few.csv")
    assert_one_line(edo(*words, files / "few.csv"), "3 labelled texts", "too few")
    some = [*words, files / "some.csv"]
    assert_one_line(edo(*some, "--by", "land"), "land", "country")
    assert_one_line(edo(*some, "--panel", "group=nobody"), "nobody", "bystanders")
    assert_one_line(edo(*words[:-2], files / "nothing.csv"), "nothing.csv")
    with raises_code("invalid-number", "level"):
        EstimateOptions(level=2)
