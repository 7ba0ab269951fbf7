"""Predictions for pairs of an item and an annotator, and the panels that they make up."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from edokit import Annotations, EDOEnsemble, Panel, Predictions, read_predictions, write_predictions
from edokit.ensemble.pooled import Pooled
from edokit.fitdata.data import FitData
from edokit.fitdata.inputs import load_inputs
from edokit.fitdata.reading import ReadOptions
from edokit.panels import PanelComparison, read_panel
from edokit.rows import Rows
from tests.errors import raises_code

ROWS = {
    "item": ["a", "a", "b", "b", "b"],
    "annotator": ["x", "y", "x", "y", "z"],
    "label": ["no", "yes", "yes", "yes", "no"],
}


def pair_predictions(seed: int = 0, members: int = 2) -> Predictions:
    """Answers for every annotation of ROWS, and anonymous ones for both items."""
    yes = np.random.default_rng(seed).random((7, members))
    return Predictions.from_arrays(
        np.stack([1 - yes, yes], axis=2),
        layout="NKC",
        items=[*ROWS["item"], "a", "b"],
        annotators=[*ROWS["annotator"], "", ""],
        classes=["no", "yes"],
    )


def test_a_pair_learns_from_what_its_annotator_answered():
    annotations = Annotations.from_table(ROWS).pairs()
    assert annotations.soft_labels[:, 1].tolist() == [0, 1, 1, 1, 0]
    predictions = pair_predictions().pairs()
    assert predictions.rows.names == annotations.rows.names
    data = FitData.from_predictions(predictions, annotations)
    weights = np.array([0.3, 0.7])
    pooled = np.einsum("nkc,k->nc", pair_predictions().probabilities[:5], weights)
    literal = -np.mean([np.log(p[code]) for p, code in zip(pooled, [0, 1, 1, 1, 0], strict=True)])
    assert data.evaluate(weights)["ce"] == pytest.approx(literal)


def test_folds_keep_the_pairs_of_an_item_together():
    rng = np.random.default_rng(1)
    items = [f"i{k}" for k in range(40) for _ in range(3)]
    people = [f"r{k}" for _ in range(40) for k in range(3)]
    labels = rng.integers(0, 2, 120)
    annotations = Annotations.from_table({"item": items, "annotator": people, "label": labels})
    yes = rng.random((120, 2))
    predictions = Predictions.from_arrays(
        np.stack([1 - yes, yes], axis=2), layout="NKC", items=items, annotators=people
    )
    data = FitData.from_predictions(predictions.pairs(), annotations.pairs())
    for rest, held_out in data.folds(5):
        inside, outside = (set(part.rows.items) for part in (held_out, rest))
        assert not inside & outside
        assert len(held_out.rows) == 24


def random_pairs(n_items: int, n_annotators: int) -> FitData:
    """Items, each with a few of seven annotators, and two members' answers for each of them."""
    rng = np.random.default_rng(2)
    pairs = [(f"i{i}", f"r{(i + k) % 7}") for i in range(n_items) for k in range(n_annotators)]
    items, people = zip(*pairs, strict=True)
    labels = rng.integers(0, 2, len(pairs))
    annotations = Annotations.from_table({"item": items, "annotator": people, "label": labels})
    yes = rng.random((len(pairs), 2))
    predictions = Predictions.from_arrays(
        np.stack([1 - yes, yes], axis=2), layout="NKC", items=items, annotators=people
    )
    return load_inputs(predictions, annotations.pairs(), ReadOptions())


@pytest.mark.parametrize("n_annotators", [1, 2])
def test_pairs_are_pairs_however_many_annotators_an_item_has(n_annotators: int):
    """Members that answer for annotators need no effects of people on top."""
    fitted = EDOEnsemble().fit(random_pairs(30, n_annotators)).fitted_
    assert (fitted.items, fitted.pairs) == (30, 30 * n_annotators)
    assert fitted.people is None
    assert fitted.held_out is None


