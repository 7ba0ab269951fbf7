"""Ensembles on answer scales: points of a scale and sets of labels, from fit to file."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline

import edokit
from commands import status
from edokit import (
    Annotations,
    EDOClassifier,
    EDOEnsemble,
    InputError,
    Objective,
    Predictions,
    Scale,
    read_predictions,
    write_predictions,
)
from edokit.ensemble._fit import choose_lambda_reg
from edokit.ensemble.answers import Answer, Step
from edokit.fitdata.data import FitData
from edokit.metrics import ce, ce_items, md, w1
from edokit.objective.pools import pool
from edokit.predictions.shards import Shards
from edokit.solvers.exact import solve_path
from flat_options import flat_ensemble
from tests.errors import raises_code

POINTS = "ordinal:1,2,3,5"
LABELS = "multi-label:rude,mocking,sincere"
RNG = np.random.default_rng(7)
ITEMS = [f"item-{i}" for i in range(90)]


def _points() -> tuple[Predictions, Annotations]:
    places = np.array([1.0, 2.0, 3.0, 5.0])
    mean = RNG.normal(2.5, 1.2, len(ITEMS))

    def around(centre: Any, width: float) -> Any:
        p = np.exp(-((places - centre[:, None]) ** 2) / (2 * width**2))
        return p / p.sum(axis=1, keepdims=True)

    votes = [RNG.choice(places.astype(int), 4, p=row) for row in around(mean, 0.8)]
    P = [around(mean + RNG.normal(0, noise, len(ITEMS)), 1.4) for noise in (0.6, 0.8, 1.2)]
    return (
        Predictions.from_arrays(
            np.stack(P, axis=1), items=ITEMS, members=list("abc"), layout="NKC", scale=POINTS
        ),
        Annotations.from_matrix(np.array(votes), items=ITEMS, scale=POINTS),
    )


def _sets() -> tuple[Predictions, Annotations]:
    share = RNG.beta(0.7, 0.9, (len(ITEMS), 3))
    votes = (RNG.random((len(ITEMS), 5, 3)) < share[:, None]).mean(axis=1)
    # Each member is good at one label.
    noise = np.full((3, 3), 0.6) - 0.55 * np.eye(3)
    P = share[:, None] + RNG.normal(size=(len(ITEMS), 3, 3)) * noise
    return (
        Predictions.from_arrays(
            np.clip(P, 0.03, 0.97),
            items=ITEMS,
            members=list("abc"),
            groups=["x", "x", "y"],
            layout="NKC",
            scale=LABELS,
        ),
        Annotations.from_soft_labels(votes, items=ITEMS, scale=LABELS),
    )


ORDINAL = _points()
SETS = _sets()
pytestmark = pytest.mark.filterwarnings("ignore::edokit.EDOWarning")


@pytest.mark.parametrize(
    ("data", "parameters"),
    [
        (ORDINAL, {}),
        (ORDINAL, {"lambda_rps": 1.0, "lambda_ce": 0.0}),
        (ORDINAL, {"lambda_w1": 1.0, "lambda_div": 0.1}),
        (ORDINAL, {"lambda_rps": 0.5, "solver": "gumbel", "epochs": 2}),
        (SETS, {}),
        (SETS, {"pool": "log", "groups": True, "recalibrate": "temperature"}),
        (SETS, {"solver": "gumbel", "epochs": 2}),
    ],
)
def test_a_saved_ensemble_keeps_its_scale_and_predicts_the_same(
    data: Any, parameters: dict[str, Any], tmp_path: Path
) -> None:
    predictions, annotations = data
    fitted = flat_ensemble(parameters).fit(predictions, annotations)
    fitted.save(tmp_path)
    loaded = EDOEnsemble.load(tmp_path)
    assert loaded.scale_ == fitted.scale_ == predictions.scale
    content = json.loads((tmp_path / "ensemble.json").read_text())
    assert content["scale"] == predictions.scale.to_text(predictions.classes)
    for metric in (None, "md"):
        np.testing.assert_array_equal(
            loaded.predict_proba(predictions, answer_for=metric),
            fitted.predict_proba(predictions, answer_for=metric),
        )
    assert loaded.summary() == fitted.summary()
    assert loaded.explain() == fitted.explain()
    assert loaded.answers_ == fitted.answers_
    assert loaded.get_params() == fitted.get_params()
    assert loaded.constant_ is not None
    assert fitted.constant_ is not None
    assert loaded.constant_.label == fitted.constant_.label


@pytest.mark.parametrize("term", ["lambda_rps", "lambda_w1"])
def test_terms_of_ordered_classes_lower_their_own_distance(term: str) -> None:
    without = EDOEnsemble(objective=Objective(f1=0, ce_weight=1, reg=0)).fit(*ORDINAL)
    alone = {"lambda_f1": 0, "lambda_ce": 0, "lambda_reg": 0, term: 1}
    having = flat_ensemble(alone).fit(*ORDINAL)
    name = term.removeprefix("lambda_")
    assert having.metrics_[name] < without.metrics_[name]
    assert having.objective_[name] == pytest.approx(having.metrics_[name], abs=1e-3)
    left_out = [reason for reason in having.explain() if not reason.has_weight]
    assert all(reason.term == term for reason in left_out if reason.term)


@pytest.mark.parametrize("term", ["lambda_rps", "lambda_w1"])
def test_terms_of_ordered_classes_need_an_order(term: str) -> None:
    nominal = flat_ensemble({"scale": "nominal", term: 1})
    with raises_code("unordered-scale", term):
        nominal.fit(*(np.asarray(one) for one in ([[[0.5, 0.5]]] * 20, [0, 1] * 10)))
    with raises_code("unordered-scale", term):
        flat_ensemble({term: 1}).fit(*SETS)
    with raises_code("conflicting-options", "linear"):
        flat_ensemble({"pool": "log", term: 1}).fit(*ORDINAL)


def test_a_term_of_ordered_classes_is_something_to_optimise() -> None:
    nothing = {"lambda_f1": 0, "lambda_ce": 0, "lambda_div": 0, "lambda_reg": 0}
    flat_ensemble({**nothing, "lambda_rps": 1}).fit(*ORDINAL)
    with raises_code("no-objective", "lambda_w1"):
        flat_ensemble(nothing).fit(*ORDINAL)


def test_arrays_have_the_scale_that_is_declared() -> None:
    predictions, annotations = ORDINAL
    sets, chosen = SETS
    for scale, members, labels in (
        (POINTS, predictions, annotations.soft_labels),
        (LABELS, sets, chosen.soft_labels),
    ):
        named_ensemble = EDOEnsemble().fit(members, labels)
        bare = EDOEnsemble(scale=scale).fit(members.probabilities, np.asarray(labels))
        assert bare.scale_ == named_ensemble.scale_ == members.scale
        np.testing.assert_allclose(bare.weights_, named_ensemble.weights_)
        np.testing.assert_allclose(
            bare.predict_proba(members.probabilities), named_ensemble.predict_proba(members)
        )
    nameless = Annotations.from_soft_labels(np.asarray(chosen.soft_labels), scale=LABELS)
    np.testing.assert_array_equal(
        EDOEnsemble().fit(sets.probabilities, nameless).weights_,
        EDOEnsemble().fit(sets, chosen).weights_,
    )


def test_a_declared_scale_holds_for_data_without_one() -> None:
    predictions, annotations = ORDINAL
    plain_predictions = Predictions.from_arrays(
        predictions.probabilities,
        items=ITEMS,
        members=list("abc"),
        classes=predictions.classes,
        layout="NKC",
    )
    counted = Annotations.from_soft_labels(
        annotations.soft_labels, items=ITEMS, classes=predictions.classes
    )
    assert EDOEnsemble(scale=POINTS).fit(plain_predictions, counted).scale_ == predictions.scale
    # New predictions without a scale are on that of the ensemble.
    fitted = EDOEnsemble().fit(*ORDINAL)
    np.testing.assert_array_equal(
        fitted.predict_proba(plain_predictions), fitted.predict_proba(predictions)
    )


def test_two_scales_are_an_error_that_names_both() -> None:
    predictions, annotations = ORDINAL
    sets, chosen = SETS
    nominal = Annotations.from_soft_labels(
        annotations.soft_labels, items=ITEMS, classes=predictions.classes
    )
    with raises_code("scales-differ", "ordinal", "nominal"):
        EDOEnsemble().fit(predictions, nominal)
    with raises_code("scales-differ", "multi-label", "ordinal"):
        EDOEnsemble(scale="ordinal:rude,mocking,sincere").fit(sets, chosen)
    fitted = EDOEnsemble().fit(np.full((90, 2, 4), 0.25), np.asarray(nominal.soft_labels))
    with raises_code("scales-differ", "ordinal", "nominal"):
        fitted.predict_proba(
            Predictions.from_arrays(
                np.full((1, 2, 4), 0.25), layout="NKC", members=["0", "1"], scale="ordinal:0,1,2,3"
            )
        )
    with raises_code("unknown-choice", "cardinal"):
        EDOEnsemble(scale="cardinal").fit(predictions, annotations)


def test_classes_in_another_order_than_the_scale_are_refused() -> None:
    predictions, annotations = ORDINAL
    turned = Predictions.from_arrays(
        predictions.probabilities, items=ITEMS, classes=["5", "3", "2", "1"], layout="NKC"
    )
    with raises_code("classes-differ"):
        EDOEnsemble(scale=POINTS).fit(turned, annotations)


def test_sets_are_predicted_as_indicators_and_written_as_lists() -> None:
    predictions, annotations = SETS
    fitted = EDOEnsemble().fit(predictions, annotations)
    p = fitted.predict_proba(predictions)
    pooled = fitted.describe(predictions)
    predicted = fitted.predict(predictions)
    np.testing.assert_array_equal(predicted, (p > 0.5).astype(int))
    assert fitted.classes_.tolist() == ["rude", "mocking", "sincere"]
    assert fitted.score(predictions, annotations) == pytest.approx(
        (predicted == annotations.hard_labels()).mean()
    )
    sides = [np.stack([1 - each, each], axis=-1) for each in (p, annotations.soft_labels)]
    loss = np.mean([ce(sides[0][:, k], sides[1][:, k]) for k in range(3)])
    assert fitted.soft_score(predictions, annotations) == pytest.approx(-loss)
    assert fitted.metrics_["ce"] == pytest.approx(loss)
    table = pooled.to_table().to_pydict()
    names = np.array(predictions.classes)
    assert [json.loads(cell) for cell in table["label"]] == [
        names[row > 0].tolist() for row in predicted
    ]
    assert set(table["answer_scale"]) == {LABELS}
    two = -(sides[0] * np.log(sides[0])).sum(axis=2).mean(axis=1)
    np.testing.assert_allclose(table["entropy"], two)
    assert fitted.constant_.shares == pytest.approx(annotations.soft_labels.mean(axis=0))
    most = annotations.hard_labels().mean(axis=0) > 0.5
    assert fitted.constant_.label == tuple(most.astype(int).tolist())
    assert list(fitted.data_["hard_labels"].values()) == annotations.hard_labels().sum(0).tolist()


def test_a_log_pool_of_sets_pools_both_sides_of_a_label() -> None:
    predictions, annotations = SETS
    fitted = EDOEnsemble(pool="log").fit(predictions, annotations)
    P = predictions.probabilities
    weights = fitted.weights_
    yes, no = (np.exp(np.einsum("nkl,k->nl", np.log(side), weights)) for side in (P, 1 - P))
    np.testing.assert_allclose(fitted.predict_proba(predictions), yes / (yes + no), rtol=1e-8)


def test_shards_of_sets_give_what_memory_gives(tmp_path: Path) -> None:
    predictions, annotations = SETS
    for k in range(3):
        part = predictions.take(np.arange(30 * k, 30 * k + 30))
        (tmp_path / "shards").mkdir(exist_ok=True)
        write_predictions(part, tmp_path / "shards" / f"{k}.npz")
    shards = Shards.open(tmp_path / "shards")
    full_ensemble = EDOEnsemble().fit(predictions, annotations)
    parts = EDOEnsemble().fit(shards, annotations)
    np.testing.assert_allclose(parts.weights_, full_ensemble.weights_, atol=1e-7)
    assert parts.scale_ == full_ensemble.scale_
    for metric, step in full_ensemble.answers_.items():
        assert parts.answers_[metric].temperature == pytest.approx(step.temperature)
        assert parts.answers_[metric].after == pytest.approx(step.after)
    assert parts.constant_.shares == pytest.approx(full_ensemble.constant_.shares)
    np.testing.assert_allclose(
        parts.predict_proba(shards, answer_for="md"),
        full_ensemble.predict_proba(predictions, answer_for="md"),
        atol=1e-6,
    )


def test_old_files_have_no_scale_and_load_as_nominal(tmp_path: Path) -> None:
    predictions, annotations = SETS
    EDOEnsemble().fit(np.full((4, 2, 2), 0.5), [0, 1, 1, 0]).save(tmp_path / "plain")
    content = json.loads((tmp_path / "plain" / "ensemble.json").read_text())
    assert "scale" not in content
    assert EDOEnsemble.load(tmp_path / "plain").scale_ == Scale()
    EDOEnsemble().fit(predictions, annotations).save(tmp_path / "sets")
    content = json.loads((tmp_path / "sets" / "ensemble.json").read_text())
    for broken in (
        {"scale": "cardinal"},
        {"scale": "multi-label:rude"},
        {"scale": "ordinal:rude=3,mocking=2,sincere=1"},
        {"parameters": {**content["parameters"], "label_weights": "per-label"}},
        {"constant": {**content["constant"], "label": 1}},
        {"answers": {"md": {**content["answers"]["md"], "temperature": -1.0}}},
    ):
        (tmp_path / "broken").mkdir(exist_ok=True)
        (tmp_path / "broken" / "ensemble.json").write_text(json.dumps({**content, **broken}))
        with pytest.raises(InputError, match=next(iter(broken))):
            EDOEnsemble.load(tmp_path / "broken")


# Answers for a metric


def _value(metric: str, p: Any, q: Any, scale: Scale) -> float:
    rows = scale.rows(p), scale.rows(q)
    return {"ce": ce, "md": md, "w1": lambda a, b: w1(a, b, scale.positions)}[metric](*rows)


@pytest.mark.parametrize(
    ("data", "metric"),
    [(ORDINAL, "ce"), (ORDINAL, "md"), (ORDINAL, "w1"), (SETS, "ce"), (SETS, "md")],
)
def test_answers_for_a_metric_do_not_raise_it_and_leave_the_pool_alone(
    data: Any, metric: str
) -> None:
    predictions, annotations = data
    fitted = EDOEnsemble().fit(predictions, annotations)
    pooled = fitted.describe(predictions, answer_for=metric)
    step = fitted.answers_[metric]
    q = np.asarray(annotations.soft_labels)
    np.testing.assert_array_equal(pooled.probabilities, fitted.predict_proba(predictions))
    assert _value(metric, pooled.probabilities, q, pooled.scale) == pytest.approx(step.before)
    assert _value(metric, pooled.answers, q, pooled.scale) == pytest.approx(step.after)
    assert step.after <= step.before
    assert step.items == len(ITEMS)
    made = pooled.scale.rows(pooled.answers)
    assert made.min() >= 0
    np.testing.assert_allclose(made.sum(axis=1), 1)
    table = pooled.to_table()
    assert set(table["answer_for"].to_pylist()) == {metric}
    columns = [table[f"p_{name}"].to_numpy() for name in predictions.classes]
    np.testing.assert_array_equal(np.stack(columns, axis=1), pooled.answers)


@pytest.mark.parametrize("data", [ORDINAL, SETS])
def test_answers_for_f1_are_the_mode(data: Any) -> None:
    predictions, annotations = data
    fitted = EDOEnsemble().fit(predictions, annotations)
    pooled = fitted.describe(predictions, answer_for="f1")
    rows = pooled.scale.rows(pooled.answers)
    assert set(np.unique(rows)) == {0.0, 1.0}
    np.testing.assert_array_equal(
        pooled.scale.hard(pooled.answers), pooled.scale.hard(pooled.probabilities)
    )
    assert fitted.answers_["f1"].after == pytest.approx(fitted.metrics_["f1"])
    # What the table says of the items is of the pool: a certain answer has no entropy.
    assert min(pooled.entropy) > 0


def test_the_median_is_beside_the_label() -> None:
    predictions, annotations = ORDINAL
    pooled = EDOEnsemble().fit(predictions, annotations).describe(predictions)
    below = np.cumsum(pooled.probabilities, axis=1)
    expected = [predictions.classes[np.argmax(row >= 0.5)] for row in below]
    assert pooled.to_table()["median"].to_pylist() == expected
    assert "median" not in EDOEnsemble().fit(*SETS).describe(SETS[0]).to_table().column_names


def test_an_ordinal_answer_has_an_expected_point_and_the_probability_of_a_point_or_more() -> None:
    predictions, annotations = ORDINAL
    pooled = EDOEnsemble().fit(predictions, annotations).describe(predictions)
    table = pooled.to_table().to_pandas()
    p = pooled.probabilities
    positions = np.array(pooled.scale.positions)
    np.testing.assert_allclose(table["expected"], p @ positions)
    for c, name in enumerate(pooled.classes):
        np.testing.assert_allclose(table[f"at_least_{name}"], p[:, c:].sum(axis=1))
    record = pooled.to_records()[3]
    assert record["expected"] == table["expected"][3]
    assert record["at_least"] == {name: table[f"at_least_{name}"][3] for name in pooled.classes}
    nominal = EDOEnsemble().fit(*SETS).describe(SETS[0])
    assert nominal.expected is None
    assert "expected" not in nominal.to_table().column_names
    assert "at_least" not in nominal.to_records()[0]


def test_predict_sorts_by_a_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predictions, annotations = ORDINAL
    EDOEnsemble().fit(predictions, annotations).save(tmp_path / "ensemble")
    write_predictions(predictions, tmp_path / "dev.npz")
    words = ("predict", tmp_path / "ensemble", "--predictions", tmp_path / "dev.npz")
    out = tmp_path / "queue.csv"
    assert status(*words, "--out", out, "--sort", "expected") == 0
    rows = pd.read_csv(out)
    assert len(rows) == len(ITEMS)
    assert rows["expected"].is_monotonic_decreasing
    assert status(*words, "--out", out, "--sort", "item", "--overwrite") == 0
    assert pd.read_csv(out)["item"].is_monotonic_increasing
    capsys.readouterr()
    assert status(*words, "--out", tmp_path / "none.csv", "--sort", "urgency") == 2
    assert re.search(
        r"--sort must be one of.*'expected'", " ".join(capsys.readouterr().err.split())
    )
    assert not (tmp_path / "none.csv").exists()


def test_a_metric_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    fitted = EDOEnsemble().fit(*SETS)
    with raises_code("unordered-scale", "ordinal", "multi-label"):
        fitted.predict_proba(SETS[0], answer_for="w1")
    with raises_code("unknown-choice", "answer_for", "'bs'"):
        fitted.predict_proba(SETS[0], answer_for="bs")


def test_files_declare_their_scale_once(tmp_path: Path) -> None:
    predictions, _ = ORDINAL
    plain_predictions = Predictions.from_arrays(
        predictions.probabilities, items=ITEMS, classes=predictions.classes, layout="NKC"
    )
    write_predictions(plain_predictions, tmp_path / "dev.npz")
    people = Annotations.from_matrix([[1, 2], [3, 5], [2, 2]] * 30, items=ITEMS)
    edokit.write_annotations(people, tmp_path / "dev.csv")
    fitted = edokit.fit(
        tmp_path / "dev.npz",
        tmp_path / "dev.csv",
        ensemble=EDOEnsemble(scale=POINTS),
        out=tmp_path / "ensemble",
    )
    assert fitted.scale_ == predictions.scale
    assert read_predictions(tmp_path / "dev.npz").scale == Scale()


@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_the_commands_fit_a_scale_and_answer_for_a_metric(
    stream: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, (predictions, people), metric in (("points", ORDINAL, "w1"), ("sets", SETS, "md")):
        folder = tmp_path / name
        for k in range(2):
            (folder / "shards").mkdir(parents=True, exist_ok=True)
            part = predictions.take(np.arange(45 * k, 45 * k + 45))
            write_predictions(part, folder / "shards" / f"{k}.npz")
        labels = folder / "labels.parquet"
        edokit.write_annotations(people, labels)
        weights = () if name == "sets" else ("--lambda-rps", 1)
        fit = ("--predictions", folder / "shards", "--annotations", labels, *stream, *weights)
        assert status("fit", *fit, "--out", folder / "ensemble", "--json") == 0
        content = json.loads(capsys.readouterr().out)
        assert content["scale"] == predictions.scale.to_text(predictions.classes)
        asked = ("predict", folder / "ensemble", "--predictions", folder / "shards")
        for words in ((), ("--for", metric)):
            assert status(*asked, "--out", folder / "out.csv", "--overwrite", *words) == 0
        line = " ".join(capsys.readouterr().out.split())
        assert f"answers for {metric}, all else describes the pool" in line
        lines = (folder / "out.csv").read_text().splitlines()
        assert len(lines) == 1 + len(ITEMS)
        assert f'"{metric}"' in lines[1]
    assert status(*asked, "--out", folder / "none.csv", "--for", "w1") == 2
    assert "multi-label" in capsys.readouterr().err
    assert status(*asked, "--out", folder / "none.csv", "--for", "rps") == 2
    assert "--for" in capsys.readouterr().err
    assert not (folder / "none.csv").exists()


def test_the_error_of_a_held_out_difference_is_that_of_items() -> None:
    data = FitData.from_predictions(*SETS)
    chosen, record = choose_lambda_reg(data, Objective().resolve())
    above = []
    for rest, fold in data.draw(len(ITEMS)).folds(record["folds"]):
        own, uniform = (
            ce_items(np.asarray(pool(fold.sample.P, v)), fold.sample.q).reshape(-1, 3).mean(axis=1)
            for v in solve_path(rest, Objective().resolve(), [chosen, math.inf])
        )
        above += (uniform - own).tolist()
    assert record["uniform_above"] == pytest.approx(np.mean(above))
    assert record["uniform_above_error"] == pytest.approx(np.std(above) / len(ITEMS) ** 0.5)


@settings(max_examples=60, deadline=None)
@given(
    p=arrays(float, (3, 5), elements=st.floats(0.0, 1.0)).filter(lambda p: (p.sum(1) > 0.1).all()),
    temperature=st.floats(0.05, 20.0),
)
def test_every_step_makes_distributions(p: Any, temperature: float) -> None:
    p = p / p.sum(axis=1, keepdims=True)
    for step in get_args(Step):
        made = Answer(step, temperature, 0.0, 0.0, 1).apply(p, Scale())
        assert made.min() >= 0
        np.testing.assert_allclose(made.sum(axis=1), 1, atol=1e-9)
        if step != "mode":
            kept = Answer(step, 1.0, 0.0, 0.0, 1).apply(p, Scale())
            np.testing.assert_allclose(kept, p, atol=1e-9)
    # Sharpening each cumulative share keeps the side of one half that it is on.
    sharp = Answer("cumulative-temperature", temperature, 0.0, 0.0, 1).apply(p, Scale())
    below = np.cumsum(p, axis=1)[:, :-1]
    after = np.cumsum(sharp, axis=1)[:, :-1]
    assert ((below < 0.5 - 1e-6) <= (after < 0.5)).all()
    assert ((below > 0.5 + 1e-6) <= (after > 0.5)).all()


def test_a_scale_as_an_object_is_kept_as_text(tmp_path: Path) -> None:
    predictions, annotations = ORDINAL
    for _ in range(2):  # the same fit again replaces it
        edokit.fit(
            predictions,
            annotations,
            ensemble=EDOEnsemble(scale=predictions.scale),
            out=tmp_path / "ensemble",
        )
    loaded = EDOEnsemble.load(tmp_path / "ensemble")
    assert loaded.get_params()["scale"] == POINTS
    loaded.fit(predictions, annotations)


def test_fit_data_of_another_scale_than_declared_are_refused() -> None:
    predictions, annotations = ORDINAL
    data = FitData.from_predictions(predictions, annotations)
    assert EDOEnsemble(scale=POINTS).fit(data).scale_ == predictions.scale
    with raises_code("scales-differ", "ordinal", "nominal"):
        EDOEnsemble(scale="nominal").fit(data)


def test_nothing_is_written_where_scales_differ(tmp_path: Path, capsys: Any) -> None:
    write_predictions(ORDINAL[0], tmp_path / "ratings.npz")
    edokit.write_annotations(SETS[1], tmp_path / "sets.csv")
    files = ("--predictions", tmp_path / "ratings.npz", "--annotations", tmp_path / "sets.csv")
    assert status("fit", *files, "--out", tmp_path / "ensemble") == 2
    error = capsys.readouterr().err
    assert "ordinal (1, 2, 3, 5)" in error
    assert "multi-label" in error
    assert not (tmp_path / "ensemble").exists()


def test_arrays_of_another_form_name_the_remedy():
    P = np.full((4, 2, 3), 1 / 3)
    for scale in (None, "ordinal"):
        with raises_code("unknown-class", "'3'", "'0'", "'1'", "'2'"):
            EDOEnsemble(scale=scale).fit(P, [1, 2, 3, 3])
    with raises_code("ragged-array", "MultiLabelBinarizer"):
        EDOEnsemble(scale="multi-label").fit(P, [["0"], [], ["1", "2"], ["1"]])


def test_classifiers_of_single_labels_are_wrapped_for_sets():
    X = np.arange(8.0)[:, None]
    chosen = np.tile([[0, 1], [1, 1], [1, 0], [0, 0]], (2, 1))
    ensemble = EDOEnsemble(scale="multi-label")
    wrapped = [
        ("a", OneVsRestClassifier(LogisticRegression())),
        ("b", make_pipeline(MultiOutputClassifier(LogisticRegression()))),
    ]
    fitted = EDOClassifier(wrapped, ensemble=ensemble, cv=2).fit(X, chosen)
    assert fitted.predict(X).shape == chosen.shape


def test_too_few_items_to_hold_out_count_every_penalty_the_same() -> None:
    P = np.random.default_rng(0).dirichlet((1, 1), size=(9, 3))
    q = P.mean(axis=1)
    penalty, record = choose_lambda_reg(
        FitData.from_arrays(P, q, q.argmax(axis=1)), Objective().resolve()
    )
    assert record["folds"] is None
    # The geometric mean of .001 to 10 and of 30, which stands for uniform weights.
    grid = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]
    assert penalty == pytest.approx(np.exp(np.log(grid).mean()), rel=5e-3)
