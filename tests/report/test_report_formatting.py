"""What comes from data is text, wherever it is put."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edokit.report.formatting import (
    clean,
    count,
    embed,
    interval,
    level_percent,
    listed,
    number,
    percent,
    prose,
    signed,
)

anything = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(anything) | st.dictionaries(anything, anything))
def test_embedded_json_is_the_same_value_and_cant_end_its_element(value: object) -> None:
    text = str(embed(value))
    assert json.loads(text) == value
    for mark in "<>&\u2028\u2029":
        assert mark not in text


@given(anything)
def test_a_clean_name_is_one_line_without_acting_characters(text: str) -> None:
    shown = clean(text, 40)
    assert len(shown) <= 40
    assert len(shown.splitlines()) <= 1
    assert not set(shown) & set("\u202e\u2066\u0000\u2028")


def test_a_lone_surrogate_does_not_stop_a_page() -> None:
    str(embed(["\ud800"])).encode("utf-8")


def test_numbers_read_well() -> None:
    assert number(-0.12345) == "−0.1235" or number(-0.12345) == "−0.1234"
    assert number(None) == number(float("nan")) == "–"
    assert signed(0.5, 1) == "+0.5"
    assert signed(-0.5, 1) == "−0.5"
    assert (number(-0.00001), signed(-0.00001)) == ("0.0000", "+0.0000")
    assert percent(0.256) == "26\u00a0%"
    assert count(1, "item") == "1 item"
    assert count(10_000, "item") == "10,000 items"
    assert interval([0.1, 0.2], 1) == "0.1 to 0.2"
    assert interval([None, 0.2]) == ""
    assert listed(["a", "b", "c"]) == "a, b and c"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("run `edo fit --x` again", "run <code>edo fit --x</code> again"),
        ("a lone ` stays", "a lone ` stays"),
        ("`a` and ` b", "<code>a</code> and ` b"),
        ("`<b>` & <i>", "<code>&lt;b&gt;</code> &amp; &lt;i&gt;"),
    ],
)
def test_commands_in_sentences_are_code(text: str, shown: str) -> None:
    assert prose(text) == shown


def test_a_confidence_level_is_not_rounded() -> None:
    levels = [level_percent(level) for level in (0.9, 0.95, 0.975, 0.995)]
    assert levels == ["90\u00a0%", "95\u00a0%", "97.5\u00a0%", "99.5\u00a0%"]
