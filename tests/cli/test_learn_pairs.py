"""Weights learned on pairs of an item and an annotator, and the answers of panels."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from commands import edo as done_by
from edokit import (
    Annotations,
    EDOEnsemble,
    EDOWarning,
    Objective,
    Panel,
    Predictions,
    diagnose,
    evaluate,
    load,
    write_predictions,
)
from edokit._io.tables import write_table
from edokit.fitdata.data import FitData
from edokit.predictions.shards import Shards
from edokit.report import collect
from tests.errors import raises_code

ITEMS = 60
PEOPLE = 5


def pairs_case(seed: int = 3) -> tuple[Predictions, Annotations]:
    """Two members: one knows that every second annotator answers the other way round."""
    rng = np.random.default_rng(seed)
    truth = rng.random(ITEMS)
    items = [f"i{k}" for k in range(ITEMS) for _ in range(PEOPLE)]
    people = [f"r{a}" for _ in range(ITEMS) for a in range(PEOPLE)]
    odd = np.array([int(name[1:]) % 2 for name in people], dtype=bool)
    chance = np.repeat(truth, PEOPLE)
    chance = np.where(odd, 1 - chance, chance)
    labels = np.where(rng.random(len(items)) < chance, "yes", "no")
    annotations = Annotations.from_table({"item": items, "annotator": people, "label": labels})
    yes = np.stack([np.clip(chance, 0.05, 0.95), np.full(len(items), 0.5)], axis=1)
    anonymous = np.full((ITEMS, 2), 0.5)
    values = np.concatenate([yes, anonymous])
    predictions = Predictions.from_arrays(
        np.stack([1 - values, values], axis=2),
        layout="NKC",
        items=[*items, *(f"i{k}" for k in range(ITEMS))],
        annotators=[*people, *([""] * ITEMS)],
        members=["knows", "blind"],
        classes=["no", "yes"],
    )
    return predictions, annotations


@pytest.fixture
def files(tmp_path: Path) -> Path:
    predictions, annotations = pairs_case()
    write_predictions(predictions, tmp_path / "p.npz")
    write_table(annotations.to_table(), tmp_path / "a.csv")
    (tmp_path / "odd.txt").write_text("r1\nr3\n")
    return tmp_path


def edo(*words: object, code: int = 0) -> str:
    """What a command writes to the terminal; it must end with this exit code."""
    done = done_by(*words)
    text = " ".join((done.stderr + done.stdout).split())
    assert done.returncode == code, text
    return text


def fit(files: Path, learn: str, *more: object) -> None:
    given = ("--predictions", files / "p.npz", "--annotations", files / "a.csv")
    edo("fit", *given, "--learn", learn, *more, "--out", files / "e")


def test_pairs_are_learned_as_a_literal_fit_on_rows_says(files: Path):
    fit(files, "pairs", "--lambda-reg", "0.01")
    predictions, annotations = pairs_case()
    known = predictions.annotators != ""
    codes = {
        (annotations.items[i], annotations.annotators[a]): c
        for i, a, c in zip(
            annotations.item_codes,
            annotations.annotator_codes,
            annotations.label_codes,
            strict=True,
        )
    }
    rows = zip(predictions.items[known], predictions.annotators[known], strict=True)
    literal = EDOEnsemble(objective=Objective(reg=0.01)).fit(
        predictions.probabilities[known], [codes[pair] for pair in rows]
    )
    np.testing.assert_allclose(load(files / "e").weights_, literal.weights_, atol=1e-6)


def test_pairs_without_a_choice_are_refused(files: Path):
    given = ("--predictions", files / "p.npz", "--annotations", files / "a.csv")
    assert "--learn pairs" in edo("fit", *given, "--out", files / "e", code=2)
    assert not (files / "e").exists()


def test_learning_on_items_pools_the_means_of_their_panels(files: Path):
    fit(files, "items", "--lambda-reg", "0.01")
    predictions, annotations = pairs_case()
    literal = EDOEnsemble(objective=Objective(reg=0.01)).fit(predictions.panel_means(), annotations)
    np.testing.assert_allclose(load(files / "e").weights_, literal.weights_, atol=1e-6)
    assert load(files / "e").n_items_ == ITEMS


def test_shards_of_pairs_learn_the_same(tmp_path: Path):
    predictions, annotations = pairs_case()
    folder = tmp_path / "shards"
    folder.mkdir()
    half = [f"i{k}" for k in range(ITEMS // 2)]
    inside = np.isin(predictions.items, half)
    for number, mask in enumerate((inside, ~inside)):
        write_predictions(predictions.take(mask), folder / f"part-{number}.npz")
    whole = FitData.from_predictions(predictions.pairs(), annotations.pairs())
    with FitData.open(Shards.open(folder, learn="pairs"), annotations) as data:
        ensemble = EDOEnsemble(objective=Objective(reg=0.01)).fit(data)
        for rest, held_out in data.folds(3):
            assert len(rest) + len(held_out) == ITEMS * PEOPLE
            assert len(held_out) % PEOPLE == 0
    other_ensemble = EDOEnsemble(objective=Objective(reg=0.01)).fit(whole)
    np.testing.assert_allclose(ensemble.weights_, other_ensemble.weights_, atol=1e-6)


def test_panels_and_persons_answer(files: Path):
    fit(files, "pairs")
    ask = ("predict", files / "e", "--predictions", files / "p.npz")
    edo(*ask, "--out", files / "pairs.csv")
    edo(*ask, "--out", files / "odd.csv", "--panel", files / "odd.txt")
    edo(*ask, "--out", files / "r1.csv", "--as", "r1")
    pairs, odd, person = (pd.read_csv(files / f"{name}.csv") for name in ("pairs", "odd", "r1"))
    assert len(pairs) == ITEMS * (PEOPLE + 1)
    two = pairs[pairs["annotator"].isin(["r1", "r3"])].groupby("item")["p_yes"].mean()
    np.testing.assert_allclose(odd.set_index("item")["p_yes"], two[odd["item"]])
    one = pairs[pairs["annotator"] == "r1"].set_index("item")["p_yes"]
    np.testing.assert_allclose(person.set_index("item")["p_yes"], one[person["item"]])
    assert "low_yes" not in person  # one vote is no share of votes
    assert (odd["low_yes"] <= odd["p_yes"]).all()
    assert (odd["p_yes"] <= odd["high_yes"]).all()
    # The two who answer the other way round part ways with everybody.
    even = 1 - one
    assert np.corrcoef(even[odd["item"]], odd["p_yes"])[0, 1] < -0.9


def test_two_views_are_compared(files: Path):
    predictions, annotations = pairs_case()
    EDOEnsemble().fit(predictions.pairs(), annotations.pairs()).save(files / "e")
    (files / "even.csv").write_text("annotator\nr0\nr2\nr4\n")
    ask = ("predict", files / "e", "--predictions", files / "p.npz", "--out", files / "apart.csv")
    views = ("--panel", files / "odd.txt", "--panel", files / "even.csv")
    completed = edo(*ask, *views)
    table = pd.read_csv(files / "apart.csv")
    assert len(table) == ITEMS
    assert (np.diff(table["distance"]) <= 1e-12).all()
    differ = (table["label (odd)"] != table["label (even)"]).sum()
    assert f"differently on {differ} of {ITEMS} items" in completed
    # A person beside a panel; three views are too many.
    edo(*ask, "--panel", files / "odd.txt", "--as", "r0", "--overwrite")
    assert "label (annotator 'r0')" in pd.read_csv(files / "apart.csv")
    assert "two at a time" in edo(*ask, *views, "--as", "r0", "--overwrite", code=2)


def test_anonymous_answers_stay_members_when_pairs_are_predicted(files: Path):
    predictions, annotations = pairs_case()
    both = predictions.pairs(anonymous=True)
    ensemble = EDOEnsemble(objective=Objective(reg=1.0)).fit(both, annotations.pairs())
    assert ensemble.needed_members() == ["knows", "blind"]
    pooled = ensemble.describe(predictions)
    expected = ensemble.predict_proba(both)
    np.testing.assert_allclose(pooled.probabilities[pooled.annotators != ""], expected)


def test_an_unknown_person_is_named(files: Path):
    predictions, annotations = pairs_case()
    EDOEnsemble().fit(predictions.pairs(), annotations.pairs()).save(files / "e")
    asked = ("--predictions", files / "p.npz", "--as", "nobody", "--out", files / "x.csv")
    assert "'nobody'" in edo("predict", files / "e", *asked, code=2)
    assert not (files / "x.csv").exists()


def test_a_panel_needs_pairs():
    items = pd.DataFrame({"no": [0.4], "yes": [0.6]})
    predictions = Predictions.from_arrays({"m": items})
    ensemble = EDOEnsemble().fit(predictions, ["yes"])
    with raises_code("items-for-pairs"):
        ensemble.describe(predictions).panel(Panel(("r1",)))


def split_files(folder: Path, *, alike: bool = False) -> list[object]:
    """Options of dev and test: ``alike`` annotators of an item all answer and get the same."""
    options: list[object] = []
    for seed, part in ((3, ""), (4, "test-")):
        predictions, annotations = pairs_case(seed)
        rows = annotations.to_table().to_pandas()
        rows["item"] = [f"{part}{name[0]}{int(name[1:]):02d}" for name in rows["item"]]
        p = np.array(predictions.probabilities)
        if alike:
            rows["label"] = rows.groupby("item")["label"].transform("first")
            for k in range(ITEMS):
                p[k * PEOPLE : (k + 1) * PEOPLE] = p[k * PEOPLE]
        rows.to_csv(folder / f"{part}a.csv", index=False)
        names = [f"{part}{name[0]}{int(name[1:]):02d}" for name in predictions.items]
        given = {"annotators": predictions.annotators, "classes": ["no", "yes"], "layout": "NKC"}
        renamed = Predictions.from_arrays(p, items=names, members=["knows", "blind"], **given)
        write_predictions(renamed, folder / f"{part}p.npz")
        options += [f"--{part}predictions", folder / f"{part}p.npz"]
        options += [f"--{part}annotations", folder / f"{part}a.csv"]
    return options


def compared(folder: Path, learn: str, given: list[object]) -> dict[str, Any]:
    out = folder / f"compare-{learn}"
    edo("compare", *given, "--learn", learn, "--methods", "edo", "--out", out)
    stored = json.loads((out / "compare" / "methods.json").read_text())
    return {method["name"]: method for method in stored["methods"]}


def test_five_annotators_who_always_agree_are_one_when_methods_are_compared(tmp_path: Path):
    given = split_files(tmp_path, alike=True)
    items, pairs = (compared(tmp_path, learn, given) for learn in ("items", "pairs"))
    for name in ("uniform", "constant"):
        for metric, ends in items[name]["intervals"].items():
            np.testing.assert_allclose(pairs[name]["intervals"][metric], ends, atol=1e-9)
    tests = [method["uniform"]["against_constant"]["ce"] for method in (items, pairs)]
    assert tests[1]["low"] == pytest.approx(tests[0]["low"])
    assert tests[1]["p_value"] == pytest.approx(tests[0]["p_value"])


def test_runs_on_pairs_make_a_page(tmp_path: Path):
    given = split_files(tmp_path)
    compared(tmp_path, "pairs", given)
    edo("fit", *given[:4], "--learn", "pairs", "--out", tmp_path / "fit")
    edo("search", *given[:4], "--learn", "pairs", "--trials", 4, "--out", tmp_path / "search")
    for run in ("compare-pairs", "search"):
        assert edo("report", tmp_path / run).endswith("MB")  # and nothing that is missing
    more = ("--predictions", tmp_path / "test-p.npz", "--annotations", tmp_path / "test-a.csv")
    assert edo("report", tmp_path / "fit", *more).endswith("MB")
    for run, given_name in (("compare-pairs", "test"), ("fit", "given")):
        page = (tmp_path / run / "report.html").read_text()
        assert f"on 300 {given_name} pairs" in page
        assert "test-i01 \\u00b7 r0" in page or "test-i01 · r0" in page
        assert "at most 1 annotation" not in page


def test_each_annotator_has_an_error_with_an_interval(files: Path):
    predictions, annotations = pairs_case()
    rows = annotations.to_table().to_pandas()
    odd = rows["annotator"] == "r4"  # answers the other way round, which nobody expects
    rows.loc[odd, "label"] = rows.loc[odd, "label"].map({"yes": "no", "no": "yes"})
    rows.to_csv(files / "odd.csv", index=False)
    given = ("evaluate", "--probabilities", files / "p.npz", "--annotations", files / "odd.csv")
    content = json.loads(edo(*given, "--json"))
    known, anonymous, _ = content["pairs"]
    labels = {
        (item, name): int(label == "yes")
        for item, name, label in zip(rows["item"], rows["annotator"], rows["label"], strict=True)
    }
    own = []
    nobody = []
    for item, name, p in zip(
        predictions.items, predictions.annotators, predictions.uniform, strict=True
    ):
        if name:
            own.append((name, -np.log(p[labels[item, name]])))
            nobody.append(-np.log(0.5))
    assert known["ce"] == pytest.approx(np.mean([loss for _, loss in own]))
    assert anonymous["ce"] == pytest.approx(np.mean(nobody))
    for annotator in content["annotators"]:
        values = [loss for name, loss in own if name == annotator["annotator"]]
        assert annotator["ce"] == pytest.approx(np.mean(values))
        assert annotator["ce_interval"][0] < annotator["ce"] < annotator["ce_interval"][1]
        assert annotator["anonymous_ce"] == pytest.approx(np.log(2))
    completed = edo(*given)
    assert "Error by annotator" in completed
    # The distribution of an item is that of its annotators.
    means = predictions.panel_means().uniform
    assert content["ce"] == pytest.approx(
        -np.mean(np.sum(Annotations.from_table(rows).soft_labels * np.log(means), axis=1))
    )


def test_known_answers_that_do_not_help_are_named():
    predictions, annotations = pairs_case()
    wrong = replace(predictions, probabilities=1 - predictions.probabilities)
    evaluation = evaluate(wrong.select(["knows"]), annotations)
    assert any("known annotators are worse than anonymous" in line for line in evaluation.headline)
    right = evaluate(predictions.select(["knows"]), annotations)
    assert not any("anonymous" in line for line in right.headline)


@pytest.mark.parametrize("learn", ["pairs", "pairs+anonymous", "items"])
def test_an_ensemble_is_evaluated_on_pairs(files: Path, learn: str):
    given = ("--predictions", files / "p.npz", "--annotations", files / "a.csv")
    edo("fit", *given, "--learn", learn, "--out", files / "e")
    direct = json.loads(edo("evaluate", "--ensemble", files / "e", *given, "--json"))
    ask = ("--predictions", files / "p.npz", "--out", files / "pairs.csv")
    edo("predict", files / "e", *ask)
    asked = ("--probabilities", files / "pairs.csv", *given[2:], "--json")
    through = json.loads(edo("evaluate", *asked))
    assert direct["ce"] == pytest.approx(through["ce"], abs=1e-6)
    assert direct["pairs"][0]["ce"] == pytest.approx(through["pairs"][0]["ce"], abs=1e-6)
    assert [method["name"] for method in direct["methods"]][1:] == [
        "uniform",
        "anonymous",
        "constant",
    ]


@pytest.mark.parametrize("command", ["fit", "search", "compare"])
def test_pairs_where_items_were_asked_for_are_one_clear_message(tmp_path: Path, command: str):
    given = split_files(tmp_path)
    given = given if command == "compare" else given[:4]
    completed = edo(command, *given, "--out", tmp_path / "out", code=2)
    assert "'i00 · r0', not for items" in completed
    assert "--learn items" in completed


@pytest.mark.parametrize("ending", ["npz", "parquet", "csv"])
def test_a_pair_given_twice_is_named(tmp_path: Path, ending: str):
    file = tmp_path / f"p.{ending}"
    rows = {"item": ["a", "b", "a"], "annotator": ["x", "x", "x"], "member": "m"}
    table = pd.DataFrame({**rows, "p_no": 0.5, "p_yes": 0.5})
    if ending == "npz":
        p = np.full((3, 1, 2), 0.5)
        names = {"members": ["m"], "classes": ["no", "yes"]}
        np.savez(file, probabilities=p, items=rows["item"], annotators=rows["annotator"], **names)
    elif ending == "parquet":
        table.to_parquet(file)
    else:
        table.drop(columns="member").to_csv(file, index=False)
    (tmp_path / "a.csv").write_text("item,annotator,label\na,x,no\nb,x,yes\n")
    given = ("--probabilities", file, "--annotations", tmp_path / "a.csv")
    completed = edo("evaluate", *given, code=2)
    assert "'a" in completed
    assert "x'" in completed


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("panel.txt", "\n\n", "panel has no annotators"),
        ("panel.csv", "annotator\n", "is empty"),
        ("panel.csv", "annotator,weight\nr1,1\n,2\n", "entry 2 of panel names no annotator"),
        ("panel.csv", "attribute,value,share\nage,old,1\n", "'age' is not an attribute"),
        ("panel.txt", "r1\nr1\n", "'r1'"),
    ],
)
def test_panels_that_are_none_are_one_clear_message(files: Path, name: str, text: str, reason: str):
    predictions, annotations = pairs_case()
    EDOEnsemble().fit(predictions.pairs(), annotations.pairs()).save(files / "e")
    (files / name).write_text(text)
    asked = ("--predictions", files / "p.npz", "--out", files / "x.csv", "--panel", files / name)
    assert reason in edo("predict", files / "e", *asked, "--annotators", files / "a.csv", code=2)
    assert not (files / "x.csv").exists()


def test_a_table_says_who_the_annotators_of_a_panel_are(files: Path):
    fit(files, "pairs")
    (files / "panel.csv").write_text("attribute,value,share\ntown,rye,1\n")
    asked = ("predict", files / "e", "--predictions", files / "p.npz", "--out", files / "x.csv")
    asked = (*asked, "--panel", files / "panel.csv", "--annotators", files / "people.csv")
    (files / "people.csv").write_text("annotator,town\nr1,rye\nr2,ash\nr1,ash\n")
    assert "annotator 'r1' has several values of 'town'" in edo(*asked, code=2)
    (files / "people.csv").write_text("annotator,town\nr1,rye\nr2,ash\nr3,rye\n")
    edo(*asked)
    shares = pd.read_csv(files / "x.csv")
    edo(*asked[:6], "--panel", files / "odd.txt", "--overwrite")
    pd.testing.assert_frame_equal(shares, pd.read_csv(files / "x.csv"))


def test_annotators_without_a_panel_are_for_members(files: Path):
    fit(files, "pairs")
    asked = ("--predictions", files / "p.npz", "--annotators", files / "a.csv")
    completed = edo("predict", files / "e", *asked, "--out", files / "x.csv", code=2)
    assert "--annotators and --predictions are given, but no --panel" in completed


# How much there is: pairs are not items


def test_pairs_and_items_are_counted_apart(files: Path):
    given = ("--predictions", files / "p.npz", "--annotations", files / "a.csv", "--learn", "pairs")
    out = ("--out", files / "ensemble")
    completed = edo("fit", *given, *out)
    assert "(300 pairs of 60 items)" in completed
    assert "cross-validation on 300 pairs" in completed
    content = json.loads(edo("fit", *given, *out, "--overwrite", "--json"))
    assert (content["items"], content["pairs"]) == (60, 300)
    assert "Learned from 300 pairs of 60 items" in (files / "ensemble/README.md").read_text()
    assert "300 pairs of 60 items" in repr(load(files / "ensemble").fitted_.learned_from)
    predict = ("predict", files / "ensemble", "--predictions", files / "p.npz", "--out")
    assert "300 pairs of 60 items and their anonymous" in edo(*predict, files / "q.csv")
    content = json.loads(edo(*predict, files / "r.csv", "--json"))
    assert (content["items"], content["pairs"]) == (60, 300)
    predictions, annotations = pairs_case(seed=4)
    write_predictions(predictions, files / "t.npz")
    write_table(annotations.to_table(), files / "t.csv")
    test = ("--test-predictions", files / "t.npz", "--test-annotations", files / "t.csv")
    compare = ("compare", *given, *test, "--methods", "uniform,edo", "--bootstrap", "0")
    assert "fitted on 300 pairs of 60 items, evaluated on 300 pairs of 60 items" in edo(*compare)
    content = json.loads(edo(*compare, "--json"))
    assert content["items"] == {"dev": 60, "test": 60}
    assert content["pairs"] == {"dev": 300, "test": 300}


def test_shards_of_pairs_are_counted_apart_too(tmp_path: Path):
    predictions, annotations = pairs_case()
    for number, rows in enumerate((slice(0, 150), slice(150, None))):
        write_predictions(predictions.take(np.arange(360)[rows]), tmp_path / f"s/{number}.npz")
    data = FitData.open(Shards.open(tmp_path / "s", learn="pairs"), annotations)
    with data:
        assert (len(data), data.n_items) == (300, 60)


def test_items_alone_have_no_pairs(files: Path):
    given = ("--predictions", files / "p.npz", "--annotations", files / "a.csv", "--learn", "items")
    content = json.loads(edo("fit", *given, "--out", files / "ensemble", "--json"))
    assert content["items"] == 60
    assert "pairs" not in content
    assert "pairs" not in json.loads((files / "ensemble/ensemble.json").read_text())


# Answers for more annotators than have labels


@pytest.mark.filterwarnings("ignore:.*tied")
def test_answers_without_labels_are_counted_and_left_out_of_an_evaluation(files: Path):
    predictions, annotations = pairs_case()
    kept = np.flatnonzero(annotations.annotator_codes != 4)
    fewer = replace(
        annotations,
        annotators=annotations.annotators[:4],
        item_codes=annotations.item_codes[kept],
        annotator_codes=annotations.annotator_codes[kept],
        label_codes=annotations.label_codes[kept],
    )
    with pytest.warns(EDOWarning, match="60 of 300 pairs"):
        evaluation = evaluate(predictions, fewer, samples=0)
    alone = predictions.take(predictions.annotators != "r4")
    assert evaluation.metrics == evaluate(alone, fewer, samples=0).metrics
    ensemble = EDOEnsemble().fit(alone.pairs(), fewer.pairs())
    with pytest.warns(EDOWarning, match="60 of 300 pairs"):
        evaluation = evaluate(None, fewer, ensemble=ensemble, predictions=predictions, samples=0)
    other_evaluation = evaluate(None, fewer, ensemble=ensemble, predictions=alone, samples=0)
    assert evaluation.metrics == other_evaluation.metrics
    # So are labels without an answer, by what they are.
    with raises_code("items-differ", "60", "300", "'i0 · r4'"):
        evaluate(alone, annotations, samples=0)
    # Items without any label are refused, as predictions of items are.
    some = annotations.take(np.arange(40))
    with raises_code("items-differ"):
        evaluate(predictions, some, samples=0)


def test_the_page_of_pairs_diagnoses_their_items(files: Path):
    given = ("--predictions", files / "p.npz", "--annotations", files / "a.csv", "--learn", "pairs")
    edo("fit", *given, "--out", files / "ensemble")
    predictions, annotations = pairs_case()
    shown = {"predictions": predictions.pairs(), "annotations": annotations.pairs()}
    data = collect(files / "ensemble", **shown)
    assert data.diagnosis["items"] == ITEMS
    assert data.diagnosis["agreement"] == diagnose(annotations, permutations=0).agreement


def test_a_member_that_is_missing_is_named_with_its_anonymous_answers():
    predictions, annotations = pairs_case()
    both = predictions.pairs(anonymous=True)
    ensemble = EDOEnsemble(objective=Objective(reg=1.0)).fit(both, annotations.pairs())
    fewer = predictions.select(predictions.members[:1])
    with raises_code("missing-members"):
        ensemble.predict_proba(fewer)


def test_a_person_is_answered_for_a_metric_from_predictions_of_pairs(files: Path):
    rng = np.random.default_rng(0)
    share = np.linspace(0.1, 0.9, 80)
    votes = np.where(rng.random((80, 6)) < share[:, None], "yes", "no")
    annotations = Annotations.from_matrix(votes, classes=["no", "yes"])
    yes = 0.4 * share[:, None] + 0.3 + rng.normal(0, 0.05, (80, 2))
    p = np.stack([1 - yes, yes], axis=2)
    classes = list(annotations.classes)
    pool = Predictions.from_arrays(p, layout="NKC", items=annotations.items, classes=classes)
    EDOEnsemble(ties="random").fit(pool, annotations).save(files / "people")
    pairs = Predictions.from_arrays(
        p.repeat(6, axis=0),
        layout="NKC",
        items=np.repeat(annotations.items, 6),
        annotators=np.tile(annotations.annotators, 80),
        members=pool.members,
        classes=classes,
    )
    write_predictions(pairs, files / "pairs.npz")
    asked = ("predict", files / "people", "--predictions", files / "pairs.npz", "--as", "0")
    edo(*asked, "--for", "f1", "--out", files / "mode.csv")
    mode = pd.read_csv(files / "mode.csv")
    assert set(mode["answer_for"]) == {"f1"}
    assert set(mode["p_yes"]) == {0, 1}
