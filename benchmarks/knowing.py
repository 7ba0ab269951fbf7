"""Members that learn how each annotator differs, as linear and encoder did until 84278a44.

Effects of people are part of the ensemble now. They are compared with these members, the recipes
``knowing:KnowingLinear`` and ``knowing:KnowingEncoder``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from edokit._errors import EDOWarning
from edokit.annotator_effects import AnnotatorEffects
from edokit.folds import random_folds
from edokit.members.contexts import with_context
from edokit.members.recipe import MemberData, required_annotations
from edokit.members.recipes._regression import ClassifierMember, Logistic
from edokit.members.recipes.encoder import EncoderMember
from edokit.members.recipes.linear import LinearMember

FOLDS = 5


def learn_annotators(member: ClassifierMember, data: MemberData) -> AnnotatorEffects:
    """Effects of annotators beside the anonymous answers of a fitted member.

    The anonymous answers are those of five folds, which have not seen the item: in sample, answers
    are too sure of the labels that they were fitted to.
    """
    features = member._fit_features(with_context(data.texts, data.context))
    targets = data.targets(0)
    held_out = member._model.predict(features)
    n_items = len(held_out)
    if n_items > FOLDS:
        folds = random_folds(n_items, FOLDS, seed=n_items)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # reported for all targets already
            for fold in range(FOLDS):
                is_inside = folds == fold
                outside = np.flatnonzero(~is_inside)
                model = Logistic.fit(
                    features[outside], targets[outside], member.strength, data.scale
                )
                held_out[is_inside] = model.rounded().predict(features[is_inside])
    return AnnotatorEffects.fit(held_out, required_annotations(data), data.scale)


@dataclass(eq=False)
class KnowingLinear(LinearMember):
    """The recipe `linear` with effects of annotators."""

    def fit(self, data: MemberData, **options: Any) -> KnowingLinear:
        super().fit(data, **options)
        self._effects = learn_annotators(self, data)
        return self


@dataclass(eq=False)
class KnowingEncoder(EncoderMember):
    """The recipe `encoder` with effects of annotators."""

    def fit(self, data: MemberData, **options: Any) -> KnowingEncoder:
        super().fit(data, **options)
        self._effects = learn_annotators(self, data)
        return self
