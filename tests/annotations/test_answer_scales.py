"""Answer scales: declared, checked, kept in every table, and seen as rows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edokit import (
    Annotations,
    EDOEnsemble,
    EDOWarning,
    Predictions,
    Scale,
    evaluate,
    read_annotations,
    read_predictions,
    write_predictions,
)
from edokit._io.tables import write_table
from edokit.scales import DeclaredScale, split_points
from tests.errors import raises_code

SETS = {
    "item": ["a", "a", "b", "b", "b"],
    "annotator": ["x", "y", "x", "y", "y"],
    "label": ['["rude", "mocking"]', "rude", "[]", "rude", "sincere"],
}


@pytest.mark.parametrize(
    ("text", "classes", "positions"),
    [
        ("ordinal:1,2,3", ("1", "2", "3"), (1.0, 2.0, 3.0)),
        ("ordinal:low=0,mid=1,high=3", ("low", "mid", "high"), (0.0, 1.0, 3.0)),
        ("ordinal:low,mid,high", ("low", "mid", "high"), (0.0, 1.0, 2.0)),
        ('multi-label:rude,"mocking, mildly"', ("rude", "mocking, mildly"), None),
    ],
)
def test_a_declaration_names_classes_and_positions(text, classes, positions):
    declared = DeclaredScale(text)
    scale = declared.resolve(declared.classes)
    assert declared.classes == classes
    assert scale.positions == positions
    again = DeclaredScale(scale.to_text(classes))
    assert (again.classes, again.resolve(classes)) == (classes, scale)


@pytest.mark.parametrize(
    ("text", "classes", "names"),
    [
        ("ordinal", ("1", "2", "often"), ("not-a-number", "often")),
        ("ordinal", ("1", "2", "4"), ("uneven-scale", "1, 2, 4")),
        ("ordinal:low=0,mid,high=3", ("low", "mid", "high"), ("invalid-scale", "mid")),
        ("ordinal:1,2", ("1", "2", "3"), ("classes-differ", "'3'")),
        ("ordinal:2,1", ("2", "1"), ("invalid-scale", "2, 1")),
        ("cardinal", ("1", "2"), ("unknown-choice", "cardinal")),
        ("multi-label:", ("a",), ("invalid-scale",)),
        ("multi-label:a,a", ("a",), ("invalid-scale",)),
    ],
)
def test_scales_that_make_no_sense_are_refused(text, classes, names):
    with raises_code(*names):
        DeclaredScale(text).resolve(classes)


@pytest.mark.parametrize("classes", ["-1 0 1", "0 1", "1 2 4", "1 2 many"])
def test_whole_numbers_in_a_row_look_like_points(classes):
    labels = classes.split()
    points = labels if classes == "-1 0 1" else []
    assert split_points(dict.fromkeys(labels, 100)) == (points, [])


def test_sets_are_lists_in_a_cell_or_one_row_per_label():
    annotations = Annotations.from_table(SETS, scale="multi-label")
    assert annotations.classes == ("mocking", "rude", "sincere")
    assert annotations.soft_labels.tolist() == [[0.5, 1.0, 0.0], [0.0, 0.5, 0.5]]
    with pytest.warns(EDOWarning, match="'a', 'b'"):
        assert annotations.hard_labels().tolist() == [[0, 1, 0], [0, 0, 0]]
    assert len(annotations) == 4


def test_a_label_outside_the_scale_names_the_row():
    with raises_code("unknown-class", "row 5", "sincere"):
        Annotations.from_table(SETS, scale="multi-label:mocking,rude")
    rows = {"item": ["a"], "annotator": ["x"], "label": ["7"]}
    with raises_code("unknown-class", "row 1", "'7'"):
        Annotations.from_table(rows, scale="ordinal:1,2,3")


def test_an_empty_cell_is_no_empty_set():
    with raises_code("missing-value", "row 1", "[]"):
        Annotations.from_table({**SETS, "label": ["", *SETS["label"][1:]]}, scale="multi-label")


def _labels(*labels: object) -> dict[str, list[object]]:
    return {"item": ["a"] * len(labels), "annotator": list(range(len(labels))), "label": [*labels]}


def test_points_of_a_scale_are_numbers_however_they_are_written():
    rows = {**_labels("1.0", "+3", "2", "−1"), "hard_label": ["3.0"] * 4}
    annotations = Annotations.from_table(rows, scale="ordinal:-1,0,1,2,3")
    assert annotations.classes == ("-1", "0", "1", "2", "3")
    assert annotations.soft_labels.tolist() == [[0.25, 0, 0.25, 0.25, 0.25]]
    assert Annotations.from_table(_labels("1.0", "2.0"), scale="ordinal").classes == ("1", "2")


def test_lists_as_pandas_writes_them_are_lists():
    annotations = Annotations.from_table(_labels("['rude', 'mocking']", "[]"), scale="multi-label")
    assert annotations.classes == ("mocking", "rude")
    with raises_code("invalid-label-set", "row 2", "[rude, mocking]"):
        Annotations.from_table(_labels("[]", "[rude, mocking]"), scale="multi-label")


@pytest.mark.parametrize("cells", [[["rude", "mocking"], ["sincere"]], [["rude"], []]])
def test_lists_without_a_scale_ask_for_one(cells):
    with raises_code("undeclared-sets"):
        Annotations.from_table(pd.DataFrame(_labels(*cells)))


def test_empty_sets_alone_and_a_single_rating_need_a_declaration():
    with raises_code("missing-value", "multi-label:rude,mocking"):
        Annotations.from_table(_labels("[]", "[]"), scale="multi-label")
    with raises_code("invalid-scale", "ordinal:1,2,3"):
        Annotations.from_table(_labels("3", "3"), scale="ordinal")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize(
    "annotations",
    [
        Annotations.from_table(SETS, scale="multi-label:rude,mocking,sincere,other"),
        Annotations.from_matrix([[1, 2], [2, 5]], scale="ordinal:1,2,3,5"),
        Annotations.from_matrix([["low", "high"]], scale="ordinal:low=0,mid=1,high=3"),
        Annotations.from_soft_labels([[0.25, 0.5]], classes=["a", "b"], scale="multi-label"),
    ],
)
def test_tables_keep_the_scale(annotations, suffix, tmp_path: Path):
    path = tmp_path / f"annotations.{suffix}"
    write_table(annotations.to_table(), path)
    second_annotations = read_annotations(path)
    assert (second_annotations.scale, second_annotations.classes) == (
        annotations.scale,
        annotations.classes,
    )
    np.testing.assert_allclose(second_annotations.soft_labels, annotations.soft_labels)


def test_lists_in_a_column_are_sets(tmp_path: Path):
    frame = pd.DataFrame({**SETS, "label": [["rude", "mocking"], ["rude"], [], ["rude"], ["odd"]]})
    annotations = Annotations.from_table(frame, scale="multi-label")
    assert annotations.soft_labels[0].tolist() == [0.5, 0.0, 1.0]


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([[[0.2, 0.9]], [[0.0, 0.4]]], "multi-label:rude,mocking"),
        ([[[0.2, 0.3, 0.5]]], "ordinal:low=0,mid=1,high=3"),
    ],
)
def test_files_of_predictions_keep_the_scale(values, scale, suffix, tmp_path: Path):
    predictions = Predictions.from_arrays(values, layout="NKC", scale=scale)
    write_predictions(predictions, tmp_path / f"p.{suffix}")
    second_predictions = read_predictions(tmp_path / f"p.{suffix}")
    assert (second_predictions.scale, second_predictions.classes) == (
        predictions.scale,
        predictions.classes,
    )
    np.testing.assert_array_equal(second_predictions.probabilities, values)


def test_rows_of_sets_are_one_label_each():
    scale = Scale("multi-label")
    rows = scale.rows([[[0.2, 0.9], [0.6, 0.1]]])
    assert scale.row_classes(["rude", "mocking"]) == ("no", "yes")
    np.testing.assert_allclose(rows[:, :, 1], [[0.2, 0.6], [0.9, 0.1]])
    np.testing.assert_allclose(rows.sum(axis=2), 1)
    assert scale.from_rows(rows[:, 0], 2).tolist() == [[0.2, 0.9]]


def test_multi_label_logits_are_of_each_label():
    predictions = Predictions.from_arrays(
        [[[0.0, 3.0]]], layout="NKC", logits=True, scale="multi-label"
    )
    np.testing.assert_allclose(predictions.probabilities[0, 0], [0.5, 1 / (1 + np.exp(-3))])


def test_a_probability_above_one_is_refused():
    with raises_code("invalid-probabilities", "1.2"):
        Predictions.from_arrays([[[0.2, 1.2]]], layout="NKC", scale="multi-label")


def test_classes_in_another_order_than_the_scale_are_refused():
    predictions = Predictions.from_arrays([[[0.2, 0.3, 0.5]]], layout="NKC", scale="ordinal:1,2,3")
    with raises_code("classes-differ", "1, 2, 3"):
        predictions.order_classes(["3", "2", "1"])
    named_predictions = Predictions.from_arrays(
        [[[0.2, 0.8]]], layout="NKC", classes=["high", "low"]
    )
    with raises_code("classes-differ", "ordinal:low,high"):
        named_predictions.on_scale("ordinal:low,high")


def test_sigmoids_and_softmaxes_have_different_remedies():
    with raises_code("invalid-probabilities", "scale='multi-label'"):
        Predictions.from_arrays([[[0.2, 0.4]]], layout="NKC")
    with raises_code("scales-differ", "--scale"):
        Predictions.from_arrays([[[0.2, 0.8]]], layout="NKC").on_scale("multi-label")


def test_an_ensemble_of_another_scale_than_the_annotations_is_refused():
    predictions = Predictions.from_arrays([[[0.2, 0.3, 0.5]], [[0.6, 0.2, 0.2]]], layout="NKC")
    ensemble = EDOEnsemble(scale="ordinal").fit(predictions, [[0, 0], [2, 2]])
    with raises_code("scales-differ", "nominal"):
        evaluate(
            None,
            ensemble=ensemble,
            predictions=predictions,
            annotations=Annotations.from_matrix([[0, 1, 1], [2, 2, 2]], items=["0", "1"]),
        )


def test_a_declared_scale_replaces_the_one_that_the_table_notes():
    table = Annotations.from_matrix([[1, 2, 3]], scale="ordinal").to_table()
    assert Annotations.from_table(table, scale="ordinal").scale.positions == (1, 2, 3)
    uneven = Annotations.from_table(table, scale="ordinal:1=1,2=2,3=9")
    assert uneven.scale.positions == (1, 2, 9)
    assert Annotations.from_table(table, scale="nominal").scale.kind == "nominal"


def test_an_empty_set_needs_a_multi_label_scale():
    rows = {"item": ["a", "b"], "annotator": ["x", "x"], "label": ["1", "[]"]}
    for scale in (None, "ordinal"):
        with raises_code("undeclared-sets", "row 2", "'[]'", "1 such row"):
            Annotations.from_table(rows, scale=scale)


def test_a_label_that_is_no_number_names_its_row():
    rows = {"item": ["a", "b", "c"], "annotator": ["x"] * 3, "label": ["1", "2", "often"]}
    with raises_code("not-a-number", "row 3", "'often'"):
        Annotations.from_table(rows, scale="ordinal")
    rows["label"] = ["1", "2", "1"]
    with raises_code("not-a-number", "'often'"):
        Annotations.from_table(rows, scale="ordinal", classes=["1", "2", "often"])


MULTI_LABEL = Scale("multi-label")
ONE_TO_THREE = Scale("ordinal", (1, 2, 3))


@pytest.mark.parametrize(
    ("scale", "hard_labels", "shares", "opposed"),
    [
        (Scale(), [0], [[0.4, 0.3, 0.3]], 0.6),
        (ONE_TO_THREE, [1], [[0.2, 0.3, 0.5]], 0.5),
        (MULTI_LABEL, [[1, 0]], [[0.9, 0.3]], 0.3),
    ],
)
def test_opposed_shares_are_of_one_way_to_change_the_label(scale, hard_labels, shares, opposed):
    opposed_shares = scale.opposed_shares(np.array(hard_labels), np.array(shares))
    assert opposed_shares == pytest.approx([opposed])


def test_columns_of_one_class_are_added_and_of_one_label_the_highest_counts():
    p = np.array([[0.5, 0.25, 0.25]])
    np.testing.assert_array_equal(Scale().merged_columns(p, [0, 1, 0], 2), [[0.75, 0.25]])
    np.testing.assert_array_equal(MULTI_LABEL.merged_columns(p, [0, 1, 0], 2), [[0.5, 0.25]])


def test_a_different_label_is_another_class_or_another_set():
    assert Scale().different_label(np.array(2), 3) == 0
    labels = np.array([1, 1])
    np.testing.assert_array_equal(MULTI_LABEL.different_label(labels, 2), [0, 1])
    np.testing.assert_array_equal(labels, [1, 1])


def test_an_answer_in_words_is_a_class_or_a_set():
    assert Scale().answer_in_words(["rude"]) == "'rude'"
    assert Scale().answer_in_words(["rude", "warm"]) is None
    assert MULTI_LABEL.answer_in_words([]) == "the empty set"
    assert MULTI_LABEL.answer_in_words(["rude", "warm"]) == "the set {'rude', 'warm'}"
