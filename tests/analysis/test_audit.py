"""`edokit.audit`: the number of judges, what members add, strata of agreement, replacement."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import false_discovery_control, t, ttest_1samp

import edokit
from commands import answer, edo
from edokit import Annotations, Predictions, write_annotations, write_predictions
from edokit.analysis.audit.options import AuditOptions
from edokit.analysis.audit.statistics import equal_correlation
from edokit.analysis.audit.text import can_tell
from edokit.analysis.scores.slices import agreement_strata, find_slices
from edokit.metrics import Interval
from tests.errors import raises_code


def people_of(q: np.ndarray, annotators: int, rng: np.random.Generator) -> Annotations:
    """Annotators who answer 1 with these probabilities [N]."""
    votes = (rng.random((len(q), annotators)) < q[:, None]).astype(int)
    return Annotations.from_matrix(votes, classes=[0, 1])


def jury_of(p: np.ndarray, people: Annotations, **options: object) -> Predictions:
    """Members with these probabilities of class 1 [N, K]."""
    P = np.stack([1 - p, p], axis=2)
    about = {"items": people.items, "classes": people.classes, "layout": "NKC", **options}
    return Predictions.from_arrays(P, **about)  # type: ignore[arg-type]


def correlated(
    seed: int, correlation: float, items: int = 1000, annotators: int = 5
) -> tuple[Predictions, Annotations]:
    """Eight members whose errors correlate by so much."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(0.3, 0.7, items)
    noise = np.sqrt(correlation) * rng.normal(0, 0.1, (items, 1))
    own = np.sqrt(1 - correlation) * rng.normal(0, 0.1, (items, 8))
    people = people_of(q, annotators, rng)
    return jury_of(np.clip(q[:, None] + noise + own, 0, 1), people), people


# --- Judges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("correlation", [0.2, 0.5, 0.9])
def test_the_known_number_of_judges_is_recovered(correlation: float) -> None:
    audit_result = edokit.audit(*correlated(0, correlation, items=8000), samples=50)
    assert audit_result.judges is not None
    assert audit_result.judges.estimate == pytest.approx(8 / (1 + 7 * correlation), rel=0.2)
    assert audit_result.correlation == pytest.approx(correlation, abs=0.06)


def test_the_interval_holds_the_truth_on_few_items() -> None:
    inside = 0
    for seed in range(60):
        judges = edokit.audit(*correlated(seed, 0.5, items=20), samples=100).judges
        assert judges is not None
        assert judges.estimate is not None
        assert 1 <= judges.low <= judges.estimate <= judges.high <= 8 + 1e-9
        inside += judges.low <= 8 / (1 + 7 * 0.5) <= judges.high
    assert inside >= 54


def test_the_interval_holds_the_truth_nearly_always() -> None:
    inside = 0
    for seed in range(40):
        audit_result = edokit.audit(*correlated(seed, 0.5, 200), samples=100)
        assert audit_result.judges is not None
        low = audit_result.judges.low or 0.0
        high = audit_result.judges.high or np.inf
        inside += low <= 8 / 4.5 <= high
    assert inside >= 34  # 38 are expected