def test_pairs_of_fewer_items_than_folds_are_fitted_without_folds():
    data = random_pairs(3, 6)
    assert EDOEnsemble().fit(data).settings_["lambda_reg_choice"] == {"items": 18, "folds": None}
    with raises_code("too-many-folds", "5 folds", "3 items"):
        data.folds(5)


def test_anonymous_answers_join_the_pool_as_members():
    predictions = pair_predictions()
    both = predictions.pairs(anonymous=True)
    assert both.members == ("0", "1", "0 (anonymous)", "1 (anonymous)")
    anonymous = predictions.anonymous()
    assert anonymous.items.tolist() == ["a", "b"]
    np.testing.assert_array_equal(both.probabilities[4, 2:], anonymous.probabilities[1])


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_files_keep_pairs_and_anonymous_answers(suffix, tmp_path: Path):
    predictions = pair_predictions()
    write_predictions(predictions, tmp_path / f"p.{suffix}")
    second_predictions = read_predictions(tmp_path / f"p.{suffix}")
    assert second_predictions.annotators.tolist() == predictions.annotators.tolist()
    np.testing.assert_allclose(second_predictions.probabilities, predictions.probabilities)


def test_items_are_no_pairs():
    items = Predictions.from_arrays([[0.9, 0.1]], layout="NC")
    with raises_code("items-for-pairs"):
        items.pairs()
    with raises_code("missing-predictions"):
        pair_predictions().take(range(5)).anonymous()


@given(seed=st.integers(0, 1000), members=st.integers(1, 3))
def test_a_panel_of_everybody_is_the_mean_of_the_items_answers(seed, members):
    predictions = pair_predictions(seed, members).take(range(5))
    means = predictions.panel_means()
    assert means.items.tolist() == ["a", "b"]
    np.testing.assert_allclose(means.probabilities[0], predictions.probabilities[:2].mean(axis=0))
    np.testing.assert_allclose(means.probabilities[1], predictions.probabilities[2:].mean(axis=0))
    pool = predictions.uniform
    everybody = Panel(("x", "y", "z")).answer(predictions.rows, pool)
    np.testing.assert_allclose(everybody.probabilities, means.uniform)


@given(seed=st.integers(0, 1000))
def test_ids_and_order_of_a_panel_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    items = np.array([f"i{k}" for k in range(4) for _ in range(3)], dtype=object)
    people = np.array([f"r{k}" for _ in range(4) for k in range(3)], dtype=object)
    p = rng.dirichlet(np.ones(3), 12)
    weights = rng.random(3) + 0.1
    one = Panel(("r0", "r1", "r2"), weights).answer(Rows.from_names(items, people), p)
    order = rng.permutation(12)
    back = [2, 0, 1]
    other = Panel(("r2", "r0", "r1"), weights[back]).answer(
        Rows.from_names(items[order], people[order]), p[order]
    )
    place = [other.items.tolist().index(name) for name in one.items]
    np.testing.assert_allclose(one.probabilities, other.probabilities[place])
    np.testing.assert_allclose(one.low, other.low[place])
    np.testing.assert_allclose(one.high, other.high[place])


def votes_of(n_people: int, p: np.ndarray, weights=None, **options):
    """A panel's answer where row k of ``p`` [N, A] has the chances that people vote "yes"."""
    people = tuple(f"r{k}" for k in range(n_people))
    items = np.repeat([f"i{k}" for k in range(len(p))], n_people).astype(object)
    rows = np.stack([1 - p.ravel(), p.ravel()], axis=1)
    answer = Panel(people, weights, **options).answer(Rows.from_names(items, people * len(p)), rows)
    return answer.low[:, 1], answer.high[:, 1]


