"""Texts as tokens and targets as arrays, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Floats, Ints
from edokit.annotator_effects import KnownAnnotators, attributes_of, label_shares
from edokit.members.recipe import Text, check_texts

Arrays = dict[str, npt.NDArray[Any]]
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


class Reader:
    """Turns texts into tokens; texts that are known already cost a look-up.

    Of (utterance, context), the utterance is the target segment, whichever comes first.
    """

    def __init__(
        self,
        tokenizer: Any,
        max_length: int,
        *,
        speaker_tags: bool = False,
        context_first: bool = False,
        known: Mapping[Text, Tokens] | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        # Tokenizers without a limit of their own say so with a huge number.
        self.max_length = min(max_length, tokenizer.model_max_length)
        self.speaker_tags, self.context_first = speaker_tags, context_first
        self.known: Mapping[Text, Tokens] = {} if known is None else known

    def __call__(self, texts: Sequence[Text]) -> list[Tokens]:
        """Tokens of each text."""
        check_texts(texts)
        new = list(dict.fromkeys(text for text in texts if text not in self.known))
        read: dict[Text, Tokens] = {}
        for kind in (str, tuple):
            same = [text for text in new if isinstance(text, kind)]
            for start in range(0, len(same), _AT_ONCE):
                some = same[start : start + _AT_ONCE]
                read.update(zip(some, self._encode(some), strict=True))
        return [read[text] if text in read else self.known[text] for text in texts]

    def table(self, texts: Sequence[Text]) -> dict[Text, Tokens]:
        """Tokens by text, for members to share."""
        return dict(zip(texts, self(texts), strict=True))

    def padded(self, tokens: Sequence[Tokens]) -> Arrays:
        """A batch of these tokens, as the model takes it."""
        return padded(tokens, self.tokenizer.pad_token_id, self.max_length)

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


def padded(tokens: Sequence[Tokens], pad_id: int, max_length: int) -> Arrays:
    """Token ids, attention mask and target mask [B, L], with segments where the model asks."""
    longest = max(len(one.ids) for one in tokens)
    shape = (len(tokens), max(longest, min(-(-longest // _MULTIPLE) * _MULTIPLE, max_length)))
    names = ["attention_mask", "target_mask"]
    if tokens[0].types is not None:
        names.append("token_type_ids")
    batch = {name: np.zeros(shape, dtype=np.int64) for name in names}
    batch["input_ids"] = np.full(shape, pad_id, dtype=np.int64)
    for row, one in enumerate(tokens):
        batch["input_ids"][row, : len(one.ids)] = one.ids
        batch["attention_mask"][row, : len(one.ids)] = 1
        batch["target_mask"][row, one.start : one.stop] = 1
        if one.types is not None:
            batch["token_type_ids"][row, : len(one.ids)] = one.types
    return batch


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

    def __init__(
        self, targets: Callable[[int], Floats], shape: tuple[int, ...], **labels: npt.NDArray[Any]
    ) -> None:
        self._targets, self._shape, self._labels = targets, shape, labels
        self.begin(0)

    def begin(self, epoch: int) -> None:
        """Draw the targets of an epoch."""
        drawn = np.asarray(self._targets(epoch), dtype=np.float32)
        if drawn.shape != self._shape:
            raise InputError(
                f"the targets of epoch {epoch} have shape {list(drawn.shape)} instead of shape"
                f" {list(self._shape)} (texts first, classes last)",
                "give one row per text",
            )
        if not np.isfinite(drawn).all():
            raise InputError(f"the targets of epoch {epoch} are not finite", "fill the gaps")
        self.now = drawn

    @property
    def prior(self) -> tuple[Floats, ...]:
        """What heads predict at the start: the mean of these targets."""
        return (self.now.astype(float),)

    def of(self, items: Ints) -> Arrays:
        """Targets of these items [B, …, C], and their further labels."""
        labels = {name: values[items] for name, values in self._labels.items()}
        return {"targets": self.now[items], **labels}

    def only_class(self, epochs: int) -> int | None:
        """The class that all targets of all epochs have; none where there are several."""
        for epoch in range(epochs):
            self.begin(epoch)
            if len(present := np.flatnonzero(self.now.sum(axis=0))) > 1:
                return None
        return int(present[0])


class Pairs(NamedTuple):
    """P pairs of a text and an annotator, those of a text side by side."""

    starts: Ints
    """Where the pairs of each of N texts begin, and the end [N + 1]."""
    annotators: Ints
    """The rows of the annotator of each pair [P, L], as of `KnownAnnotators`; -1: not known."""

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
        self.totals = np.zeros((known.n_rows, n_classes))
        """Sum of the labels of each annotator and value [R, C]."""
        self.activity = np.zeros(known.n_rows, dtype=np.int64)
        """How many labels each of them gave [R]."""
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
        drawn = np.random.default_rng([self._seed, epoch]).random(len(self.pairs.annotators))
        self._codes = np.where(drawn[:, None] < self._hidden, -1, self.pairs.annotators)
        if self.known.values:
            self._codes[drawn < 2 * self._hidden, 0] = -1

    def of(self, items: Ints) -> Arrays:
        """Targets of these items [B, C]; row, annotator, label and weight of their P pairs."""
        where, rows = self.pairs.of(items)
        return {
            **self._targets.of(items),
            "pair_rows": rows,
            "pair_annotators": self._codes[where],
            "pair_targets": self._labels[where].astype("f4"),
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


class EpochBatches:
    """The items of an epoch in batches of similar length, and a batch's arrays."""

    def __init__(
        self,
        reader: Reader,
        tokens: Sequence[Tokens],
        targets: EpochTargets | AnnotatorTargets,
        batch_size: int,
        seed: int,
    ) -> None:
        self._reader, self._tokens, self._targets = reader, tokens, targets
        self._batch_size, self._seed = batch_size, seed
        self._lengths = np.array([len(one.ids) for one in tokens])
        self._epoch = 0

    def begin(self, epoch: int) -> None:
        """Get an epoch ready: its order and its targets."""
        self._epoch = epoch
        self._targets.begin(epoch)

    def __len__(self) -> int:
        return -(-len(self._tokens) // self._batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng([self._seed, self._epoch])
        for batch in batches_by_length(self._lengths, self._batch_size, rng):
            yield batch.tolist()

    def arrays(self, items: Sequence[int]) -> Arrays:
        """Tokens and targets of these items."""
        batch = self._reader.padded([self._tokens[i] for i in items])
        return {**batch, **self._targets.of(np.asarray(items))}
