"""A table of sampled answers becomes probabilities: smoothed shares, and nothing guessed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import invoke
from edokit import EDOWarning, InputError, Predictions, read_predictions, write_predictions
from edokit.predictions.join import join_models
from tests.errors import raises_code

SHEET = """id,model,prompt,output
a,small,plain,yes
a,small,plain,no
a,small,plain,\tyes
a,large,plain,no
b,small,plain,no
b,large,plain,no
b,large,plain,no
"""
COLUMNS = {"item": "id", "answer": "output"}


def written(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_shares_are_smoothed_and_the_members_described(tmp_path: Path) -> None:
    sheet = written(tmp_path / "s.csv", SHEET)
    predictions = join_models([sheet], columns=COLUMNS, classes=["yes", "no"], smoothing=1)
    assert predictions.classes == ("yes", "no")
    assert predictions.members == ("small+plain", "large+plain")
    np.testing.assert_allclose(
        predictions.probabilities,
        [[[3 / 5, 2 / 5], [1 / 3, 2 / 3]], [[1 / 3, 2 / 3], [1 / 4, 3 / 4]]],
    )
    small, large = predictions.member_info.values()
    assert small == {"model": "small", "prompt": "plain", "answers": 4}
    assert large == {"model": "large", "prompt": "plain", "answers": 3}
    usual = join_models([sheet], columns=COLUMNS, classes=["yes", "no"])
    assert usual.probabilities[0, 1].tolist() == [0.25, 0.75]
    sharp = join_models([sheet], columns=COLUMNS, classes=["yes", "no"], smoothing=0)
    assert sharp.probabilities[0, 1].tolist() == [0.0, 1.0]


@given(
    st.lists(
        st.tuples(*(st.sampled_from(names) for names in ("ij", "xyz", ("no", "yes", "odd")))),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([0.0, 0.5, 2.0]),
)
def test_counting_row_by_row_gives_the_same(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], s: float
) -> None:
    path = tmp_path_factory.getbasetemp() / "answers.parquet"
    pd.DataFrame(rows, columns=["item", "member", "answer"]).to_parquet(path)
    counts = Counter(rows)
    classes = ["no", "odd", "yes"]
    members = list(dict.fromkeys(row[1] for row in rows))
    items = list(dict.fromkeys(row[0] for row in rows))
    asked = {(item, member) for item, member, _ in rows}
    whole = [item for item in items if all((item, member) in asked for member in members)]
    if whole != items:
        with raises_code("missing-predictions"):
            join_models([path], classes=classes, smoothing=s)
    if not whole:
        return
    with pytest.warns() if whole != items else _quiet():
        predictions = join_models([path], classes=classes, smoothing=s, missing="drop")
    assert predictions.items.tolist() == whole
    for i, item in enumerate(whole):
        for k, member in enumerate(members):
            each = [counts[item, member, c] for c in classes]
            wanted = [(n + s) / (sum(each) + 3 * s) for n in each]
            np.testing.assert_allclose(predictions.probabilities[i, k], wanted)


def _quiet() -> object:
    from contextlib import nullcontext

    return nullcontext()


def test_answers_that_are_no_class_are_counted_listed_and_refused(tmp_path: Path) -> None:
    sheet = written(tmp_path / "s.csv", SHEET + "b,small,plain,Not.\nb,large,plain,\n")
    given = {"columns": COLUMNS, "classes": ["no", "yes"]}
    with raises_code("unparsed-answer", "2 of 9 answers", "'Not.' (1)") as refused:
        join_models([sheet], **given)
    assert "label_map={'Not.': 'CLASS'}" in str(refused.value)
    with pytest.warns(EDOWarning, match="2 of 9 answers"):
        predictions = join_models([sheet], unparsed="drop", **given)
    assert predictions.member_info["large+plain"]["failures"] == 1
    assert predictions.member_info["large+plain"]["answers"] == 3
    with pytest.warns(EDOWarning, match="1 of 9 answers"):
        predictions = join_models([sheet], unparsed="drop", label_map={"Not.": "no"}, **given)
    np.testing.assert_allclose(predictions.probabilities[1, 0], [2.5 / 3, 0.5 / 3])
    long = "I would rather not answer a question like this because it is rather long"
    sheet = written(tmp_path / "t.csv", SHEET + f"b,small,plain,{long}\n")
    with pytest.raises(InputError) as refused:
        join_models([sheet], **given)
    assert long not in str(refused.value)  # it may quote somebody's text
    with pytest.warns(EDOWarning), raises_code("unknown-label", "'nope'") as refused:
        join_models([sheet], unparsed="drop", label_map={"nope": "no"}, **given)
    assert long not in str(refused.value)


@pytest.mark.parametrize("sets", [False, True])
def test_case_and_punctuation_make_no_other_answer_and_are_noted(
    tmp_path: Path, sets: bool
) -> None:
    answers = ["Yes", "**yes**", "“No.”", "YES!", "yes", "-1", "yes?", "Y"]
    rows = "".join(f'a,"{answer}"\n' for answer in answers)
    sheet = written(tmp_path / "s.csv", "item,answer\n" + rows)
    classes = ["no", "yes", "1", "y", "Y", "0"]
    given = {"scale": "multi-label:" + ",".join(classes)} if sets else {"classes": classes}
    with pytest.warns(EDOWarning) as notes:
        predictions = join_models([sheet], smoothing=0, unparsed="drop", **given)
    read, dropped = (str(note.message) for note in notes)
    assert "4 of 8 answers differ from a class only in case or punctuation" in read
    assert "2 of 8 answers are none" in dropped
    assert "'-1' (1), 'yes?' (1)" in dropped
    assert predictions.probabilities[0, 0] * 6 == pytest.approx([1, 4, 0, 0, 1, 0])


def test_the_classes_of_answers_are_declared(tmp_path: Path) -> None:
    sheet = written(tmp_path / "s.csv", SHEET)
    with raises_code("undeclared-classes", "s.csv", "'no'", "classes="):
        join_models([sheet], columns=COLUMNS)


def test_a_member_without_an_answer_follows_the_policy_for_missing_items(tmp_path: Path) -> None:
    sheet = written(tmp_path / "s.csv", SHEET + "c,small,plain,yes\n")
    given = {"columns": COLUMNS, "classes": ["no", "yes"]}
    with raises_code("missing-predictions", "'large+plain'", "1 item: 'c'"):
        join_models([sheet], **given)
    with pytest.warns(EDOWarning, match=r"1 of 3 items"):
        assert join_models([sheet], missing="drop", **given).items.tolist() == ["a", "b"]


def test_sets_of_labels_count_each_label_on_its_own(tmp_path: Path) -> None:
    rows = [("a", ["rude", "odd"]), ("a", []), ("a", ["rude"]), ("b", ["odd"])]
    path = tmp_path / "sets.parquet"
    pd.DataFrame(rows, columns=["item", "answer"]).to_parquet(path)
    predictions = join_models([path], scale="multi-label:rude,odd", smoothing=1)
    assert predictions.members == ("sets",)
    np.testing.assert_allclose(predictions.probabilities[:, 0], [[3 / 5, 2 / 5], [1 / 3, 2 / 3]])
    text = written(tmp_path / "sets.csv", "item,answer\na,rude;odd\na,[]\na,rude\nb,odd\n")
    second_predictions = join_models([text], scale="multi-label:rude,odd", smoothing=1)
    np.testing.assert_array_equal(second_predictions.probabilities, predictions.probabilities)
    bad = written(tmp_path / "bad.csv", "item,answer\na,rude;loud\na,rude\n")
    with raises_code("unparsed-answer", "1 of 2 answers"):
        join_models([bad], scale="multi-label:rude,odd")


def test_points_of_a_scale_keep_their_order(tmp_path: Path) -> None:
    path = written(tmp_path / "stars.csv", "item,answer\na,3\na,3.0\na,1\n")
    predictions = join_models([path], scale="ordinal:1,2,3", smoothing=0)
    assert predictions.scale.kind == "ordinal"
    np.testing.assert_allclose(predictions.probabilities[0, 0], [1 / 3, 0, 2 / 3])


def test_answers_for_annotators_are_pairs_and_join_as_such(tmp_path: Path) -> None:
    content = "item,annotator,answer\na,p,no\na,p,yes\na,q,yes\nb,p,no\n"
    one = written(tmp_path / "one.csv", content)
    other = written(tmp_path / "other.csv", content.replace("b,p,no", "b,,no\nb,p,yes"))
    given = {"classes": ["no", "yes"]}
    predictions = join_models([one], **given)
    assert predictions.annotators is not None
    assert list(zip(predictions.items, predictions.annotators, strict=True)) == [
        ("a", "p"),
        ("a", "q"),
        ("b", "p"),
    ]
    with pytest.warns(EDOWarning, match="left out"):
        both = join_models([one, other], missing="drop", **given)
    assert both.members == ("one", "other")
    assert both.annotators is not None
    assert both.annotators.tolist() == ["p", "q", "p"]
    assert both.probabilities[2].argmax(axis=1).tolist() == [0, 1]
    items = written(tmp_path / "items.csv", "item,p_no,p_yes\na,0.5,0.5\nb,0.5,0.5\n")
    with raises_code("items-for-pairs"):
        join_models([one, items], **given)


def test_answers_join_with_probabilities(tmp_path: Path) -> None:
    shares = Predictions.from_arrays(
        {"bert": [[0.9, 0.1], [0.2, 0.8]]}, items=["b", "a"], classes=["no", "yes"]
    )
    write_predictions(shares, tmp_path / "bert.npz")
    asked = written(tmp_path / "large.csv", "item,answer\na,yes\nb,no\na,yes\n")
    predictions = join_models([tmp_path / "bert.npz", asked], classes=["no", "yes"])
    assert predictions.members == ("bert", "large")
    assert predictions.items.tolist() == ["b", "a"]
    np.testing.assert_allclose(predictions.probabilities[1, 1], [0.5 / 3, 2.5 / 3])


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"smoothing": -1}, ("invalid-number", "smoothing")),
        ({"unparsed": "guess"}, ("unknown-choice", "unparsed")),
        ({"logits": True}, ("not-logits",)),
        ({"columns": {"answer": "output"}}, ("missing-column", "column 'item'")),
    ],
)
def test_unusable_requests_are_refused(
    given: dict[str, object], fault: tuple[str, ...], tmp_path: Path
) -> None:
    sheet = written(tmp_path / "s.csv", SHEET)
    with raises_code(*fault):
        join_models([sheet], **{"columns": COLUMNS, "classes": ["no", "yes"], **given})  # type: ignore[arg-type]


def test_one_sheet_makes_the_predictions_of_a_split(tmp_path: Path) -> None:
    sheet = written(tmp_path / "s.csv", SHEET)
    given = {"columns": COLUMNS, "classes": ["no", "yes"]}
    made = join_models([sheet], items=["b", "z"], **given)
    assert made.items.tolist() == ["b"]
    assert [about["answers"] for about in made.member_info.values()] == [1, 2]
    # A spelling that other items alone have is mapped all the same.
    join_models(
        [written(tmp_path / "n.csv", SHEET.replace("\tyes", "yep"))],
        items=["b"],
        label_map={"yep": "yes"},
        **given,
    )
    with raises_code("unknown-item", "'a', 'b'"):
        join_models([sheet], items=["z"], **given)
    votes = "item,annotator,label,split\na,x,no,dev\nb,x,yes,test\n"
    words = ["predictions", "join", str(sheet), "--classes", "no,yes", "--split", "test"]
    for role, name in COLUMNS.items():
        words += ["--column", f"{role}={name}"]
    words += ["--out", str(tmp_path / "test.npz")]
    single_completed = invoke(*words)
    assert "give --annotations" in str(single_completed.exception)
    words += ["--annotations", str(written(tmp_path / "v.csv", votes))]
    made = invoke(*words)
    assert made.exit_code == 0, made.output
    assert read_predictions(tmp_path / "test.npz").items.tolist() == ["b"]


def test_a_member_that_changes_its_model_is_refused(tmp_path: Path) -> None:
    rows = "item,member,model,answer\na,x,m,no\na,x,n,yes\n"
    with raises_code("contradictory-rows", "'x'", "in row 3"):
        join_models([written(tmp_path / "r.csv", rows)], classes=["no", "yes"])


def test_a_spreadsheet_file_is_pointed_to_csv(tmp_path: Path) -> None:
    with raises_code("unknown-ending") as refused:
        join_models([written(tmp_path / "book.xls", "PK")])
    assert "CSV" in str(refused.value)
    output = written(tmp_path / "pipeline.json", '[[{"label": "yes", "score": 1}]]')
    with raises_code("unknown-ending") as refused:
        join_models([output])
    assert ".jsonl" in str(refused.value)
    with raises_code("unknown-ending") as refused:
        read_predictions(output)
    assert "`edo score`" in str(refused.value)
