"""Label Studio exports, written after the documented JSON format."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from export_cases import anything, damaged
from hypothesis import given
from hypothesis import strategies as st

from edokit import Annotations, EDOError, EDOWarning
from edokit._io.tables import read_table
from edokit.annotations.long_table import Policies
from edokit.datasets.label_studio import is_label_studio, read_label_studio
from tests.errors import raises_code

# --- Examples -------------------------------------------------------------------------------------


def result(value: Any, control: str = "tone", kind: str = "choices", **more: Any) -> dict[str, Any]:
    """One entry of an annotation's result."""
    return {
        "id": "fC8tY67j8Z",
        "type": kind,
        "value": {kind: value},
        "origin": "manual",
        "to_name": "text",
        "from_name": control,
    } | more


def annotation(
    person: Any, *labels: str, results: list[Any] | None = None, **more: Any
) -> dict[str, Any]:
    """One annotation as the JSON export writes it."""
    return {
        "id": 1001,
        "completed_by": person,
        "result": [result([*labels])] if results is None else results,
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": "2024-01-30T02:40:43.893565Z",
        "draft_created_at": "2024-01-30T02:40:42.917892Z",
        "lead_time": 8.65,
    } | more


def task(number: Any, *annotations: Any, **more: Any) -> dict[str, Any]:
    """One task as the JSON export writes it."""
    return {
        "id": number,
        "annotations": [*annotations],
        "drafts": [],
        "predictions": [],
        "data": {"text": f"Post number {number}."},
        "meta": {},
        "created_at": "2024-01-30T02:40:33.867975Z",
        "inner_id": 1,
        "total_annotations": len(annotations),
        "cancelled_annotations": 0,
        "project": 29,
    } | more


def two_tasks() -> list[dict[str, Any]]:
    return [
        task(4, annotation(1, "calm"), annotation(2, "heated")),
        task(5, annotation(1, "calm"), annotation(2, "calm"), annotation(3, "heated")),
    ]


def shares(read: Annotations) -> dict[str, dict[str, float]]:
    return {
        item: dict(zip(read.classes, row.tolist(), strict=True))
        for item, row in zip(read.items, read.soft_labels, strict=True)
    }


# --- The plain case -------------------------------------------------------------------------------


def test_an_export_becomes_items_annotators_labels_and_texts() -> None:
    read = read_label_studio(two_tasks())
    assert read.items.tolist() == ["4", "5"]
    assert read.annotators.tolist() == ["1", "2", "3"]
    assert read.classes == ("calm", "heated")
    assert read.texts is not None
    assert read.texts.tolist() == ["Post number 4.", "Post number 5."]
    np.testing.assert_allclose(read.soft_labels, [[1 / 2, 1 / 2], [2 / 3, 1 / 3]])
    assert read.splits is None
    assert read.published is None


def test_a_file_reads_like_its_parsed_content(tmp_path: Path) -> None:
    path = tmp_path / "project-29-at-2024-01-30.json"
    path.write_text(json.dumps(two_tasks()), encoding="utf-8")
    assert read_label_studio(path).to_table().equals(read_label_studio(two_tasks()).to_table())
    assert read_label_studio(str(path)).items.tolist() == ["4", "5"]


def test_one_task_may_stand_alone() -> None:
    assert read_label_studio(two_tasks()[1]).items.tolist() == ["5"]


def test_exports_are_recognised_and_other_json_is_not() -> None:
    assert is_label_studio(two_tasks())
    assert is_label_studio(two_tasks()[0])
    for other in (
        None,
        [],
        {},
        "text",
        [1],
        [[]],
        {"1": {"text": "a", "annotations": "0,1", "annotators": "A1,A2"}},
        [{"id": "a", "fields": {"text": "b"}, "responses": {}}],
        [{"item": 1, "annotator": 2, "label": 3}],
    ):
        assert not is_label_studio(other)


# --- What counts as an annotation -----------------------------------------------------------------


def test_cancelled_annotations_drafts_and_predictions_do_not_count() -> None:
    tasks = [
        task(
            4,
            annotation(1, "calm"),
            annotation(2, "heated", was_cancelled=True),
            annotation(3, "heated", skipped=True),
            drafts=[{"user": 4, "result": [result(["heated"])]}],
            predictions=[{"model_version": "m", "result": [result(["heated"])], "score": 0.9}],
        )
    ]
    assert shares(read_label_studio(tasks)) == {"4": {"calm": 1.0}}


