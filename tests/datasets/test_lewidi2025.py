"""LeWiDi 2025 as published: the real files without test labels, and invented ones like them."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edokit import Annotations, EDOWarning, read_annotations, write_annotations
from edokit.members.texts import read_annotators, read_texts
from tests.errors import raises_code

README = {
    "CSC": ("ordinal", (5628, 704, 704), (4, 6), 872),
    "MP": ("nominal", (12017, 3005, 3756), (2, 21), 506),
    "Paraphrase": ("ordinal", (400, 50, 50), (4, 4), 4),
    "VariErrNLI": ("multi-label", (388, 50, 50), (1, 4), 4),
}


@pytest.mark.parametrize("name", README)
def test_the_figures_of_the_published_files(name: str, lewidi2025: Path):
    kind, (train, dev, test), per_item, annotators = README[name]
    with pytest.warns(EDOWarning) as caught:
        annotations = read_annotations(lewidi2025 / name)
    notes = " ".join(str(warning.message) for warning in caught)
    assert f"{test} of {train + dev + test} items have no annotations" in notes
    assert annotations.scale.kind == kind
    assert {split: len(annotations.split(split).items) for split in annotations.split_names} == {
        "train": train,
        "dev": dev,
    }
    counts = annotations.annotations_per_item
    assert (counts.min(), counts.max()) == per_item
    assert len(annotations.annotators) == annotators
    assert annotations.contexts is not None
    assert all(map(str.strip, annotations.texts))
    assert "lang" in annotations.item_columns
    assert {"Gender", "Age"} <= {*annotations.attributes}
    assert not any("explanation" in column for column in annotations.to_table().column_names)


@pytest.mark.parametrize("name", README)
def test_soft_labels_of_dev_are_the_published_ones(name: str, lewidi2025: Path):
    path = lewidi2025 / name / f"{name}_dev.json"
    annotations = read_annotations(path)
    published = json.loads(path.read_text(encoding="utf-8"))
    for item, shares in zip(annotations.items, annotations.soft_labels, strict=True):
        soft = published[item.removeprefix("dev-")]["soft_label"]
        by_class = {
            str(int(float(key))) if key.lstrip("-")[0].isdigit() else key: value
            for key, value in soft.items()
        }
        expected = [
            by_class[one]["1"] if isinstance(by_class[one], dict) else by_class[one]
            for one in annotations.classes
        ]
        np.testing.assert_allclose(shares, expected, atol=0.0101)


def test_blanks_around_ids_are_left_out_and_the_file_names_the_split(lewidi2025: Path):
    # Of its items, 5,628 name dev as their split.
    train = read_annotations(lewidi2025 / "CSC" / "CSC_train.json")
    assert set(train.splits) == {"train"}
    assert not any(name != name.strip() for name in train.annotators)


def test_metadata_is_joined_by_id(lewidi2025: Path):
    with pytest.warns(EDOWarning, match="held out"):
        annotations = read_annotations(lewidi2025 / "MP")
    raw = json.loads((lewidi2025 / "MP" / "MP_annotators_meta.json").read_text())
    ages = dict(zip(annotations.annotators, annotations.attributes["Age"], strict=True))
    assert ages["Ann0"] == f"{raw['0']['Age']:g}"
    assert len(set(ages.values())) > 20


@pytest.mark.parametrize("name", README)
def test_texts_of_a_held_out_test_set_are_read_with_their_annotators(name: str, lewidi2025: Path):
    path = lewidi2025 / name / f"{name}_test.json"
    with raises_code("missing-labels"):
        read_annotations(path)
    texts = read_texts(path)
    annotators = read_annotators(path)
    assert len(texts.items) == README[name][1][2]
    assert all(len(pair) == 2 for pair in texts.texts)
    assert dict(zip(texts.items, texts.annotators, strict=True)) == annotators
    assert all(len(set(names)) == len(names) for names in annotators.values())
    assert read_texts(path.parent, split="test").items == texts.items


# --- Invented files in the published format -------------------------------------------------------

ITEM = {
    "annotation task": "natural language inference",
    "text": {"context": "The bus is late.", "statement": "The bus has come."},
    "annotators": "Ann1,Ann2,Ann2",
    "number of annotations": 3,
    "annotations": {"Ann1": "neutral", "Ann2": "contradiction,neutral"},
    "soft_label": {
        "contradiction": {"0": 0.5, "1": 0.5},
        "entailment": {"0": 1.0, "1": 0.0},
        "neutral": {"0": 0.0, "1": 1.0},
    },
    "split": "test",
    "lang": "en",
    "other_info": {"explanations": [["Ann1", "neutral", "because"]], "source": "bus", "level": 1.0},
}
SCALE = {
    **ITEM,
    "text": {"context": "The bus is late.", "response": "Lovely."},
    "annotators": "Ann1,Ann2",
    "annotations": {"Ann1": "6", "Ann2": "5"},
    "soft_label": {**{str(k): 0.0 for k in range(5)}, "5": 0.5, "6": 0.5},
    "other_info": {},
}


def _write(folder: Path, name: str, **items: Any) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(items))
    return path


def test_published_test_files_with_labels_are_read(tmp_path: Path):
    path = _write(tmp_path, "VariErrNLI_test", a=ITEM)
    annotations = read_annotations(path)
    assert annotations.items.tolist() == ["test-a"]
    assert annotations.classes == ("contradiction", "entailment", "neutral")
    assert annotations.soft_labels.tolist() == [[0.5, 0.0, 1.0]]
    assert (annotations.texts[0], annotations.contexts[0]) == (
        "The bus has come.",
        "The bus is late.",
    )
    columns = {name: values[0] for name, values in annotations.item_columns.items()}
    assert columns == {"lang": "en", "source": "bus", "level": "1"}
    assert read_annotators(path) == {"test-a": ("Ann1", "Ann2")}


def test_commas_after_the_last_entry_and_gaps_of_metadata(tmp_path: Path):
    path = _write(tmp_path, "VariErrNLI_test", a=ITEM)
    (tmp_path / "VariErrNLI_annotators_meta.json").write_text(
        '{"Ann1": {"Age": "26", "Town": "a, }b",}, "2": {"Age": NaN, "Town": "nan",},}'
    )
    annotations = read_annotations(path)
    assert annotations.attributes["Age"].tolist() == ["26", ""]
    assert annotations.attributes["Town"].tolist() == ["a, }b", ""]


def test_a_seventh_bin_that_nobody_uses_is_no_class(tmp_path: Path):
    blank = {"Ann1": "6", " Ann2": "5"}
    path = _write(tmp_path, "CSC_test", a={**SCALE, "annotations": blank})
    annotations = read_annotations(path)
    assert annotations.annotators.tolist() == ["Ann1", "Ann2"]
    assert annotations.scale.positions == (1, 2, 3, 4, 5, 6)
    assert annotations.soft_labels.tolist() == [[0, 0, 0, 0, 0.5, 0.5]]


def test_rounded_soft_labels_are_not_used(tmp_path: Path):
    votes = {"Ann1": "1", "Ann2": "2", "Ann3": "2"}
    item = {
        **SCALE,
        "annotators": "Ann1,Ann2,Ann3",
        "annotations": votes,
        "soft_label": {"1": 0.33, "2": 0.67},
    }
    path = _write(tmp_path, "CSC_test", a=item)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_annotations(path).soft_labels[0, 1] == 2 / 3


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"annotations": {"Ann1": "7", "Ann2": "5"}}, ("unknown-class", "'test-a'", "'7'")),
        ({"annotations": {"Ann1": "many", "Ann2": "5"}}, ("unknown-class", "'test-a'", "'many'")),
        ({"annotations": {"Ann1": "", "Ann2": "5"}}, ("missing-value", "'label'", "item 'test-a'")),
        ({"annotations": "1,5"}, ("wrong-content", "a.annotations", "'1,5'")),
        ({"annotators": None}, ("wrong-content", "a.annotators", "null")),
        ({"text": {"response": "Lovely."}}, ("wrong-content", "a.text")),
        ({"text": {"response": "Lovely.", "context": 7}}, ("wrong-content", "a.text.context")),
        ({"text": {"context": "a", "response": "\ud83d"}}, ("invalid-unicode",)),
    ],
)
def test_files_that_are_not_as_published(
    change: dict[str, Any], names: tuple[str, ...], tmp_path: Path
):
    path = _write(tmp_path, "CSC_test", a={**SCALE, **change})
    with raises_code(*names):
        read_annotations(path, format="lewidi")


def test_sets_are_refused_where_one_class_was_declared(tmp_path: Path):
    path = _write(tmp_path, "VariErrNLI_test", a=ITEM)
    with raises_code("undeclared-sets", "scale='multi-label'"):
        read_annotations(path, scale="nominal")


def test_the_scale_may_be_declared_otherwise(tmp_path: Path):
    path = _write(tmp_path, "CSC_test", a=SCALE)
    nominal = read_annotations(path, scale="nominal")
    assert (nominal.scale.kind, len(nominal.classes)) == ("nominal", 6)
    with raises_code("unknown-class", "'6'"):
        read_annotations(path, scale="ordinal:1,2,3,4,5")


def test_everything_survives_a_table(tmp_path: Path):
    _write(tmp_path, "VariErrNLI_test", a=ITEM)
    annotations = read_annotations(
        _write(tmp_path, "VariErrNLI_dev", a={**ITEM, "split": "dev"}).parent
    )
    write_annotations(annotations, tmp_path / "table.parquet")
    second_annotations = read_annotations(tmp_path / "table.parquet")
    assert isinstance(second_annotations, Annotations)
    assert second_annotations.to_table().equals(annotations.to_table())
    assert annotations.items.tolist() == ["dev-a", "test-a"]
