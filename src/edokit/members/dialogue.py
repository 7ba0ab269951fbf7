"""Who speaks: tags in front of the turns of a conversation."""

from __future__ import annotations

from edokit.members.recipe import Text

SPEAKERS = ("user", "agent")
"""Who says the utterance, and who answers."""


def with_speaker_tags(text: Text) -> Text:
    """(utterance, context) with the speaker in front of each turn; a single text as it is.

    The context holds a turn a line, oldest first, and the two speakers take turns: its last line
    is what the other one said before the utterance.
    """
    if isinstance(text, str):
        return text
    utterance, context = text
    turns = context.split("\n") if context else []
    tagged = [
        f"{SPEAKERS[(len(turns) - position) % 2]}: {turn}" for position, turn in enumerate(turns)
    ]
    return f"{SPEAKERS[0]}: {utterance}", "\n".join(tagged)
