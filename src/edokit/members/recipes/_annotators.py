"""Regressions that know annotators: an anonymous answer, and `AnnotatorEffects`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edokit._errors import EDOWarning, InputError
from edokit._types import Floats
from edokit.annotator_effects import (
    AnnotatorEffects,
    Attributes,
    AttributeValue,
    KnownAnnotators,
    attribute_names,
)
from edokit.members.recipe import (
    Member,
    MemberData,
    Text,
    distinct_texts,
    known_labels,
    read_arrays,
)
from edokit.members.recipes._regression import LABELS, Logistic, Task, check_loss
from edokit.scales import NOMINAL, Scale

_FOLDS = 5
_VALUES = {"attribute": "t V", "value": "t V", "is_range": "b V"}
"""Arrays of the values of attributes."""


@dataclass(frozen=True, eq=False)
class Classifier:
    """A regression, and the effects of annotators where it was to learn them."""

    anonymous: Logistic
    scale: Scale
    effects: AnnotatorEffects | None = None

    arrays_needed: ClassVar = Logistic.arrays_needed

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of it by name."""
        if self.effects is None:
            return self.anonymous.arrays()
        known = self.effects.known
        own = {"annotators": np.array(known.annotators), "effects": self.effects.effects}
        if known.values:
            columns = zip(_VALUES, zip(*known.values, strict=True), strict=True)
            own |= {name: np.array(column) for name, column in columns}
            own["rows_of_annotators"] = known.codes + 1
        return {**self.anonymous.arrays(), **own}

    @classmethod
    def of(cls, path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> Classifier:
        """From what ``arrays`` gave, kept in a file; refused where it does not fit together."""
        model = Logistic.of(path, arrays)
        # Effects need to know of a scale whether labels are on their own, and nothing else.
        scale = Scale("multi-label") if model.link == LABELS else NOMINAL
        if "effects" not in arrays:
            return cls(model, scale)
        found = read_arrays(path, {"annotators": "t A", "effects": "f RE"})
        known, effects = KnownAnnotators.named(found["annotators"]), found["effects"]
        if "rows_of_annotators" in found:
            found = read_arrays(path, {**_VALUES, "rows_of_annotators": "i AL"})
            values = zip(*(found[name].tolist() for name in _VALUES), strict=True)
            codes = found["rows_of_annotators"].astype(np.int64) - 1
            known = replace(known, codes=codes, values=tuple(map(AttributeValue._make, values)))
        if not known.is_whole or effects.shape != (known.n_rows, model.n_classes + 1):
            raise InputError(
                f"{path} is damaged: its annotators' effects are not of {model.n_classes} classes",
                "train the member again",
            )
        return cls(model, scale, AnnotatorEffects(known, effects))


class ClassifierMember(Member):
    """A member that is a `Classifier` on features of texts."""

    multi_label = True

    strength: float
    loss: str
    link: str
    annotators: bool
    attributes: str
    _classifier: Classifier | None = None

    @property
    def known(self) -> KnownAnnotators:
        """The annotators, and values of their attributes, whose effects it has learned."""
        effects = None if self._classifier is None else self._classifier.effects
        return super().known if effects is None else effects.known

    def check_data(self, data: Any) -> None:
        """Refuse data without an order where an option needs one."""
        super().check_data(data)
        check_loss(self.loss, self.link, data.scale)

    def predict_proba(
        self,
        texts: Sequence[Text],
        annotators: Sequence[Iterable[str]] | None = None,
        attributes: Attributes | None = None,
    ) -> Floats:
        """Probabilities [N, C]; with ``annotators`` the mean over those of each text."""
        if self._classifier is None:
            raise InputError("a member must be fitted before it predicts", "call fit first")
        distinct, rows = distinct_texts(texts)
        own = self._classifier
        anonymous = own.anonymous.predict(self._features(distinct))[rows]
        if annotators is None or own.effects is None:
            return anonymous
        return own.effects.predict(anonymous, annotators, own.scale, attributes)

    def _features(self, texts: Sequence[Text]) -> Any:
        """Features [N, F]."""
        raise NotImplementedError

    def _learn(self, features: Any, data: MemberData) -> None:
        """Learn from the features [N, F] of the texts and the targets of epoch 0.

        Effects of annotators are learned from their labels and from anonymous answers that have
        not seen the item: in sample, these are too sure of the labels that they were fitted to.
        """
        check_loss(self.loss, self.link, data.scale)
        targets = data.targets(0)

        def fitted(tasks: Sequence[Task]) -> list[Logistic]:
            how = {"loss": self.loss, "link": self.link}
            found = Logistic.fit_each(features, tasks, self.strength, data.scale, **how)
            return [one.rounded() for one in found]

        model = fitted([(slice(None), targets, data.start)])[0]
        self._classifier = Classifier(model, data.scale)
        names = attribute_names(self.attributes)
        if not self.annotators and not names:
            return
        annotations = known_labels(data)
        held_out = model.predict(features)
        folds = np.random.default_rng(len(held_out)).permutation(len(held_out)) % _FOLDS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # reported of all targets above
            outside = [np.flatnonzero(folds != k) for k in range(_FOLDS)]
            tasks = [(rows, targets[rows], None) for rows in outside if len(held_out) > _FOLDS]
            for k, one in enumerate(fitted(tasks)):
                held_out[folds == k] = one.predict(features[folds == k])
        effects = AnnotatorEffects.fit(
            held_out, annotations, data.scale, attributes=names, ids=self.annotators
        )
        self._classifier = replace(self._classifier, effects=effects)
