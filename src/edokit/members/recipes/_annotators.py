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
from edokit.members.recipes._regression import LABELS, Logistic, check_loss
from edokit.scales import NOMINAL, Scale

_FOLDS = 5
_VALUES = {"attribute": "t V", "value": "t V", "is_range": "b V"}
"""Arrays of the values of attributes."""


@dataclass(frozen=True, eq=False)
class Classifier:
    """A regression, and the effects of annotators where options ask for them."""

    anonymous: Logistic
    scale: Scale
    effects: AnnotatorEffects | None = None

    arrays_needed: ClassVar = Logistic.arrays_needed

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of it by name."""
        if self.effects is None:
            return self.anonymous.arrays()
        people = self.effects.known
        arrays = {"annotators": np.array(people.annotators), "effects": self.effects.effects}
        if people.values:
            columns = zip(_VALUES, zip(*people.values, strict=True), strict=True)
            arrays |= {name: np.array(column) for name, column in columns}
            arrays["rows_of_annotators"] = people.codes + 1
        return {**self.anonymous.arrays(), **arrays}

    @classmethod
    def of(cls, path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> Classifier:
        """From what ``arrays`` returned, read from a file; refused where it does not fit."""
        model = Logistic.of(path, arrays)
        # Effects need to know of a scale whether labels are on their own, and nothing else.
        scale = Scale("multi-label") if model.link == LABELS else NOMINAL
        if "effects" not in arrays:
            return cls(model, scale)
        arrays = read_arrays(path, {"annotators": "t A", "effects": "f RE"})
        people, effects = KnownAnnotators.named(arrays["annotators"]), arrays["effects"]
        if "rows_of_annotators" in arrays:
            arrays = read_arrays(path, {**_VALUES, "rows_of_annotators": "i AL"})
            values = zip(*(arrays[name].tolist() for name in _VALUES), strict=True)
            codes = arrays["rows_of_annotators"].astype(np.int64) - 1
            people = replace(people, codes=codes, values=tuple(map(AttributeValue._make, values)))
        if not people.is_whole or effects.shape != (people.n_rows, model.n_classes + 1):
            raise InputError(
                f"{path} is damaged: its annotators' effects are not of {model.n_classes} classes",
                "train the member again",
            )
        return cls(model, scale, AnnotatorEffects(people, effects))


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
        classifier = self._classifier
        anonymous = classifier.anonymous.predict(self._features(distinct))[rows]
        if annotators is None or classifier.effects is None:
            return anonymous
        return classifier.effects.predict(anonymous, annotators, classifier.scale, attributes)

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

        def fit_rows(rows: Any) -> Logistic:
            return Logistic.fit(
                features[rows],
                targets[rows],
                self.strength,
                data.scale,
                loss=self.loss,
                link=self.link,
            ).rounded()

        model = fit_rows(slice(None))
        self._classifier = Classifier(model, data.scale)
        names = attribute_names(self.attributes)
        if not self.annotators and not names:
            return
        annotations = known_labels(data)
        held_out = model.predict(features)
        n = len(held_out)
        folds = np.random.default_rng(n).permutation(n) % _FOLDS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # reported of all targets above
            for fold in range(_FOLDS if n > _FOLDS else 0):
                inside = folds == fold
                held_out[inside] = fit_rows(np.flatnonzero(~inside)).predict(features[inside])
        effects = AnnotatorEffects.fit(
            held_out, annotations, data.scale, attributes=names, ids=self.annotators
        )
        self._classifier = replace(self._classifier, effects=effects)
