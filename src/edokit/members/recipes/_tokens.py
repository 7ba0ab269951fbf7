"""Texts as tokens and targets as arrays, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edokit._types import Floats, Ints
from edokit.annotator_effects import KnownAnnotators, attributes_of, label_shares
from edokit.members.recipe import Text, check_texts

Arrays = dict[str, npt.NDArray[Any]]
_MULTIPLE = 8  # tensor cores work on lengths in eights


class Tokens(NamedTuple):
    """A text as a model reads it.

    Token ids [L], the segment of each token [L] where the model needs it, and where the target
    segment begins and ends.
    """

    ids: npt.NDArray[np.int32]
    types: npt.NDArray[np.int8] | None
    start: int
    stop: int


class Reader:
    """Turns texts into tokens.

    Of (utterance, context), the utterance is the target segment, in either order.
    """

    def __init__(
        self,
        tokenizer: Any,
        max_length: int,
        *,
        speaker_tags: bool = False,
        context_first: bool = False,
    ) -> None:
        self.tokenizer = tokenizer
        # Tokenizers without a limit of their own say so with a huge number.
        self.max_length = min(max_length, tokenizer.model_max_length)
        self.speaker_tags, self.context_first = speaker_tags, context_first

    def __call__(self, texts: Sequence[Text]) -> list[Tokens]:
        """Tokens of each text."""
        check_texts(texts)
        tokens: dict[Text, Tokens] = {}
        for kind in (str, tuple):
            distinct = list(dict.fromkeys(text for text in texts if isinstance(text, kind)))
            if distinct:
                tokens.update(zip(distinct, self._encode(distinct), strict=True))
        return [tokens[text] for text in texts]

    def padded(self, tokens: Sequence[Tokens]) -> Arrays:
        """A batch: token ids, attention mask and target mask [B, L], segments where needed."""
        longest = max(len(text.ids) for text in tokens)
        multiple = min(-(-longest // _MULTIPLE) * _MULTIPLE, self.max_length)
        shape = (len(tokens), max(longest, multiple))
        names = ["attention_mask", "target_mask"]
        if tokens[0].types is not None:
            names.append("token_type_ids")
        batch = {name: np.zeros(shape, dtype=np.int64) for name in names}
        batch["input_ids"] = np.full(shape, self.tokenizer.pad_token_id, dtype=np.int64)
        for row, text in enumerate(tokens):
            batch["input_ids"][row, : len(text.ids)] = text.ids
            batch["attention_mask"][row, : len(text.ids)] = 1
            batch["target_mask"][row, text.start : text.stop] = 1
            if text.types is not None:
                batch["token_type_ids"][row, : len(text.ids)] = text.types
        return batch

    def _encode(self, texts: list[Text]) -> list[Tokens]:
        if self.speaker_tags:
            texts = [with_speaker_tags(text) for text in texts]
        single = isinstance(texts[0], str)
        columns = (texts,) if single else tuple(map(list, zip(*texts, strict=True)))
        columns = columns[::-1] if self.context_first else columns
        target = len(columns) - 1 if self.context_first else 0
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
                *self._segment(encoded, i, target),
            )
            for i, ids in enumerate(encoded["input_ids"])
        ]

    def _segment(self, encoded: Any, i: int, number: int) -> tuple[int, int]:
        """Where a segment begins and ends; all tokens where it has none."""
        if getattr(self.tokenizer, "is_fast", False):
            inside = [segment == number for segment in encoded.sequence_ids(i)]
        else:
            inside = [not special for special in encoded["special_tokens_mask"][i]]
        if True not in inside:
            return 0, len(inside)
        start = inside.index(True)
        return start, start + sum(inside)


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
    batches[0], batches[longest] = batches[longest], batches[0]
    return batches


_SPEAKERS = ("user", "agent")  # the speaker of the utterance, and the other one


def with_speaker_tags(text: Text) -> Text:
    """(utterance, context) with the speaker in front of each turn; a single text as it is.

    The context holds a turn a line, oldest first, and the two speakers take turns: its last line
    is the other one's turn before the utterance.
    """
    if isinstance(text, str):
        return text
    utterance, context = text
    turns = context.split("\n") if context else []
    tagged = [f"{_SPEAKERS[(len(turns) - k) % 2]}: {turn}" for k, turn in enumerate(turns)]
    return f"{_SPEAKERS[0]}: {utterance}", "\n".join(tagged)


class EpochTargets:
    """Targets [N, C], or [N, K, C], that may be drawn anew for every epoch.

    ``labels`` are arrays of further labels of the items, by name.
    """

    def __init__(self, targets: Callable[[int], Floats], **labels: npt.NDArray[Any]) -> None:
        self._targets, self._labels = targets, labels
        self.begin(0)

    def begin(self, epoch: int) -> None:
        """Draw the targets of an epoch."""
        self.targets = np.asarray(self._targets(epoch), dtype=np.float32)

    @property
    def prior(self) -> tuple[Floats, ...]:
        """What heads predict at the start: the mean of these targets."""
        return (self.targets.astype(float),)

    def of(self, items: Ints) -> Arrays:
        """Targets of these items [B, …, C], and their further labels."""
        labels = {name: values[items] for name, values in self._labels.items()}
        return {"targets": self.targets[items], **labels}

    def only_class(self, epochs: int) -> int | None:
        """The class that all targets of all epochs have; none where there are several."""
        for epoch in range(epochs):
            self.begin(epoch)
            if len(present := np.flatnonzero(self.targets.sum(axis=0))) > 1:
                return None
        return int(present[0])


class Pairs(NamedTuple):
    """P pairs of a text and an annotator, those of a text side by side.

    ``starts`` [N + 1] is where the pairs of each of N texts begin, and the end; ``annotators``
    [P, L] are the rows of each pair's annotator, as of `KnownAnnotators` (-1: not known).
    """

    starts: Ints
    annotators: Ints

    def of(self, items: Ints) -> tuple[Ints, Ints]:
        """Positions of the pairs of these texts, and which of the texts each belongs to."""
        counts = self.starts[items + 1] - self.starts[items]
        rows = np.repeat(np.arange(len(items)), counts)
        inside = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.starts[items][rows] + inside, rows


class AnnotatorTargets:
    """Targets of nobody in particular, and labels by annotator: a pair for each annotation.

    In every epoch, annotators are hidden (-1) in a share of the pairs; in as many others, their
    attributes alone are left. The pairs of an item weigh 1 together.
    """

    def __init__(
        self,
        targets: EpochTargets,
        annotations: Any,
        known: KnownAnnotators,
        n_classes: int,
        hidden: float,
        seed: int,
    ) -> None:
        self._targets, self._hidden, self._seed = targets, hidden, seed
        self.known = known
        self.pairs, self._labels = annotator_labels(annotations, known, n_classes)
        # Sum [R, C] and number [R] of the labels of each annotator and value.
        self.totals = np.zeros((known.n_rows, n_classes))
        self.activity = np.zeros(known.n_rows, dtype=np.int64)
        for codes in self.pairs.annotators.T:
            present = codes >= 0
            np.add.at(self.totals, codes[present], self._labels[present])
            self.activity += np.bincount(codes[present], minlength=known.n_rows)
        self._codes = self.pairs.annotators

    @property
    def prior(self) -> tuple[npt.NDArray[Any], ...]:
        """What heads predict at the start: the mean of targets, and of each annotator's labels."""
        return (*self._targets.prior, self.totals, self.known.codes)

    def begin(self, epoch: int) -> None:
        """Draw the targets of an epoch, and who is hidden."""
        self._targets.begin(epoch)
        draws = np.random.default_rng([self._seed, epoch]).random(len(self.pairs.annotators))
        self._codes = np.where(draws[:, None] < self._hidden, -1, self.pairs.annotators)
        if self.known.values:
            self._codes[draws < 2 * self._hidden, 0] = -1

    def of(self, items: Ints) -> Arrays:
        """Targets of these items [B, C]; row, annotator, label and weight of their P pairs."""
        positions, rows = self.pairs.of(items)
        return {
            **self._targets.of(items),
            "pair_rows": rows,
            "pair_annotators": self._codes[positions],
            "pair_targets": self._labels[positions].astype("f4"),
            "pair_weights": (1.0 / np.bincount(rows, minlength=len(items)))[rows].astype("f4"),
        }


def annotator_labels(
    annotations: Any, known: KnownAnnotators, n_classes: int
) -> tuple[Pairs, Floats]:
    """A pair for each annotation, item by item, and its label [P, C]."""
    people = [[str(name)] for name in annotations.annotators]
    _, codes = known.asked(people, len(people), attributes_of(annotations))
    item = np.asarray(annotations.item_codes)
    order = np.argsort(item, kind="stable")
    n_items = len(annotations.items)
    starts = np.searchsorted(item[order], np.arange(n_items + 1))
    pairs = Pairs(starts, codes[np.asarray(annotations.annotator_codes)[order]])
    return pairs, label_shares(annotations, n_classes)[order].astype(float)
