"""Texts as tokens and targets as arrays, batch by batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edokit._errors import InputError
from edokit._types import Floats, Ints
from edokit.annotator_effects import label_shares, pairs_of_texts
from edokit.members.arrays import NamedArrays
from edokit.members.contexts import Text, check_texts
from edokit.members.pretrained import model_errors

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from edokit.annotations.core import Annotations

_MULTIPLE = 8  # tensor cores work on lengths in eights
_HIDDEN_SHARE = 0.2  # of the pairs that count as anonymous in an epoch


class Reader:
    """Turns texts into tokens.

    In pairs (text, context) the text is the target segment, whichever of the two comes first.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        max_length: int,
        *,
        vocabulary: float = math.inf,
        speaker_tags: bool = False,
        context_first: bool = False,
        instruction: str = "",
    ) -> None:
        self.tokenizer = tokenizer
        # Tokenizers without a limit of their own say so with a huge number.
        self.max_length = min(max_length, tokenizer.model_max_length)
        self.vocabulary = vocabulary
        self.speaker_tags = speaker_tags
        self.context_first = context_first
        self.instruction = instruction

    def __call__(self, texts: Sequence[Text]) -> list[NamedArrays]:
        """The arrays [L] of each text: token ids, masks, and segments if the model needs them."""
        check_texts(texts)
        tokens: dict[Text, NamedArrays] = {}
        # A tokenizer takes either texts or pairs at a time.
        for kind in (str, tuple):
            distinct = list(dict.fromkeys(text for text in texts if isinstance(text, kind)))
            if distinct:
                tokens.update(zip(distinct, self._encode(distinct), strict=True))
        return [tokens[text] for text in texts]

    def padded(self, tokens: Sequence[NamedArrays]) -> NamedArrays:
        """A batch of texts: the same arrays [B, L]."""
        longest = max(len(text["input_ids"]) for text in tokens)
        multiple = min(-(-longest // _MULTIPLE) * _MULTIPLE, self.max_length)
        shape = (len(tokens), max(longest, multiple))
        batch = {name: np.zeros(shape, dtype=np.int64) for name in tokens[0]}
        batch["input_ids"][:] = self.tokenizer.pad_token_id
        for row, text in enumerate(tokens):
            for name, values in text.items():
                batch[name][row, : len(values)] = values
        return batch

    def _encode(self, texts: list[Text]) -> list[NamedArrays]:
        columns, target = self._columns(texts)
        name = str(self.tokenizer.name_or_path)
        with model_errors(name):
            encoded = self.tokenizer(
                *columns, truncation=True, max_length=self.max_length, return_attention_mask=True
            )
        if max(chain([self.tokenizer.pad_token_id], *encoded["input_ids"])) >= self.vocabulary:
            raise InputError(
                f"the tokenizer in {name} makes tokens beyond the {self.vocabulary:.0f} that the"
                " model knows",
                "save the model with the tokenizer that it was trained with",
                code="unsupported-model",
            )
        tokens = []
        for i in range(len(texts)):
            arrays = {name: np.array(column[i]) for name, column in encoded.items()}
            if getattr(self.tokenizer, "is_fast", False):
                is_target = np.array([segment == target for segment in encoded.sequence_ids(i)])
            else:  # such tokenizers don't tell segments apart
                is_target = arrays["attention_mask"] > 0
            if not is_target.any():  # a text without words
                is_target[:] = True
            tokens.append({**arrays, "target_mask": is_target})
        return tokens

    def _columns(self, texts: list[Text]) -> tuple[list[list[str]], int]:
        """The segments of all texts in their order, and which of them is the target."""
        if self.speaker_tags:
            texts = [with_speaker_tags(text) for text in texts]
        single = isinstance(texts[0], str)
        columns: list[list[str]]
        if single:
            columns = [[str(text) for text in texts]]
        else:
            columns = [list(part) for part in zip(*texts, strict=True)]
        if self.context_first:
            columns = columns[::-1]
        if not single and not self.tokenizer.num_special_tokens_to_add(pair=True):
            # Without special tokens, a line break separates the two.
            columns[0] = [f"{text}\n" for text in columns[0]]
        if self.instruction:
            columns[0] = [f"{self.instruction}\n{text}" for text in columns[0]]
        target = 0
        if self.context_first:
            target = len(columns) - 1
        return columns, target


def batches_by_length(lengths: Ints, batch_size: int, rng: np.random.Generator) -> list[Ints]:
    """Every position once, in shuffled batches of texts of like length.

    The batch with the longest text comes first, so that memory that is too small shows at once.
    """
    order = rng.permutation(len(lengths))
    pool = 50 * batch_size
    batches: list[Ints] = []
    for start in range(0, len(order), pool):
        part = order[start : start + pool]
        part = part[np.argsort(-lengths[part], kind="stable")]
        batches += [part[i : i + batch_size] for i in range(0, len(part), batch_size)]
    rng.shuffle(batches)
    longest = max(range(len(batches)), key=lambda b: int(lengths[batches[b]].max()))
    first_batch = batches[0]
    batches[0] = batches[longest]
    batches[longest] = first_batch
    return batches


_SPEAKERS = ("user", "agent")  # the speaker of the text, and the other one


def with_speaker_tags(text: Text) -> Text:
    """A pair (text, context) with the speaker before each turn; a text without context unchanged.

    The context has one turn in each line, oldest first, and the two speakers alternate: its last
    line is the other speaker's turn before the text.
    """
    if isinstance(text, str):
        return text
    string, context = text
    turns = []
    if context:
        turns = context.split("\n")
    tagged = [f"{_SPEAKERS[(len(turns) - k) % 2]}: {turn}" for k, turn in enumerate(turns)]
    return f"{_SPEAKERS[0]}: {string}", "\n".join(tagged)


class EpochTargets:
    """Targets [N, C] that may be drawn anew for every epoch."""

    def __init__(self, targets: Callable[[int], Floats]) -> None:
        self._targets = targets
        self.begin(0)

    def begin(self, epoch: int) -> None:
        """Draw the targets of an epoch."""
        self.targets = np.asarray(self._targets(epoch), dtype=np.float32)

    @property
    def prior(self) -> tuple[Floats, ...]:
        """The arguments of `Head.set_prior`: the targets, whose mean is predicted at first."""
        return (self.targets.astype(float),)

    def batch(self, items: Ints) -> NamedArrays:
        """Targets of these items [B, C]."""
        return {"targets": self.targets[items]}

    def only_class(self, epochs: int) -> int | None:
        """The one class of all targets of all epochs; None if there are several."""
        for epoch in range(epochs):
            self.begin(epoch)
            present = np.flatnonzero(self.targets.sum(axis=0))
            if len(present) != 1:
                return None
        return int(present[0])


class Pairs(NamedTuple):
    """P pairs of a text and an annotator.

    ``rows`` [P] are the texts; ``annotators`` [P] are positions among the known ones, -1 for
    others.
    """

    rows: Ints
    annotators: Ints


class AnnotatorTargets(EpochTargets):
    """Anonymous targets of the items, and pairs with the label of each annotation.

    In every epoch, a fifth of the pairs count as anonymous (-1). The weights of the pairs of an
    item sum to 1.
    """

    def __init__(
        self, targets: Callable[[int], Floats], annotations: Annotations, n_classes: int, seed: int
    ) -> None:
        self._seed = seed
        names = list(map(str, annotations.annotators))
        self.pairs, self._pair_labels = annotator_labels(annotations, names, n_classes)
        self._starts = np.searchsorted(self.pairs.rows, np.arange(len(annotations.items) + 1))
        # Sum [A, C] and number [A] of the labels of each annotator.
        self.totals = np.zeros((len(names), n_classes))
        np.add.at(self.totals, self.pairs.annotators, self._pair_labels)
        self.activity = np.bincount(self.pairs.annotators, minlength=len(names))
        super().__init__(targets)

    @property
    def prior(self) -> tuple[Floats, ...]:
        """The arguments of `AnnotatorHead.set_prior`: targets, and sums of annotators' labels."""
        return (*super().prior, self.totals)

    def begin(self, epoch: int) -> None:
        """Draw the targets of an epoch, and the pairs that count as anonymous."""
        super().begin(epoch)
        draws = np.random.default_rng([self._seed, epoch]).random(len(self.pairs.annotators))
        self._codes = np.where(draws < _HIDDEN_SHARE, -1, self.pairs.annotators)

    def batch(self, items: Ints) -> NamedArrays:
        """Targets of these items [B, C]; row, annotator, label and weight of their P pairs."""
        positions = [np.arange(self._starts[i], self._starts[i + 1]) for i in items]
        counts = np.array([len(pairs) for pairs in positions])
        rows = np.repeat(np.arange(len(items)), counts)
        pairs = np.concatenate(positions)
        return {
            **super().batch(items),
            "pair_rows": rows,
            "pair_annotators": self._codes[pairs],
            "pair_targets": self._pair_labels[pairs].astype("f4"),
            "pair_weights": (1.0 / counts[rows]).astype("f4"),
        }


def annotator_labels(
    annotations: Annotations, known_annotators: Sequence[str], n_classes: int
) -> tuple[Pairs, Floats]:
    """A pair for each annotation, item by item, and its label [P, C]."""
    # The position of each annotator among the known ones, as if each had a text of their own.
    people = [[str(name)] for name in annotations.annotators]
    _, codes = pairs_of_texts(people, len(people), known_annotators)
    items = np.asarray(annotations.item_codes, dtype=np.int64)
    annotators = np.asarray(annotations.annotator_codes)
    order = np.argsort(items, kind="stable")
    labels = label_shares(annotations, n_classes)[order].astype(float)
    return Pairs(items[order], codes[annotators[order]]), labels
