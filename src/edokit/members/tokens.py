"""Texts as tokens: read once, shared by all members, padded batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit.members.dialogue import with_speaker_tags
from edokit.members.recipe import Text

_AT_ONCE = 1000
_MULTIPLE = 8  # tensor cores work on lengths in eights


class Tokens(NamedTuple):
    """One text as a model reads it."""

    ids: npt.NDArray[np.int32]
    """Token ids [L]."""
    types: npt.NDArray[np.int8] | None
    """Segment of each token [L], for models that ask for it."""
    start: int
    """Where the target segment begins."""
    stop: int
    """Where the target segment ends."""


TokenTable = dict[Text, Tokens]
"""Tokens by text."""


class Reader:
    """Turns texts into tokens; texts that are known already cost a look-up."""

    def __init__(
        self,
        tokenizer: Any,
        max_length: int,
        *,
        speaker_tags: bool = False,
        known: Mapping[Text, Tokens] | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        # Tokenizers without a limit of their own say so with a huge number.
        self.max_length = min(max_length, tokenizer.model_max_length)
        self.speaker_tags = speaker_tags
        self.known: Mapping[Text, Tokens] = {} if known is None else known

    def __call__(self, texts: Sequence[Text]) -> list[Tokens]:
        """Tokens of each text."""
        check_texts(texts)
        new = list(dict.fromkeys(text for text in texts if text not in self.known))
        read: TokenTable = {}
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            read.update(zip(some, self._read(some), strict=True))
        return [read[text] if text in read else self.known[text] for text in texts]

    def table(self, texts: Sequence[Text]) -> TokenTable:
        """Tokens by text, for members to share."""
        return dict(zip(texts, self(texts), strict=True))

    def _read(self, texts: list[Text]) -> list[Tokens]:
        if self.speaker_tags:
            texts = [with_speaker_tags(text) for text in texts]
        single = [i for i, text in enumerate(texts) if isinstance(text, str)]
        paired = [i for i, text in enumerate(texts) if not isinstance(text, str)]
        read: dict[int, Tokens] = {}
        for which in (single, paired):
            if which:
                read.update(zip(which, self._encode([texts[i] for i in which]), strict=True))
        return [read[i] for i in range(len(texts))]

    def _encode(self, texts: list[Text]) -> list[Tokens]:
        columns = (
            (texts,) if isinstance(texts[0], str) else tuple(map(list, zip(*texts, strict=True)))
        )
        encoded = self.tokenizer(
            *columns,
            truncation=True,
            max_length=self.max_length,
            padding=False,
            return_attention_mask=False,
            return_special_tokens_mask=True,
        )
        types = encoded.get("token_type_ids")
        return [
            Tokens(
                np.asarray(ids, dtype=np.int32),
                None if types is None else np.asarray(types[i], dtype=np.int8),
                *self._target(encoded, i),
            )
            for i, ids in enumerate(encoded["input_ids"])
        ]

    def _target(self, encoded: Any, i: int) -> tuple[int, int]:
        """Where the first segment stands; all tokens where it has none."""
        if getattr(self.tokenizer, "is_fast", False):
            inside = [segment == 0 for segment in encoded.sequence_ids(i)]
        else:
            inside = [not special for special in encoded["special_tokens_mask"][i]]
        if True not in inside:
            return 0, len(inside)
        start = inside.index(True)
        return start, start + sum(inside)


def check_texts(texts: Sequence[Text]) -> None:
    """Refuse what is neither a text nor a pair of texts, naming where it stands."""
    for position, text in enumerate(texts):
        pair = isinstance(text, tuple) and len(text) == 2 and all(isinstance(t, str) for t in text)
        if not (isinstance(text, str) or pair):
            raise InputError(
                "every text must be a string or a pair (utterance, context) of strings, but text"
                f" {position + 1} of {len(texts)} is {_kind(text)}",
                "fill the gap or drop the item",
            )


def batches_by_length(
    lengths: npt.NDArray[np.int64], batch_size: int, rng: np.random.Generator
) -> list[npt.NDArray[np.int64]]:
    """Every position once, in shuffled batches of texts of like length.

    The batch with the longest text comes first, so that memory that is too small shows at once.
    """
    order = rng.permutation(len(lengths))
    pool = 50 * batch_size
    batches: list[npt.NDArray[np.int64]] = []
    for start in range(0, len(order), pool):
        part = order[start : start + pool]
        part = part[np.argsort(-lengths[part], kind="stable")]
        batches += [part[i : i + batch_size] for i in range(0, len(part), batch_size)]
    rng.shuffle(batches)
    longest = max(range(len(batches)), key=lambda b: int(lengths[batches[b]].max()))
    batches[0], batches[longest] = batches[longest], batches[0]
    return batches


def padded(
    tokens: Sequence[Tokens], pad_id: int, max_length: int
) -> dict[str, npt.NDArray[np.int64]]:
    """Token ids, attention mask and target mask [B, L], with segments where the model asks."""
    longest = max(len(one.ids) for one in tokens)
    shape = (len(tokens), max(longest, min(-(-longest // _MULTIPLE) * _MULTIPLE, max_length)))
    batch = {
        "input_ids": np.full(shape, pad_id, dtype=np.int64),
        "attention_mask": np.zeros(shape, dtype=np.int64),
        "target_mask": np.zeros(shape, dtype=np.int64),
    }
    if tokens[0].types is not None:
        batch["token_type_ids"] = np.zeros(shape, dtype=np.int64)
    for row, one in enumerate(tokens):
        batch["input_ids"][row, : len(one.ids)] = one.ids
        batch["attention_mask"][row, : len(one.ids)] = 1
        batch["target_mask"][row, one.start : one.stop] = 1
        if one.types is not None:
            batch["token_type_ids"][row, : len(one.ids)] = one.types
    return batch


def _kind(text: Any) -> str:
    if text is None or (isinstance(text, float) and text != text):
        return "missing"
    return f"{type(text).__name__}"