def test_a_model_may_not_add_a_control() -> None:
    tasks = two_tasks()
    tasks[0]["predictions"] = [{"result": [result(["x"], control="guess")]}]
    assert len(read_label_studio(tasks)) == 5


def test_an_annotation_without_the_control_is_left_out_and_counted() -> None:
    tasks = [
        task(4, annotation(1, "calm"), annotation(2, results=[]), annotation(3, results=None)),
        task(5, annotation(1, "calm"), annotation(2, results=[result([5], "other", "labels")])),
    ]
    tasks[0]["annotations"][2]["result"] = None
    with pytest.warns(EDOWarning, match="3 annotations .*'tone'"):
        read = read_label_studio(tasks)
    assert len(read) == 2


def test_tasks_without_annotations_are_left_out() -> None:
    tasks = [*two_tasks(), task(6), task(7, annotation(1, "calm", was_cancelled=True))]
    with pytest.warns(EDOWarning, match="2 of 4 items .*'6', '7'"):
        assert read_label_studio(tasks).items.tolist() == ["4", "5"]


def test_a_ground_truth_counts_like_any_other() -> None:
    tasks = two_tasks()
    tasks[0]["annotations"].append(annotation(9, "heated", ground_truth=True))
    read = read_label_studio(tasks)
    np.testing.assert_allclose(read.soft_labels[0], [1 / 3, 2 / 3])
    assert read.published is None


# --- Controls -------------------------------------------------------------------------------------


def with_two_controls() -> list[dict[str, Any]]:
    tasks = two_tasks()
    for each in tasks:
        for one in each["annotations"]:
            one["result"].append(result(["news"], control="topic"))
    return tasks


def test_of_several_controls_one_must_be_named() -> None:
    with raises_code(
        "ambiguous-question", "'tone' (5 annotations), 'topic' (5 annotations)", "question='tone'"
    ):
        read_label_studio(with_two_controls())
    assert read_label_studio(with_two_controls(), question="topic").classes == ("news",)
    assert read_label_studio(with_two_controls(), question="tone").classes == ("calm", "heated")


def test_an_unknown_control_is_refused_with_those_that_exist() -> None:
    with raises_code("ambiguous-question", "'mood'", "'tone' (5 annotations)"):
        read_label_studio(two_tasks(), question="mood")


@pytest.mark.parametrize(
    "part",
    [
        {"start": 0, "end": 4, "text": "Post"},
        {"x": 1.5, "y": 2.0, "width": 3, "height": 4, "rotation": 0},
        {"points": [[1, 2], [3, 4]], "closed": True},
    ],
)
def test_a_control_for_regions_is_no_label_of_the_task(part: dict[str, Any]) -> None:
    tasks = two_tasks()
    marked = result(["rude"], control="span")
    marked["value"] |= part
    tasks[0]["annotations"][0]["result"].append(marked)
    assert read_label_studio(tasks).to_table().equals(read_label_studio(two_tasks()).to_table())
    with raises_code("ambiguous-question", "'span'"):
        read_label_studio(tasks, question="span")


def test_labels_per_item_and_free_text_and_relations_are_no_labels_of_the_task() -> None:
    tasks = two_tasks()
    tasks[0]["annotations"][0]["result"] += [
        result(["rude"], control="page", item_index=0),
        result(["because"], control="why", kind="text"),
        {"type": "relation", "from_id": "a", "to_id": "b", "direction": "right"},
    ]
    assert read_label_studio(tasks).classes == ("calm", "heated")
    for control in ("page", "why"):
        with raises_code("ambiguous-question"):
            read_label_studio(tasks, question=control)


@pytest.mark.parametrize(
    ("kind", "value", "label"),
    [
        ("rating", 4, "4"),
        ("taxonomy", [["News", "Local"]], "News / Local"),
        ("choices", [["News", "Local"]], "News / Local"),
        ("choices", [3], "3"),
        ("selected", "left", "left"),
    ],
)
def test_ratings_taxonomies_and_comparisons_are_labels(kind: str, value: Any, label: str) -> None:
    tasks = [task(4, annotation(1, results=[result(value, kind=kind)]))]
    assert read_label_studio(tasks).classes == (label,)


