"""Annotations from a long table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from annotation_cases import assert_same, known, long_tables, said
from hypothesis import given, settings
from hypothesis import strategies as st

from edokit import Annotations, EDOError, EDOWarning
from tests.errors import raises_code

pytestmark = pytest.mark.filterwarnings("ignore:hard_label of:edokit._errors.EDOWarning")

ROWS: dict[str, Any] = {
    "item": [1, 1, 2],
    "annotator": ["x", "y", "x"],
    "label": [0, 1, 1],
}

DROPPING = pytest.mark.filterwarnings("ignore:.*dropped by duplicates:edokit._errors.EDOWarning")


def changed(**columns: Any) -> dict[str, Any]:
    return {**ROWS, **columns}


# --- what a table may be --------------------------------------------------------------------------


@settings(max_examples=25)
@given(long_tables())
def test_every_kind_of_table_says_the_same(table: pa.Table) -> None:
    made = Annotations.from_table(table)
    frame = table.to_pandas()
    coded = pa.table({name: table[name].dictionary_encode() for name in table.column_names})
    chunked = pa.concat_tables([coded.slice(row, 1) for row in range(len(coded))])
    for same in (frame, frame.astype("category"), table.to_pydict(), coded, chunked):
        assert_same(Annotations.from_table(same), made)
    assert_same(Annotations.from_table(table.combine_chunks().to_batches()[0]), made)


@given(long_tables())
def test_a_table_says_what_its_rows_say(table: pa.Table) -> None:
    made = Annotations.from_table(table)
    rows = table.to_pylist()
    assert said(made) == sorted((row["item"], row["annotator"], row["label"]) for row in rows)
    assert made.items.tolist() == list(dict.fromkeys(row["item"] for row in rows))
    assert made.annotators.tolist() == list(dict.fromkeys(row["annotator"] for row in rows))
    beside = known(made)
    assert beside["texts"] == {row["item"]: row["text"] for row in rows}
    assert beside["splits"] == {row["item"]: row["split"] for row in rows}
    assert beside["home"] == {row["annotator"]: row["home"] for row in rows}
    assert beside["published"] == {row["item"]: row["hard_label"] or None for row in rows}


def test_anything_that_speaks_arrow_is_a_table() -> None:
    class Foreign:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table(ROWS).__arrow_c_stream__(requested_schema)

    assert_same(Annotations.from_table(Foreign()), Annotations.from_table(ROWS))  # type: ignore[arg-type]


@pytest.mark.parametrize("table", [None, [{"item": 1}], 7, "a.csv", np.zeros(3)])
def test_anything_else_is_no_table(table: Any) -> None:
    with raises_code("unsupported-type"):
        Annotations.from_table(table)


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, 1],
        [0.0, 1.0, 1.0],
        ["0", "1", "1"],
        np.array([0, 1, 1], np.int8),
        pd.array([0, 1, 1], dtype="Int64"),
        pd.Categorical(["0", "1", "1"], categories=["1", "unused", "0"]),
    ],
)
def test_a_class_is_its_name_whatever_the_type_of_the_column(labels: Any) -> None:
    made = Annotations.from_table(pd.DataFrame(changed(label=labels)))
    assert made.classes == ("0", "1")
    assert made.counts.tolist() == [[1, 1], [0, 1]]


def test_whole_numbers_that_a_gap_made_decimal_are_whole_again() -> None:
    frame = pd.DataFrame(changed(label=[0, 1, None])).dropna()
    assert frame["label"].dtype == np.float64
    assert Annotations.from_table(frame).classes == ("0", "1")


def test_ids_are_strings() -> None:
    made = Annotations.from_table(changed(item=["7", "007", "7.0"]))
    assert made.items.tolist() == ["7", "007", "7.0"]
    assert Annotations.from_table(changed(item=[7, 7, 8])).items.tolist() == ["7", "8"]
    assert Annotations.from_table(changed(item=[7.0, 7.0, 8.5])).items.tolist() == ["7", "8.5"]


def test_a_class_may_have_any_name() -> None:
    made = Annotations.from_table(changed(label=["None", "nan", "NA"]))
    assert made.classes == ("NA", "None", "nan")


# --- columns --------------------------------------------------------------------------------------


def test_columns_are_mapped_by_name() -> None:
    renamed = {"id": ROWS["item"], "who": ROWS["annotator"], "answer": ROWS["label"]}
    made = Annotations.from_table(
        renamed, columns={"item": "id", "annotator": "who", "label": "answer"}
    )
    assert_same(made, Annotations.from_table(ROWS))


@pytest.mark.parametrize(
    ("table", "columns", "words"),
    [
        (
            {"item": [1], "label": [1]},
            {},
            ("missing-column", "'annotator'", "'item', 'label'"),
        ),
        ({"a": [1]}, {}, ("missing-column", "'item', 'annotator', 'label'")),
        (
            {"item": [1], "rater-1": [1], "rater-2": [0]},
            {},
            ("missing-column", "annotator_columns"),
        ),
        ({"item": [1], "p_0": [1]}, {}, ("missing-column", "'annotator'")),
        (ROWS, {"item": "id"}, ("missing-column", "column 'id'", "'item'")),
        (ROWS, {"label": "lable"}, ("missing-column", "column 'lable'", "did you mean 'label'")),
        (ROWS, {"thing": "item"}, ("unknown-role", "'thing'")),
        (ROWS, {"lang": "item"}, ("unknown-role",)),
    ],
)
def test_an_unknown_column_is_refused_with_those_that_are_there(
    table: Any, columns: dict[str, str], words: tuple[str, ...]
) -> None:
    with raises_code(*words):
        Annotations.from_table(table, columns=columns)


@pytest.mark.parametrize(
    "table",
    [
        pa.table([pa.array([1])] * 4, names=["item", "annotator", "label", "label"]),
        pd.DataFrame([[1, 2, 3, 4]], columns=["item", "annotator", "label", "label"]),
        pd.DataFrame([[1, 2, 3, 4, 5]], columns=["item", "annotator", "label", "7", 7]),
    ],
)
def test_a_column_name_that_stands_twice_is_refused(table: Any) -> None:
    with raises_code("duplicate-name"):
        Annotations.from_table(table)


def test_columns_of_different_lengths_are_refused() -> None:
    with raises_code("lengths-differ"):
        Annotations.from_table(changed(item=[1]))


def test_attributes_have_one_value_per_annotator_whatever_their_type() -> None:
    made = Annotations.from_table(
        pd.DataFrame(
            changed(
                age=[30.0, np.nan, 30.0],
                home=["here", "there", "here"],
                seconds=[1.5, 2.5, 3.5],
            )
        )
    )
    assert {name: values.tolist() for name, values in made.attributes.items()} == {
        "age": ["30", ""],
        "home": ["here", "there"],
    }


def test_every_other_column_is_kept_with_what_it_describes() -> None:
    table = changed(
        item=["a", "a", "b"],
        annotator=["x", "y", "x"],
        lang=["en", "en", None],
        home=["here", "there", "here"],
        seconds=[1.5, 2.5, 3.5],
        p_value=[1, 2, 2],
        source=["web", "web", "web"],
    )
    made = Annotations.from_table(table)
    assert {name: list(values) for name, values in made.item_columns.items()} == {
        "lang": ["en", ""],
        "source": ["web", "web"],
    }
    assert {*made.attributes} == {"home", "source"}
    assert {name: list(values) for name, values in made.annotation_columns.items()} == {
        "seconds": ["1.5", "2.5", "3.5"],
        "p_value": ["1", "2", "2"],
    }
    assert made.item_column("lang").tolist() == ["en", ""]
    last = made.take([1])
    assert last.item_columns["lang"].tolist() == [""]
    assert last.annotation_columns["seconds"].tolist() == ["3.5"]
    again = Annotations.from_table(made.to_table()).to_table()
    assert again.to_pylist() == made.to_table().to_pylist()
    assert {*again.column_names} == {*table}


@DROPPING
def test_a_repeated_annotation_goes_with_its_columns() -> None:
    rows = {"item": [1, 1, 1, 2], "annotator": ["x", "x", "y", "x"], "label": [0, 1, 1, 0]}
    made = Annotations.from_table({**rows, "seconds": [5, 6, 7, 8]}, duplicates="first")
    assert made.annotation_columns["seconds"].tolist() == ["5", "7", "8"]


def test_a_column_that_items_do_not_have_is_refused_by_name() -> None:
    table = changed(item=["a", "a", "b"], lang=["en", "en", "it"], seconds=[1, 2, 3])
    made = Annotations.from_table(table)
    with raises_code("missing-column", "column 'language'", "'lang'") as caught:
        made.item_column("language", "by")
    assert "by names" in str(caught.value)
    with raises_code("missing-column", "column 'seconds'"):
        made.item_column("seconds")


def test_a_column_that_cannot_be_kept_is_named() -> None:
    with pytest.warns(EDOWarning, match=r"'tags'.*left out"):
        Annotations.from_table(changed(tags=[["a"], ["b"], ["a"]]))


def test_a_column_that_another_took_the_place_of_is_no_attribute() -> None:
    table = {"id": [1, 1, 2], "item": ["u", "v", "u"], **changed()} | {"item": ["u", "v", "u"]}
    made = Annotations.from_table(table, columns={"item": "id"})
    assert made.attributes == {}
    assert_same(Annotations.from_table(made.to_table()), made)


# --- one split ------------------------------------------------------------------------------------


@given(long_tables(), st.sampled_from(["train", "dev"]))
def test_reading_one_split_is_reading_all_and_keeping_one(table: pa.Table, split: str) -> None:
    made = Annotations.from_table(table)
    if split not in made.split_names:
        with raises_code("unknown-split", f"'{split}'"):
            Annotations.from_table(table, split=split)
        return
    assert_same(Annotations.from_table(table, split=split), made.split(split))


def test_rows_are_counted_in_the_whole_table_even_if_one_split_is_read() -> None:
    table = changed(split=["train", "train", "dev"], label=[0, 1, 7])
    with raises_code("open-decisions", "row 3", "label '7'"):
        Annotations.from_table(table, classes=[0, 1], split="dev")
    shares = {**changed(split=["train", "train", "dev"]), "p_0": [1, 1, 0.5], "p_1": [0, 0, 0]}
    del shares["label"]
    with raises_code("invalid-probabilities", "row 3", "(0.5, 0)"):
        Annotations.from_table(shares, split="dev")
    shares["p_1"] = ["0", "0", "half"]
    with raises_code("not-a-number", "'half'", "row 3"):
        Annotations.from_table(shares, split="dev")


def test_other_splits_may_be_unlabelled() -> None:
    table = changed(split=["dev", "dev", "test"], label=[0, 1, None])
    assert Annotations.from_table(table, split="dev").items.tolist() == ["1"]


def test_a_split_needs_a_split_column() -> None:
    with raises_code("unknown-split"):
        Annotations.from_table(ROWS, split="dev")


# --- bad rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        (changed(), {"classes": [0, 2]}, ("unknown-class", "row 2", "label '1'", "'0', '2'")),
        (
            changed(label=[5, 6, 7]),
            {"classes": [5]},
            ("open-decisions", "row 2", "label '6'", "2 such values"),
        ),
        (changed(), {"classes": [0, 1, "1"]}, ("duplicate-name", "'1'")),
        (changed(), {"classes": []}, ("empty-option",)),
        (changed(), {"classes": "01"}, ("single-value",)),
        (changed(), {"classes": [0, 1, None]}, ("missing-value",)),
        (changed(label=[0, None, None]), {}, ("missing-value", "'label'", "row 2 (2 such rows)")),
        (changed(item=[None, 1, 2]), {}, ("missing-value", "'item'", "row 1 (1 such row)")),
        (changed(annotator=["x", "", "x"]), {}, ("missing-value", "'annotator'", "row 2")),
        (
            changed(annotator=["x", None, "x"], label=[0, None, 1]),
            {},
            ("missing-value", "'annotator'", "empty='drop'"),
        ),
        (
            changed(label=[0, "a", 1]),
            {},
            ("mixed-types", "'label'", "row 1", "int", "row 2", "str"),
        ),
        (changed(item=[[1], [1], [2]]), {}, ("unsupported-type", "column 'item'")),
        ({"item": [], "annotator": [], "label": []}, {}, ("no-rows",)),
        (
            changed(text=["a", "b", "c"]),
            {},
            ("contradictory-rows", "item '1'", "row 1", "row 2"),
        ),
        (changed(split=["a", "b", "a"]), {}, ("contradictory-rows", "item '1'")),
        (
            changed(hard_label=[0, 1, 1]),
            {},
            ("contradictory-rows", "item '1'", "hard_label", "row 1", "row 2"),
        ),
        (
            changed(hard_label=[1, 1, 9]),
            {"classes": [0, 1]},
            ("unknown-class", "item '2'", "label '9'", "'0', '1'"),
        ),
        (
            changed(),
            {"duplicates": "last"},
            ("unknown-choice", "duplicates", "'error', 'first', 'all'"),
        ),
    ],
)
def test_bad_rows_are_told_in_one_line(
    table: Any, options: dict[str, Any], words: tuple[str, ...]
) -> None:
    with raises_code(*words) as caught:
        Annotations.from_table(table, **options)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"p_0": [0.5, 0.2, 1], "p_1": [0.5, 0.9, 0]},
            ("invalid-probabilities", "row 2", "(0.2, 0.9)", "1 such row"),
        ),
        (
            {"p_0": [0.5, 1, -0.5], "p_1": [0.5, 0, 1.5]},
            ("invalid-probabilities", "row 3", "(-0.5, 1.5)"),
        ),
        ({"p_0": [np.nan, 1, 1], "p_1": [0.5, 0, 0]}, ("invalid-probabilities", "row 1", "0.5")),
        (
            {"p_0": [np.inf, 1, 1], "p_1": [-np.inf, 0, 0]},
            ("invalid-probabilities", "row 1", "(inf, -inf)"),
        ),
        (
            {"p_0": [1, 1, 1], "p_1": ["a", "0", "0"]},
            ("not-a-number", "'p_1'", "'a'", "row 1"),
        ),
        ({"p_0": [1, 1, 1]}, ("missing-column", "'p_0'", "p_<class>")),
    ],
)
def test_probabilities_that_are_none_are_refused(
    columns: dict[str, Any], words: tuple[str, ...]
) -> None:
    table = {"item": ROWS["item"], "annotator": ROWS["annotator"], **columns}
    with raises_code(*words):
        Annotations.from_table(table)


def test_probability_columns_must_be_those_of_the_declared_classes() -> None:
    table = {"item": [1], "annotator": ["x"], "p_a": [1.0], "p_b": [0.0]}
    assert Annotations.from_table(table, classes=["b", "a"]).soft_labels.tolist() == [[0, 1]]
    with raises_code("missing-column", "'p_a', 'p_b'", "('p_a', 'p_c')"):
        Annotations.from_table(table, classes=["a", "c"])


# --- the same annotator twice ---------------------------------------------------------------------

TWICE = {
    "item": ["a", "a", "b", "a"],
    "annotator": ["x", "y", "x", "x"],
    "label": [0, 1, 1, 1],
}


def test_the_same_annotator_twice_is_an_error_with_its_row() -> None:
    with raises_code("duplicate-annotation", "'x'", "item 'a'", "row 4", "duplicates='first'"):
        Annotations.from_table(TWICE)


@DROPPING
def test_the_first_of_two_answers_can_be_kept() -> None:
    made = Annotations.from_table(TWICE, duplicates="first")
    assert said(made) == [("a", "x", "0"), ("a", "y", "1"), ("b", "x", "1")]


def test_all_answers_can_be_counted_and_cover_an_item_once() -> None:
    made = Annotations.from_table(TWICE, duplicates="all")
    assert made.counts.tolist() == [[1, 2], [0, 1]]
    assert made.coverage.tolist() == [1, 0.5]
    assert made.repeated.tolist() == [False, False, False, True]


@DROPPING
def test_the_first_probabilities_are_kept_like_the_first_class() -> None:
    table = {**TWICE, "p_0": [1, 0.5, 0, 0], "p_1": [0, 0.5, 1, 1]}
    del table["label"]
    made = Annotations.from_table(table, duplicates="first")
    np.testing.assert_allclose(made.soft_labels, [[0.75, 0.25], [0, 1]])


@DROPPING
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 1)), min_size=1))
def test_first_keeps_what_a_dictionary_of_first_answers_keeps(
    rows: list[tuple[int, int, int]],
) -> None:
    first: dict[tuple[int, int], int] = {}
    for item, person, label in rows:
        first.setdefault((item, person), label)
    table = dict(zip(("item", "annotator", "label"), zip(*rows, strict=True), strict=True))
    made = Annotations.from_table(table, duplicates="first")
    assert said(made) == sorted((str(i), str(a), str(c)) for (i, a), c in first.items())
    every = Annotations.from_table(table, duplicates="all")
    assert int(every.repeated.sum()) == len(rows) - len(first)
    np.testing.assert_allclose(every.coverage, made.coverage)


# --- anything -------------------------------------------------------------------------------------

ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=2),
    st.dates(),
    st.lists(st.integers(), max_size=2),
)


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    rows = draw(st.integers(0, 4))
    names = ("item", "annotator", "label", "hard_label", "text", "split", "p_0", "p_1", "age", 3)
    chosen = draw(st.lists(st.sampled_from(names), unique=True))
    kinds = st.sampled_from([ANYTHING, st.integers(0, 2), st.text(max_size=1), st.floats(0, 1)])
    columns = {
        name: draw(st.lists(draw(kinds), min_size=rows, max_size=rows))
        for name in dict.fromkeys([*draw(st.sampled_from([names[:3], ()])), *chosen])
    }
    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in columns.items()})


@DROPPING
@pytest.mark.filterwarnings("ignore:columns? .* left out")
@given(frames(), st.sampled_from(["error", "first", "all"]), st.sampled_from([None, "a", 1]))
def test_any_frame_gives_annotations_or_one_clear_line(
    frame: pd.DataFrame, duplicates: str, split: Any
) -> None:
    try:
        made = Annotations.from_table(frame, duplicates=duplicates, split=split)
    except EDOError as error:
        lines = str(error).splitlines()
    else:
        lines = ["fine"]
        np.testing.assert_allclose(made.soft_labels.sum(axis=1), 1)
        second_annotations = Annotations.from_table(
            made.to_table(), classes=made.classes, duplicates="all"
        )
        assert_same(second_annotations, made)
    assert len(lines) == 1 or lines[0].endswith("decisions are open:")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"annotator": ["ann", " Ann", "x"]}, "annotators .* case or blanks .* 'ann' and ' Ann'"),
        ({"item": ["a", "a ", "b"]}, "items .* only in blanks .* 'a' and 'a '"),
        ({"item": ["a", "b", "a "]}, "items .* only in blanks .* 'a' and 'a '"),
        ({"item": [" a", "b", "a"]}, "items .* only in blanks .* ' a' and 'a'"),
        ({"item": [1, 2, 3], "split": ["dev", "Dev", "test"]}, "splits .* 'dev' and 'Dev'"),
    ],
)
def test_names_that_are_nearly_the_same_are_pointed_out(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.warns(EDOWarning, match=words):
        Annotations.from_table(changed(**changes))


@DROPPING
def test_a_column_that_varies_in_dropped_rows_only_describes_the_annotator():
    rows = {
        "item": ["a", "a", "b", "b"],
        "annotator": ["x", "x", "x", "y"],
        "label": ["no", "yes", "no", "no"],
        "age": ["30", "31", "30", "50"],
    }
    annotations = Annotations.from_table(rows, duplicates="first")
    assert annotations.attributes["age"].tolist() == ["30", "50"]
    second_annotations = Annotations.from_table(annotations.to_table())
    assert second_annotations.attributes["age"].tolist() == ["30", "50"]
