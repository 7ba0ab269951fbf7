"""Conversations of four turns."""

from __future__ import annotations

import json

import pytest

from edokit.datasets.lewidi import TURNS, parse_dialogue

TALK = ("How are you?", "Fine.", "And now?", "Let us talk.")


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
