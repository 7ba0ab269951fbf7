"""LeWiDi 2023: invented files in its format, and the real ones."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edokit import EDOWarning
from edokit.annotations.long_table import Policies
from edokit.datasets.lewidi import read_lewidi
from tests.errors import raises_code

TURNS = {"prev_agent": "Hello", "prev_user": "Hi", "agent": "Tea?", "user": "No tea"}
DATASETS = ("ArMIS", "ConvAbuse", "HS-Brexit", "MD-Agreement")


def item(**changes: Any) -> dict[str, Any]:
    """A LeWiDi item; a change to None takes the field away."""
    fields = {
        "text": "the weather is fine",
        "annotation task": "an invented one",
        "number of annotations": 3,
        "annotations": "0,1,1",
        "annotators": "Ann1,Ann2,Ann3",
        "lang": "en",
        "hard_label": "1",
        "soft_label": {"0": 0.33, "1": 0.67},
        "split": "dev",
        "other_info": {},
    } | changes
    return {name: value for name, value in fields.items() if value is not None}


def write(path: Path, *items: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({str(k): one for k, one in enumerate(items, 1)}), encoding="utf-8")
    return path


def talk(**changes: Any) -> dict[str, Any]:
    given = {"text": json.dumps(TURNS), "annotations": "-3,0,1", "hard_label": 0} | changes
    return item(**given)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "Tea_dev.json", item(), item(annotations="0,0,0", hard_label="0"))


def test_items_are_named_by_split_and_key(file: Path) -> None:
    assert read_lewidi(file).items.tolist() == ["dev-1", "dev-2"]


@pytest.mark.filterwarnings("ignore:hard_label of:edokit._errors.EDOWarning")
def test_annotations_and_annotators_stand_in_the_same_order(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", item(annotators=" Ann7 ,Ann2, Ann5", annotations="1, 0,0"))
    read = read_lewidi(path)
    said = dict(zip(read.annotators[read.annotator_codes], read.label_codes, strict=True))
    assert said == {"Ann7": 1, "Ann2": 0, "Ann5": 0}


def test_classes_are_both_even_if_one_is_never_chosen(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", item(annotations="0,0,0", hard_label="0"))
    assert read_lewidi(path).classes == ("0", "1")


def test_classes_can_be_declared_in_another_order(file: Path) -> None:
    assert read_lewidi(file, classes=[1, 0]).classes == ("1", "0")


def test_the_published_hard_label_is_kept_against_the_majority(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", item(annotations="0,0,1", hard_label="1"))
    with pytest.warns(EDOWarning, match="^hard_label of 1 of 1 items"):
        assert read_lewidi(path).hard_labels().tolist() == [1]


@pytest.mark.parametrize("label", ["1", 1, 1.0, " 1 "])
def test_a_hard_label_may_be_text_or_a_number(tmp_path: Path, label: object) -> None:
    assert read_lewidi(write(tmp_path / "a.json", item(hard_label=label))).published.tolist() == [1]


@pytest.mark.filterwarnings("ignore:hard_label of:edokit._errors.EDOWarning")
def test_severity_below_zero_means_abusive_and_one_does_not(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.json", talk(annotations="-3,-2,-1,0,1", annotators="Ann1,Ann2,Ann3,Ann4,Ann5")
    )
    assert read_lewidi(path).label_codes.tolist() == [1, 1, 1, 0, 0]


def test_conversations_become_texts_as_asked(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", talk())
    assert read_lewidi(path).texts[0] == "Hello\nHi\nTea?\nNo tea"
    paired = read_lewidi(path, user_first=True)
    assert (paired.texts[0], paired.contexts[0]) == ("No tea", "Hello\nHi\nTea?")
    silent = {"prev_agent": "", "prev_user": "  ", "agent": "Hello", "user": "Hi"}
    path = write(tmp_path / "b.json", talk(text=json.dumps(silent)))
    assert read_lewidi(path).texts[0] == "Hello\nHi"


def test_a_post_that_looks_like_json_is_a_post(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", item(text='{"user": "quoted"}'), item(text="{oh"))
    assert read_lewidi(path).texts.tolist() == ['{"user": "quoted"}', "{oh"]


def test_groups_are_read_as_hs_brexit_lists_them(tmp_path: Path) -> None:
    other = {"annotators group": "g1, g1,g2", "g1": "first group", "g2": "second group"}
    read = read_lewidi(write(tmp_path / "a.json", item(other_info=other), item()))
    assert read.attributes["group"].tolist() == ["first group", "first group", "second group"]


def test_groups_are_read_as_armis_names_them(tmp_path: Path) -> None:
    other = {"Ann1": "Early", "Ann2": "Late", "Ann3": "Early"}
    read = read_lewidi(write(tmp_path / "a.json", item(other_info=other)))
    assert read.attributes["group"].tolist() == ["Early", "Late", "Early"]


def test_without_groups_there_is_no_attribute(file: Path) -> None:
    assert read_lewidi(file).attributes == {}


def test_an_annotator_listed_twice_counts_twice_unless_told_otherwise(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", item(annotators="Ann1,Ann1,Ann2"))
    assert len(read_lewidi(path)) == 3
    with pytest.warns(EDOWarning, match="1 of 3 annotations"):
        assert len(read_lewidi(path, policies=Policies(duplicates="first"))) == 2
    with raises_code("duplicate-annotation", "a.json"):
        read_lewidi(path, policies=Policies(duplicates="error"))


def test_text_is_raw(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", item(text="<user> tea, 4 o'clock ☕"))
    assert read_lewidi(path).texts.tolist() == ["<user> tea, 4 o'clock ☕"]


def test_a_file_of_2025_is_not_called_damaged(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", item(annotations={"Ann1": "3"}, hard_label=None))
    with raises_code("wrong-content", "should"):
        read_lewidi(path)


def test_language_and_plain_information_are_columns_of_the_items(tmp_path: Path) -> None:
    other = {"domain": "parks", "other annotations": {"kind": "0,0,1"}, "text": "not this"}
    read = read_lewidi(write(tmp_path / "a.json", item(other_info=other), item(lang="it")))
    assert {name: list(values) for name, values in read.item_columns.items()} == {
        "lang": ["en", "it"],
        "domain": ["parks", ""],
    }
    assert not read.attributes


def test_a_folder_gives_its_splits_in_order(tmp_path: Path) -> None:
    for split in ("test", "dev", "train"):
        write(tmp_path / "Tea" / f"Tea_{split}.json", item(split=split))
    (tmp_path / "Tea" / "notes.json").write_text("[]")
    read = read_lewidi(tmp_path / "Tea")
    assert read.items.tolist() == ["train-1", "dev-1", "test-1"]
    assert read.split_names == ("train", "dev", "test")
    assert read_lewidi(tmp_path / "Tea", split="dev").items.tolist() == ["dev-1"]


def test_the_file_name_gives_the_split_where_the_item_does_not(tmp_path: Path) -> None:
    read = read_lewidi(write(tmp_path / "Tea_test.json", item(split=None)))
    assert (read.items.tolist(), read.split_names) == (["test-1"], ("test",))


def test_an_unknown_split_is_refused_with_those_there_are(file: Path) -> None:
    with raises_code("unknown-split", "'train'", "'dev'"):
        read_lewidi(file, split="train")


def test_a_folder_without_splits_names_the_folders_in_it(tmp_path: Path) -> None:
    write(tmp_path / "Tea" / "Tea_dev.json", item())
    with raises_code("ambiguous-folder", "NAME_train.json", "'Tea'"):
        read_lewidi(tmp_path)


def test_two_datasets_in_one_folder_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "Tea_dev.json", item())
    write(tmp_path / "Cake_train.json", item(split="train"))
    with raises_code("ambiguous-folder", "2 LeWiDi", "'Cake', 'Tea'"):
        read_lewidi(tmp_path)


def test_the_file_name_gives_the_split_where_the_item_says_another(tmp_path: Path) -> None:
    write(tmp_path / "Tea_dev.json", item())
    write(tmp_path / "Tea_test.json", item())
    assert read_lewidi(tmp_path).items.tolist() == ["dev-1", "test-1"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (item(text=None), ("wrong-content", "2.text")),
        (item(annotators=None), ("wrong-content", "2.annotators")),
        (item(hard_label=None), ("wrong-content", "2.hard_label")),
        (item(split=None), ("wrong-content",)),
        (item(annotations="0,1"), ("wrong-content", "item '2'", "2 annotations")),
        (item(annotators="Ann1,,Ann3"), ("missing-value", "'annotator'", "item 'dev-2'")),
        (item(annotations="0,2,1"), ("unknown-class", "item 'dev-2'", "label '2'")),
        (item(annotations="0,-1,1"), ("unknown-class", "item 'dev-2'", "label '-1'")),
        (item(annotations=""), ("wrong-content", "1 annotation", "3 annotators")),
        (item(annotations=[0, 1, 1]), ("wrong-content", "2.annotations")),
        (item(hard_label="maybe"), ("unknown-class", "item 'dev-2'", "label 'maybe'")),
        (item(text=7), ("wrong-content", "2.text")),
        (
            item(other_info={"annotators group": "g1,g2"}),
            ("wrong-content", "2 groups", "3 annotators"),
        ),
        ("an item?", ("wrong-content", "'an item?'", "should")),
    ],
)
def test_a_malformed_item_is_named_with_its_file(
    tmp_path: Path, wrong: Any, says: tuple[str, ...]
) -> None:
    path = write(tmp_path / "a.json", item(), wrong)
    with raises_code(*says) as caught:
        read_lewidi(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_half_a_character_is_refused_with_its_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", item(), item(text="half \ud83d"))
    with raises_code("invalid-unicode", "a.json"):
        read_lewidi(path)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (talk(annotations="-4,0,1"), ("unknown-class", "item 'dev-2'", "label '-4'")),
        (
            talk(text="not a conversation"),
            ("wrong-content", "turns prev_agent, prev_user, agent, user"),
        ),
        (talk(text=json.dumps({**TURNS, "user": "\ud83d"})), ("wrong-content", "conversation")),
    ],
)
def test_a_malformed_conversation_is_named_too(
    tmp_path: Path, wrong: Any, says: tuple[str, ...]
) -> None:
    path = write(tmp_path / "a.json", talk(), wrong)
    with raises_code(*says) as caught:
        read_lewidi(path)
    assert str(path) in str(caught.value)


def test_a_group_that_changes_between_items_is_no_attribute(tmp_path: Path) -> None:
    groups = [dict.fromkeys(("Ann1", "Ann2", "Ann3"), name) for name in ("Early", "Late")]
    path = write(tmp_path / "a.json", *(item(other_info=group) for group in groups))
    read = read_lewidi(path)
    assert "group" not in read.attributes
    assert "group" in read.annotation_columns


@pytest.mark.parametrize("content", ["[]", "{}", "[1, 2]", '"text"'])
def test_other_json_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with raises_code("wrong-content", "a.json"):
        read_lewidi(path)


def test_a_file_cut_off_is_refused(file: Path) -> None:
    file.write_text(file.read_text()[:-40])
    with raises_code("invalid-json"):
        read_lewidi(file)


@pytest.mark.parametrize("name", DATASETS)
def test_soft_labels_of_the_real_files_agree_with_the_rounded_ones(lewidi: Path, name: str) -> None:
    read = read_lewidi(lewidi / name)
    published = {
        f"{split}-{key}": [one["soft_label"]["0"], one["soft_label"]["1"]]
        for split in ("train", "dev", "test")
        for key, one in json.loads((lewidi / name / f"{name}_{split}.json").read_text()).items()
    }
    assert read.items.tolist() == list(published)
    difference = np.abs(read.soft_labels - np.array(list(published.values()))).max()
    assert difference <= 0.0034


@pytest.mark.parametrize("name", DATASETS)
def test_published_labels_of_the_real_files_need_no_warning(lewidi: Path, name: str) -> None:
    read = read_lewidi(lewidi / name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hard = read.hard_labels(ties="error")
    assert (hard == read.published).all()
    # Where there is a majority, the published label is the majority.
    clear = read.soft_labels[:, 0] != 0.5
    assert (hard[clear] == read.soft_labels[clear].argmax(axis=1)).all()


@pytest.mark.parametrize(
    ("name", "ties"), [("ConvAbuse", (77, 29, 29)), ("HS-Brexit", (58, 13, 13))]
)
def test_ties_of_the_real_files(lewidi: Path, name: str, ties: tuple[int, ...]) -> None:
    read = read_lewidi(lewidi / name)
    half = read.soft_labels[:, 0] == 0.5
    assert tuple(int(half[read.splits == split].sum()) for split in read.split_names) == ties
    assert set(read.published[half].tolist()) == {0, 1}


def test_one_item_of_md_agreement_lists_an_annotator_twice(lewidi: Path) -> None:
    path = lewidi / "MD-Agreement" / "MD-Agreement_test.json"
    assert len(read_lewidi(path)) == 5 * 3057
    with raises_code("duplicate-annotation", "item 'test-2038'", "(1 such row)"):
        read_lewidi(path, policies=Policies(duplicates="error"))


def test_groups_of_the_real_files(lewidi: Path) -> None:
    brexit = read_lewidi(lewidi / "HS-Brexit")
    assert brexit.annotators.tolist() == [f"Ann{k}" for k in range(1, 7)]
    assert brexit.attributes["group"].tolist() == 3 * ["target group"] + 3 * ["control group"]
    armis = read_lewidi(lewidi / "ArMIS")
    names = ["Moderate_Female", "Liberal_Female", "Conservative_Male"]
    assert armis.attributes["group"].tolist() == names


def test_every_text_of_convabuse_is_a_conversation(lewidi: Path) -> None:
    read = read_lewidi(lewidi / "ConvAbuse")
    assert all(len(text.split("\n")) == 4 for text in read.texts)


def test_a_real_file_alone_keeps_its_split(lewidi: Path) -> None:
    read = read_lewidi(lewidi / "HS-Brexit" / "HS-Brexit_dev.json")
    assert read.split_names == ("dev",)
    assert read.items[11] == "dev-12"
