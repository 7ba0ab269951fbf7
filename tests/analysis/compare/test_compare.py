"""Methods side by side."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pool_cases import sample

from edokit import (
    Annotations,
    EDOEnsemble,
    Predictions,
    compare,
    write_annotations,
    write_predictions,
)
from edokit._io.tables import write_table
from edokit.analysis.compare.method import make_method
from edokit.analysis.compare.result import Comparison
from edokit.fitdata.inputs import load_annotations
from edokit.fitdata.reading import ReadOptions
from edokit.metrics import ce, compute_metrics
from edokit.runs.record import RunRecord
from tests.errors import raises_code

QUICK = ("best-single", "top-5", "greedy", "linear-pool", "log-pool", "edo")


@pytest.fixture(scope="module")
def samples() -> tuple[tuple, tuple]:
    return sample(80), sample(50, seed=1, prefix="new")


@pytest.fixture(scope="module")
def found(samples: tuple) -> Comparison:
    dev, test = samples
    pair = (dev[0].select(["fair-1", "fair-2"]), test[0].select(["fair-1", "fair-2"]))
    alone = (dev[0].select(["good-1"]), test[0].select(["good-1"]))
    return compare(*dev, *test, methods=QUICK, extra={"fair": pair, "one": alone}, samples=200)


def test_every_method_has_a_row_in_the_order_of_the_table(found: Comparison) -> None:
    names = [score.name for score in found.scores]
    assert names == ["constant", "uniform", *QUICK, "fair", "edo:fair", "one"]


def test_scores_are_those_of_the_fitted_method_on_test(found: Comparison, samples: tuple) -> None:
    dev, test = samples
    q = np.asarray(test[1].soft_labels)
    y = np.asarray(test[1].hard_labels())
    for name in ("uniform", "greedy", "edo"):
        p = np.asarray(make_method(name).fit(*dev).predict_proba(test[0]))
        expected = compute_metrics(p, q, y, metrics=("f1", "ce", "md", "bs"))
        for metric, value in expected.items():
            assert getattr(found[name], metric) == pytest.approx(value, abs=1e-12)


def test_the_constant_has_the_shares_and_the_majority_of_the_items_to_fit_on(
    samples: tuple,
) -> None:
    dev, test = samples
    found = compare(*dev, *test, methods=["edo"], samples=100)
    shares = dev[1].soft_labels.mean(axis=0)
    p = np.tile(shares, (50, 1))
    q = np.asarray(test[1].soft_labels)
    y = np.asarray(test[1].hard_labels())
    assert found["constant"].ce == pytest.approx(ce(p, q))
    majority = np.bincount(dev[1].hard_labels()).argmax()
    assert found["constant"].f1 == pytest.approx((y == majority).mean())
    assert found["constant"].only_label == dev[1].classes[majority]
    assert found.facts["constant"] == {"shares": pytest.approx(shares), "source": "fit"}
    gap = found["edo"].against_constant["ce"]
    assert gap.difference == pytest.approx(found["edo"].ce - found["constant"].ce)
    assert gap.high < 0
    assert found.headline == []
    assert found.fitted["edo"].constant_.shares == pytest.approx(shares)


def test_the_constant_has_the_shares_of_the_training_items_where_these_are_given(
    samples: tuple, tmp_path: Path
) -> None:
    dev, test = samples
    train = sample(30, seed=5, prefix="train")[1]
    people = {"train": train, "dev": dev[1], "test": test[1]}
    tables = [part.to_table().to_pandas().assign(split=name) for name, part in people.items()]
    splits = {"split": "dev", "test_split": "test", "train_split": "train"}
    annotations = Annotations.from_table(pd.concat(tables))
    found = compare(dev[0], annotations, test[0], **splits, methods=["edo"], samples=0)
    shares = train.soft_labels.mean(axis=0)
    assert found["constant"].ce == pytest.approx(
        ce(np.tile(shares, (50, 1)), np.asarray(test[1].soft_labels))
    )
    assert found.facts["constant"]["source"] == "train"
    found.save(tmp_path)
    kept = EDOEnsemble.load(tmp_path / "ensemble").constant_
    assert (kept.source, kept.shares.tolist()) == ("train", pytest.approx(shares))


def test_a_pool_that_knows_nothing_is_called_no_better_than_the_constant() -> None:
    def useless(items: int, seed: int, prefix: str) -> tuple[Predictions, Annotations]:
        rng = np.random.default_rng(seed)
        labels = np.where(rng.random((items, 5)) < 0.2, "yes", "no").astype(object)
        people = Annotations.from_matrix(labels, items=[f"{prefix}-{i}" for i in range(items)])
        noise = np.clip(rng.normal(0.2, 0.05, size=(3, items)), 0.05, 0.45)
        return Predictions.from_arrays(
            noise, items=people.items, classes=["no", "yes"], layout="KN"
        ), people

    found = compare(*useless(90, 0, "dev"), *useless(70, 1, "new"), methods=["edo"], samples=200)
    one, other = found.headline
    share = found["edo"].f1
    assert "edo labels all 70 items 'no', as the constant answer does" in one
    assert f"F1 of both is {share:.4f}" in one
    assert "constant answer" in other
    assert f"CE ({found['edo'].ce:.4f} against {found['constant'].ce:.4f}" in other
    assert "F1" not in other
    assert found.to_dict()["headline"] == found.headline
    assert one in found.markdown()
    plain_comparison = compare(
        *useless(90, 0, "dev"), *useless(70, 1, "new"), methods=["edo"], samples=0
    )
    assert plain_comparison.headline[0] == one


def test_the_f1_of_a_vote_is_that_of_the_vote() -> None:
    # Two lean to "no", one is sure of "yes": people say "no", the mean says "yes".
    dev, people = sample(20)
    lean = np.array([[0.6, 0.4], [0.6, 0.4], [0.02, 0.98]])
    y = people.hard_labels() == 0
    P = np.where(y[:, None, None], lean, lean[:, ::-1])
    names = ["a", "b", "c"]
    pool = Predictions.from_arrays(
        P, items=dev.items, members=names, classes=dev.classes, layout="NKC"
    )
    other, others = sample(20, seed=2, prefix="new")
    z = others.hard_labels() == 0
    Q = np.where(z[:, None, None], lean, lean[:, ::-1])
    unseen = Predictions.from_arrays(
        Q, items=other.items, members=names, classes=dev.classes, layout="NKC"
    )
    both = compare(pool, people, unseen, others, methods=["top-5"], samples=0)
    assert both["uniform"].f1 == 0.0
    assert both["top-5"].f1 == 1.0
    assert both["top-5"].ce == pytest.approx(both["uniform"].ce)


def test_another_pool_scores_as_its_uniform_mean(found: Comparison, samples: tuple) -> None:
    _, (predictions, people) = samples
    fair = predictions.select(["fair-1", "fair-2"]).probabilities
    assert found["fair"].ce == pytest.approx(ce(fair.mean(axis=1), np.asarray(people.soft_labels)))


def test_a_single_soft_label_member_has_a_row_where_one_is_known_as_such(samples: tuple) -> None:
    (dev, labels), (test, test_labels) = samples
    first, second = dev.members[:2]
    info = {name: {"supervision": "soft"} for name in (first, second)}
    found = compare(
        dev.with_info(info), labels, test, test_labels, methods=["best-single"], samples=0
    )
    members = compare(
        dev.select([first, second]),
        labels,
        test.select([first, second]),
        test_labels,
        methods=["best-single"],
        samples=0,
    )
    assert found["soft"].ce == members["best-single"].ce
    assert "soft" not in {score.name for score in members.scores}
    comparison = compare(
        dev.with_info(info),
        labels,
        test,
        test_labels,
        methods=[],
        extra={"soft": (dev.select([first]), test.select([first]))},
        samples=0,
    )
    assert [score.name for score in comparison.scores].count("soft") == 1


def test_learned_weights_beat_the_uniform_mean_where_members_are_noise(found: Comparison) -> None:
    test = found["edo"].against["ce"]
    assert test.high < 0
    assert test.p_value < 0.05
    assert found["edo"].within_noise


def test_intervals_hold_their_estimates_and_the_reference_has_no_test(found: Comparison) -> None:
    for score in found.scores:
        for metric, (low, high) in score.intervals.items():
            assert low <= getattr(score, metric) <= high
    assert found["uniform"].against == {}
    assert found.lowest.above_lowest is None
    assert found["one"].against["ce"].n == 50


def test_the_result_is_plain_json_in_the_promised_shape(found: Comparison) -> None:
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [set(row) >= {"name", "f1", "ce", "md", "bs"} for row in content["methods"]]
    by_name = {row["name"]: row for row in content["methods"]}
    assert set(by_name["edo"]["against_reference"]) == {"f1", "ce", "md", "bs"}
    assert by_name["edo"]["weights"].keys() == {*found.fitted["edo"].members_}
    assert content["lowest_ce"] == found.lowest.name
    assert content["items"] == {"dev": 80, "test": 50}


def test_without_samples_there_are_values_and_no_intervals(samples: tuple) -> None:
    plain_comparison = compare(*samples[0], *samples[1], methods=["edo"], samples=0)
    assert plain_comparison["edo"].intervals == {}
    assert plain_comparison.to_dict()["methods"][2]["within_noise_of_lowest_ce"] is None
    assert "interval" not in plain_comparison.markdown()


def test_other_orders_of_test_items_and_members_change_nothing(
    found: Comparison, samples: tuple
) -> None:
    dev, (predictions, people) = samples
    rows = np.random.default_rng(0).permutation(len(predictions))
    turned = predictions.take(rows).select(predictions.members[::-1])
    second_comparison = compare(*dev, turned, people, methods=QUICK, samples=0)
    for name in QUICK:
        assert second_comparison[name].ce == pytest.approx(found[name].ce, abs=1e-12)


def test_people_of_the_test_need_not_have_chosen_every_class(samples: tuple) -> None:
    dev, (predictions, people) = samples
    calm = np.flatnonzero(people.soft_labels[:, 0] == 1)
    test = predictions.take(calm), people.take(calm)
    found = compare(*dev, *test, methods=["edo"], samples=0)
    assert found.test_predictions.classes == dev[1].classes


@pytest.mark.parametrize(
    ("extra", "code", "fact"),
    [
        ({"uniform": (0, 1)}, "invalid-name", "'uniform'"),
        ({"a:b": (0, 1)}, "invalid-name", "'a:b'"),
        ({"short": (0, 2)}, "missing-members", "5 of 6"),
        ({"turned": (1, 0)}, "items-differ", "'turned'"),
    ],
)
def test_extra_pools_that_do_not_fit_are_refused(
    samples: tuple, extra: dict, code: str, fact: str
) -> None:
    (dev, _), (test, _) = samples
    files = [dev, test, test.select(["good-1"])]
    given = {name: tuple(files[i] for i in pair) for name, pair in extra.items()}
    with raises_code(code, fact):
        compare(*samples[0], *samples[1], methods=["edo"], extra=given, samples=0)


def test_judging_on_the_items_that_were_learned_from_is_refused(samples: tuple) -> None:
    dev, _ = samples
    with raises_code("test-items-in-fit", "80"):
        compare(*dev, *dev, methods=["edo"])


def test_a_test_without_some_members_is_refused(samples: tuple) -> None:
    dev, (predictions, people) = samples
    with raises_code("missing-members", "'noise-2'"):
        compare(*dev, predictions.select(dev[0].members[:5]), people, methods=["edo"])


def test_a_folder_keeps_results_tables_answers_and_the_ensemble(
    found: Comparison, tmp_path: Path
) -> None:
    found.save(tmp_path / "run", command="edo compare")
    kept = tmp_path / "run"
    assert json.loads((kept / "compare" / "methods.json").read_text()) == json.loads(
        json.dumps(found.to_dict())
    )
    written = (kept / "compare" / "methods.md").read_text()
    assert written == found.markdown()
    assert f"{found['edo'].ce:.4f}" in written
    assert EDOEnsemble.load(kept / "ensemble").members_ == found.fitted["edo"].members_
    record = RunRecord.load(kept)
    assert (record.kind, record.command) == ("compare", "edo compare")


def test_files_are_read_and_remembered(tmp_path: Path, samples: tuple) -> None:
    (dev, people), (test, others) = samples
    write_predictions(dev, tmp_path / "dev.npz")
    write_predictions(test, tmp_path / "test.npz")
    write_annotations(people, tmp_path / "dev.csv")
    write_annotations(others, tmp_path / "test.csv")
    paths = [tmp_path / name for name in ("dev.npz", "dev.csv", "test.npz", "test.csv")]
    read = compare(*paths, methods=["greedy"], samples=0, classes=["no", "yes"])
    comparison = compare(dev, people, str(paths[2]), others, methods=["greedy"], samples=0)
    assert read["greedy"].ce == comparison["greedy"].ce
    read.save(tmp_path / "run")
    record = RunRecord.load(tmp_path / "run")
    assert {role: Path(one.path).name for role, one in record.inputs.items()} == {
        "predictions": "dev.npz",
        "annotations": "dev.csv",
        "test_predictions": "test.npz",
        "test_annotations": "test.csv",
    }
    assert record.inputs["annotations"].options == {"classes": ["no", "yes"]}
    comparison.save(tmp_path / "other")
    assert set(RunRecord.load(tmp_path / "other").inputs) == {"test_predictions"}


def test_one_source_with_two_splits(tmp_path: Path, samples: tuple) -> None:
    (dev, people), (test, others) = samples
    parts = [
        one.to_table().append_column("split", [[name] * len(one)])
        for name, one in (("dev", people), ("test", others))
    ]
    where = tmp_path / "all.csv"
    write_table(pa.concat_tables(parts), where)
    options = {"methods": ["edo"], "samples": 0}
    found = compare(dev, where, test, split="dev", test_split=["test"], **options)
    assert found["edo"].ce == compare(dev, people, test, others, **options)["edo"].ce
    both = Annotations.from_table(pa.concat_tables(parts))
    found = compare(dev, both, test, split="dev", test_split=["test"], **options)
    assert found.facts["items"] == {"dev": 80, "test": 50}
    loaded = load_annotations(where, ReadOptions(split=["dev", "test"]))
    assert len(loaded.annotations.items) == 130
    assert loaded.inputs["annotations"].options == {"split": ["dev", "test"]}
    with raises_code("items-differ"):
        compare(dev, where, test, split="dev", test_split="dev")
    with raises_code("missing-splits"):
        compare(dev, people.soft_labels, test, others, split=["dev", "test"])


def test_items_that_were_learned_from_are_not_judged_on() -> None:
    dev, people = sample(80)
    part = dev.take(range(30)), people.take(range(30))
    with raises_code("test-items-in-fit", "30"):
        compare(dev, people, *part, methods=["greedy"])


def test_splits_may_number_their_items_alike() -> None:
    dev = sample(80)
    test = sample(50, seed=1)
    assert set(test[0].items) <= set(dev[0].items)
    assert compare(*dev, *test, methods=["linear-pool"], samples=0)["linear-pool"].ce > 0


def test_the_folder_of_a_search_is_left_alone(found: Comparison, tmp_path: Path) -> None:
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "journal.log").write_text('{"op_code":0}\n')
    with raises_code("existing-folder"):
        found.save(tmp_path)
    assert not (tmp_path / "compare").exists()


# Without test items


def test_without_test_items_no_item_is_judged_by_weights_that_it_chose(samples: tuple) -> None:
    predictions, labels = samples[0]
    found = compare(predictions, labels, methods=("best-single", "greedy"), samples=50, folds=4)
    assert found.facts["folds"] == 4
    assert "cross-validated on 80 items in 4 folds" in found.table().title
    # The shares of the other folds, never those of all items.
    answers = found.test_predictions
    constant = np.asarray(answers.probabilities)[:, answers.members.index("constant")]
    whole = found.fitted["constant"].constant_.shares  # type: ignore[attr-defined]
    assert len(np.unique(constant.round(12), axis=0)) == 4
    assert not np.isclose(constant, whole).all(axis=1).any()
    uniform = np.asarray(answers.probabilities)[:, answers.members.index("uniform")]
    np.testing.assert_allclose(uniform, predictions.align(answers.rows).uniform)


def test_near_duplicates_share_a_fold() -> None:
    table = sample(60)[1].to_table().to_pandas().astype(str)
    number = table["item"].astype("category").cat.codes
    table["text"] = [
        f"the same few words about bus number {n // 2} of town {n // 2}" for n in number
    ]
    labels = Annotations.from_table(table)
    found = compare(sample(60)[0], labels, methods=("edo",), samples=0, folds=3)
    answers = found.test_predictions
    constant = np.asarray(answers.probabilities)[:, answers.members.index("constant"), 0]
    group = dict(zip(table["item"], number // 2, strict=True))
    shares: dict[int, set[float]] = {}
    for item, share in zip(answers.items, constant.round(12), strict=True):
        shares.setdefault(group[item], set()).add(float(share))
    assert all(len(values) == 1 for values in shares.values())


def test_options_of_test_items_need_test_predictions(samples: tuple) -> None:
    with raises_code("missing-option", "test_predictions"):
        compare(*samples[0], test_split="test")
    few = samples[0][0].take(range(8)), samples[0][1].take(range(8))
    with raises_code("too-many-folds"):
        compare(*few)
