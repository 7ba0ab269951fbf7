"""One predictions table from one file per model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edokit import EDOWarning, Predictions, read_predictions, write_predictions
from edokit._io.tables import write_table
from edokit.predictions.join import join_models
from tests.errors import raises_code

MODEL = "item,p_0,p_1\na,0.5,0.5\nb,0.25,0.75\nc,1,0\n"


def written(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


# --- one model's file -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl"])
def test_one_model_is_read_from_every_format(suffix: str, tmp_path: Path) -> None:
    shares = np.random.default_rng(0).dirichlet([1, 1, 1], 20)
    columns = {f"p_{name}": shares[:, k] for k, name in enumerate(["yes", "no", "maybe"])}
    extra = {"entropy": [0.5] * 20, "label": ["yes"] * 20}
    table = pa.table({"item": [f"00{k}" for k in range(20)], **columns, **extra})
    write_table(table, tmp_path / f"m{suffix}")
    model = join_models([tmp_path / f"m{suffix}"])
    assert model.items.tolist() == [f"00{k}" for k in range(20)]
    assert model.classes == ("maybe", "no", "yes")
    np.testing.assert_array_equal(model.probabilities[:, 0], shares[:, ::-1])


def test_eleven_classes_are_in_numeric_order(tmp_path: Path) -> None:
    header = ",".join(f"p_{k}" for k in (10, *range(10)))
    path = written(tmp_path / "m.csv", f"item,{header}\na,1{',0' * 10}\n")
    model = join_models([path])
    assert model.classes == tuple(map(str, range(11)))
    assert model.probabilities[0, 0].argmax() == 10


def test_logits_only_through_the_option(tmp_path: Path) -> None:
    path = written(tmp_path / "m.csv", "item,p_0,p_1\na,0,2.5\n")
    with raises_code("invalid-probabilities", "logits="):
        join_models([path])
    model = join_models([path], logits=True)
    assert np.log(model.probabilities[0, 0, 1] / model.probabilities[0, 0, 0]) == pytest.approx(2.5)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("item,p_0,p_1\na,nan,0.5\n", ("invalid-probabilities", "m.csv", "member 'm'", "item 'a'")),
        ("item,p_0,p_1\na,,0.5\n", ("invalid-probabilities", "item 'a'")),
        ("item,p_0,p_1\na,-1,2\n", ("invalid-probabilities", "item 'a'")),
        ("item,p_0,p_1\na,0.2,0.2\n", ("invalid-probabilities",)),
        ("item,p_0,p_1\na,1,0\nb,NA,1\n", ("not-a-number", "'p_0'", "'NA'", "in row 3")),
        ("item,p_0,p_1\na,1,0\na,0,1\n", ("duplicate-prediction", "item 'a'", "member 'm'")),
        ("item,p_0,p_1\n,1,0\n", ("missing-value", "m.csv: row 2")),
        ("id,p_0,p_1\na,1,0\n", ("missing-column", "column 'item'", "'id', 'p_0'")),
        ("item,p_0\na,1\n", ("missing-column", "p_<class>", "'answer': 'NAME'")),
        ("item,p_,p_1\na,1,0\n", ("missing-value",)),
        ("item,p_0,p_1\n", ("no-rows",)),
    ],
)
def test_a_bad_model_file_is_one_line(content: str, words: tuple[str, ...], tmp_path: Path) -> None:
    with raises_code(*words):
        join_models([written(tmp_path / "m.csv", content)])


def test_a_policy_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with raises_code("unknown-choice"):
        join_models([written(tmp_path / "m.csv", MODEL)], invalid="ignore")


# --- many -----------------------------------------------------------------------------------------


@pytest.fixture
def mixed(tmp_path: Path) -> list[Path]:
    """A CSV, a Parquet, a JSONL and an .npz of two members, each in an order of its own."""
    csv = written(tmp_path / "one.csv", MODEL)
    table = {"item": ["c", "b", "a"], "p_1": [0.0, 0.25, 0.5], "p_0": [1.0, 0.75, 0.5]}
    write_table(pa.table(table), tmp_path / "two.parquet")
    write_table(pa.table(table), tmp_path / "three.jsonl")
    pair = Predictions.from_arrays(
        np.array([[[1, 0], [0, 1]]] * 3, np.float32),
        layout="NKC",
        items=["b", "c", "a"],
        members=["four", "five"],
        classes=[1, 0],
        groups=["g", "g"],
    )
    write_predictions(pair, tmp_path / "pair.npz")
    write_predictions(pair.select(["four"]), tmp_path / "long.parquet")
    return [csv, *(tmp_path / name for name in ("two.parquet", "three.jsonl", "pair.npz"))]


def test_items_and_classes_are_matched_by_name(mixed: list[Path]) -> None:
    joined = join_models(mixed)
    assert joined.items.tolist() == ["a", "b", "c"]
    assert joined.classes == ("0", "1")
    assert joined.members == ("one", "two", "three", "four", "five")
    assert joined.groups == ("", "", "", "g", "g")
    assert joined.probabilities[:, :, 1].tolist() == [
        [0.5, 0.5, 0.5, 1, 0],
        [0.75, 0.25, 0.25, 1, 0],
        [0, 0, 0, 1, 0],
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_items_are_kept_of_every_file(mixed: list[Path], order: int) -> None:
    joined = join_models(mixed[::order], items=iter("cb"))
    assert set(joined.items) == {"b", "c"}
    assert set(joined.members) == {"one", "two", "three", "four", "five"}


def test_a_message_names_the_row_of_the_file_where_only_some_items_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "m.csv", "item,p_0,p_1\na,1,0\n\nb,many,0\nc,1,0\n")
    with raises_code("not-a-number", "'many'", "in row 4"):
        join_models([path], items=["b", "c"])


def test_members_can_be_renamed_and_grouped(mixed: list[Path]) -> None:
    joined = join_models(mixed, names=["m", None, "k", None], groups={"m": "h", "k": "h"})
    assert joined.members == ("m", "two", "k", "four", "five")
    assert joined.groups == ("h", "", "h", "g", "g")


def test_a_long_parquet_brings_its_members(mixed: list[Path]) -> None:
    joined = join_models([mixed[0], mixed[0].parent / "long.parquet"], names=[None, "renamed"])
    assert joined.members == ("one", "renamed")


def test_a_join_comes_back_from_disk(mixed: list[Path], tmp_path: Path) -> None:
    joined = join_models(mixed)
    for name in ("j.npz", "j.parquet"):
        write_predictions(joined, tmp_path / name)
        second_predictions = read_predictions(tmp_path / name)
        np.testing.assert_array_equal(second_predictions.probabilities, joined.probabilities)
        assert second_predictions.members == joined.members


@pytest.mark.parametrize(
    ("second", "options", "words"),
    [
        (MODEL, {"names": ["m", "m"]}, ("duplicate-name", "'m'")),
        ("item,p_0,p_1\na,1,0\nd,1,0\n", {}, ("items-differ", "2 of 3", "'b', 'c'; 1", "'d'")),
        (MODEL.replace("p_1", "p_2"), {}, ("classes-differ", "'0', '2'", "'0', '1'")),
        (MODEL, {"names": ["m"]}, ("lengths-differ", "1 names", "2 files")),
    ],
)
def test_files_that_do_not_fit_are_refused(
    second: str, options: dict[str, Any], words: tuple[str, ...], tmp_path: Path
) -> None:
    files = [written(tmp_path / "1.csv", MODEL), written(tmp_path / "2.csv", second)]
    with raises_code(*words):
        join_models(files, **options)


def test_files_of_one_name_need_names(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    files = [written(tmp_path / "m.csv", MODEL), written(tmp_path / "x" / "m.csv", MODEL)]
    with raises_code("duplicate-name", "'m'", "a=FILE b=FILE"):
        join_models(files)
    assert join_models(files, names=["m", "n"]).members == ("m", "n")


def test_no_files_are_no_predictions() -> None:
    with raises_code("empty-option"):
        join_models([])


def test_a_name_is_the_prefix_of_several_members(mixed: list[Path]) -> None:
    pools = [mixed[-1], mixed[-1]]
    with raises_code("duplicate-name", "'four', 'five'", "prefix"):
        join_models(pools)
    joined = join_models(pools, names=["a", "b"])
    assert joined.members == ("a-four", "a-five", "b-four", "b-five")
    assert joined.groups == ("g",) * 4


# --- logits ---------------------------------------------------------------------------------------

LOGITS = "item,p_0,p_1\na,1,-1\nb,0.5,2\nc,0,0\n"


def test_logits_are_declared_file_by_file(tmp_path: Path) -> None:
    soft = written(tmp_path / "soft.csv", MODEL)
    raw = written(tmp_path / "raw.csv", LOGITS)
    joined = join_models([soft, raw], logits=[False, True])
    assert joined.probabilities[:, 0].tolist() == [[0.5, 0.5], [0.25, 0.75], [1, 0]]
    assert np.log(joined.probabilities[0, 1]) @ [1, -1] == pytest.approx(2)
    with raises_code("not-logits", "soft.csv"):
        join_models([raw, soft], logits=True)
    with raises_code("invalid-probabilities", "logits=True"):
        join_models([soft, raw])
    with raises_code("lengths-differ", "1 logits", "2 files"):
        join_models([soft, raw], logits=[True])


def test_stored_predictions_are_no_logits(mixed: list[Path]) -> None:
    with raises_code("not-logits", "pair.npz"):
        join_models(mixed[-1:], logits=True)


# --- one's own names ------------------------------------------------------------------------------


def test_columns_and_classes_have_their_own_names_in_each_file(tmp_path: Path) -> None:
    one = written(tmp_path / "one.csv", "item,p_no,p_yes\na,0.5,0.5\nb,0.25,0.75\n")
    two = written(tmp_path / "two.csv", "id,minus,plus,note\nb,1,0,x\na,0.5,0.5,y\n")
    three = written(tmp_path / "three.csv", "id,p_LABEL_0,p_LABEL_1\na,0,1\nb,1,0\n")
    columns = {"item": "id", "p_no": "minus", "p_yes": "plus"}
    names = {"LABEL_0": "no", "LABEL_1": "yes"}
    joined = join_models([one, two, three], columns=columns, label_map=names)
    assert joined.classes == ("no", "yes")
    assert joined.probabilities[:, :, 1].tolist() == [[0.5, 0.5, 1], [0.75, 0, 0]]


def test_members_in_one_long_table_of_any_format(tmp_path: Path) -> None:
    rows = ["post,model,p_0,p_1", "a,x,1,0", "a,y,0,1", "b,y,0,1", "b,x,0.5,0.5"]
    path = written(tmp_path / "long.csv", "\n".join(rows))
    joined = join_models([path], columns={"item": "post", "member": "model"})
    assert joined.members == ("x", "y")
    assert joined.probabilities[:, :, 1].tolist() == [[0, 1], [0.5, 1]]


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (
            "id,p_0,p_1\na,1,0\n",
            {"columns": {"item": "nr"}},
            ("missing-column", "column 'nr'", "'id'"),
        ),
        (
            "item,lo,hi\na,1,x\n",
            {"columns": {"p_0": "lo", "p_1": "hi"}},
            ("not-a-number", "'p_1'", "'x'"),
        ),
        (MODEL, {"columns": {"score": "p_0"}}, ("unknown-role", "'score'")),
        (MODEL, {"columns": {"p_2": "p_two"}}, ("missing-column", "column 'p_two'")),
        (MODEL, {"label_map": {"2": "1"}}, ("unknown-label", "label_map", "'2'", "'0', '1'")),
        (MODEL, {"label_map": {"0": "1"}}, ("duplicate-name", "m.csv", "'1'")),
        (MODEL, {"missing": "keep"}, ("unknown-choice",)),
    ],
)
def test_a_name_that_is_not_there_is_told(
    content: str, options: dict[str, Any], words: tuple[str, ...], tmp_path: Path
) -> None:
    with raises_code(*words):
        join_models([written(tmp_path / "m.csv", content)], **options)


def test_classes_called_otherwise_come_with_a_mapping(tmp_path: Path) -> None:
    other = written(tmp_path / "2.csv", "item,p_No,p_yes\na,1,0\n")
    one = written(tmp_path / "1.csv", "item,p_no,p_yes\na,1,0\n")
    with raises_code("classes-differ", "bert", "2.csv", "'No'", "label_map="):
        join_models([one, other], names=["a", "bert"])
    assert join_models([one, other], label_map={"No": "no"}).classes == ("no", "yes")


# --- items that are missing -----------------------------------------------------------------------


def test_items_without_a_prediction_are_refused_or_left_out_by_name(tmp_path: Path) -> None:
    one = written(tmp_path / "one.csv", MODEL)
    two = written(tmp_path / "two.csv", "item,p_0,p_1\nd,1,0\nc,0,1\nb,,\na,1,0\n")
    with raises_code(
        "missing-predictions", "two.csv", "member 'two'", "1 item: 'b'", "missing='drop'"
    ):
        join_models([one, two])
    with pytest.warns(EDOWarning, match=r"2 of 4 items .*'b', 'd'"):
        joined = join_models([one, two], missing="drop")
    assert joined.items.tolist() == ["a", "c"]
    assert joined.probabilities[:, :, 1].tolist() == [[0.5, 0], [0, 1]]


def test_missing_pairs_of_a_long_table_are_items_without_a_prediction(tmp_path: Path) -> None:
    rows = ["item,member,p_0,p_1", "a,x,1,0", "a,y,0,1", "b,x,0,1"]
    path = written(tmp_path / "long.csv", "\n".join(rows))
    with raises_code("missing-predictions", "member 'y'", "1 item: 'b'"):
        join_models([path])
    with pytest.warns(EDOWarning, match=r"1 of 2 items .*'b'"):
        assert join_models([path], missing="drop").items.tolist() == ["a"]


def test_files_without_a_common_item_do_not_join(tmp_path: Path) -> None:
    one = written(tmp_path / "one.csv", "item,p_0,p_1\na,1,0\n")
    two = written(tmp_path / "two.csv", "item,p_0,p_1\nb,1,0\n")
    with raises_code("items-differ"):
        join_models([one, two], missing="drop")


@pytest.mark.parametrize("missing", ["error", "drop"])
def test_ids_that_only_look_the_same_are_shown_by_their_code_points(
    missing: Any, tmp_path: Path
) -> None:
    one = written(tmp_path / "one.csv", "item,p_0,p_1\ncaf\u00e9,1,0\n")
    two = written(tmp_path / "two.csv", "item,p_0,p_1\ncafe\u0301,1,0\n")
    with raises_code("items-differ", "'café'", "'cafe\\u0301'"):
        join_models([one, two], missing=missing)
