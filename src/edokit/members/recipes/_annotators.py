"""Members that are regressions on features of texts, with effects of annotators on request."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

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
from edokit.members.recipes._ranges import Range, check_ranges
from edokit.members.recipes._regression import LABELS, LINKS, LOSSES, Logistic, check_loss
from edokit.scales import NOMINAL, Scale

_FOLDS = 5
_RANGES = {"strength": Range(0, above=True), "context": Range(0)}
_VALUES = {"attribute": "t V", "value": "t V", "is_range": "b V"}
"""Arrays of the values of attributes."""


@dataclass(eq=False)
class ClassifierMember(Member):
    """A member that is a regression on features of texts.

    Parameters
    ----------
    n_classes : int
        Number of classes, or of labels of sets.
    strength : float, default=5
        How freely weights may grow.
    context : float
        What a context counts against the text itself.
    loss : {"ce", "rps"}, default="ce"
        Cross-entropy or, of ordered classes, the ranked probability score.
    link : {"softmax", "cumulative"}, default="softmax"
        Weights per class or, of ordered classes, one score and thresholds.
    annotators : bool, default=False
        Learn how each annotator differs from the anonymous answer.
    attributes : str, default=""
        Attributes, separated by commas: learn how those differ who share a value.
    """

    multi_label = True

    n_classes: int
    _: KW_ONLY
    strength: float = 5.0
    context: float = 0.4
    loss: str = LOSSES[0]
    link: str = LINKS[0]
    annotators: bool = False
    attributes: str = ""
    _model: Logistic | None = field(default=None, init=False, repr=False)
    _scale: Scale = field(default=NOMINAL, init=False, repr=False)
    _effects: AnnotatorEffects | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_loss(self.loss, self.link)
        check_ranges(self, _RANGES)

    @property
    def known(self) -> KnownAnnotators:
        """The annotators, and values of their attributes, whose effects it has learned."""
        return super().known if self._effects is None else self._effects.known

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
        if self._model is None:
            raise InputError("a member must be fitted before it predicts", "call fit first")
        distinct, rows = distinct_texts(texts)
        anonymous = self._model.predict(self._features(distinct))[rows]
        if annotators is None or self._effects is None:
            return anonymous
        return self._effects.predict(anonymous, annotators, self._scale, attributes)

    def _features(self, texts: Sequence[Text]) -> Any:
        """Features [N, F]."""
        raise NotImplementedError

    def _learn(self, features: Any, data: MemberData) -> None:
        """Learn from the features [N, F] of the texts and the targets of epoch 0.

        Effects of annotators are learned from their labels and from anonymous answers that have
        not seen the item: in sample, these are too sure of the labels that they were fitted to.
        """
        check_loss(self.loss, self.link, data.scale)
        targets, settings = data.targets(0), {"loss": self.loss, "link": self.link}

        def fit_rows(rows: Any) -> Logistic:
            return Logistic.fit(
                features[rows], targets[rows], self.strength, data.scale, **settings
            ).rounded()

        self._model, self._scale, self._effects = fit_rows(slice(None)), data.scale, None
        names = attribute_names(self.attributes)
        if not self.annotators and not names:
            return
        annotations = known_labels(data)
        held_out = self._model.predict(features)
        n = len(held_out)
        folds = np.random.default_rng(n).permutation(n) % _FOLDS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # reported of all targets above
            for fold in range(_FOLDS if n > _FOLDS else 0):
                inside = folds == fold
                held_out[inside] = fit_rows(np.flatnonzero(~inside)).predict(features[inside])
        self._effects = AnnotatorEffects.fit(
            held_out, annotations, data.scale, attributes=names, ids=self.annotators
        )

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Regression and effects by name."""
        assert self._model is not None
        arrays = self._model.arrays()
        if self._effects is None:
            return arrays
        people = self._effects.known
        arrays |= {"annotators": np.array(people.annotators), "effects": self._effects.effects}
        if people.values:
            columns = zip(_VALUES, zip(*people.values, strict=True), strict=True)
            arrays |= {name: np.array(column) for name, column in columns}
            arrays["rows_of_annotators"] = people.codes + 1
        return arrays

    def _take_arrays(self, path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take what ``_arrays`` returned, read from a file; refused where it does not fit."""
        self._model = Logistic.of(path, arrays)
        # Effects need to know of a scale whether labels are on their own, and nothing else.
        self._scale = Scale("multi-label") if self._model.link == LABELS else NOMINAL
        if "effects" not in arrays:
            return
        arrays = read_arrays(path, {"annotators": "t A", "effects": "f RE"})
        people, effects = KnownAnnotators.named(arrays["annotators"]), arrays["effects"]
        if "rows_of_annotators" in arrays:
            arrays = read_arrays(path, {**_VALUES, "rows_of_annotators": "i AL"})
            values = zip(*(arrays[name].tolist() for name in _VALUES), strict=True)
            codes = arrays["rows_of_annotators"].astype(np.int64) - 1
            people = replace(people, codes=codes, values=tuple(map(AttributeValue._make, values)))
        if not people.is_whole or effects.shape != (people.n_rows, self.n_classes + 1):
            raise InputError(
                f"{path} is damaged: its annotators' effects are not of {self.n_classes} classes",
                "train the member again",
            )
        self._effects = AnnotatorEffects(people, effects)
