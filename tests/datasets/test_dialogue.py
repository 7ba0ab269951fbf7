"""Conversations of four turns."""

from __future__ import annotations

import json

import pytest

from edokit._errors import InputError
from edokit.datasets import Dialogue
from edokit.datasets.lewidi import parse_dialogue

TALK = Dialogue("How are you?", "Fine.", "And now?", "Let us talk.")


@pytest.mark.parametrize(
    ("dialogue", "text"),
    [
        ("user-last", "How are you?\nFine.\nAnd now?\nLet us talk."),
        ("user-first", "Let us talk.\nHow are you?\nFine.\nAnd now?"),
        ("user-only", "Let us talk."),
    ],
)
def test_the_judged_utterance_stands_last_first_or_alone(dialogue: str, text: str) -> None:
    assert TALK.text(dialogue) == text


def test_the_conversation_as_it_ran_is_the_default() -> None:
    assert TALK.text() == TALK.text("user-last")


def test_an_unknown_order_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"'user-last', 'user-first', 'user-only'.*'upside-down'"):
        TALK.text("upside-down")


def test_turns_name_their_speakers() -> None:
    assert TALK.turns == (
        ("agent", "How are you?"),
        ("user", "Fine."),
        ("agent", "And now?"),
        ("user", "Let us talk."),
    )


def test_context_is_all_but_the_judged_utterance() -> None:
    assert TALK.context == "How are you?\nFine.\nAnd now?"


def test_silent_turns_leave_no_blank_line() -> None:
    assert Dialogue("", "  ", "Hello", "Hi").text("user-last") == "Hello\nHi"


def test_a_conversation_is_read_from_its_json_whatever_the_order_of_its_keys() -> None:
    keys = dict(reversed(TALK._asdict().items()))
    assert parse_dialogue(json.dumps(keys)) == TALK


@pytest.mark.parametrize(
    "text",
    ["plain", "{not json", "[1]", '{"user": "hi"}', json.dumps({**TALK._asdict(), "user": 3})],
)
def test_other_texts_are_no_conversations(text: str) -> None:
    assert parse_dialogue(text) is None