def test_a_control_for_numbers_gives_labels() -> None:
    tasks = two_tasks()
    tasks[0]["annotations"][0]["result"].append(result(7, control="sure", kind="number"))
    with raises_code("ambiguous-question", "2 questions", "'sure' (1 annotation)"):
        read_label_studio(tasks)
    with pytest.warns(EDOWarning):
        assert read_label_studio(tasks, question="sure").classes == ("7",)


# --- Several labels -------------------------------------------------------------------------------


def with_several_labels() -> list[dict[str, Any]]:
    return [
        task(4, annotation(1, "heated", "calm"), annotation(2, "calm", "heated")),
        task(5, annotation(1, "dry")),
    ]


def test_several_labels_are_refused_unless_they_are_sets() -> None:
    with raises_code("undeclared-sets", "item '4'", "heated", "calm"):
        read_label_studio(with_several_labels())
    read = read_label_studio(with_several_labels(), scale="multi-label")
    assert shares(read)["4"] == {"calm": 1.0, "dry": 0.0, "heated": 1.0}


def test_a_choice_that_looks_like_two_others_is_one_label_of_a_set() -> None:
    others = task(7, annotation(1, "calm"), annotation(2, "heated"))
    tasks = [*with_several_labels(), task(6, annotation(1, "calm/heated")), others]
    read = read_label_studio(tasks, scale="multi-label")
    assert shares(read)["6"]["calm/heated"] == 1


def test_the_same_label_twice_is_one_label() -> None:
    tasks = [task(4, annotation(1, results=[result(["calm"]), result(["calm", "calm"])]))]
    assert shares(read_label_studio(tasks)) == {"4": {"calm": 1.0}}


@pytest.mark.filterwarnings("ignore:hard_label of:edokit._errors.EDOWarning")
def test_a_published_label_that_nobody_gave_is_a_class_only_if_declared() -> None:
    tasks = two_tasks()
    tasks[0]["data"]["hard_label"] = "odd"
    with raises_code("unknown-class", "'odd'"):
        read_label_studio(tasks)
    read = read_label_studio(tasks, classes=["calm", "heated", "odd"])
    assert read.hard_labels()[0] == 2


def test_spellings_of_one_label_are_named_by_task() -> None:
    tasks = [task(4, annotation(1, "calm"), annotation(2, "Calm")), task(5, annotation(1, "dry"))]
    with raises_code("doubtful-spelling", "'Calm'", "1 row", "item '4'"):
        read_label_studio(tasks)
    read = read_label_studio(tasks, label_map={"Calm": "calm"})
    assert shares(read)["4"] == {"calm": 1.0, "dry": 0.0}


# --- People ---------------------------------------------------------------------------------------

ANN = {"id": 7, "email": "ann@example.org", "first_name": "Ann", "last_name": "Example"}


def test_people_go_by_id_and_no_address_comes_through() -> None:
    read = read_label_studio([task(4, annotation(ANN, "calm"))])
    assert read.annotators.tolist() == ["7"]
    assert "example" not in str(read.to_table().to_pylist())


def test_addresses_alone_are_replaced_by_numbers() -> None:
    tasks = [
        task(4, annotation({"email": "ann@example.org"}, "calm"), annotation("b@x.org", "heated")),
        task(5, annotation({"email": "ann@example.org"}, "calm")),
    ]
    read = read_label_studio(tasks)
    assert read.annotators.tolist() == ["annotator-1", "annotator-2"]
    assert read.annotations_per_annotator.tolist() == [2, 1]


@pytest.mark.parametrize("nobody", [None, {}, {"id": None}, ""])
def test_annotations_by_nobody_are_separate_people(nobody: Any) -> None:
    tasks = [task(4, annotation(nobody, "calm"), annotation(nobody, "heated"))]
    with pytest.warns(EDOWarning, match="2 annotations"):
        read = read_label_studio(tasks)
    assert read.annotators.tolist() == ["unknown-1", "unknown-2"]
    assert shares(read) == {"4": {"calm": 0.5, "heated": 0.5}}


def test_the_same_person_twice_on_a_task_follows_the_policy() -> None:
    tasks = [task(4, annotation(1, "calm"), annotation(1, "heated"))]
    with raises_code("duplicate-annotation", "annotator '1'", "item '4'"):
        read_label_studio(tasks)
    with pytest.warns(EDOWarning, match="1 of 2 annotations"):
        assert len(read_label_studio(tasks, policies=Policies(duplicates="first"))) == 1
    assert len(read_label_studio(tasks, policies=Policies(duplicates="all"))) == 2


