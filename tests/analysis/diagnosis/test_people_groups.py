"""Do groups differ? Levels of attributes against the others, compared on the same items."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from edokit import Annotations, diagnose
from edokit.analysis.diagnose.groups import compare_groups
from edokit.analysis.diagnose.groups.result import GroupComparison, LevelComparison
from edokit.analysis.diagnose.groups.text import level_sentence
from edokit.analysis.sequential import decide, holm, look_sizes, run_tests
from tests.errors import raises_code

KEYS = {"attribute", "level", "people", "mean", "difference", "low", "high", "p", "p_adjusted"}


def ratings(
    shift: float, people: int = 40, labels: int = 30, seed: int = 0, habit: float = 0.3, by_item=0.0
) -> Annotations:
    """Ratings from 1 to 5 by women, who rate higher by ``shift``, and men.

    ``by_item`` shows women the items that everybody rates high.
    """
    rng = np.random.default_rng(seed)
    n_items = people * labels // 5
    quality = np.sort(rng.normal(3, 1, n_items))
    rows = []
    for person in range(people):
        woman = person % 2 == 0
        chance = np.exp(by_item * (1 if woman else -1) * (quality - 3))
        items = rng.choice(n_items, labels, replace=False, p=chance / chance.sum())
        points = quality[items] + rng.normal(0, habit) + shift * woman + rng.normal(0, 1, labels)
        for item, point in zip(items, np.clip(np.rint(points), 1, 5), strict=True):
            rows.append((f"i{item}", f"p{person}", str(int(point)), "f" if woman else "m"))
    table = pd.DataFrame(rows, columns=["item", "annotator", "label", "gender"])
    table["team"] = [("red", "green", "blue")[int(name[1:]) % 3] for name in table["annotator"]]
    return Annotations.from_table(table, scale="ordinal:1,2,3,4,5")


def test_a_difference_of_half_a_point_is_shown_and_no_difference_is_not():
    found = compare_groups(ratings(0.6), ["gender", "team"])
    women, men = found.levels_of("gender")
    assert women.differs == "yes"
    assert women.low < 0.5 < women.high
    assert women.difference == pytest.approx(-men.difference)
    assert women.p == men.p
    assert found.tests == 4  # two levels are one test
    for team in found.levels_of("team"):
        assert team.differs == "no"
        assert team.low < 0 < team.high
        assert team.missed == pytest.approx(max(-team.low, team.high))


def test_what_people_were_shown_is_no_difference_between_them():
    found = compare_groups(ratings(0.0, by_item=1.0), ["gender"])
    women, men = found.levels
    assert women.mean - men.mean > 0.5
    assert women.differs == "no"
    assert women.low < 0 < women.high


def test_the_verdict_does_not_move_with_the_seed():
    annotations = ratings(0.0, people=24, seed=3)
    verdicts = {
        compare_groups(annotations, ["gender"], random_state=seed).levels[0].differs
        for seed in range(5)
    }
    assert len(verdicts) == 1


@pytest.mark.parametrize("scale", ["nominal", "multi-label"])
def test_classes_and_labels_of_sets_are_compared_by_their_shares(scale: str):
    rng = np.random.default_rng(0)
    rows = []
    for person in range(24):
        for item in range(40):
            chance = 0.75 if person < 12 else 0.35
            label = "rude" if rng.random() < chance else rng.choice(["kind", "dull"])
            rows.append((item, person, label, "old" if person < 12 else "new"))
    table = pd.DataFrame(rows, columns=["item", "annotator", "label", "age"])
    found = compare_groups(Annotations.from_table(table, scale=scale), ["age"])
    old = next(level for level in found.levels if level.level == "old")
    assert old.differs == "yes"
    assert set(old.difference) == {"dull", "kind", "rude"}
    assert old.low["rude"] < 0.4 < old.high["rude"]
    assert old.mean["rude"] == pytest.approx(table.query("age == 'old'").label.eq("rude").mean())
    assert len(found.to_table()) == 6


def test_few_people_are_named_and_one_person_is_not_compared():
    annotations = ratings(0.0, people=20)
    table = annotations.to_table().to_pandas()
    table["origin"] = "north"
    table.loc[table.annotator.isin(["p0", "p1", "p2"]), "origin"] = "south"
    table.loc[table.annotator == "p3", "origin"] = "west"
    diagnosis = diagnose(Annotations.from_table(table), by="origin", permutations=0)
    levels = {level.level: level for level in diagnosis.groups.levels}
    assert levels["south"].few_people
    assert levels["south"].low < levels["south"].difference < levels["south"].high
    assert levels["west"].difference is None
    assert "fewer than two" in levels["west"].reason
    assert "Fewer than five people: origin=south, origin=west" in str(diagnosis)


def test_without_shared_items_nothing_is_compared_and_it_says_why():
    table = {"item": range(8), "annotator": list("aabbccdd"), "label": [0, 1] * 4}
    table["gender"] = ["f"] * 4 + ["m"] * 4
    annotations = Annotations.from_table(table).with_attributes(["gender"])
    found = compare_groups(annotations, ["gender"])
    assert found.tests == 0
    assert "same item" in found.levels[0].reason


def test_json_has_an_entry_per_level_and_words_say_what_could_have_been_missed():
    diagnosis = diagnose(ratings(0.0, people=20), by=["gender", "team"], permutations=39)
    content = json.loads(json.dumps(diagnosis.to_dict()))
    assert [entry["level"] for entry in content["groups"]] == ["f", "m", "blue", "green", "red"]
    assert set(content["groups"][0]) >= KEYS
    assert isinstance(content["groups"][0]["mean"], float)
    assert content["group_tests"]["correction"] == "holm"
    assert "could have been missed" in str(diagnosis)
    assert diagnose(ratings(0.0, people=20), permutations=0).to_dict()["groups"] == []


def test_the_items_that_divide_most_come_first():
    annotations = ratings(0.0, people=40)
    table = annotations.to_table().to_pandas()
    asked = table.item.value_counts().index[:3]
    on_these = table.item.isin(asked)
    table.loc[on_these & (table.gender == "f"), "label"] = "5"
    table.loc[on_these & (table.gender == "m"), "label"] = "1"
    found = compare_groups(Annotations.from_table(table), ["gender"], permutations=0)
    assert {item.item for item in found.items[:3]} == set(asked)
    assert abs(found.items[0].difference) <= abs(found.items[0].mean - found.items[0].others)


def test_unknown_attributes_are_named_with_those_that_exist():
    with raises_code("unknown-attribute", "'race'") as refused:
        diagnose(ratings(0.0, people=10), by=["race"])
    assert "'gender'" in str(refused.value.hint)


def test_holm_is_sequentially_rejective():
    p = np.array([0.01, 0.04, 0.03])
    np.testing.assert_allclose(holm(p), [0.03, 0.06, 0.06])
    # A test that has half of the level, and two that share the other half.
    np.testing.assert_allclose(holm(p, np.array([0.5, 0.25, 0.25])), [0.02, 0.06, 0.06])


def test_p_values_near_the_level_are_left_open_and_clear_ones_stop_early():
    rng = np.random.default_rng(0)
    true_p = np.array([0.0001, 0.05, 0.6])

    def count(is_open, permutations):
        return rng.binomial(permutations, true_p)

    tests = run_tests(np.ones(3), count, most=1999)
    assert tests.verdicts == ("yes", "no", "no")  # Holm: .05 · 2 is clearly above 5 %
    assert tests.permutations[2] == 199
    alone = run_tests(np.ones(1), lambda is_open, n: rng.binomial(n, [0.05]), most=1999)
    assert alone.verdicts == ("can't tell",)
    assert alone.low[0] < 0.05 < alone.high[0]
    assert look_sizes(1999) == [199, 399, 799, 1599, 1999]
    assert decide(np.array([0.01]), np.array([0.04])) == ("yes",)


def test_a_line_names_the_class_that_may_differ_and_says_where_people_are_too_few():
    classes = ("fine", "mixed", "rude")
    narrow = LevelComparison(
        attribute="band",
        level="young",
        people=9,
        labels=90,
        mean={"fine": 0.4, "mixed": 0.3, "rude": 0.3},
        difference={"fine": -0.04, "mixed": 0.02, "rude": 0.02},
        low={"fine": -0.08, "mixed": -0.43, "rude": -0.1},
        high={"fine": 0.01, "mixed": 0.3, "rude": 0.1},
        p=0.4,
        p_adjusted=0.8,
        differs="no",
        missed=0.43,
    )
    anything = replace(
        narrow,
        level="old",
        low=dict.fromkeys(classes, -1.0),
        high=dict.fromkeys(classes, 1.0),
        missed=1.0,
    )
    comparison = GroupComparison(
        levels=(narrow, anything),
        items=(),
        item_spread={"band": 0.0},
        unknown={"band": 0},
        notes={},
        tests=2,
        permutations=199,
        scale="nominal",
        classes=classes,
        seed=0,
    )
    line = level_sentence(comparison, narrow)
    assert "'fine' 40%, -4 pp [-8 pp, +1 pp]" in line
    assert "up to 43 pp in 'mixed' could have been missed" in line
    line = level_sentence(comparison, anything)
    assert "too few people to tell" in line
    assert "100 pp" not in line


def test_copies_of_items_that_are_kept_together_have_the_interval_of_one() -> None:
    """A difference that varies between items: five copies of each do not make it surer."""
    rng = np.random.default_rng(4)
    chance = rng.random((30, 1)) * np.where(np.arange(20) < 10, 0.9, 0.3)
    votes = (rng.random((30, 20)) < chance).astype(int)
    teams = np.repeat(["red", "blue"], 10)
    widths = []
    for copies, is_grouped in ((1, False), (5, True), (5, False)):
        rows = np.repeat(votes, copies, axis=0)
        people = replace(Annotations.from_matrix(rows), attributes={"team": teams})
        if is_grouped:
            people = replace(people, item_groups=np.repeat(np.arange(30), copies).astype(str))
        level = compare_groups(people, ["team"], permutations=0).levels[0]
        assert isinstance(level.low, dict)
        assert isinstance(level.high, dict)
        widths.append(level.high["1"] - level.low["1"])
    once, grouped, apart = widths
    assert grouped == pytest.approx(once, rel=0.1)
    assert apart < 0.9 * once
