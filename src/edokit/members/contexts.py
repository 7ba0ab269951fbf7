"""A text, alone or with its context, as members read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from edokit._errors import InputError
from edokit._types import Ints

# One text, or (text, context): a reply and the post before it, an utterance and its dialogue.
Text = str | tuple[str, str]
# The context of each text.
Context = Sequence[str] | None


def have_contexts(texts: Sequence[Text]) -> bool:
    """Whether some of the texts have a context."""
    return any(not isinstance(text, str) for text in texts)


def with_context(texts: Sequence[Text], context: Context) -> Sequence[Text]:
    """Texts, as pairs (text, context) where there is a context."""
    if context is None:
        return texts
    return list(zip(cast(Sequence[str], texts), context, strict=True))


def split_context(texts: Sequence[Text]) -> tuple[list[str], list[str] | None]:
    """Texts without their contexts, and the contexts; None if no text has one."""
    if not have_contexts(texts):
        return [str(text) for text in texts], None
    strings = []
    contexts = []
    for text in texts:
        if isinstance(text, str):
            strings.append(text)
            contexts.append("")
        else:
            strings.append(text[0])
            contexts.append(text[1])
    return strings, contexts


def join_context(text: Text) -> str:
    """A text, with its context in the lines after it."""
    if isinstance(text, str):
        return text
    return "\n".join(text)


def text_parts(text: Text) -> tuple[str, ...]:
    """The strings of a text; of a pair the text, the context, and both with the context first."""
    if isinstance(text, str):
        return (text,)
    return (*text, "\n".join(filter(None, reversed(text))))


def distinct_texts(texts: Sequence[Text]) -> tuple[list[Text], Ints]:
    """Each text once, and the row of every text [N] among them."""
    row_of = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    return list(row_of), np.array([row_of[text] for text in texts], dtype=np.int64)


def check_texts(texts: Sequence[object]) -> None:
    """Raise an error for the first value that is neither a text nor a pair of texts."""
    for position, text in enumerate(texts):
        if isinstance(text, str) or _is_pair(text):
            continue
        is_missing = text is None or (isinstance(text, float) and np.isnan(text))
        kind = "missing" if is_missing else type(text).__name__
        raise InputError(
            f"text {position + 1} of {len(texts)} is {kind}, neither a string nor a pair"
            " (text, context) of strings",
            "fill the gap or drop the item",
            code="not-a-text",
        )


def _is_pair(text: object) -> bool:
    if not isinstance(text, tuple) or len(text) != 2:
        return False
    return all(isinstance(part, str) for part in text)
