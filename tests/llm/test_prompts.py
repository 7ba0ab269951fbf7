"""Templates with named fields, and which label an answer names."""

from __future__ import annotations

import math
from string import ascii_uppercase

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit import InputError, Scale
from edokit.members.recipes._prompts import (
    FIELDS,
    Choices,
    default_template,
    example_lines,
    fields_of,
    read_descriptions,
)
from tests.errors import raises_code

SCALES = (Scale(), Scale("ordinal", (1, 2, 3)), Scale("multi-label"))
TONE = Choices.from_classes(["polite", "rude", "very rude"], listed=True)
NAMES = Choices.from_classes(["polite", "rude", "very rude"], listed=False)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_every_answer_scale_has_a_template_of_known_fields(scale: Scale) -> None:
    assert {"text", "answers", "examples"} <= fields_of(default_template(scale, context=False))
    assert "context" not in fields_of(default_template(scale, context=False))
    assert "context" in fields_of(default_template(scale, context=True))
    assert ("label" in fields_of(default_template(scale, False))) == scale.is_multi_label


@pytest.mark.parametrize(
    ("template", "named"),
    [
        ("Label {txt}", "{txt}"),
        ("Label {text} {text.__class__}", "__class__"),
        ("Label {text!r}", "{text with a format}"),
        ("Label {text:>10}", "{text with a format}"),
        ("Label {} {text}", "{}"),
        ("Label this", "{text}"),
        ('{"text": {text}}', "{{"),
        ("Label {text", "{{"),
        ("Label {text} {", "{{"),
        ("Label {text} }", "}}"),
    ],
)
def test_a_template_that_cannot_be_filled_is_refused(template: str, named: str) -> None:
    with pytest.raises(InputError) as raised:
        fields_of(template)
    assert named in str(raised.value)


@given(st.text(), st.text(), st.text())
def test_what_people_wrote_is_never_read_as_a_field(text: str, context: str, persona: str) -> None:
    values = dict.fromkeys(FIELDS, "-") | {"text": text, "context": context, "persona": persona}
    filled = "{persona}|{context}|{text}".format(**values)
    assert filled == f"{persona}|{context}|{text}"


def test_keys_are_the_labels_where_each_is_one_character_and_letters_elsewhere() -> None:
    assert Choices.from_classes(["0", "1"], listed=True).keys == ("0", "1")
    assert TONE.keys == ("A", "B", "C")
    assert Choices.from_classes(["a", "A"], listed=True).keys == (
        "A",
        "B",
    )  # no answer tells them apart
    many = Choices.from_classes([f"label {k}" for k in range(30)], listed=True)
    assert many.keys[-1] == "30"
    assert not many.first_token_decides
    assert TONE.sentence == "A, B or C"


def test_labels_are_listed_with_their_keys_and_descriptions() -> None:
    found = read_descriptions("rude: hurts\n very rude = hurts: badly\n", TONE.names)
    assert TONE.lines(found) == "A. polite\nB. rude: hurts\nC. very rude: hurts: badly"
    assert Choices.from_classes(["0", "1"], listed=True).lines({"1": "yes"}) == "0\n1: yes"
    with raises_code("unknown-label", "'cruel: x'", "'polite'", "'rude'", "'very rude'"):
        read_descriptions("cruel: x", TONE.names)


def test_examples_are_texts_with_answers_and_nothing_where_there_are_none() -> None:
    assert example_lines([]) == ""
    shown = example_lines([("good day", "A"), (("oh no", "a post"), "B")])
    assert "Text: good day\nAnswer: A\n\nText: oh no\nContext: a post\nAnswer: B\n\n" in shown


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("A", 0),
        (" b.", 1),
        ("**B**", 1),
        ("(C)", 2),
        ("B. rude", 1),
        ("B) It is rude.", 1),
        ("C - very rude", 2),
        ("rude", 1),
        ("Very rude.", 2),
        ('"rude"', 1),
        ("The answer is B.", 1),
        ("Label: very rude", 2),
        ("<think>Perhaps A? No.</think>\nB", 1),
        ("Answer: A\nAnswer: A", 0),
        ("", None),
        ("hm", None),
        ("A polite text", None),  # an article is no key
        ("A or B", None),
        ("A, B", None),
        ("rude / polite", None),
        ("not rude", None),
        ("The answer is a matter of taste", None),
        ("The answer is A. No, the answer is B.", None),
        ("rudeness", None),
        ("<think>A", None),
    ],
)
def test_an_answer_names_a_label_or_none(answer: str, label: int | None) -> None:
    assert TONE.find_label(answer) == label


