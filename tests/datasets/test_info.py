"""What a set of annotations holds, in figures."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from edokit import Annotations, read_annotations
from edokit.datasets.info import describe_annotations

TABLE = {
    "item": ["a", "a", "a", "b", "b", "c", "d"],
    "annotator": ["x", "y", "z", "x", "y", "x", "x"],
    "label": ["0", "0", "0", "0", "1", "0", "1"],
    "text": ["Tea at four today"] * 3 + ["cake", "cake"] + ["", "tea at four today!"],
    "split": ["train"] * 5 + ["dev", "dev"],
}


def made(**columns: list[str]) -> Annotations:
    return Annotations.from_table({**TABLE, **columns}, duplicates="all")


def test_figures_of_a_split() -> None:
    train = describe_annotations(made())["splits"]["train"]
    assert train == {
        "items": 2,
        "annotators": 3,
        "annotations": 5,
        "annotations_per_item": [2, 3],
        "classes": {"0": 2, "1": 0},
        "annotations_per_class": {"0": 4, "1": 1},
        "ratio": None,
        "ties": {"items": 1, "without_published_label": 1},
        "unanimous": 0.5,
        "entropy": pytest.approx(math.log(2) / 2),
        "coverage": {"min": 0.5, "median": 1.0, "max": 1.0},
    }


def test_figures_of_the_whole() -> None:
    whole = describe_annotations(made())
    assert (whole["items"], whole["annotators"], whole["annotations"]) == (4, 3, 7)
    assert whole["classes"] == ["0", "1"]
    assert list(whole["splits"]) == ["train", "dev"]


def test_near_duplicates_across_splits() -> None:
    assert describe_annotations(made())["near_duplicates"] == {
        "threshold": 0.8,
        "items": 2,
        "groups": 1,
        "also_in": "train",
        "splits": {"dev": {"verbatim": 1, "near": 1}},
    }


def test_verbatim_is_part_of_near() -> None:
    text = "we had tea and cake in the old garden behind the house at four on a warm afternoon"
    found = describe_annotations(
        made(text=[text] * 3 + ["x", "x", text.replace("warm", "calm"), text.upper()])
    )
    assert found["near_duplicates"]["splits"] == {"dev": {"verbatim": 1, "near": 2}}


def test_without_train_the_first_split_is_the_one_compared_with() -> None:
    found = describe_annotations(made(split=["one"] * 5 + ["two", "two"]))
    assert found["near_duplicates"]["also_in"] == "one"
    assert list(found["near_duplicates"]["splits"]) == ["two"]


def test_items_in_no_split_are_counted_apart() -> None:
    found = describe_annotations(made(split=["train"] * 3 + ["", "", "dev", ""]))
    assert list(found["splits"]) == ["train", "dev", "no split"]
    assert list(found["near_duplicates"]["splits"]) == ["dev", "no split"]
    assert sum(part["items"] for part in found["splits"].values()) == found["items"]


def test_near_duplicates_can_be_left_out() -> None:
    assert "near_duplicates" not in describe_annotations(made(), near_duplicates=False)


def test_data_without_splits_and_texts_is_called_all() -> None:
    plain_annotations = Annotations.from_table(
        {name: TABLE[name] for name in ("item", "annotator", "label")}
    )
    found = describe_annotations(plain_annotations)
    assert list(found["splits"]) == ["all"]
    assert "texts" not in found
    assert "near_duplicates" not in found


def test_ratio_is_that_of_the_largest_class_to_the_smallest() -> None:
    labels = Annotations.from_matrix([["a"]] * 6 + [["b"]] * 3 + [["c"]] * 2)
    assert describe_annotations(labels)["splits"]["all"]["ratio"] == 3.0
    single_annotations = Annotations.from_matrix([["a"]] * 6)
    assert describe_annotations(single_annotations)["splits"]["all"]["ratio"] is None


@pytest.mark.filterwarnings("ignore:hard_label of:edokit._errors.EDOWarning")
def test_classes_are_counted_on_published_labels() -> None:
    found = describe_annotations(made(hard_label=["1"] * 3 + ["1"] * 2 + ["0", "1"]))["splits"][
        "train"
    ]
    assert found["classes"] == {"0": 0, "1": 2}
    assert found["ties"] == {"items": 1, "without_published_label": 0}


def test_annotations_in_probabilities_are_described() -> None:
    found = describe_annotations(Annotations.from_soft_labels([[0.5, 0.5], [0.25, 0.75]]))[
        "splits"
    ]["all"]
    assert found["annotations_per_class"] == {"0": 0.75, "1": 1.25}
    assert found["ties"]["items"] == 1


def test_figures_are_plain_json() -> None:
    found = describe_annotations(made())
    assert json.loads(json.dumps(found)) == found


TABLE_1 = {
    # items of train, dev, test; majority to minority; annotators per item; annotators in all
    "ArMIS": ((657, 141, 145), "1.43", [3, 3], 3),
    "ConvAbuse": ((2398, 812, 840), "5.16", [2, 7], 8),
    "HS-Brexit": ((784, 168, 168), "9.89", [6, 6], 6),
    "MD-Agreement": ((6592, 1104, 3057), "2.36", [5, 5], 670),
}
CLASSES = {
    "ArMIS": {"0": 387, "1": 270},
    "ConvAbuse": {"0": 2009, "1": 389},
    "HS-Brexit": {"0": 712, "1": 72},
    "MD-Agreement": {"0": 4630, "1": 1962},
}


@pytest.mark.parametrize("name", list(TABLE_1))
def test_the_papers_table_1_comes_out_exactly(lewidi: Path, name: str) -> None:
    items, ratio, per_item, annotators = TABLE_1[name]
    splits = describe_annotations(read_annotations(lewidi / name), near_duplicates=False)["splits"]
    assert list(splits) == ["train", "dev", "test"]
    assert tuple(split["items"] for split in splits.values()) == items
    train = splits["train"]
    assert f"{train['ratio']:.2f}" == ratio
    assert train["annotations_per_item"] == per_item
    assert train["annotators"] == annotators
    assert train["classes"] == CLASSES[name]


def test_ties_of_the_real_files_are_counted_and_all_have_a_label(lewidi: Path) -> None:
    for name, ties in (("ConvAbuse", [77, 29, 29]), ("HS-Brexit", [58, 13, 13])):
        splits = describe_annotations(read_annotations(lewidi / name), near_duplicates=False)[
            "splits"
        ]
        assert [split["ties"]["items"] for split in splits.values()] == ties
        assert all(split["ties"]["without_published_label"] == 0 for split in splits.values())


def test_more_figures_of_md_agreement(lewidi: Path) -> None:
    found = describe_annotations(read_annotations(lewidi / "MD-Agreement"))
    assert [split["annotators"] for split in found["splits"].values()] == [670, 534, 246]
    assert found["near_duplicates"]["splits"]["test"] == {"verbatim": 16, "near": 19}
