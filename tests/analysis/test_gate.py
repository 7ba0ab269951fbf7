"""`edokit.gate` and `edo evaluate --gate`: a fall is found, no change passes, bad input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from run_cases import quick_run

import edokit
from commands import answer, assert_one_line, edo
from edokit import Annotations, EDOEnsemble, Exact, Predictions
from edokit.analysis.fit_items import fit_columns
from edokit.analysis.gate.options import GateOptions
from edokit.analysis.gate.statistics import loss_change
from edokit.runs.inputs import Input
from edokit.runs.record import RunRecord
from tests.errors import raises_code


def test_without_a_change_few_gates_fail_and_a_large_one_is_found() -> None:
    rng = np.random.default_rng(0)
    failures = {0.0: 0, 0.12: 0}
    for _ in range(400):
        reference = rng.gamma(0.5, 0.6, 800)
        for rise in failures:
            current = rng.gamma(0.5, 0.6, 150) + rise
            found = loss_change(reference, current, None, None, level=0.95)
            failures[rise] += found.p <= 0.025
    assert failures[0.0] <= 20  # 2.5 % of 400 are 10
    assert failures[0.12] >= 300


def test_a_tolerated_rise_is_no_fall() -> None:
    rng = np.random.default_rng(1)
    reference = rng.random(2000)
    current = rng.random(2000) + 0.05
    strict = loss_change(reference, current, None, None, level=0.95)
    tolerant = loss_change(reference, current, None, None, level=0.95, tolerance=0.2)
    assert strict.p < 0.001
    assert tolerant.p > 0.5
    assert tolerant.change == strict.change


def test_items_of_a_group_count_as_one() -> None:
    rng = np.random.default_rng(2)
    values = np.repeat(rng.random(20), 5)
    groups = np.repeat(np.arange(20), 5)
    apart = loss_change(values, values, None, None, level=0.95)
    together = loss_change(values, values, None, groups, level=0.95)
    assert together.high > apart.high


def with_language(annotations: Annotations) -> Annotations:
    """The same with a column lang, half en and half it."""
    values = np.array(["en", "it"], dtype=object)[np.arange(len(annotations.items)) % 2]
    return replace(annotations, item_columns={"lang": values})


def with_flipped(annotations: Annotations, lang: str) -> Annotations:
    """The same with the opposite labels in one language."""
    assert annotations.label_codes is not None
    is_flipped = annotations.item_columns["lang"][annotations.item_codes] == lang
    codes = np.where(is_flipped, 1 - annotations.label_codes, annotations.label_codes)
    return replace(annotations, label_codes=codes.astype(np.int32), published=None)


def test_labels_of_the_same_kind_pass_and_changed_ones_fail(
    small_run: Path, camps: Annotations, tmp_path: Path
) -> None:
    week = with_language(camps.split("test"))
    edokit.write_annotations(week, tmp_path / "week.csv")
    edokit.write_annotations(with_flipped(week, "it"), tmp_path / "bad.csv")
    words = ("evaluate", small_run, "--gate", "--by", "lang", "--annotations")
    good = edo(*words, tmp_path / "week.csv")
    assert good.returncode == 0, good.stderr
    assert good.stdout.startswith("PASS")
    bad = edo(*words, tmp_path / "bad.csv")
    assert bad.returncode == 1
    assert bad.stdout.startswith("FAIL")
    assert "lang it" in bad.stdout
    found = edokit.gate(small_run, tmp_path / "bad.csv", by="lang")
    assert found.gate == "fail"
    verdicts = {row.value: row.verdict for row in found.slices}
    assert verdicts == {"en": "pass", "it": "fail"}
    passed = answer(*words, tmp_path / "week.csv")
    assert passed["gate"] == "pass"
    assert passed["low"] <= passed["change"] <= passed["high"]


def test_the_judge_that_drifted_is_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    truth = rng.beta(0.7, 0.7, 500)
    votes = (rng.random((500, 5)) < truth[:, None]).astype(int)
    labels = Annotations.from_matrix(votes, classes=[0, 1])
    judges = np.clip(truth[:, None] + rng.normal(0, 0.1, (500, 3)), 0.02, 0.98)
    judges[400:, 1] = rng.permutation(judges[400:, 1])  # of the new items
    P = np.stack([1 - judges, judges], axis=2)
    full_predictions = Predictions.from_arrays(
        P, items=labels.items, members=["ann", "bo", "cy"], classes=[0, 1], layout="NKC"
    )
    edokit.write_annotations(labels.take(np.arange(400)), tmp_path / "labels.csv")
    edokit.write_predictions(full_predictions.take(np.arange(400)), tmp_path / "dev.npz")
    edokit.fit(tmp_path / "dev.npz", tmp_path / "labels.csv", out=tmp_path / "jury")
    week = labels.take(np.arange(400, 500))
    edokit.write_predictions(full_predictions.take(np.arange(400, 500)), tmp_path / "week.npz")
    found = edokit.gate(tmp_path / "jury", week, predictions=tmp_path / "week.npz")
    assert [row.value for row in found.members if row.is_fall] == ["bo"]
    assert any("bo" in sentence for sentence in found.headline)


def test_a_few_groups_of_items_are_too_few_for_a_verdict(
    small_run: Path, camps: Annotations
) -> None:
    week = camps.split("test")
    groups = np.array([f"thread {k % 4}" for k in range(len(week.items))], dtype=object)
    with raises_code("too-few-items", "new labels", "4 groups"):
        edokit.gate(small_run, replace(week, item_groups=groups))


def test_a_slice_of_the_fit_in_one_group_is_no_reference(
    camps: Annotations, tmp_path: Path
) -> None:
    train = with_language(camps.split("train", "dev"))
    # The texts in Italian are one thread, whose mean loss has no variance of its own.
    is_italian = train.item_columns["lang"] == "it"
    threads = np.array([f"thread {k}" for k in range(len(is_italian))], dtype=object)
    threads[is_italian] = "one thread"
    folder = quick_run(replace(train, item_groups=threads), tmp_path / "run")
    found = edokit.gate(folder, with_language(camps.split("test")), by="lang")
    fit_items = {row.value: row.fit_items for row in found.slices}
    assert fit_items == {"en": (~is_italian).sum(), "it": len(is_italian)}


def test_a_gate_compares_with_held_out_answers(small_run: Path, camps: Annotations) -> None:
    ensemble = EDOEnsemble.load(small_run / "ensemble")
    held_out = ensemble.fitted_.held_out
    assert held_out is not None
    losses = -(held_out.shares * np.log(held_out.answers)).sum(axis=1)
    found = edokit.gate(small_run, camps.split("test"))
    assert found.total.fit_loss == pytest.approx(losses.mean(), rel=1e-4)


def test_a_table_in_memory_is_read_as_its_file(
    small_run: Path, camps: Annotations, tmp_path: Path
) -> None:
    week = camps.split("test")
    edokit.write_annotations(week, tmp_path / "week.csv")
    of_table = edokit.gate(small_run, week.to_table())
    assert of_table.to_dict() == edokit.gate(small_run, tmp_path / "week.csv").to_dict()
    with raises_code("inapplicable-option", "columns"):
        edokit.gate(small_run, week, columns={"item": "id"})  # which only a file takes


def test_a_gate_does_without_members_of_weight_0(camps: Annotations, tmp_path: Path) -> None:
    folder = quick_run(camps, tmp_path / "run", EDOEnsemble(solver=Exact(max_members=1)))
    fitted = EDOEnsemble.load(folder / "ensemble")
    assert (fitted.weights_ == 0).sum() == 1
    assert edokit.gate(folder, camps.split("test")).gate == "pass"


def test_new_tables_are_read_by_the_column_names_of_the_fit(tmp_path: Path) -> None:
    names = {"item": "Msg No.", "label": "Verdict", "group": "Thread"}
    source = Input("labels.csv", options={"columns": names})
    RunRecord("fit", {"annotations": source}).save(tmp_path)
    table = tmp_path / "week.csv"
    table.write_text("Msg No.,Moderator,Verdict,label\n1,Ann,ok,x\n", encoding="utf-8")
    # The table has a column of the default name, and no threads.
    assert fit_columns(tmp_path, table, {}) == {"item": "Msg No."}
    given = {"item": "Nr", "label": "Verdict"}
    assert fit_columns(tmp_path, table, given) == given
    assert fit_columns(tmp_path, object(), given) == given
    assert fit_columns(None, table, {}) == {}


def test_texts_of_the_fit_are_noticed(small_run: Path, camps: Annotations) -> None:
    found = edokit.gate(small_run, camps.split("dev"))
    assert any("learned from them" in note for note in found.notes)


def test_bad_input_gets_one_clear_line(small_run: Path, camps: Annotations, tmp_path: Path) -> None:
    edokit.write_annotations(camps.split("test").take([0, 1, 2]), tmp_path / "few.csv")
    words = ["evaluate", "--annotations", tmp_path / "few.csv"]
    assert_one_line(edo(*words, "--gate"), "--gate", "no run")
    assert_one_line(edo("evaluate", small_run, *words[1:]), "--gate")
    for flags in (("--ties", "random"), ("--bootstrap", 10), ("--seed", 1), ("--normalize",)):
        assert_one_line(edo("evaluate", small_run, *words[1:], "--gate", *flags), flags[0])
    without_gate = ("--probabilities", tmp_path / "few.csv", "--tolerance", "0.02")
    assert_one_line(edo(*words, *without_gate), "--tolerance", "--gate")
    assert_one_line(edo("evaluate", small_run, *words[1:], "--gate"), "3 items", "too few")
    assert_one_line(edo("evaluate", small_run / "bundle", *words[1:], "--gate"), "too few")
    with raises_code("wrong-folder", "run.json"):
        edokit.gate(small_run / "bundle", camps.split("test"))
    no_texts = replace(camps.split("test"), texts=None)
    with raises_code("missing-texts"):
        edokit.gate(small_run, no_texts)
    with raises_code("invalid-number", "tolerance is -1"):
        GateOptions(tolerance=-1)
