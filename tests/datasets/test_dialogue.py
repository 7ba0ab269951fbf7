"""Conversations of four turns."""

from __future__ import annotations

import json

import pytest

from edokit.datasets.lewidi import TURNS, dialogue_text, parse_dialogue

TALK = ("How are you?", "Fine.", "And now?", "Let us talk.")


@pytest.mark.parametrize(
    ("dialogue", "text"),
    [
        ("user-last", "How are you?\nFine.\nAnd now?\nLet us talk."),
        ("user-first", "Let us talk.\nHow are you?\nFine.\nAnd now?"),
        ("user-only", "Let us talk."),
    ],
)
def test_the_annotated_utterance_is_last_first_or_alone(dialogue: str, text: str) -> None:
    assert dialogue_text(TALK, dialogue) == text


def test_the_conversation_as_it_ran_is_the_default() -> None:
    assert dialogue_text(TALK) == dialogue_text(TALK, "user-last")


def test_silent_turns_leave_no_blank_line() -> None:
    assert dialogue_text(("", "  ", "Hello", "Hi")) == "Hello\nHi"


def test_a_conversation_is_read_from_its_json_whatever_the_order_of_its_keys() -> None:
    keys = dict(zip(reversed(TURNS), reversed(TALK), strict=True))
    assert parse_dialogue(json.dumps(keys)) == TALK


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "{not json",
        "[1]",
        '{"user": "hi"}',
        json.dumps(dict(zip(TURNS, (*TALK[:3], 3), strict=True))),
    ],
)
def test_other_texts_are_no_conversations(text: str) -> None:
    assert parse_dialogue(text) is None