def noisy_near_copies(seed: int) -> edokit.Audit:
    """Seven near copies with small errors, beside three annotators an item who often differ."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(0.3, 0.7, 300)
    shared = rng.normal(0, 0.06, (300, 1))
    own = rng.normal(0, 0.02, (300, 7))
    people = people_of(q, 3, rng)
    return edokit.audit(jury_of(q[:, None] + shared + own, people), people)


def test_members_never_count_as_more_judges_than_they_are_and_noise_is_said() -> None:
    """The error of the mean is hidden by the noise of the labels in half of the cases."""
    inside = 0
    estimates = []
    undecided = 0
    for seed in range(40):
        found = noisy_near_copies(seed)
        assert found.judges is not None
        low = found.judges.low
        estimate = found.judges.estimate
        high = found.judges.high
        assert low is not None
        assert estimate is not None
        assert high is not None
        assert 1 <= low <= estimate <= high <= 7
        inside += low <= 7 / (1 + 6 * 0.9) <= high
        estimates.append(estimate)
        is_undecided = low < 2.5 and high > 5.5
        assert is_undecided == ("can't tell" in found.headline[0])
        undecided += is_undecided
        assert not any("not correlated" in line for line in found.headline)
    assert inside >= 36
    assert undecided > 4
    assert np.median(estimates) == pytest.approx(7 / (1 + 6 * 0.9), abs=0.25)


def test_correlations_have_an_interval_and_near_copies_are_near_copies() -> None:
    for seed in range(5):
        found = noisy_near_copies(seed)
        for row in found.members:
            low, high = row["correlation_interval"]  # low: None where noise leaves no error
            assert -1 <= (low or -1) <= row["correlation"] <= high <= 1
            assert high > 0.85
    assert "can't tell" not in edokit.audit(*correlated(0, 0.9)).headline[0]


def test_copies_are_one_judge() -> None:
    jury, people = correlated(1, 0.5)
    copies = jury_of(np.repeat(jury.probabilities[:, :1, 1], 3, axis=1), people)
    audit_result = edokit.audit(copies, people, samples=50)
    assert audit_result.judges is not None
    assert audit_result.judges.estimate == pytest.approx(1)
    assert audit_result.correlations["0"]["1"] == pytest.approx(1)


def test_a_member_with_a_view_of_its_own_is_missed_and_a_useless_one_is_not() -> None:
    rng = np.random.default_rng(2)
    q = rng.uniform(0.1, 0.9, 600)
    people = people_of(q, 5, rng)
    p = np.column_stack([q, np.clip(q + rng.normal(0, 0.05, 600), 0.05, 0.95), 0 * q + 0.5])
    names = ["true", "near", "coin"]
    audit_result = edokit.audit(jury_of(p, people, members=names), people, samples=50)
    assert [row["member"] for row in audit_result.members] == names  # lowest loss first
    verdicts = {row["member"]: row["uniform"]["verdict"] for row in audit_result.members}
    assert verdicts["true"] == "worse"
    assert verdicts["coin"] == "better"


# --- Strata ---------------------------------------------------------------------------------------


def test_a_person_agrees_with_another_in_a_third_of_divided_votes() -> None:
    votes = [[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0]] * 5
    people = Annotations.from_matrix(votes)
    jury = jury_of(np.tile([[0.2, 0.1]], (20, 1)), people)
    rows = {row["stratum"]: row for row in edokit.audit(jury, people).strata}
    assert list(rows) == ["3:0", "2:1", "all"]
    assert rows["3:0"]["human"] == 1
    assert rows["2:1"]["human"] == pytest.approx(1 / 3)
    assert rows["2:1"]["best"] == pytest.approx(2 / 3)
    assert rows["2:1"]["agreement"] == pytest.approx(1 / 2)  # always 0: right in 2/3 and 1/3
    assert rows["all"]["items"] == 20


def test_equal_agreement_of_a_jury_and_a_person_is_no_certain_zero() -> None:
    """Where both always agree, they may differ either way on items that were not seen."""
    votes = np.repeat([[0, 0], [1, 1]], 20, axis=0)
    people = Annotations.from_matrix(votes, classes=[0, 1])
    p = np.repeat([[0.1, 0.2], [0.9, 0.8]], 20, axis=0)
    rows = {row["stratum"]: row for row in edokit.audit(jury_of(p, people), people).strata}
    row = rows["all"]
    assert row["above_human"] == 0
    assert row["interval"] is not None
    low, high = row["interval"]
    assert -0.2 < low < 0 < high < 0.2


def test_evaluate_by_agreement_has_the_same_strata() -> None:
    people = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, None]] * 4)
    strata = agreement_strata(people)
    assert list(strata) == ["2:0", "3:0", "2:1"]
    p = {"item": list(people.items), "p_0": [0.5] * 12, "p_1": [0.5] * 12}
    evaluation = edokit.evaluate(p, people, by="agreement", samples=0, order="annotations")
    assert [part.value for part in evaluation.slices] == list(strata)
    assert {part.value: part.items for part in evaluation.slices} == {
        name: int(mask.sum()) for name, mask in strata.items() if name
    }


def test_a_column_called_agreement_is_that_column() -> None:
    rows = {"item": [1, 2], "annotator": ["x", "x"], "label": [0, 1], "agreement": ["low", "high"]}
    assert set(find_slices(Annotations.from_table(rows), "agreement")["agreement"]) == {
        "low",
        "high",
    }


def test_many_divisions_are_put_together_by_the_largest_share() -> None:
    rng = np.random.default_rng(0)
    votes = rng.integers(4, size=(300, 9))
    names = list(agreement_strata(Annotations.from_matrix(votes)))
    assert set(names) <= {"all agree", "≥ 75%", "> 50%", "≤ 50%"}


# --- Replacement ----------------------------------------------------------------------------------


def literal_test(
    labels: list[dict[int, object]], answers: list[object], score: object, epsilon: float
) -> tuple[list[float], list[float]]:
    """Advantages and corrected p-values, as the paper defines them, in plain loops."""
    advantages = []
    p_values = []
    for person, own in enumerate(labels):
        wins = []
        gaps = []
        for item, label in own.items():
            others = [x[item] for k, x in enumerate(labels) if k != person and item in x]
            if others:
                model = score(answers[item], others)  # type: ignore[operator]
                human = score(label, others)
                wins.append(model >= human - 1e-12)
                gaps.append(int(human >= model - 1e-12) - int(model >= human - 1e-12))
        advantages.append(float(np.mean(wins)))
        p_values.append(float(ttest_1samp(gaps, epsilon, alternative="less").pvalue))
    return advantages, list(false_discovery_control(p_values, method="by"))


def accuracy(answer: object, others: list[object]) -> float:
    return float(np.mean([answer == other for other in others]))


def minus_rmse(answer: float, others: list[float]) -> float:
    return -float(np.sqrt(np.mean([(answer - other) ** 2 for other in others])))


def similarity(answer: str, others: list[str]) -> float:
    """The share of two labels, a and b, on which sets agree."""
    sets = [[("a" in x) == ("a" in answer), ("b" in x) == ("b" in answer)] for x in others]
    return float(np.mean(sets))


@pytest.mark.parametrize(
    ("values", "score", "scale"),
    [
        (["x", "y", "z"], accuracy, None),
        ([1, 2, 4], minus_rmse, "ordinal:1,2,4"),
        (["[]", '["a"]', '["b"]', '["a","b"]'], similarity, "multi-label:a,b"),
    ],
)
def test_the_alternative_annotator_test_is_the_published_one(
    values: list[object], score: object, scale: str | None
) -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(len(values), size=90)
    draw = np.where(rng.random((5, 90)) < 0.6, truth, rng.integers(len(values), size=(5, 90)))
    people = [
        {i: values[draw[k, i]] for i in range(90) if rng.random() < 0.7 + 0.1 * k} for k in range(4)
    ]
    rows = [(i, f"p{k}", label) for k, own in enumerate(people) for i, label in own.items()]
    items, annotators, labels = zip(*rows, strict=True)
    table = {"item": items, "annotator": annotators, "label": labels}
    annotations = Annotations.from_table(table, scale=scale)
    answers = [values[code] for code in draw[4]]
    ids = list(map(int, annotations.items))
    names = annotations.classes
    if scale == "multi-label:a,b":
        p = np.array([[float(name in str(answers[i])) for name in names] for i in ids])
    else:
        p = np.array([[float(name == str(answers[i])) for name in names] for i in ids])
    jury = Predictions.from_arrays(
        p[:, None], items=annotations.items, members=["model"], classes=names, layout="NKC",
        scale=annotations.scale,
    )  # fmt: skip
    audit_result = edokit.audit(jury, annotations, replace=True, epsilon=0.1, min_items=20)
    (row,) = (row for row in audit_result.replacement if row["candidate"] == "model")
    by_name = {person["annotator"]: person for person in row["annotators"]}
    advantages, p_values = literal_test(people, answers, score, 0.1)
    for k in range(4):
        assert by_name[f"p{k}"]["advantage"] == pytest.approx(advantages[k])
        assert by_name[f"p{k}"]["p"] == pytest.approx(p_values[k])
    assert row["winning_rate"] == np.mean(np.array(p_values) <= 0.05)


def winning_rates(candidate_noise: float, epsilon: float) -> list[float]:
    """Winning rates of a candidate beside six people who answer at random in 30 % of the cases."""
    rates = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        truth = rng.integers(3, size=(80, 1))
        noise = np.array([0.3] * 6 + [candidate_noise])
        answers = np.where(rng.random((80, 7)) < noise, rng.integers(3, size=(80, 7)), truth)
        people = Annotations.from_matrix(answers[:, :6], classes=[0, 1, 2])
        jury = Predictions.from_arrays(
            np.eye(3)[answers[:, 6:]], items=people.items, classes=people.classes, layout="NKC"
        )
        audit_result = edokit.audit(jury, people, replace=True, epsilon=epsilon, samples=50)
        rates.append(
            next(r for r in audit_result.replacement if r["candidate"] == "0")["winning_rate"]
        )
    return rates


def test_a_candidate_no_better_than_people_rarely_wins() -> None:
    assert np.mean(winning_rates(0.3, epsilon=0.0)) < 0.05


def test_a_candidate_better_than_people_passes() -> None:
    assert np.mean(np.array(winning_rates(0.05, epsilon=0.1)) >= 0.5) > 0.9


def test_a_constant_that_passes_is_said() -> None:
    votes = np.zeros((60, 4), dtype=int)
    votes[::20, 0] = 1
    people = Annotations.from_matrix(votes)
    audit_result = edokit.audit(jury_of(np.full((60, 2), 0.1), people), people, replace=True)
    assert any("constant" in line for line in audit_result.headline)


# --- Bad input ------------------------------------------------------------------------------------


def test_everybody_may_agree() -> None:
    people = Annotations.from_matrix([[0, 0, 0], [1, 1, 1]] * 20)
    p = np.tile([[0.3, 0.1], [0.6, 0.8]], (20, 1))
    audit_result = edokit.audit(jury_of(p, people), people, replace=True, samples=50)
    assert [row["stratum"] for row in audit_result.strata] == ["3:0", "all"]
    assert audit_result.judges is not None


@pytest.mark.parametrize("votes", [[[0], [1]], [[0, None], [None, 1]]], ids=["one", "no overlap"])
def test_one_annotator_an_item_is_refused(votes: list[list[int | None]]) -> None:
    people = Annotations.from_matrix(votes)
    with raises_code("too-few-labels"):
        edokit.audit(jury_of(np.full((2, 2), 0.5), people), people)


def test_a_jury_of_one_is_one_judge_and_may_still_stand_in() -> None:
    people = Annotations.from_matrix([[0, 0, 1], [1, 1, 1]] * 20)
    jury = jury_of(np.tile([[0.2], [0.9]], (20, 1)), people)
    with raises_code("too-few-members"):
        edokit.audit(jury, people)
    audit_result = edokit.audit(jury, people, replace=True)
    assert audit_result.judges is None
    # Its uniform mean is the member itself.
    assert {row["candidate"] for row in audit_result.replacement} == {"0", "constant"}
    assert audit_result.headline[0].startswith("0 can")


def test_a_jury_without_error_is_not_counted_and_its_copies_are_free() -> None:
    people = Annotations.from_matrix([[0, 0, 1], [1, 1, 0]] * 20)
    jury = jury_of(np.tile([[1 / 3] * 3, [2 / 3] * 3], (20, 1)), people)
    audit_result = edokit.audit(jury, people, samples=50)
    assert audit_result.headline[0].endswith("can't be estimated from these items.")
    assert {row["uniform"]["verdict"] for row in audit_result.members} == {"free"}


def test_too_few_shared_items_are_counted() -> None:
    people = Annotations.from_matrix([[0, 1], [1, 1]] * 5)
    jury = jury_of(np.full((10, 1), 0.5), people)
    with raises_code("too-few-labels", "30", "'0'", "10"):
        edokit.audit(jury, people, replace=True)


@pytest.mark.parametrize("setting", [{"epsilon": 2}, {"min_items": 1}, {"samples": 3}])
def test_settings_out_of_range_are_refused(setting: dict[str, float]) -> None:
    with raises_code("invalid-number", next(iter(setting))):
        AuditOptions(**setting)  # type: ignore[arg-type]


# --- Command --------------------------------------------------------------------------------------


def test_the_command_shows_what_python_finds(tmp_path: Path) -> None:
    jury, people = correlated(4, 0.5, items=60)
    write_predictions(jury, tmp_path / "jury.npz")
    write_annotations(people, tmp_path / "people.csv")
    words = ["audit", "--predictions", f"{tmp_path}/jury.npz", "--annotations"]
    words += [f"{tmp_path}/people.csv", "--replace", "--bootstrap", "50"]
    done = edo(*words)
    assert done.returncode == 0, done.stderr
    assert "independent judges" in done.stdout
    assert "replace an annotator" in done.stdout
    audit_result = edokit.audit(jury, people, replace=True, samples=50)
    assert any(
        line.startswith("The plain average of the members") for line in audit_result.headline
    )
    content = answer(*words)
    assert content == json.loads(json.dumps(audit_result.to_dict()))
    assert {"judges", "correlations", "members", "strata", "replacement", "headline"} <= set(
        content
    )


# --- Claims about intervals and boundaries --------------------------------------------------------


def test_the_advantage_of_a_candidate_that_always_wins_is_not_certain() -> None:
    """All of 50 items: a truth of 0.99 is in the interval, which does not collapse to [1, 1]."""
    rng = np.random.default_rng(0)
    people = people_of(rng.choice([0.02, 0.98], 50), 4, rng)
    jury = jury_of(people.soft_labels[:, [1]].round(), people, members=["oracle"])
    audit_result = edokit.audit(jury, people, replace=True)
    (row,) = [row for row in audit_result.replacement if row["candidate"] == "oracle"]
    low, high = row["interval"]
    assert row["advantage"] > 0.98
    assert low < 0.97
    assert high == pytest.approx(1.0)


def test_annotators_who_share_items_count_once_in_the_interval_of_the_advantage() -> None:
    """Copies of the annotators add labels, and no items: the interval stays as wide."""
    rng = np.random.default_rng(1)
    q = rng.uniform(0.2, 0.8, 120)
    votes = (rng.random((120, 3)) < q[:, None]).astype(int)
    p = np.clip(q + rng.normal(0, 0.3, 120), 0, 1)[:, None]
    widths = []
    for matrix in (votes, np.tile(votes, (1, 4))):
        people = Annotations.from_matrix(matrix, classes=[0, 1])
        audit_result = edokit.audit(jury_of(p, people, members=["model"]), people, replace=True)
        low, high = next(r for r in audit_result.replacement if r["candidate"] == "model")[
            "interval"
        ]
        widths.append(high - low)
    assert widths[1] > 0.8 * widths[0]


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_the_interval_of_a_dropped_member_is_that_of_a_mean_over_items(level: float) -> None:
    """Student's t where the values are hardly skewed, and longer at one end where they are."""
    people = Annotations.from_matrix([[0, 0], [0, 1], [1, 1], [1, 0], [1, 1]] * 8, classes=[0, 1])
    p = np.array([[0.2, 0.4], [0.5, 0.3], [0.9, 0.6], [0.4, 0.4], [0.7, 0.9]] * 8)
    audit_result = edokit.audit(jury_of(p, people, members=["a", "b"]), people, level=level)
    yes = people.soft_labels[:, 1]

    def losses(answer: np.ndarray) -> np.ndarray:
        return np.asarray(-yes * np.log(answer) - (1 - yes) * np.log(1 - answer))

    gaps = losses(p[:, 1]) - losses(p.mean(axis=1))
    margin = t.ppf((1 + level) / 2, len(gaps) - 1) * gaps.std(ddof=1) / np.sqrt(len(gaps))
    (row,) = [row for row in audit_result.members if row["member"] == "a"]
    assert row["uniform"]["difference"] == pytest.approx(gaps.mean())
    low, high = row["uniform"]["interval"]
    shorter, longer = sorted([gaps.mean() - low, high - gaps.mean()])
    assert shorter == pytest.approx(margin)
    assert margin <= longer + 1e-12 < 1.2 * margin


