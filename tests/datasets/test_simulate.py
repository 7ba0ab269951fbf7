"""The simulator: the shapes it promises, and a truth that is really the truth."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from benchmarks.true_variance import sources_of_variance, true_variance
from edokit import Annotations, EDOWarning, simulate, train_members
from edokit.datasets.near_duplicates import near_duplicate_groups
from edokit.datasets.simulate.posts import TARGETS
from edokit.datasets.simulate.regimes import REGIMES, AnnotatorGroup, Regime
from edokit.datasets.simulate.simulation import Simulation
from edokit.members import Group as MemberGroup
from tests.errors import raises_code

Floats = npt.NDArray[np.float64]

# Regime: items, annotators, annotations per item, hard 0:1, as the four datasets have them.
SHAPES = {
    "three-voices": ((657, 141, 145), 3, (3, 3), (387, 270)),
    "partial-panel": ((2398, 812, 840), 8, (2, 7), (2009, 389)),
    "two-camps": ((784, 168, 168), 6, (6, 6), (712, 72)),
    "crowd": ((6592, 1104, 3057), 670, (5, 5), (4630, 1962)),
}

ITEMS = (200, 40, 60)

SMALL = Regime(
    name="small",
    items=(300, 0, 0),
    annotators=12,
    per_item={4: 1.0},
    balance=(0.55, 0.45),
    groups=(
        AnnotatorGroup("a", 1, {"irony": -1.0}),
        AnnotatorGroup("b", 2, {"people": 1.0, "always": 0.5}),
    ),
    disagreement=1.0,
    structured=0.6,
)


@cache
def simulated(name: str) -> Simulation:
    return simulate(name, random_state=0)


def content(simulation: Simulation) -> dict[str, bytes]:
    told = simulation.annotations
    columns = told.to_table().to_pydict()
    return {
        "truth": simulation.truth.tobytes(),
        "groups": "\n".join(simulation.groups).encode(),
        **{name: repr(values).encode() for name, values in columns.items()},
    }


def cross_entropy(q: Floats, p: Floats) -> float:
    return float(-np.mean(np.sum(q * np.log(np.clip(p, 1e-12, 1.0)), axis=1)))


def hard_share(simulation: Simulation, split: str = "train") -> Floats:
    labels = simulation.annotations.split(split).hard_labels()
    return np.bincount(labels, minlength=len(simulation.annotations.classes)) / len(labels)


def with_classes(regime: Regime, n: int) -> Regime:
    """The regime with n classes; those above the first are equally frequent."""
    first = regime.balance[0]
    return replace(regime, balance=(first, *[(1 - first) / (n - 1)] * (n - 1)))


# Seeds


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(name: str) -> None:
    one, same, other = (
        content(simulate(name, random_state=seed, items=ITEMS)) for seed in (5, 5, 6)
    )
    assert one == same
    for part in ("truth", "text", "label", "hard_label"):
        assert one[part] != other[part]


def test_posts_stay_the_same_from_version_to_version() -> None:
    assert list(simulate("three-voices", random_state=0, items=(3, 0, 0)).annotations.texts) == [
        "on the way home nothing special about dog owners, back to work",
        "credit to all of you, frankly decent, the radio played the same song 33 times",
        "This drizzle was absolutely lovely. We got two hours of hail in the valley.",
    ]


def test_more_test_items_leave_everything_else_as_it_was() -> None:
    few = simulate("partial-panel", random_state=3, items=(400, 60, 50))
    many = simulate("partial-panel", random_state=3, items=(400, 60, 90))
    for split in ("train", "dev"):
        one = few.annotations.split(split)
        other = many.annotations.split(split)
        assert one.to_table().equals(other.to_table())
        assert np.array_equal(few.truth[few.rows(split)], many.truth[many.rows(split)])
    assert (
        list(few.annotations.texts[few.rows("test")])
        == list(many.annotations.texts[many.rows("test")])[:50]
    )


def test_more_train_items_leave_the_first_posts_as_they_were() -> None:
    few = simulate("crowd", random_state=3, items=(50, 0, 0))
    many = simulate("crowd", random_state=3, items=(80, 0, 0))
    assert list(few.annotations.texts) == list(many.annotations.texts)[:50]
    assert few.features.hostility.tolist() == many.features.hostility[:50].tolist()


# Shapes


@pytest.mark.parametrize("name", SHAPES)
def test_a_regime_has_the_shape_of_its_dataset(name: str) -> None:
    items, annotators, per_item, _ = SHAPES[name]
    told = simulated(name).annotations
    for split, n in zip(("train", "dev", "test"), items, strict=True):
        part = told.split(split)
        assert len(part.items) == n
        assert part.items[0] == f"sim-{split}-1"
        assert part.items[-1] == f"sim-{split}-{n}"
    train = told.split("train")
    assert len(train.annotators) == annotators
    assert (train.annotations_per_item.min(), train.annotations_per_item.max()) == per_item
    assert told.classes == ("fine", "offensive")
    pairs = set(zip(told.item_codes.tolist(), told.annotator_codes.tolist(), strict=True))
    assert len(pairs) == len(told)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_class_balance_is_right_for_any_seed(name: str, seed: int) -> None:
    zeros, ones = SHAPES[name][3]
    n = zeros + ones
    simulation = simulate(name, random_state=seed, items=(n, 0, 0))
    # Thresholds are solved for the expected balance; only the luck of single answers remains.
    luck = 4.0 * np.sqrt(0.06 / n)
    assert hard_share(simulation)[1] == pytest.approx(ones / n, abs=luck)


def test_few_of_the_crowd_do_most_of_the_work() -> None:
    work = np.sort(simulated("crowd").annotations.annotations_per_annotator)[::-1]
    assert 0.5 < work[:67].sum() / work.sum() < 0.7
    assert np.median(work) < 40


def test_partial_coverage_follows_the_asked_for_counts() -> None:
    counts = np.bincount(simulated("partial-panel").annotations.annotations_per_item)
    shares = counts / counts.sum()
    assert shares[2:5] == pytest.approx([0.262, 0.576, 0.093], abs=0.025)


def test_regimes_have_as_many_items_as_asked() -> None:
    simulation = simulate("crowd", items=(30, 20, 10))
    assert [len(simulation.rows(split)) for split in ("train", "dev", "test")] == [30, 20, 10]


def test_too_few_items_for_a_crowd_leave_some_silent_but_in_the_population() -> None:
    simulation = simulate("crowd", random_state=0, items=(20, 0, 0))
    assert len(simulation.annotations.annotators) <= 100
    assert len(simulation.annotators) == len(simulation.groups) == 670
    assert simulation.annotator_probabilities().shape == (20, 670, 2)


def test_annotations_survive_the_way_through_a_table() -> None:
    told = simulate("two-camps", random_state=1, items=ITEMS).annotations
    second_annotations = Annotations.from_table(told.to_table())
    assert list(second_annotations.items) == list(told.items)
    assert list(second_annotations.annotators) == list(told.annotators)
    assert np.array_equal(second_annotations.soft_labels, told.soft_labels)
    assert np.array_equal(second_annotations.hard_labels(), told.hard_labels())
    assert list(second_annotations.attributes["group"]) == list(told.attributes["group"])


def test_groups_have_their_shares_and_travel_with_the_annotators() -> None:
    simulation = simulated("crowd")
    names, counts = np.unique(simulation.groups, return_counts=True)
    assert dict(zip(names, counts / 670, strict=True)) == pytest.approx(
        {"literal": 0.5, "playful": 0.3, "loyal": 0.2}, abs=0.002
    )
    known = dict(zip(simulation.annotators, simulation.groups, strict=True))
    told = simulation.annotations
    assert [known[name] for name in told.annotators] == list(told.attributes["group"])


def test_hard_labels_are_majorities_and_ties_fall_to_either_side() -> None:
    told = simulated("partial-panel").annotations
    share = told.soft_labels[:, 1]
    hard = told.hard_labels()
    assert np.array_equal(hard[share != 0.5], (share > 0.5)[share != 0.5])
    assert 0.3 < hard[share == 0.5].mean() < 0.7


# Truth


def test_answers_come_with_the_stated_probabilities() -> None:
    simulation = simulated("partial-panel")
    told = simulation.annotations
    index = {name: a for a, name in enumerate(simulation.annotators)}
    people = np.array([index[name] for name in told.annotators])[told.annotator_codes]
    p = simulation.annotator_probabilities()[told.item_codes, people, 1]
    surprise = told.label_codes - p
    bins = np.digitize(p, [0.02, 0.1, 0.3, 0.7, 0.9])
    for chosen in [bins == b for b in range(6)] + [people == a for a in range(8)]:
        z = surprise[chosen].sum() / np.sqrt(np.sum(p[chosen] * (1 - p[chosen])))
        assert abs(z) < 4.0


def test_the_soft_labels_of_everyone_approach_the_truth() -> None:
    everyone = replace(SMALL, annotators=100, per_item={100: 1.0})
    simulation = simulate(everyone, random_state=0)
    gap = simulation.annotations.soft_labels - simulation.truth
    p = simulation.annotator_probabilities()
    expected = np.mean(np.mean(p * (1 - p), axis=1) / 100)
    assert np.mean(gap**2) == pytest.approx(expected, rel=0.2)
    assert np.abs(gap).max() < 0.2


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_probabilities_are_distributions_and_the_truth_is_their_mean(n_classes: int) -> None:
    simulation = simulate(with_classes(SMALL, n_classes))
    p = simulation.annotator_probabilities()
    assert p.shape == (300, 12, n_classes)
    assert p.min() >= 0.0
    assert np.allclose(p.sum(axis=2), 1.0)
    assert np.allclose(p.mean(axis=1), simulation.truth)


def test_the_truth_scores_best_against_itself() -> None:
    truth = simulated("three-voices").truth
    best = cross_entropy(truth, truth)
    assert best < cross_entropy(truth, 0.9 * truth + 0.05)
    assert best < cross_entropy(truth, np.tile(truth.mean(axis=0), (len(truth), 1)))


def test_groups_see_what_their_views_say() -> None:
    simulation = simulated("crowd")
    rows = simulation.rows("dev")
    p = simulation.annotator_probabilities(rows)[..., 1]
    irony = simulation.features.irony[rows]
    to_people = simulation.features.target[rows] == TARGETS.index("people")

    def seen(group: str, where: npt.NDArray[np.bool_]) -> float:
        """How much worse the group finds these posts than the others, compared with literals."""
        own = p[:, simulation.groups == group].mean(axis=1)
        plain = p[:, simulation.groups == "literal"].mean(axis=1)
        return float((own - plain)[where].mean() - (own - plain)[~where].mean())

    assert seen("playful", irony) < -0.05
    assert seen("loyal", to_people) > 0.05
    assert seen("literal", irony) == 0.0


def test_one_camp_is_stricter_than_the_other() -> None:
    for seed in range(5):
        simulation = simulate("two-camps", random_state=seed, items=(784, 0, 0))
        rates = simulation.annotator_probabilities()[..., 1].mean(axis=0)
        concerned = simulation.groups == "concerned"
        assert rates[concerned].mean() > 1.5 * rates[~concerned].mean()


# Where the variance comes from


@given(st.integers(1, 6), st.integers(1, 5), st.integers(2, 4), st.integers(0, 999))
def test_the_sources_add_up_to_the_total(n: int, a: int, c: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(c, 0.5), size=(n, a))
    group = np.unique(rng.integers(0, 3, size=a), return_inverse=True)[1]
    variance = sources_of_variance(p, group)
    mean = p.mean(axis=(0, 1))
    assert min(variance.values()) >= 0.0
    assert sum(variance.values()) == pytest.approx(0.5 * float(np.sum(mean * (1 - mean))), rel=1e-9)


def structured_share(variance: dict[str, float]) -> float:
    """Share of the disagreement within items that is lasting, not noise."""
    within = sum(variance.values()) - variance["item"]
    return (within - variance["noise"]) / within


@pytest.mark.parametrize("name", SHAPES)
def test_disagreement_is_partly_noise_in_every_regime(name: str) -> None:
    assert 0.2 < structured_share(true_variance(simulated(name))) < 0.7


def test_the_sources_match_what_repeated_answers_show() -> None:
    """Brute force: pairs of fresh answers that share the item, the person, the group or nothing."""
    simulation = simulate(SMALL, random_state=4)
    rng = np.random.default_rng(0)
    p = simulation.annotator_probabilities()[..., 1]
    y = (rng.random((200, *p.shape)) < p).astype(np.int8)
    m = 1_500_000
    code = simulation.population.group
    members = [np.flatnonzero(code == g) for g in range(2)]
    first = rng.integers(0, 200, m)
    second = (first + rng.integers(1, 200, m)) % 200
    i, j = rng.integers(0, 300, (2, m))
    a, b = rng.integers(0, 12, (2, m))
    peer = np.empty(m, dtype=np.int64)
    for g in range(2):
        peer[code[a] == g] = rng.choice(members[g], int(np.sum(code[a] == g)))

    def together(item: npt.NDArray[np.int64], person: npt.NDArray[np.int64]) -> float:
        """How often annotator a answers 1 on item i and this person does on this item."""
        return float(np.mean(y[first, i, a] & y[second, item, person]))

    nothing = float(y.mean()) ** 2
    by_item = together(i, b)
    by_person = together(j, a)
    by_both = together(i, a)
    by_group = together(j, peer)
    by_group_item = together(i, peer)
    variance = true_variance(simulation)
    assert sum(variance.values()) == pytest.approx(float(y.var()), abs=1e-3)
    assert variance["item"] == pytest.approx(by_item - nothing, abs=2e-3)
    assert variance["annotator"] == pytest.approx(by_person - nothing, abs=2e-3)
    assert variance["group_item"] == pytest.approx(
        by_group_item - by_item - by_group + nothing, abs=2e-3
    )
    assert variance["annotator_item"] == pytest.approx(
        by_both - by_group_item - by_person + by_group, abs=2e-3
    )
    assert variance["noise"] == pytest.approx(float(y.mean()) - by_both, abs=2e-3)
    assert min(variance.values()) > 0.02 * sum(variance.values())


@pytest.mark.parametrize("name", SHAPES)
def test_pure_noise_has_no_structure_and_pure_structure_has_no_noise(name: str) -> None:
    regime = replace(REGIMES[name], items=(150, 0, 0))
    noise = simulate(replace(regime, structured=0.0), random_state=1)
    structure = simulate(replace(regime, structured=1.0), random_state=1)
    assert structured_share(true_variance(noise)) == pytest.approx(0.0, abs=1e-12)
    assert true_variance(noise)["noise"] > 0.01
    p = noise.annotator_probabilities()
    assert np.array_equal(p, np.broadcast_to(p[:, :1], p.shape))

    assert true_variance(structure)["noise"] == 0.0
    assert structured_share(true_variance(structure)) == 1.0
    assert set(np.unique(structure.annotator_probabilities())) == {0.0, 1.0}


@pytest.mark.parametrize("name", SHAPES)
def test_the_knob_trades_noise_for_structure_at_the_same_amount_of_disagreement(name: str) -> None:
    regime = replace(REGIMES[name], items=(400, 0, 0))
    found = [
        true_variance(simulate(replace(regime, structured=share)))
        for share in (0, 0.25, 0.5, 0.75, 1)
    ]
    shares = [structured_share(variance) for variance in found]
    assert shares == sorted(shares)
    within = [1 - variance["item"] / sum(variance.values()) for variance in found]
    assert max(within) < 1.35 * min(within)


def test_the_parts_of_structure_can_be_taken_alone() -> None:
    only = {"group_weight": 0.0, "personal_weight": 0.0, "threshold_weight": 0.0}
    groups = replace(SMALL, structured=1.0, **(only | {"group_weight": 1.0}))
    variance = true_variance(simulate(groups))
    assert variance["group_item"] > 0.01
    assert variance["annotator_item"] == pytest.approx(0.0, abs=1e-12)
    thresholds = replace(
        SMALL, groups=(AnnotatorGroup("all"),), **(only | {"threshold_weight": 1.0})
    )
    variance = true_variance(simulate(thresholds))
    assert variance["group_item"] == pytest.approx(0.0, abs=1e-12)
    assert variance["annotator"] > 0.01


def test_what_is_personal_averages_out_within_each_group() -> None:
    people = simulate(replace(SMALL, group_weight=0.0), random_state=0).population
    for code in range(2):
        (views,) = people.views
        assert np.abs(views[people.group == code]).max() > 0.1
        assert views[people.group == code].mean(axis=0) == pytest.approx(0.0, abs=1e-12)


# Posts


def test_posts_are_mostly_distinct() -> None:
    texts = list(simulated("crowd").annotations.texts)
    assert len(set(texts)) > 0.998 * len(texts)
    groups = near_duplicate_groups(texts[:4000])
    assert len(set(groups.tolist())) > 0.99 * 4000


def test_posts_are_short_plain_english_without_gaps() -> None:
    for text in simulated("crowd").annotations.texts:
        assert text.isascii()
        assert 3 <= len(text.split()) <= 45
        assert "{" not in text
        assert "}" not in text
        assert text == text.strip()


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("three-voices", (657, 0, 1000)),
        ("partial-panel", (2398, 0, 1000)),
        ("two-camps", (784, 0, 1000)),
        ("crowd", (3000, 0, 1000)),
    ],
)
def test_text_tells_a_good_part_of_the_truth_but_not_all(
    name: str, items: tuple[int, int, int]
) -> None:
    simulation = simulate(name, random_state=0, items=items)
    train = simulation.annotations.split("train")
    test = simulation.rows("test")
    # The label of one random annotator per item.
    order = np.random.default_rng(0).permutation(len(train))
    drawn = np.unique(train.item_codes[order], return_index=True)[1]
    assert train.label_codes is not None
    y = train.label_codes[order][drawn]
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    model = LogisticRegression(max_iter=500).fit(words.fit_transform(train.texts), y)
    predicted = model.predict_proba(words.transform(simulation.annotations.texts[test]))

    truth = simulation.truth[test]
    constant = np.tile(train.soft_labels.mean(axis=0), (len(test), 1))
    start = cross_entropy(truth, constant)
    end = cross_entropy(truth, truth)
    learned = (start - cross_entropy(truth, predicted)) / (start - end)
    assert 0.25 < learned < 0.75


# Three classes and more


@pytest.mark.parametrize("name", SHAPES)
def test_three_classes_rise_in_severity(name: str) -> None:
    simulation = simulate(with_classes(REGIMES[name], 3), random_state=0, items=(600, 0, 0))
    assert simulation.annotations.classes == ("0", "1", "2")
    assert simulation.thresholds[0] < simulation.thresholds[1]
    share = hard_share(simulation)
    assert share.min() > 0.01
    assert share[0] == pytest.approx(simulation.regime.balance[0], abs=0.06)
    severity = simulation.features.hostility
    means = [severity[simulation.annotations.hard_labels() == c].mean() for c in range(3)]
    assert means == sorted(means)


def test_a_balance_of_three_classes_is_met_by_the_middle_answer() -> None:
    regime = replace(SMALL, balance=(0.5, 0.3, 0.2), per_item={5: 1.0}, items=(4000, 0, 0))
    told = simulate(regime, random_state=0).annotations
    assert told.label_codes is not None
    middle = np.median(told.label_codes.reshape(4000, 5), axis=1).astype(int)
    assert np.bincount(middle) / 4000 == pytest.approx([0.5, 0.3, 0.2], abs=0.02)


# Bad parameters


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"regime": "quartet"}, ("unknown-choice", "regime", "'three-voices'")),
        ({"random_state": -1}, ("invalid-number", "random_state")),
        ({"random_state": 0.5}, ("invalid-number", "random_state", "0.5")),
        ({"items": (10, 10)}, ("invalid-option", "items=", "10, 10")),
        ({"items": (0, 10, 10)}, ("invalid-option",)),
        ({"items": (5, -1, 10)}, ("invalid-number",)),
        ({"items": (5.5, 1, 10)}, ("invalid-number", "5.5")),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], says: tuple[str, ...]) -> None:
    with raises_code(*says):
        simulate(**({"regime": "two-camps"} | arguments))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"annotators": 0}, ("invalid-number",)),
        ({"per_item": {13: 1.0}}, ("invalid-number", "per_item", "13", "12")),
        ({"per_item": {0: 1.0}}, ("invalid-number", "per_item")),
        ({"per_item": {2.5: 1.0}}, ("invalid-number", "per_item")),
        ({"balance": (0.7, 0.7)}, ("invalid-option", "balance=")),
        ({"groups": ()}, ("invalid-option", "groups=")),
        ({"structured": 1.5}, ("invalid-number", "structured", "1.5")),
        ({"structured": float("nan")}, ("invalid-number", "structured")),
        ({"disagreement": -0.1}, ("invalid-number", "disagreement", "-0.1")),
        ({"group_weight": -1.0}, ("invalid-number", "group_weight", "-1.0")),
        ({"noise_spread": float("nan")}, ("invalid-number", "noise_spread")),
        ({"balance": (1.5, -0.5)}, ("invalid-number", "balance", "1.5")),
        ({"per_item": {}}, ("invalid-option", "per_item=")),
        ({"per_item": {4: -1.0}}, ("invalid-number", "per_item", "-1.0")),
    ],
)
def test_bad_regimes_are_refused(change: dict[str, object], says: tuple[str, ...]) -> None:
    with raises_code(*says):
        replace(SMALL, **change)  # type: ignore[arg-type]


def test_bad_groups_are_refused() -> None:
    with raises_code("unknown-choice", "group 'x'", "'hostility'"):
        AnnotatorGroup("x", views={"humour": 1.0})


def test_an_unknown_split_is_refused() -> None:
    with raises_code("unknown-choice"):
        simulate(SMALL).rows("validation")


def test_regimes_are_named_after_themselves() -> None:
    assert {name: regime.name for name, regime in REGIMES.items()} == {
        n: n for n in (*SHAPES, "seven-points", "three-labels")
    }


# Scales and sets


def test_seven_points_are_an_ordinal_scale() -> None:
    simulation = simulated("seven-points")
    told = simulation.annotations
    assert told.scale.positions == (1, 2, 3, 4, 5, 6, 7)
    assert simulation.truth.sum(axis=1) == pytest.approx(1.0)
    # Neighbouring points follow one another: severer posts move the whole distribution.
    severity = simulation.features.severity()
    cumulative = simulation.truth.cumsum(axis=1)[:, :-1]
    for column in cumulative.T:
        assert np.corrcoef(severity, column)[0, 1] < -0.5
    mean = simulation.truth @ np.array(told.scale.positions)
    assert np.corrcoef(severity, mean)[0, 1] > 0.9
    five = with_classes(REGIMES["seven-points"], 5)
    assert simulate(five, items=(200, 50, 100)).annotations.scale.positions[-1] == 5


def test_some_annotators_rate_higher_than_others() -> None:
    p = simulated("seven-points").annotator_probabilities(np.arange(300))
    strictness = (p @ np.arange(1, 8)).mean(axis=0)
    assert strictness.std() > 0.2


def test_three_labels_are_sets_of_which_the_truth_is_known() -> None:
    simulation = simulated("three-labels")
    told = simulation.annotations
    assert told.scale.is_multi_label
    assert told.classes == ("hostile", "ironic", "personal")
    sizes = told.labels.sum(axis=1)
    assert {*sizes.tolist()} == {0.0, 1.0, 2.0, 3.0}
    assert simulation.truth.shape == (2400, 3)
    assert (simulation.truth.sum(axis=1) > 1.1).any()
    with pytest.warns(EDOWarning, match="tied"):
        hard = told.split("train").hard_labels()
    # Ties count half on either side.
    assert hard.mean(axis=0) == pytest.approx(simulation.regime.balance, abs=0.06)
    # Each label is about its own side of the posts.
    features = simulation.features
    sides = (features.hostility, features.irony, (features.target == 1) | (features.target == 3))
    found = np.corrcoef(np.column_stack([simulation.truth, *sides]), rowvar=False)[:3, 3:]
    assert (found.argmax(axis=1) == [0, 1, 2]).all()


@pytest.mark.parametrize("name", ["seven-points", "three-labels"])
def test_regimes_of_other_scales_keep_the_rules(name: str) -> None:
    one, same, other = (
        content(simulate(name, random_state=seed, items=ITEMS)) for seed in (5, 5, 6)
    )
    assert one == same
    assert one["label"] != other["label"]
    simulation = simulated(name)
    second_annotations = Annotations.from_table(simulation.annotations.to_table())
    assert second_annotations.scale == simulation.annotations.scale
    assert second_annotations.soft_labels == pytest.approx(simulation.annotations.soft_labels)


def test_sets_that_make_no_sense_are_refused() -> None:
    sets = REGIMES["three-labels"]
    with raises_code("invalid-option"):
        replace(sets, balance=(0.5, 0.5))


@pytest.mark.parametrize("name", ["seven-points", "three-labels"])
def test_members_learn_a_good_part_of_the_truth_on_its_scale(name: str, tmp_path: Path) -> None:
    simulation = simulate(name, items=(400, 40, 100))
    people = simulation.annotations
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        trained = train_members(people, [MemberGroup("linear", members=2)], out=tmp_path, jobs=1)
    predictions = trained.predictions["test"]
    assert predictions.scale == people.scale
    assert predictions.classes == people.classes
    truth = people.scale.rows(simulation.truth[simulation.rows("test")])
    constant = np.tile(people.split("train").soft_labels.mean(axis=0), (100, 1))
    known = cross_entropy(truth, people.scale.rows(predictions.uniform))
    assert known < cross_entropy(truth, people.scale.rows(constant))