@pytest.mark.parametrize("drawn", [False, True])
def test_intervals_cover_the_share_of_votes_of_1_to_50_alike_people(drawn):
    chances = np.linspace(0, 1, 101)
    for n_people in range(1, 51):
        p = np.tile(chances[:, None], n_people)
        low, high = votes_of(n_people, p, size=n_people if drawn else None)
        votes = binom(n_people, chances)
        below = votes.cdf(np.rint(low * n_people) - 1)
        above = votes.sf(np.rint(high * n_people))
        assert max(below.max(), above.max()) <= 0.05 + 1e-9  # so that 90 % are inside
        # Nothing is given away: one vote fewer at both ends would not be enough.
        inner = votes.cdf(np.rint(high * n_people) - 1) - votes.cdf(np.rint(low * n_people))
        assert inner.max() < 0.9


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_people", [1, 2, 3, 7, 11])
def test_intervals_cover_the_votes_of_people_who_differ(n_people, weighted):
    rng = np.random.default_rng(n_people)
    p = rng.beta(0.5, 0.5, (40, n_people))
    weights = rng.random(n_people) + 0.01 if weighted else np.ones(n_people)
    low, high = votes_of(n_people, p, weights)
    ballots = np.array(list(product((0, 1), repeat=n_people)))
    shares = ballots @ weights / weights.sum()
    for i, chances in enumerate(p):
        probability = np.where(ballots == 1, chances, 1 - chances).prod(axis=1)
        inside = (shares >= low[i] - 1e-9) & (shares <= high[i] + 1e-9)
        assert probability[inside].sum() >= 0.9 - 1e-9


def test_a_larger_panel_is_less_uncertain():
    items = np.array(["a"] * 2, dtype=object)
    people = np.array(["x", "y"], dtype=object)
    p = np.array([[0.3, 0.7], [0.6, 0.4]])
    widths = []
    for size in (5, 50, 500):
        answer = Panel(("x", "y"), size=size).answer(Rows.from_names(items, people), p)
        widths.append(float((answer.high - answer.low)[0, 1]))
    assert widths[0] > widths[1] > widths[2]


def people() -> Annotations:
    """Six annotators with two attributes."""
    return Annotations.from_table(
        {
            "item": [1] * 6,
            "annotator": list("uvwxyz"),
            "label": [0, 1] * 3,
            "gender": list("ffmmmf"),
            "age": ["old", "young", "old", "young", "young", "young"],
        }
    )


def test_shares_of_attributes_are_reached():
    panel = Panel.from_shares(
        {"gender": {"f": 0.5, "m": 0.5}, "age": {"old": 0.7, "young": 0.3}}, people()
    )
    weight = dict(zip(panel.annotators, panel.weights, strict=True))
    assert sum(weight[name] for name in "uvz") == pytest.approx(0.5)
    assert sum(weight[name] for name in "uw") == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("shares", "names"),
    [
        ({"income": {"low": 1.0}}, ("unknown-attribute", "income")),
        ({"age": {"ancient": 1.0}}, ("unknown-attribute", "ancient", "old")),
        ({}, ("empty-option",)),
    ],
)
def test_shares_that_nobody_has_are_refused(shares, names):
    with raises_code(*names):
        Panel.from_shares(shares, people())


def test_panels_come_from_files(tmp_path: Path):
    (tmp_path / "two.txt").write_text("x\ny\n")
    assert read_panel(tmp_path / "two.txt").annotators == ("x", "y")
    (tmp_path / "weighted.csv").write_text("annotator,weight\nx,3\ny,1\n")
    assert read_panel(tmp_path / "weighted.csv").weights.tolist() == [0.75, 0.25]
    (tmp_path / "shares.csv").write_text("attribute,value,share,size\ngender,f,1,12\n")
    panel = read_panel(tmp_path / "shares.csv", people())
    assert (panel.annotators, panel.size, panel.name) == (("u", "v", "z"), 12, "shares")
    (tmp_path / "none.txt").write_text("\n")
    with raises_code("empty-panel"):
        read_panel(tmp_path / "none.txt")
    with raises_code("missing-file", "gender=LEVEL"):  # an attribute without its level
        read_panel("gender")
    (tmp_path / "latin.txt").write_bytes("Zoë".encode("latin1"))
    with raises_code("invalid-unicode", "latin.txt", "UTF-8"):
        read_panel(tmp_path / "latin.txt")
    with raises_code("missing-people"):
        read_panel(tmp_path / "shares.csv")