@given(st.sampled_from(range(3)), st.sampled_from(["", " ", "\n", '"', "**", "("]), st.booleans())
def test_keys_and_names_are_understood_in_any_dress(k: int, around: str, upper: bool) -> None:
    for form in (TONE.keys[k], TONE.names[k]):
        replies = f"{around}{form.upper() if upper else form}{around[::-1]}"
        assert TONE.find_label(replies) == k


@given(st.text(max_size=40))
def test_no_answer_breaks_the_reading_of_it(answer: str) -> None:
    assert TONE.find_label(answer) in (None, 0, 1, 2)


def position(**tokens: float) -> list[list[object]]:
    """Alternatives with probabilities; the first is the model's own. ``_`` is a blank."""
    return [[token.replace("_", " "), math.log(p)] for token, p in tokens.items()]


def test_tokens_of_one_label_add_up_with_and_without_blanks() -> None:
    shares = TONE.shares([position(A=0.5, _A=0.1, b=0.2, C=0.1, The=0.1)])
    np.testing.assert_allclose(shares, np.array([0.6, 0.2, 0.1]) / 0.9)


def test_a_blank_first_is_passed_over() -> None:
    first = position(_=0.9, B=0.05, x=0.05)
    shares = TONE.shares([first, position(A=0.5, B=0.5)])
    assert shares is not None
    np.testing.assert_allclose(shares[:2], np.array([0.45, 0.5]) / 0.95, atol=0.01)


def test_labels_that_begin_alike_are_told_apart_by_the_next_token() -> None:
    scale = Choices(("not rude", "not sure", "rude"))
    first = position(not_=0.7, rude=0.3)
    second = position(rude=0.4, sure=0.6)
    shares = scale.shares([first, second])
    np.testing.assert_allclose(shares, [0.28, 0.42, 0.3])
    ten = Choices(("1", "10"))
    end = {"<end>": 0.75, "0": 0.25}
    shares = ten.shares([position(**{"1": 1.0}), position(**end)])
    np.testing.assert_allclose(shares, [0.75, 0.25])
    np.testing.assert_allclose(ten.shares([position(**{"1": 1.0})]), [1, 0], atol=1e-5)


def test_a_label_that_is_not_listed_gets_what_the_list_leaves_it() -> None:
    shares = TONE.shares([position(A=0.9, B=0.06, x=0.03)])
    assert shares is not None
    assert 0 < shares[2] <= 0.01 / 0.96
    assert shares.sum() == pytest.approx(1)


def test_tokens_that_name_no_label_are_a_failure() -> None:
    assert TONE.shares([position(The=0.995, A=0.004)]) is None
    assert TONE.shares([]) is None
    assert NAMES.shares([position(I=0.9, think=0.1)]) is None


@given(st.lists(st.floats(0.001, 1), min_size=3, max_size=3), st.floats(1e-6, 1) | st.just(0.0))
def test_shares_are_those_of_the_keys_whatever_else_is_likely(
    masses: list[float], other: float
) -> None:
    total = sum(masses) + other
    tokens = dict(zip(ascii_uppercase, (p / total for p in masses), strict=False))
    shares = TONE.shares([position(**tokens, **({"Hm": other / total} if other else {}))])
    if sum(masses) / total >= 0.01:
        np.testing.assert_allclose(shares, np.array(masses) / sum(masses), rtol=1e-6)
    else:
        assert shares is None


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("<think>A or B? The answer is A.</think>B", 1),
        ("A or B? The answer is A.</think> B", 1),  # a server that leaves out the first mark
        ("B <think>why did I say that</think>", 1),
        ("<think>hm</think> B <think>hm</think>", 1),
        ("<think>the answer is A", None),  # cut off before the answer
        ("<think>" * 30_000, None),
        ("</think>" * 26_000 + "B", 1),
    ],
)
def test_thoughts_name_no_label(answer: str, label: int | None) -> None:
    assert Choices.from_classes(("polite", "rude"), listed=True).find_label(answer) == label