# --- The data of a task ---------------------------------------------------------------------------


def with_data(**data: Any) -> list[dict[str, Any]]:
    return [task(4, annotation(1, "calm"), data=data)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"text": "Hello.", "title": "Greeting"}, "Hello."),
        ({"body": "Hello.", "stars": 4, "tags": ["a"]}, "Hello."),
        ({"body": "Hello.", "image": "https://example.org/1.jpg", "split": "dev"}, "Hello."),
    ],
)
def test_the_text_is_the_field_text_or_the_only_one(data: dict[str, Any], expected: str) -> None:
    read = read_label_studio(with_data(**data))
    assert read.texts is not None
    assert read.texts.tolist() == [expected]


@pytest.mark.parametrize("data", [{}, {"image": "https://example.org/1.jpg"}, {"stars": 4}])
def test_tasks_without_text_have_none(data: dict[str, Any]) -> None:
    assert read_label_studio(with_data(**data)).texts is None


def test_of_several_fields_of_text_one_must_be_named() -> None:
    data = {"title": "Greeting", "body": "Hello."}
    with pytest.warns(EDOWarning, match="'title', 'body'.*'text': 'title'"):
        assert read_label_studio(with_data(**data)).texts is None
    read = read_label_studio(with_data(**data), columns={"text": "body"})
    assert read.texts is not None
    assert read.texts.tolist() == ["Hello."]
    with raises_code("wrong-content", "item '4'", "null", "'boddy'", "'title', 'body'"):
        read_label_studio(with_data(**data), columns={"text": "boddy"})


def test_a_field_may_hold_the_id() -> None:
    read = read_label_studio(with_data(key="a7", body="Hello."), columns={"item": "key"})
    assert read.items.tolist() == ["a7"]
    assert read.texts is not None
    with raises_code("missing-value", "'kee'"):
        read_label_studio(with_data(key="a7"), columns={"item": "kee"})


def test_two_texts_under_one_id_are_refused() -> None:
    tasks = [
        task("x", annotation(1, "calm"), data={"text": "One."}),
        task("x", annotation(2, "calm"), data={"text": "Two."}),
    ]
    with raises_code("contradictory-rows", "item 'x'") as caught:
        read_label_studio(tasks)
    assert "One." not in str(caught.value)


def test_split_and_hard_label_come_from_the_data() -> None:
    tasks = two_tasks()
    tasks[0]["data"] |= {"split": "train", "hard_label": "heated"}
    tasks[1]["data"] |= {"split": "dev"}
    read = read_label_studio(tasks)
    assert read.split_names == ("train", "dev")
    assert read.hard_labels().tolist() == [1, 0]
    assert read_label_studio(tasks, split="dev").items.tolist() == ["5"]
    with raises_code("unknown-split", "'test'", "'train', 'dev'"):
        read_label_studio(tasks, split="test")
    with raises_code("unknown-split", "'dev'"):
        read_label_studio(two_tasks(), split="dev")


def test_classes_can_be_declared() -> None:
    read = read_label_studio(two_tasks(), classes=["heated", "calm", "odd"])
    assert read.classes == ("heated", "calm", "odd")
    with raises_code("unknown-class", "item '4'", "label 'heated'", "'calm'"):
        read_label_studio(two_tasks(), classes=["calm"])


# --- CSV -----------------------------------------------------------------------------


def test_a_csv_export_is_a_plain_table(tmp_path: Path) -> None:
    path = tmp_path / "project.csv"
    path.write_text(
        '"annotation_id","annotator","created_at","id","lead_time","text","tone","updated_at"\n'
        '9,"1","2024-01-30T02:40:43Z",4,8.6,"Post number 4.","calm","2024-01-30T02:40:43Z"\n'
        '10,"2","2024-01-30T02:41:43Z",4,3.1,"Post number 4.","heated","2024-01-30T02:41:43Z"\n',
        encoding="utf-8",
    )
    read = Annotations.from_table(read_table(path), columns={"item": "id", "label": "tone"})
    assert shares(read) == {"4": {"calm": 0.5, "heated": 0.5}}


# --- Bad input ------------------------------------------------------------------------------------