@pytest.mark.parametrize("size", [0, -1, 2.5, float("nan"), True])
def test_a_panel_is_drawn_of_one_person_or_more(size):
    with raises_code("invalid-number", "whole number"):
        Panel(("x", "y"), size=size)


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ("gender,f,0.5,\ngender,f,0.2,\ngender,m,0.3,\n", ("duplicate-name", "'f'")),
        ("gender,f,0.5,10\ngender,m,0.5,20\n", ("invalid-number", "'10', '20'")),
        ("gender,f,0.5,2.5\ngender,m,0.5,2.5\n", ("invalid-number", "2.5")),
        ("gender,f,0.5,0\ngender,m,0.5,0\n", ("invalid-number", "0")),
    ],
)
def test_a_file_gives_each_value_one_share_and_a_panel_one_size(tmp_path: Path, rows, names):
    (tmp_path / "shares.csv").write_text(f"attribute,value,share,size\n{rows}")
    with raises_code(*names):
        read_panel(tmp_path / "shares.csv", people())


def test_a_size_may_be_given_in_one_row_of_a_file(tmp_path: Path):
    rows = "gender,f,0.5,\ngender,m,0.5,12\n"
    (tmp_path / "shares.csv").write_text(f"attribute,value,share,size\n{rows}")
    assert read_panel(tmp_path / "shares.csv", people()).size == 12


def test_a_panel_needs_answers_for_its_annotators():
    predictions = pair_predictions().take(range(5))
    with raises_code("missing-predictions", "'nobody'"):
        Panel(("x", "nobody")).answer(predictions.rows, predictions.uniform)


def test_a_panel_of_pairs_gives_no_label_for_texts_that_cannot_be_read():
    rows = Rows.from_names(np.array(["a", "a", "b", "b"]), np.array(["x", "y"] * 2))
    p = np.array([[0.2, 0.8], [0.4, 0.6], [0.5, 0.5], [0.5, 0.5]])
    answers = Pooled(rows, ("no", "yes"), p, np.zeros(4))
    by_pair = replace(answers, unreadable=np.array([False, False, True, True]))
    by_item = replace(answers.panel(Panel(("x", "y"))), unreadable=np.array([False, True]))
    for answered in (by_pair.panel(Panel(("x", "y"))), by_item):
        assert answered.to_table()["label"].to_pylist() == ["yes", None]
        assert [record["label"] for record in answered.to_records()] == ["yes", None]


@pytest.mark.parametrize("kind", ["panel", "mean"])
def test_answers_for_items_keep_what_is_known_about_their_texts(kind):
    rows = Rows.from_names(np.array(["b", "b", "a", "a"]), np.array(["x", "y"] * 2))
    flags = np.array([True, True, False, False])
    pooled = Pooled(
        rows,
        ("no", "yes"),
        np.full((4, 2), 0.5),
        np.zeros(4),
        familiarity=np.array([0.1, 0.1, 0.6, 0.6]),
        unfamiliar=flags,
        for_people=flags,
    )
    if kind == "panel":
        answered = pooled.panel(Panel(("x", "y")))
    else:
        answered = pooled.mean_over_annotators()
    table = answered.to_table().to_pydict()
    known = dict(zip(table["item"], table["familiarity"], strict=True))
    assert known == {"a": 0.6, "b": 0.1}
    assert dict(zip(table["item"], table["decision"], strict=True)) == {"a": "no", "b": "people"}
    assert [record["unfamiliar"] for record in answered.to_records()] == table["unfamiliar"]


def test_panels_part_ways_where_their_people_do():
    items = np.array(["a", "a", "b", "b"], dtype=object)
    who = np.array(["x", "y"] * 2, dtype=object)
    p = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]])
    one, other = (Panel((name,), name=name).answer(Rows.from_names(items, who), p) for name in "xy")
    assert PanelComparison(one, other, ("no", "yes")).distances.tolist() == [2.0, 0.0]
