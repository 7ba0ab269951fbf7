"""Conversations of four turns, of which the user's last one was judged (ConvAbuse)."""

from __future__ import annotations

import json
from enum import Enum
from typing import NamedTuple

from edokit._errors import one_of


class DialogueText(str, Enum):
    """Which turns make the text of an item, and in which order."""

    USER_LAST = "user-last"
    """The whole conversation as it ran; the judged utterance ends it."""
    USER_FIRST = "user-first"
    """The judged utterance, then what led to it."""
    USER_ONLY = "user-only"
    """The judged utterance alone."""


class Dialogue(NamedTuple):
    """What the agent and the user said, in order; the last turn is the one that was judged."""

    prev_agent: str
    prev_user: str
    agent: str
    user: str

    @property
    def turns(self) -> tuple[tuple[str, str], ...]:
        """(speaker, text) of each turn, in order; speakers are "agent" and "user"."""
        return tuple(zip(("agent", "user") * 2, self, strict=True))

    @property
    def context(self) -> str:
        """What led to the judged utterance, a line per turn."""
        return _lines(self.prev_agent, self.prev_user, self.agent)

    def text(self, dialogue: str = "user-last") -> str:
        """The conversation as one text, a line per turn."""
        one_of("dialogue", dialogue, [mode.value for mode in DialogueText])
        if dialogue == DialogueText.USER_ONLY.value:
            return self.user
        if dialogue == DialogueText.USER_FIRST.value:
            return _lines(self.user, self.context)
        return _lines(self.context, self.user)


def parse_dialogue(text: str) -> Dialogue | None:
    """The conversation that a text holds as JSON; none where it is no conversation."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        turns = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return None
    if not isinstance(turns, dict) or not all(
        isinstance(turns.get(name), str) for name in Dialogue._fields
    ):
        return None
    return Dialogue(*(turns[name] for name in Dialogue._fields))


def _lines(*turns: str) -> str:
    return "\n".join(turn for turn in turns if turn.strip())
