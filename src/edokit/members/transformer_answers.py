"""What a fine-tuned network should answer, batch by batch and epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Floats
from edokit.members.tokens import Tokens, batches_by_length, padded

Arrays = dict[str, npt.NDArray[Any]]


class Answers(Protocol):
    """Right answers for the items of a lesson."""

    def begin(self, epoch: int) -> None:
        """Get the answers of an epoch ready."""

    def of(self, items: npt.NDArray[np.int64]) -> Arrays:
        """Answers of these items, by name."""


class TargetAnswers:
    """Targets [N, C], or [N, K, C], that may be drawn anew for every epoch."""

    def __init__(self, targets: Callable[[int], Floats], shape: tuple[int, ...]) -> None:
        self._targets = targets
        self._shape = shape
        self.begin(0)

    def begin(self, epoch: int) -> None:
        """Ask for the targets of an epoch."""
        drawn = np.asarray(self._targets(epoch), dtype=np.float32)
        if drawn.shape != self._shape:
            raise InputError(
                f"targets must have shape {list(self._shape)} (texts first, classes last), but"
                f" those of epoch {epoch} have {list(drawn.shape)}",
                "give one row per text",
            )
        if not np.isfinite(drawn).all():
            raise InputError(
                f"targets must be finite, but those of epoch {epoch} are not", "fill the gaps"
            )
        self.now = drawn

    def of(self, items: npt.NDArray[np.int64]) -> Arrays:
        """Targets of these items [B, …, C]."""
        return {"answers": self.now[items]}

    def only_class(self, epochs: int) -> int | None:
        """The class that all targets of all epochs name; none where there are several."""
        for epoch in range(epochs):
            self.begin(epoch)
            if len(present := np.flatnonzero(self.now.sum(axis=0))) > 1:
                return None
        return int(present[0])


class AnnotatorAnswers:
    """What each annotator answered [N, A, C]; zeros where one did not judge the item."""

    def __init__(self, annotations: Any, n_texts: int, n_classes: int) -> None:
        if annotations is None:
            raise InputError(
                "a head per annotator needs to know who answered what, but the lesson has no"
                " annotations",
                "give the annotations, or choose annotator_heads=False",
            )
        self.annotators = [str(name) for name in annotations.annotators]
        item, annotator = (
            np.asarray(annotations.item_codes),
            np.asarray(annotations.annotator_codes),
        )
        if annotations.label_codes is not None:
            answers = np.eye(n_classes)[np.asarray(annotations.label_codes)]
        else:
            answers = np.asarray(annotations.label_probabilities)
        order = np.argsort(item, kind="stable")
        self._annotator = annotator[order]
        self._answers = answers[order].astype(np.float32)
        self._starts = np.searchsorted(item[order], np.arange(n_texts + 1))
        self._shape = (len(self.annotators), n_classes)
        self.activity = np.bincount(annotator, minlength=len(self.annotators)).astype(np.float64)
        """How many answers each annotator gave [A]."""

    @property
    def prior(self) -> Floats:
        """All answers [M, C]."""
        answers: Floats = self._answers.astype(np.float64)
        return answers

    def begin(self, epoch: int) -> None:
        """Answers are the same in every epoch."""

    def of(self, items: npt.NDArray[np.int64]) -> Arrays:
        """Answers [B, A, C]; who answered twice is split."""
        batch = np.zeros((len(items), *self._shape), dtype=np.float32)
        for row, item in enumerate(items):
            own = slice(self._starts[item], self._starts[item + 1])
            np.add.at(batch[row], self._annotator[own], self._answers[own])
        totals = batch.sum(axis=-1, keepdims=True)
        return {"answers": batch / np.where(totals > 0, totals, 1.0)}


class EpochBatches:
    """The items of an epoch in batches of like length, and a batch's arrays."""

    def __init__(
        self,
        tokens: Sequence[Tokens],
        answers: Answers,
        *,
        batch_size: int,
        seed: int,
        pad_id: int,
        max_length: int,
    ) -> None:
        self._tokens, self._answers = tokens, answers
        self._batch_size, self._seed = batch_size, seed
        self._pad_id, self._max_length = pad_id, max_length
        self._lengths = np.array([len(one.ids) for one in tokens])
        self._epoch = 0

    def begin(self, epoch: int) -> None:
        """Get an epoch ready: its order and its answers."""
        self._epoch = epoch
        self._answers.begin(epoch)

    def __len__(self) -> int:
        return -(-len(self._tokens) // self._batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng([self._seed, self._epoch])
        for batch in batches_by_length(self._lengths, self._batch_size, rng):
            yield batch.tolist()

    def arrays(self, items: Sequence[int]) -> Arrays:
        """Tokens and answers of these items."""
        batch = padded([self._tokens[i] for i in items], self._pad_id, self._max_length)
        return {**batch, **self._answers.of(np.asarray(items))}
