"""Members that are fine-tuned transformers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edokit._errors import HAVE, InputError, are, counted, warn
from edokit._types import Floats
from edokit.members.pretrained import require_packages
from edokit.members.recipe import MemberData, Progress, Text
from edokit.members.recipes._fine_tuning import FineTunedMember


@dataclass(eq=False)
class TransformerMember(FineTunedMember):
    """A pretrained encoder with a classifier on top, fine-tuned together.

    Options are those of `FineTuning`. With ``annotator_heads`` every annotator has a classifier
    of their own on the same encoder.
    """

    _file = "transformer.json"
    _kind = "a saved transformer member"
    _kept = ("history", "best_epoch", "annotators", "activity", "constant")

    annotators_: list[str] = field(default_factory=list, init=False, repr=False)
    """The annotators that have a head."""
    activity_: list[float] = field(default_factory=list, init=False, repr=False)
    """How many labels of each of them there were to train on."""

    @property
    def known_annotators(self) -> Sequence[str]:
        """The annotators that have a head."""
        return tuple(self.annotators_)

    def fit(self, data: MemberData, *, random_state: int, progress: Progress | None = None) -> Any:
        """Fit; the same ``random_state`` gives the same member on the same machine's CPU."""
        require_packages("fine-tuning")
        from edokit.members.recipes._network import annotator_loss, target_loss
        from edokit.members.recipes._tokens import AnnotatorTargets, EpochTargets
        from edokit.members.recipes._trainer import Task

        n_texts = len(data.texts)
        self.constant_ = None
        if self.annotator_heads:
            labels = AnnotatorTargets(data.annotations, n_texts, self.n_classes)
            self.annotators_, self.activity_ = labels.annotators, labels.activity.tolist()
            task = Task(
                labels,
                labels.prior,
                lambda network, logits, batch: annotator_loss(logits, batch["targets"]),
                lambda network, probabilities: self._average(probabilities),
            )
        else:
            targets = EpochTargets(data.targets, (n_texts, self.n_classes))
            if n_texts and (only := targets.only_class(self.epochs)) is not None:
                # As if one more item of each class had been seen, as heads start.
                counts = n_texts * np.eye(self.n_classes)[only] + 1.0
                self.constant_, self._tuned = (counts / counts.sum()).tolist(), None
                warn(f"all targets have one class, '{only}': this member always predicts it")
                return self
            task = Task(
                targets,
                targets.now.astype(float),
                lambda network, logits, batch: target_loss(self.loss, logits, batch["targets"]),
                lambda network, probabilities: probabilities,
            )
        self._tune(data, task, random_state, progress)
        return self

    def predict_proba(
        self, texts: Sequence[Text], annotators: Sequence[Iterable[str]] | None = None
    ) -> Floats:
        """Probabilities [N, C].

        With a head per annotator they are averaged over all annotators, weighted by how many
        labels each gave; or over ``annotators``, those known to label each text (annotators
        without a head are left out; a text with none that has a head gets the average over all).
        """
        if self.constant_ is not None:
            return np.tile(self.constant_, (len(texts), 1))
        probabilities = self._probabilities(texts, self._heads)
        if not self.annotator_heads:
            return probabilities
        if annotators is None:
            return self._average(probabilities)
        weights = self._head_weights(annotators, len(texts))
        pooled: Floats = np.einsum("na,nac->nc", weights, probabilities)
        return pooled

    def predict_annotators(self, texts: Sequence[Text]) -> Floats:
        """Probabilities of each annotator's label [N, A, C], in the order of ``annotators_``."""
        if not self.annotator_heads:
            raise InputError(
                "this member has one head for all annotators", "train with annotator_heads=True"
            )
        return self._probabilities(texts, self._heads)

    def new_heads(self, width: int) -> Any:
        """Heads on so many features, not trained yet."""
        from edokit.members.recipes._network import AnnotatorHeads, OneHead

        if self.annotator_heads:
            return AnnotatorHeads(width, self.n_classes, len(self.annotators_))
        return OneHead(width, self.n_classes)

    @property
    def _heads(self) -> tuple[int, ...]:
        return (len(self.annotators_),) if self.annotator_heads else ()

    def _average(self, probabilities: Floats) -> Floats:
        """Over annotators [N, A, C] -> [N, C], weighted by how many labels each gave."""
        average: Floats = np.average(probabilities, axis=1, weights=self.activity_)
        return average

    def _head_weights(self, annotators: Sequence[Iterable[str]], n_texts: int) -> Floats:
        """Weights [N, A] of the heads of each text's annotators."""
        if len(annotators) != n_texts:
            raise InputError(
                f"{counted(n_texts, 'text')} came with {counted(len(annotators), 'list')} of"
                " annotators",
                "give one list of annotators per text",
            )
        head_of = {name: head for head, name in enumerate(self.annotators_)}
        weights = np.zeros((n_texts, len(head_of)))
        for row, names in enumerate(annotators):
            for name in names:
                if str(name) in head_of:
                    weights[row, head_of[str(name)]] += 1
        unknown = ~weights.any(axis=1)
        weights[unknown] = self.activity_
        if unknown.any():
            warn(
                f"{are(int(unknown.sum()), n_texts, HAVE, 'text')} no annotator with a head, and"
                " get the average over all annotators"
            )
        normalised: Floats = weights / weights.sum(axis=1, keepdims=True)
        return normalised