def broken(change: Any) -> list[Any]:
    tasks: list[Any] = two_tasks()
    change(tasks)
    return tasks


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.__setitem__(1, 7), ("wrong-content", "[1]", "should")),
        (lambda t: t[1].pop("data"), ("wrong-content", "[1].data")),
        (lambda t: t[1].pop("id"), ("missing-value",)),
        (lambda t: t[1].update(id=[4]), ("wrong-content", "[1].id should")),
        (lambda t: t[1].update(annotations="0,1"), ("wrong-content", "[1].annotations", "'0,1'")),
        (lambda t: t[1].update(annotations=[3]), ("wrong-content", "[1].annotations[0]")),
        (
            lambda t: t[1]["annotations"][0].update(result={}),
            ("wrong-content", "[1].annotations[0].result"),
        ),
        (
            lambda t: t[1]["annotations"][0].update(completed_by=[1]),
            ("wrong-content", "[1].annotations[0].completed_by"),
        ),
        (
            lambda t: t[1]["annotations"][0]["result"][0]["value"].update(choices="calm"),
            ("wrong-content", "value.choices", "'calm'"),
        ),
        (
            lambda t: t[1]["annotations"][0]["result"][0]["value"].update(choices=[[]]),
            ("wrong-content", "value.choices[0]"),
        ),
        (
            lambda t: t[1]["annotations"][0]["result"][0]["value"].update(choices=["\ud83d"]),
            ("wrong-content",),
        ),
        (lambda t: t.clear(), ("ambiguous-question", "0 items")),
        (
            lambda t: [each["annotations"].clear() for each in t],
            ("ambiguous-question", "2 items"),
        ),
    ],
)
def test_a_malformed_export_is_refused_in_one_line_that_names_the_task(
    change: Any, said: tuple[str, ...]
) -> None:
    with raises_code(*said) as caught:
        read_label_studio(broken(change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ("empty-file",)),
        (json.dumps(two_tasks()).encode()[:-40], ("invalid-json",)),
        ('[{"data": {"text": "caf\xe9"}}]'.encode("latin-1"), ("invalid-unicode", "UTF-8")),
        (b'{"1": {"text": "a"}}', ("wrong-content", "[0].data")),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, content: bytes, said: tuple[str, ...]) -> None:
    path = tmp_path / "export.json"
    path.write_bytes(content)
    with raises_code(*said):
        read_label_studio(path)


# --- Hostile input --------------------------------------------------------------------------------

ANYTHING = anything(
    {*task(1), *annotation(1), *result(1), "email", "split", "text"},
    ["\ud800", "calm", "tone", "a@b.org", "None"],
)
BEA = {"id": 8, "email": "bea@example.org"}
VALID = [
    task(4, annotation(ANN, "heated"), annotation(BEA, "calm")),
    task(5, annotation(ANN, "dry", ground_truth=True), annotation(BEA, "calm")),
    task(6, annotation(BEA, results=[result([["a", "b"]], kind="taxonomy")])),
]
for _task in VALID:
    _task["data"] |= {"split": "dev", "hard_label": "calm"}


OPTIONS = st.fixed_dictionaries(
    {
        "question": st.sampled_from([None, "tone", "topic"]),
        "columns": st.sampled_from([None, {"text": "text"}, {"item": "text"}]),
        "classes": st.sampled_from([None, ["calm", "heated", "dry", "a / b"]]),
        "policies": st.builds(Policies, duplicates=st.sampled_from(["error", "first", "all"])),
        "split": st.sampled_from([None, "dev"]),
    }
)


@given(data=ANYTHING | damaged([VALID], ANYTHING), options=OPTIONS)
def test_whatever_comes_in_the_outcome_is_annotations_or_a_clear_error(
    data: Any, options: dict[str, Any]
) -> None:
    assert is_label_studio(data) in (True, False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        try:
            read = read_label_studio(data, **options)
        except EDOError:
            return
    np.testing.assert_allclose(read.soft_labels.sum(axis=1), 1)


def test_other_fields_are_columns_of_the_items() -> None:
    tasks = [
        task(k, annotation(1, "calm"), data={"text": "Hm.", "n": k, "tags": []}) for k in (1, 2)
    ]
    assert {name: [*values] for name, values in read_label_studio(tasks).item_columns.items()} == {
        "n": ["1", "2"]
    }
