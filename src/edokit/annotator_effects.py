"""Differences of annotators from the anonymous answer: shrunken offsets and slopes.

If z_i are the logits of the anonymous answer to item i, those of annotator a are
z_i + u_a + s_a · (z_i − mean of z_i): u_a is an offset per class, and s_a says how much more (or
less) than others the annotator follows the text. Both are normally distributed over annotators
around zero, with a covariance that is estimated from all of them (empirical Bayes), so that effects
shrink more if they are estimated from fewer labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, counted
from edokit._types import Bools, Codes, Floats, Ints, Strings
from edokit.scales import Scale

# Probabilities are clipped to this distance from 0 and 1.
_SMALLEST_PROBABILITY = 1e-6
_NEWTON_STEPS = 20
# Annotations that are in memory with their derivatives at a time.
_BLOCK = 1 << 16


class LabelColumns(Protocol):
    """What is needed of `Annotations`, which imports this module."""

    @property
    def annotators(self) -> Strings: ...
    @property
    def item_codes(self) -> Codes: ...
    @property
    def annotator_codes(self) -> Codes: ...
    @property
    def label_codes(self) -> Codes | None: ...
    @property
    def label_probabilities(self) -> Floats | None: ...


def pairs_of_texts(
    annotators: Sequence[Iterable[str]] | None, n_texts: int, known_annotators: Iterable[str]
) -> tuple[Ints, Ints]:
    """The text [P] and the annotator [P] of each pair of a text and one of its annotators.

    Annotators are positions in ``known_annotators``, −1 for an unknown annotator. A text without
    annotators is one pair with an unknown annotator.
    """
    if annotators is None:
        annotators = [()] * n_texts
    if len(annotators) != n_texts:
        raise InputError(
            f"{counted(n_texts, 'text')} came with {counted(len(annotators), 'list')} of"
            " annotators",
            "give one list of annotators per text",
            code="lengths-differ",
        )
    code_by_name = {name: code for code, name in enumerate(known_annotators)}
    texts: list[int] = []
    codes: list[int] = []
    for text, names in enumerate(annotators):
        text_codes = [code_by_name.get(str(name), -1) for name in names]
        if not text_codes:
            text_codes = [-1]
        texts += [text] * len(text_codes)
        codes += text_codes
    return np.array(texts, dtype=np.int64), np.array(codes, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class AnnotatorEffects:
    """Offsets and slopes [A, C + 1] of known annotators [A]."""

    annotators: tuple[str, ...]
    effects: Floats

    @classmethod
    def fit(cls, anonymous: Floats, annotations: LabelColumns, scale: Scale) -> AnnotatorEffects:
        """Fit to annotations; the anonymous answers [N, C] must not have learned from them."""
        z = _logits(anonymous, scale)
        labels = label_shares(annotations, z.shape[1])
        # Annotations in the order of annotators, as `_derivatives` needs them.
        order = np.argsort(annotations.annotator_codes, kind="stable")
        annotator_codes = np.asarray(annotations.annotator_codes)[order]
        rows = np.asarray(annotations.item_codes)[order]
        annotators = tuple(map(str, annotations.annotators))
        n_effects = z.shape[1] + 1
        effects = np.zeros((len(annotators), n_effects))
        covariance = np.eye(n_effects) / 4
        # The covariance converges more slowly, so it is estimated anew after each Newton step.
        for _ in range(_NEWTON_STEPS):
            inverse = np.linalg.inv(covariance)
            gradient, hessian = _derivatives(
                effects, z, labels[order], rows, annotator_codes, scale
            )
            penalised_gradient = gradient + effects @ inverse
            penalised_hessian = hessian + inverse
            step = np.linalg.solve(penalised_hessian, penalised_gradient[..., None])[..., 0]
            effects = effects - _limited(step)
            covariance = _covariance(effects, np.linalg.inv(penalised_hessian))
        return cls(annotators, effects)

    def predict(
        self, anonymous: Floats, annotators: Sequence[Iterable[str]], scale: Scale
    ) -> Floats:
        """The mean answer [N, C] of the annotators of each text.

        Unknown annotators, and texts without annotators, get the anonymous answer.
        """
        rows, codes = pairs_of_texts(annotators, len(anonymous), self.annotators)
        answers = anonymous[rows]
        is_known = codes >= 0
        answers[is_known] = self.answers(answers[is_known], codes[is_known], scale)
        return mean_over_pairs(answers, rows)

    def answers(self, anonymous: Floats, codes: Ints, scale: Scale) -> Floats:
        """The answers [P, C] of known annotators, by their positions [P]."""
        return _probabilities(_logits(anonymous, scale), self.effects[codes], scale)


def _limited(step: Floats) -> Floats:
    """The step of each annotator [A, E], scaled down to entries of at most 1."""
    limited: Floats = step / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1.0)
    return limited


def _covariance(effects: Floats, posterior: npt.NDArray[np.floating]) -> Floats:
    """The covariance of effects [A, E], from the posterior covariance [A, E, E] of each."""
    n_annotators, n_effects = effects.shape
    spread = np.einsum("ai,aj->ij", effects, effects) + posterior.sum(axis=0)
    # Shrunk towards a covariance with the same variance for each class, which counts as much as
    # n_effects annotators.
    class_variance = np.trace(spread[:-1, :-1]) / (n_effects - 1)
    variances = np.append(np.full(n_effects - 1, class_variance), spread[-1, -1])
    prior = np.diag(variances / n_annotators)
    covariance: Floats = (spread + prior * n_effects) / (n_annotators + n_effects)
    return covariance


def _logits(p: Floats, scale: Scale) -> Floats:
    return scale.logits(np.clip(p, _SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY))


def _probabilities(z: Floats, effects: Floats, scale: Scale) -> Floats:
    """Probabilities [M, C] of annotators with these effects [M, C + 1]."""
    return scale.from_logits(z + effects[:, :-1] + effects[:, -1:] * z)


def _derivatives(
    effects: Floats, z: Floats, labels: Floats, rows: Codes, annotator_codes: Codes, scale: Scale
) -> tuple[Floats, Floats]:
    """Gradient [A, E] and Hessian [A, E, E] of the cross-entropy, summed by annotator."""
    n_annotators, n_effects = effects.shape
    gradient = np.zeros((n_annotators, n_effects))
    hessian = np.zeros((n_annotators, n_effects, n_effects))
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        annotators = annotator_codes[part]
        base = z[rows[part]]
        p = _probabilities(base, effects[annotators], scale)
        offsets = np.broadcast_to(np.eye(n_effects - 1), (*p.shape, n_effects - 1))
        design = np.concatenate([offsets, base[:, :, None]], axis=2)
        weighted = scale.curvature(p) @ design
        # Annotations are in the order of annotators: sums are over runs of rows.
        block_annotators, starts = np.unique(annotators, return_index=True)
        slopes = np.einsum("mce,mc->me", design, p - labels[part])
        gradient[block_annotators] += np.add.reduceat(slopes, starts, axis=0)
        hessian[block_annotators] += np.add.reduceat(
            design.swapaxes(1, 2) @ weighted, starts, axis=0
        )
    return gradient, hessian


def label_shares(
    annotations: LabelColumns, n_classes: int, rows: Bools | Ints | slice = slice(None)
) -> Floats:
    """The labels in these rows as probabilities [M, C]; one-hot for classes."""
    if annotations.label_codes is not None:
        return np.asarray(np.eye(n_classes)[annotations.label_codes[rows]])
    assert annotations.label_probabilities is not None
    return np.asarray(annotations.label_probabilities[rows])


def mean_over_pairs(answers: Floats, rows: Ints) -> Floats:
    """The mean answer [N, C] of the pairs [P, C] of each text.

    ``rows`` [P] are the texts of the pairs, in ascending order; every text has a pair.
    """
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    sums = answers
    if len(starts):
        sums = np.add.reduceat(answers, starts)
    return sums / np.bincount(rows)[:, None]
