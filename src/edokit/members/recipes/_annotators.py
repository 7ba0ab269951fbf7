"""Regressions that know annotators: an anonymous answer, and `AnnotatorEffects`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edokit._errors import EDOWarning, InputError
from edokit._types import Floats, Ints
from edokit.annotator_effects import AnnotatorEffects
from edokit.members.recipe import MemberData, known_labels, read_arrays
from edokit.members.recipes._regression import LABELS, Logistic, check_loss
from edokit.scales import NOMINAL, Scale

_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Classifier:
    """A regression, and the effects of annotators where it was to learn them."""

    anonymous: Logistic
    scale: Scale
    effects: AnnotatorEffects | None = None

    arrays_needed: ClassVar = Logistic.arrays_needed

    @classmethod
    def fit(
        cls,
        features: Any,
        data: MemberData,
        strength: float,
        *,
        loss: str,
        link: str,
        annotators: bool,
    ) -> Classifier:
        """Learn from the features [N, F] of the texts and the targets of epoch 0.

        Effects of annotators are learned from their labels and from anonymous answers that have
        not seen the item: in sample, these are too sure of the labels that they were fitted to.
        """
        check_loss(loss, link, data.scale)
        targets = data.targets(0)

        def fitted(rows: Any) -> Logistic:
            kinds: dict[str, Any] = {"loss": loss, "link": link}
            return Logistic.fit(features[rows], targets[rows], strength, data.scale, **kinds)

        model = fitted(slice(None))
        if not annotators:
            return cls(model, data.scale)
        annotations = known_labels(data)
        held_out = model.predict(features)
        folds = np.random.default_rng(len(held_out)).permutation(len(held_out)) % _FOLDS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # reported of all targets above
            for fold in range(_FOLDS if len(held_out) > _FOLDS else 0):
                rows = np.flatnonzero(folds == fold)
                held_out[rows] = fitted(np.flatnonzero(folds != fold)).predict(features[rows])
        effects = AnnotatorEffects.fit(held_out, annotations, data.scale)
        return cls(model, data.scale, effects)

    @property
    def annotators(self) -> tuple[str, ...]:
        """The annotators that it knows."""
        return () if self.effects is None else tuple(map(str, self.effects.annotators))

    def predict(
        self, features: Any, rows: Ints, annotators: Sequence[Iterable[str]] | None = None
    ) -> Floats:
        """Probabilities [N, C] of these rows of the features: anonymous, or of annotators."""
        anonymous = self.anonymous.predict(features)[rows]
        if annotators is None or self.effects is None:
            return anonymous
        return self.effects.predict(anonymous, annotators, self.scale)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of it by name."""
        effects = {} if self.effects is None else vars(self.effects)
        return {**self.anonymous.arrays(), **effects}

    @classmethod
    def of(cls, path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> Classifier:
        """From what ``arrays`` gave, kept in a file; refused where it does not fit together."""
        model = Logistic.of(path, arrays)
        # Effects need to know of a scale whether labels are on their own, and nothing else.
        scale = Scale("multi-label") if model.link == LABELS else NOMINAL
        if "effects" not in arrays:
            return cls(model, scale)
        found = read_arrays(path, {"annotators": "t A", "effects": "f AE"})
        if found["effects"].shape[1] != model.n_classes + 1:
            raise InputError(
                f"{path} is damaged: its annotators' effects are not of {model.n_classes} classes",
                "train the member again",
            )
        return cls(model, scale, AnnotatorEffects(found["annotators"], found["effects"]))