def test_items_of_a_group_count_once_in_an_audit() -> None:
    """Five copies of each item add no information, and intervals and tests stay as long."""
    rng = np.random.default_rng(3)
    q = rng.uniform(0.2, 0.8, 60)
    votes = (rng.random((60, 4)) < q[:, None]).astype(int)
    p = np.clip(q[:, None] + rng.normal(0, 0.2, (60, 3)), 0.01, 0.99)
    once = Annotations.from_matrix(votes, classes=[0, 1])
    copies = Annotations.from_matrix(np.repeat(votes, 5, axis=0), classes=[0, 1])
    grouped = replace(copies, item_groups=np.repeat(once.items, 5))
    audits = [
        edokit.audit(jury_of(p, once), once, replace=True),
        edokit.audit(jury_of(np.repeat(p, 5, axis=0), grouped), grouped, replace=True),
    ]
    shown = []
    for found in audits:
        assert found.judges is not None
        uniform = next(row for row in found.replacement if row["candidate"] == "uniform")
        overall = next(row for row in found.strata if row["stratum"] == "all")
        assert overall["interval"] is not None
        shown.append(
            [
                *(found.judges.low, found.judges.high),
                *found.members[0]["uniform"]["interval"],
                *overall["interval"],
                *uniform["interval"],
                *(person["p"] for person in uniform["annotators"]),
            ]
        )
    np.testing.assert_allclose(shown[1], shown[0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("low", "high", "tells"),
    [(1.0, 5.0, False), (2.0, 5.0, True), (1.99, 4.01, False), (1.0, 4.0, True)],
)
def test_an_interval_from_the_first_to_the_last_quarter_cannot_tell(
    low: float, high: float, tells: bool
) -> None:
    """Of five members: from below 2 to above 4 is nearly everything."""
    assert can_tell(Interval(3.0, low, high), 5) is tells


def test_the_mean_correlation_of_the_headline_is_that_of_the_members() -> None:
    audit_result = edokit.audit(*correlated(3, 0.5, items=2000), samples=50)
    rows = [row["correlation"] for row in audit_result.members]
    assert audit_result.correlation == pytest.approx(np.mean(rows))
    assert f"{audit_result.correlation:.2f}" in audit_result.headline[0]


def test_a_jury_that_agrees_more_than_a_person_and_cannot_replace_one_is_explained() -> None:
    rng = np.random.default_rng(2)
    q = rng.choice([0.1, 0.4, 0.9], 40)
    people = people_of(q, 5, rng)
    p = np.clip(q[:, None] + rng.normal(0, 0.1, (40, 3)), 0.01, 0.99)
    audit_result = edokit.audit(jury_of(p, people), people, replace=True, epsilon=0.0)
    average = next(row for row in audit_result.replacement if row["candidate"] == "uniform")
    overall = next(row for row in audit_result.strata if row["stratum"] == "all")
    assert not average["passes"]
    assert overall["interval"] is not None
    assert overall["interval"][0] > 0
    assert any("one by one" in line for line in audit_result.headline)


def test_judges_stand_beside_annotators_in_a_confusion_table_and_kappa() -> None:
    from sklearn.metrics import cohen_kappa_score, confusion_matrix

    rng = np.random.default_rng(3)
    votes = rng.integers(2, size=(40, 3))
    p = rng.random((40, 2))
    annotations = Annotations.from_matrix(votes, classes=[0, 1])
    predictions = Predictions.from_arrays(
        np.stack([1 - p, p], axis=2),
        items=annotations.items,
        classes=annotations.classes,
        layout="NKC",
    )
    audit_result = edokit.audit(predictions, annotations)
    human = votes.ravel()
    for k, name in enumerate(predictions.members):
        answers = np.repeat(p[:, k] > 0.5, 3).astype(int)
        row = next(row for row in audit_result.judges_and_people if row["judge"] == name)
        kappa = row["cohen_kappa"]
        assert kappa.estimate == pytest.approx(cohen_kappa_score(human, answers))
        assert kappa.low < kappa.estimate < kappa.high
        table = [row["answers"] for row in audit_result.confusion if row["judge"] == name]
        counts = [list(answers_.values()) for answers_ in table]
        assert counts == confusion_matrix(human, answers).tolist()
    titles = [table.title for table in audit_result.tables()]
    assert "Judges beside annotators" in titles
    assert "Labels by the answer of uniform" in titles


def test_repeated_labels_of_one_annotator_are_not_labels_of_two() -> None:
    columns = {"item": [0, 0, 1, 1], "annotator": ["a", "a", "b", "b"], "label": [0, 1, 0, 0]}
    people = Annotations.from_table(columns, duplicates="all")
    with raises_code("too-few-labels", "two annotators"):
        edokit.audit(jury_of(np.full((2, 3), 0.5), people), people)


def test_the_limit_of_many_members_has_the_interval_of_the_judges() -> None:
    audit_result = edokit.audit(*correlated(3, 0.5, items=4000), samples=50)
    assert audit_result.judges is not None
    lowest = 1 / equal_correlation(audit_result.judges.low, 8)
    highest = 1 / equal_correlation(audit_result.judges.high, 8)
    sentence = f"count as {audit_result.judges_limit:.1f} ({lowest:.1f} to {highest:.1f})"
    assert sentence in audit_result.headline[0]


def test_errors_are_hardly_correlated_only_if_the_interval_says_so() -> None:
    audit_result = edokit.audit(*correlated(3, 0.5, items=400), samples=50)
    sure = replace(audit_result, correlation=0.02, judges=Interval(7.8, 7.0, 8.0))
    unsure = replace(audit_result, correlation=0.02, judges=Interval(7.0, 3.0, 8.0))
    unknown = replace(sure, correlation=None)
    assert "hardly correlated" in sure.headline[0]
    assert "correlate by 0.02" in unsure.headline[0]
    assert "can't be estimated" in unknown.headline[0]


def test_the_headline_is_about_the_jury_not_about_the_constant_answer() -> None:
    rng = np.random.default_rng(0)
    people = people_of(np.full(60, 0.1), 4, rng)
    member = Predictions.from_arrays(
        {"wren": np.tile([0.2, 0.8], (60, 1))}, items=people.items, classes=people.classes
    )
    audit_result = edokit.audit(member, people, replace=True)
    assert audit_result.replacement[0]["candidate"] == "constant"
    assert audit_result.headline[0].startswith("wren is not shown")


@pytest.mark.parametrize("name", ["uniform", "constant", "ensemble"])
def test_a_member_is_not_called_like_what_it_is_compared_with(name: str) -> None:
    people = people_of(np.full(30, 0.5), 3, np.random.default_rng(0))
    answers = {name: np.full((30, 2), 0.5), "wren": np.full((30, 2), 0.5)}
    jury = Predictions.from_arrays(answers, items=people.items, classes=people.classes)
    with raises_code("reserved-name", name):
        edokit.audit(jury, people)
