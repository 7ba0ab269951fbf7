"""`edokit.evaluate`: probabilities in any form against annotations in any form."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import edokit
from edokit import Annotations, EDOEnsemble, ItemArray, Predictions, metrics
from edokit._io.tables import write_table
from edokit.analysis.evaluate.text import metric_table
from tests.errors import raises_code

LABELS = Annotations.from_matrix(
    [["no", "yes", "yes"], ["no", "no", "no"], ["yes", "yes", None]], items=["a", "b", "c"]
)
P = np.array([[0.4, 0.6], [0.9, 0.1], [0.2, 0.8]])
BY_ID = ItemArray(P, ["a", "b", "c"], ["no", "yes"])
TABLE = {"item": ["c", "a", "b"], "p_yes": P[[2, 0, 1], 1], "p_no": P[[2, 0, 1], 0]}


def test_the_form_of_the_probabilities_does_not_matter(tmp_path: Path) -> None:
    frame = pd.DataFrame(TABLE)
    frame.to_csv(tmp_path / "p.csv", index=False)
    wanted = metrics.compute_metrics(
        P, LABELS.soft_labels, LABELS.hard_labels(), order="annotations"
    )
    for array in (P, P.tolist()):
        evaluation = edokit.evaluate(array, LABELS, samples=0, order="annotations")
        assert evaluation.metrics == pytest.approx(wanted)
    forms: list[Any] = [BY_ID, BY_ID[::-1], TABLE, frame, frame.set_index("item"), pa.table(TABLE)]
    for form in [*forms, tmp_path / "p.csv", str(tmp_path / "p.csv")]:
        assert edokit.evaluate(form, LABELS, samples=0).metrics == pytest.approx(wanted)


def test_annotations_may_be_a_file_or_a_table(tmp_path: Path) -> None:
    write_table(LABELS.to_table(), tmp_path / "labels.csv")
    wanted = edokit.evaluate(BY_ID, LABELS, samples=0).to_dict()
    for form in (tmp_path / "labels.csv", LABELS.to_table(), LABELS.to_table().to_pandas()):
        assert edokit.evaluate(BY_ID, form, samples=0).to_dict() == wanted


@pytest.mark.parametrize(("level", "heading"), [(0.95, "95%"), (0.975, "97.5%"), (0.995, "99.5%")])
def test_a_table_does_not_round_the_level_of_its_intervals(level: float, heading: str) -> None:
    evaluation = edokit.evaluate(BY_ID, LABELS, samples=50, level=level)
    assert f"{heading} interval" in metric_table(evaluation, "labels").header


def test_intervals_floor_and_annotators_come_with_it() -> None:
    evaluation = edokit.evaluate(BY_ID, LABELS, samples=50, level=0.9, random_state=3)
    q = LABELS.soft_labels
    y = LABELS.hard_labels()
    assert evaluation.intervals == metrics.bootstrap(
        BY_ID, q, y, samples=50, level=0.9, random_state=3
    )
    assert evaluation.ce_floor == metrics.entropy(LABELS.soft_labels)
    assert [annotator["n"] for annotator in evaluation.annotators] == [3, 3, 2]
    plain_content = json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))
    assert plain_content["intervals"]["ce"] == [
        evaluation.intervals["ce"].low,
        evaluation.intervals["ce"].high,
    ]
    assert {
        "items",
        "level",
        "ce_floor",
        "annotators",
        *metrics.metrics_of(),
    } <= plain_content.keys()
    assert "intervals" not in edokit.evaluate(BY_ID, LABELS, samples=0).to_dict()


@pytest.mark.parametrize(
    ("probabilities", "options", "code", "facts"),
    [
        (P[:2], {"order": "annotations"}, "lengths-differ", ("2 rows", "3")),
        ({**TABLE, "item": ["c", "a", "x"]}, {}, "items-differ", ("1 of 3", "'b'", "'x'")),
        (P * 1.1, {"order": "annotations"}, "invalid-probabilities", ("'a'",)),
        (BY_ID, {"samples": 20}, "invalid-number", ("samples is 20", "50")),
    ],
)
def test_what_does_not_fit_is_refused(
    probabilities: Any, options: dict[str, Any], code: str, facts: tuple[str, ...]
) -> None:
    with raises_code(code, *facts):
        edokit.evaluate(probabilities, LABELS, **options)


def test_sums_can_be_set_right() -> None:
    wanted = edokit.evaluate(BY_ID, LABELS, samples=0).metrics
    assert edokit.evaluate(
        P * 1.1, LABELS, samples=0, invalid="normalize", order="annotations"
    ).metrics == pytest.approx(wanted)


ITEMS = [f"i{k}" for k in range(60)]
PEOPLE = Annotations.from_matrix(
    (np.random.default_rng(0).random((60, 5)) < np.linspace(0, 1, 60)[:, None]).astype(int),
    items=ITEMS,
)
MEMBERS = Predictions.from_arrays(
    [np.clip(np.linspace(0, 1, 60) + shift, 0.05, 0.95) for shift in (0.0, 0.2)],
    items=ITEMS,
    layout="KN",
)


def test_a_constant_answer_is_evaluated_beside_the_probabilities() -> None:
    evaluation = edokit.evaluate(MEMBERS.select(["0"]), PEOPLE, samples=100)
    shares = PEOPLE.soft_labels.mean(axis=0)
    own, constant = evaluation.scores
    assert (own.name, constant.name) == ("predictions", "constant")
    assert constant.ce == pytest.approx(
        metrics.ce(np.tile(shares, (60, 1)), np.asarray(PEOPLE.soft_labels))
    )
    assert own.against_constant["ce"].high < 0
    assert evaluation.constant.source == "items"
    assert evaluation.headline == []
    content = json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))
    assert [method["name"] for method in content["methods"]] == ["predictions", "constant"]
    train = PEOPLE.take(range(20))
    table = PEOPLE.to_table().to_pandas()
    table["split"] = np.where(table["item"].isin(train.items), "train", "test")
    probabilities = dict(zip(("p_0", "p_1"), MEMBERS.probabilities[20:, 0].T, strict=True))
    other_evaluation = edokit.evaluate(
        {"item": PEOPLE.items[20:], **probabilities},
        Annotations.from_table(table),
        split="test",
        train_split="train",
        samples=0,
    )
    assert other_evaluation.constant.source == "train"
    assert other_evaluation.constant.shares == pytest.approx(train.soft_labels.mean(axis=0))


def test_an_ensemble_knows_the_constant_and_pools_what_it_is_given(tmp_path: Path) -> None:
    fit_on = MEMBERS.take(range(30)), PEOPLE.take(range(30))
    ensemble = EDOEnsemble().fit(*fit_on)
    ensemble.save(tmp_path / "e")
    evaluation = edokit.evaluate(
        None, PEOPLE, predictions=MEMBERS, ensemble=tmp_path / "e", samples=100
    )
    assert [score.name for score in evaluation.scores] == ["edo", "uniform", "constant"]
    p = ensemble.predict_proba(MEMBERS)
    assert evaluation.metrics["ce"] == pytest.approx(metrics.ce(p, PEOPLE.soft_labels))
    assert evaluation.scores[1].ce == pytest.approx(metrics.ce(MEMBERS.uniform, PEOPLE.soft_labels))
    assert evaluation.constant.source == "fit"
    assert evaluation.constant.shares == pytest.approx(fit_on[1].soft_labels.mean(axis=0))
    with raises_code("missing-option"):
        edokit.evaluate(None, PEOPLE, predictions=MEMBERS)
    other = {"item": ITEMS, "p_no": [0.5] * 60, "p_yes": [0.5] * 60}
    named_annotations = Annotations.from_matrix([["no", "yes"]] * 60, items=ITEMS)
    with raises_code("classes-differ", "'0'", "'1'"):
        edokit.evaluate(other, named_annotations, ensemble=ensemble)


def test_probabilities_that_label_every_item_the_same_are_called_so() -> None:
    p = np.tile([0.6, 0.4], (60, 1))
    share = (PEOPLE.hard_labels() == 0).mean()
    first, second = edokit.evaluate(p, PEOPLE, samples=100, order="annotations").headline
    assert "labels all 60 items '0'" in first
    assert f"{share:.4f}" in first
    assert "constant answer (the shares of these very items) in CE" in second
    # The subject is in the singular, as the verbs are.
    assert first.startswith("The model labels ")
    assert second.startswith("The model is ")


@pytest.mark.parametrize("option", [{"level": 1.0}, {"level": "wide"}, {"random_state": -1}])
def test_invalid_options_are_refused_by_name(option: dict[str, Any]) -> None:
    with raises_code("invalid-number", *option):
        edokit.evaluate(BY_ID, LABELS, **option)


def test_random_ties_of_the_train_split_have_the_seed_of_the_evaluation() -> None:
    votes = [["no", "yes"]] * 40  # all tied, so that the majority class is that of the draws
    people = Annotations.from_matrix(votes, items=[f"item {k}" for k in range(40)])
    people = replace(people, splits=np.array(["train"] * 37 + ["test"] * 3, dtype=object))
    train = people.split("train")
    p = ItemArray(np.full((3, 2), 0.5), people.split("test").items, ["no", "yes"])
    for seed in range(4):
        evaluation = edokit.evaluate(
            p,
            people,
            split="test",
            train_split="train",
            ties="random",
            random_state=seed,
            samples=0,
        )
        share = (train.hard_labels(ties="random", random_state=seed) == 1).mean()
        assert evaluation.constant.label == int(share > 0.5)


def test_classes_that_nobody_chose_may_have_probabilities() -> None:
    p = {"item": ITEMS, "p_0": [0.5] * 60, "p_1": [0.4] * 60, "p_2": [0.1] * 60}
    assert edokit.evaluate(p, PEOPLE, samples=0).metrics["ce"] is not None


def test_answers_for_annotators_are_matched_by_pair() -> None:
    votes = {"item": list("aabb"), "annotator": list("xyxy"), "label": [1, 3, 2, 2]}
    people = Annotations.from_table(votes, classes=[1, 2, 3], scale="ordinal")
    own = np.array([[0.9, 0.1, 0.0], [0.0, 0.1, 0.9], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]])
    table = pd.DataFrame(own, columns=["p_1", "p_2", "p_3"])
    table = table.assign(item=votes["item"], annotator=votes["annotator"])
    evaluation = edokit.evaluate(table[::-1], people, ties="random", samples=0)
    # The distribution of an item is the mean over its annotators, each has an error.
    assert evaluation.metrics["md"] == pytest.approx(np.mean([0.05 + 0.1 + 0.05, 0.2 + 0.4 + 0.2]))
    assert [annotator["error"] for annotator in evaluation.annotators] == [0, 0]
    with raises_code("items-differ", "1", "4"):
        edokit.evaluate(table[:3], people, ties="random", samples=0)
