"""Regressions that know annotators: an anonymous answer, and shrunken offsets and slopes.

An annotator a answers item i, whose anonymous answer has the logits z_i, with the logits
z_i + u_a + s_a · (z_i − mean of z_i): u_a is an offset per class, s_a how much more (or less) than
others the annotator follows the text. Both are normally distributed over annotators around zero
with a covariance that is estimated from all of them (empirical Bayes), so that effects shrink the
more the fewer labels they rest on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, softmax

from edokit._errors import EDOWarning, InputError
from edokit._types import Codes, Floats, Ints
from edokit.members.recipe import (
    MemberData,
    asked_pairs,
    known_labels,
    label_shares,
    mean_over_pairs,
    read_arrays,
)
from edokit.members.recipes._regression import LABELS, Logistic, check_loss
from edokit.scales import NOMINAL, Scale

_FOLDS = 5
_LEAST = 1e-6
"""Probabilities closer to 0 or 1 do not count as more certain."""
_ROUNDS = 20
_BLOCK = 1 << 16
"""Annotations at a time."""


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


@dataclass(frozen=True, eq=False)
class AnnotatorEffects:
    """Offsets and a slope [A, C + 1] of A annotators."""

    annotators: npt.NDArray[np.str_]
    effects: Floats

    @classmethod
    def fit(cls, anonymous: Floats, annotations: Any, scale: Scale) -> AnnotatorEffects:
        """Learn from anonymous answers [N, C], which have not seen the labels, and annotations."""
        z = _logits(anonymous, scale)
        labels = label_shares(annotations, z.shape[1])
        # Annotations in the order of annotators, so that sums are over runs of rows.
        order = np.argsort(annotations.annotator_codes, kind="stable")
        whose = np.asarray(annotations.annotator_codes)[order]
        rows = np.asarray(annotations.item_codes)[order]
        n, d = len(annotations.annotators), z.shape[1] + 1
        effects, covariance = np.zeros((n, d)), np.eye(d) / 4
        for _ in range(_ROUNDS):
            inverse = np.linalg.inv(covariance)
            gradient, hessian = _derivatives(effects, z, labels[order], rows, whose, scale)
            hessian += inverse
            # One Newton step for all annotators, of a length that can't overshoot by far; the
            # covariance settles more slowly than that.
            step = np.linalg.solve(hessian, (gradient + effects @ inverse)[..., None])[..., 0]
            effects = effects - step / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1.0)
            spread = np.einsum("ai,aj->ij", effects, effects) + np.linalg.inv(hessian).sum(axis=0)
            # As if there were as many more annotators as effects, who differ alike in all classes.
            alike = np.append(np.full(d - 1, np.trace(spread[:-1, :-1]) / (d - 1)), spread[-1, -1])
            covariance = (spread + np.diag(alike / n) * d) / (n + d)
        return cls(np.array(list(map(str, annotations.annotators))), effects)

    def predict(
        self, anonymous: Floats, annotators: Sequence[Iterable[str]], scale: Scale
    ) -> Floats:
        """The mean answer [N, C] of the annotators of each text.

        One that is not known gives the anonymous answer, and so does a text without annotators.
        """
        rows, codes = asked_pairs(annotators, self.annotators, len(anonymous))
        answers, known = anonymous[rows], codes >= 0
        z = _logits(anonymous, scale)[rows[known]]
        answers[known] = _moved(z, self.effects[codes[known]], scale)
        return mean_over_pairs(answers, rows)


def _logits(p: Floats, scale: Scale) -> Floats:
    kept = np.clip(p, _LEAST, 1 - _LEAST)
    z: Floats = logit(kept) if scale.is_multi_label else np.log(kept)
    return z


def _moved(z: Floats, effects: Floats, scale: Scale) -> Floats:
    """Probabilities [M, C] of annotators with these effects [M, C + 1]."""
    logits = z + effects[:, :-1] + effects[:, -1:] * _centred(z, scale)
    p: Floats = expit(logits) if scale.is_multi_label else softmax(logits, axis=1)
    return p


def _centred(z: Floats, scale: Scale) -> Floats:
    centred: Floats = z if scale.is_multi_label else z - z.mean(axis=1, keepdims=True)
    return centred


def _derivatives(
    effects: Floats, z: Floats, labels: Floats, rows: Ints, whose: Codes, scale: Scale
) -> tuple[Floats, Floats]:
    """Gradient [A, E] and Hessian [A, E, E] of the cross-entropy, summed over own labels."""
    n, e = effects.shape
    gradient, hessian = np.zeros((n, e)), np.zeros((n, e, e))
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        own, base = whose[part], z[rows[part]]
        p = _moved(base, effects[own], scale)
        curvature = p[:, :, None] * np.eye(e - 1)
        if scale.is_multi_label:
            curvature *= 1 - p[:, :, None]
        else:
            curvature -= p[:, :, None] * p[:, None, :]
        design = np.concatenate(
            [np.broadcast_to(np.eye(e - 1), curvature.shape), _centred(base, scale)[:, :, None]],
            axis=2,
        )
        weighted = curvature @ design
        those, starts = np.unique(own, return_index=True)
        slopes = np.einsum("mce,mc->me", design, p - labels[part])
        gradient[those] += np.add.reduceat(slopes, starts, axis=0)
        hessian[those] += np.add.reduceat(design.swapaxes(1, 2) @ weighted, starts, axis=0)
    return gradient, hessian
