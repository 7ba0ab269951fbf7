"""Members that are fine-tuned transformers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from edokit._errors import warn
from edokit._io.documents import Count, Json
from edokit._types import Floats
from edokit.annotator_effects import (
    Attributes,
    AttributeValue,
    KnownAnnotators,
    attribute_names,
    mean_over_pairs,
)
from edokit.members.pretrained import FINE_TUNED, require_packages
from edokit.members.recipe import (
    MemberData,
    Progress,
    Text,
    distinct_texts,
    known_labels,
    with_context,
)
from edokit.members.recipes._fine_tuning import FineTunedMember, SavedMember

_HIDDEN_SHARE = 0.2  # of the labels whose annotator is hidden in an epoch
_ANONYMOUS_WEIGHT = 0.5  # of the loss for nobody in particular beside that of annotators' labels


class SavedTransformer(SavedMember):
    """The content of ``transformer.json``."""

    annotators: list[str]
    activity: list[Count]
    constant: list[Annotated[float, Field(ge=0, le=1)]] | None
    values: list[list[Json]]
    rows: list[list[int]]


@dataclass(eq=False)
class TransformerMember(FineTunedMember):
    """A pretrained encoder with a classifier on top, fine-tuned together.

    Options are those of `FineTunedMember`. With ``annotators`` it also learns who labelled.

    Attributes
    ----------
    annotators_ : list of str
        The annotators that it knows.
    activity_ : list of int
        Number of training labels of each of them, and of each value of an attribute.
    values_ : list of list
        Values of their attributes, and the upper ends of ranges.
    rows_ : list of list of int
        The rows of each annotator, where attributes count.
    """

    _file = FINE_TUNED
    _title = "a saved transformer member"
    _saved = SavedTransformer

    annotators_: list[str] = field(default_factory=list, init=False, repr=False)
    activity_: list[int] = field(default_factory=list, init=False, repr=False)
    values_: list[list[Any]] = field(default_factory=list, init=False, repr=False)
    rows_: list[list[int]] = field(default_factory=list, init=False, repr=False)

    @property
    def known(self) -> KnownAnnotators:
        """The annotators, and values of their attributes, that it knows."""
        people = KnownAnnotators.named(self.annotators_)
        if not self.values_:
            return people
        values = tuple(AttributeValue(*value) for value in self.values_)
        return replace(people, codes=np.array(self.rows_), values=values)

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> Any:
        """Fit; the same ``random_state`` gives the same member on the same machine's CPU."""
        require_packages("fine-tuning")
        from edokit.members.recipes._tokens import EpochTargets

        self._check_scale(data.scale)
        self.constant_, self._tuned, dev_pairs = None, None, None
        if self.knows_annotators:
            targets, dev_pairs = self._annotator_targets(data, random_state)
        else:
            targets, n_texts = EpochTargets(data.targets), len(data.texts)
            only = None if data.scale.is_multi_label else targets.only_class(self.epochs)
            if only is not None:
                # As if each class had been seen once more, as heads start.
                counts = n_texts * np.eye(self.n_classes)[only] + 1.0
                self.constant_ = (counts / counts.sum()).tolist()
                warn(f"all targets have one class, '{only}': this member always predicts it")
                return self
        self._train(data, targets, random_state, progress=progress, dev_pairs=dev_pairs)
        return self

    def _annotator_targets(self, data: MemberData, seed: int) -> tuple[Any, Any]:
        """Targets by annotator; who labelled the dev texts, and how."""
        from edokit.members.recipes._tokens import AnnotatorTargets, annotator_labels

        annotations = known_labels(data)
        people = KnownAnnotators.of(annotations, attribute_names(self.attributes))
        people = people if self.annotators else people.without_ids()
        targets = AnnotatorTargets(
            data.targets, annotations, people, self.n_classes, _HIDDEN_SHARE, seed
        )
        self.annotators_, self.activity_ = list(people.annotators), targets.activity.tolist()
        self.values_ = [[*value] for value in people.values]
        self.rows_ = people.codes.tolist() if people.values else []
        if data.dev_annotations is None or not len(data.dev_texts):
            return targets, None
        return targets, annotator_labels(data.dev_annotations, people, self.n_classes)

    def batch_loss(self, network: Any, logits: Any, batch: Any) -> Any:
        """The loss of the texts, and of the labels of known annotators."""
        from edokit.members.recipes._network import row_losses

        n, steps = len(batch["targets"]), network.head.link.steps
        anonymous = row_losses(self.loss, logits[:n], batch["targets"], steps).mean()
        if "pair_targets" not in batch:
            return anonymous
        pairs = row_losses(self.loss, logits[n:], batch["pair_targets"], steps)
        return (pairs * batch["pair_weights"]).sum() / n + _ANONYMOUS_WEIGHT * anonymous

    def predict_proba(
        self,
        texts: Sequence[Text],
        context: Sequence[str] | None = None,
        annotators: Sequence[Iterable[str]] | None = None,
        attributes: Attributes | None = None,
    ) -> Floats:
        """Probabilities [N, C] for nobody in particular, of sets the probability of each label.

        With ``annotators`` of each text, the mean over what each of them would answer. Annotators
        that the member does not know, and whose ``attributes`` are not passed, get exactly the
        anonymous answer, and so do texts without any. Each text is encoded once.
        """
        if self.constant_ is not None:
            return np.tile(self.constant_, (len(texts), 1))
        distinct, rows = distinct_texts(with_context(texts, context))
        if annotators is None or not self.knows_annotators:
            anonymous: Floats = self._probabilities(distinct, ())[0]
            return np.asarray(anonymous[rows])
        from edokit.members.recipes._tokens import Pairs

        positions, codes = self.known.asked(annotators, len(texts), attributes)
        answers = self._probabilities(distinct, (), Pairs(rows[positions], codes))[1]
        return mean_over_pairs(answers, positions)

    def new_head(self, width: int) -> Any:
        """A head on so many features, not trained yet."""
        from edokit.members.recipes._network import AnnotatorHead, Head

        if self.knows_annotators:
            return AnnotatorHead(width, self.new_link(), self.activity_)
        return Head(width, self.new_link())
