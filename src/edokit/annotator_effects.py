"""How annotators differ from an anonymous answer: shrunken offsets and slopes.

An annotator a answers item i, whose anonymous answer has the logits z_i, with the logits
z_i + u_a + s_a · (z_i − mean of z_i): u_a is an offset per class, s_a how much more (or less) than
others the annotator follows the text. Both are normally distributed over annotators around zero
with a covariance that is estimated from all of them (empirical Bayes), so that effects shrink the
more the fewer labels they rest on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, counted
from edokit._types import Codes, Floats, Ints
from edokit.scales import Scale

# Probabilities closer to 0 or 1 do not count as more certain.
_LEAST = 1e-6
_ROUNDS = 20
# Annotations at a time.
_BLOCK = 1 << 16


def asked_pairs(
    annotators: Sequence[Iterable[str]] | None, n_texts: int, known_annotators: Iterable[str]
) -> tuple[Ints, Ints]:
    """The text [P] of each pair that is asked for, and its annotator's place among the known [P].

    An annotator that is not known has the place -1, and so has a text without annotators.
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
    place = {name: a for a, name in enumerate(known_annotators)}
    codes = [[place.get(str(name), -1) for name in names] or [-1] for names in annotators]
    return (
        np.repeat(np.arange(n_texts), list(map(len, codes))),
        np.array([code for text_codes in codes for code in text_codes], dtype=np.int64),
    )


@dataclass(frozen=True, eq=False)
class AnnotatorEffects:
    """Offsets and a slope [A, C + 1] of the annotators [A] that it knows."""

    annotators: tuple[str, ...]
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
        annotators, d = tuple(map(str, annotations.annotators)), z.shape[1] + 1
        effects, covariance = np.zeros((len(annotators), d)), np.eye(d) / 4
        for _ in range(_ROUNDS):
            inverse = np.linalg.inv(covariance)
            gradient, hessian = _derivatives(effects, z, labels[order], rows, whose, scale)
            penalised = hessian + inverse
            # One Newton step for all annotators; the covariance settles more slowly than that.
            effects = effects - _limited(
                np.linalg.solve(penalised, (gradient + effects @ inverse)[..., None])
            )
            covariance = _covariance(effects, np.linalg.inv(penalised))
        return cls(annotators, effects)

    def predict(
        self, anonymous: Floats, annotators: Sequence[Iterable[str]], scale: Scale
    ) -> Floats:
        """The mean answer [N, C] of the annotators of each text.

        One that is not known gives the anonymous answer, and so does a text without annotators.
        """
        rows, codes = asked_pairs(annotators, len(anonymous), self.annotators)
        answers, is_known = anonymous[rows], codes >= 0
        answers[is_known] = self.answers(answers[is_known], codes[is_known], scale)
        return mean_over_pairs(answers, rows)

    def answers(self, anonymous: Floats, codes: Ints, scale: Scale) -> Floats:
        """The answers [P, C] of known annotators, by their places [P]."""
        return _moved(_logits(anonymous, scale), self.effects[codes], scale)


def _limited(step: Floats) -> Floats:
    """Newton steps [n, E, 1] as [n, E], of a length that can't overshoot by far."""
    steps = step[..., 0]
    limited: Floats = steps / np.maximum(np.abs(steps).max(axis=1, keepdims=True), 1.0)
    return limited


def _covariance(effects: Floats, posterior: npt.NDArray[Any]) -> Floats:
    """How effects [n, E] spread, given the posterior covariance [n, E, E] of each."""
    n, d = effects.shape
    spread = np.einsum("ai,aj->ij", effects, effects) + posterior.sum(axis=0)
    # As if there were as many more of them as effects, which differ alike in all classes.
    alike = np.append(np.full(d - 1, np.trace(spread[:-1, :-1]) / (d - 1)), spread[-1, -1])
    covariance: Floats = (spread + np.diag(alike / n) * d) / (n + d)
    return covariance


def _logits(p: Floats, scale: Scale) -> Floats:
    return scale.logits(np.clip(p, _LEAST, 1 - _LEAST))


def _moved(z: Floats, effects: Floats, scale: Scale) -> Floats:
    """Probabilities [M, C] of annotators with these effects [M, C + 1]."""
    return scale.from_logits(z + effects[:, :-1] + effects[:, -1:] * z)


def _derivatives(
    effects: Floats, z: Floats, labels: Floats, rows: Ints, whose: Codes, scale: Scale
) -> tuple[Floats, Floats]:
    """Gradient [A, E] and Hessian [A, E, E] of the cross-entropy, summed over own labels."""
    n, e = effects.shape
    gradient, hessian = np.zeros((n, e)), np.zeros((n, e, e))
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        annotators, base = whose[part], z[rows[part]]
        p = _moved(base, effects[annotators], scale)
        offsets = np.broadcast_to(np.eye(e - 1), (*p.shape, e - 1))
        design = np.concatenate([offsets, base[:, :, None]], axis=2)
        weighted = scale.curvature(p) @ design
        present, starts = np.unique(annotators, return_index=True)
        slopes = np.einsum("mce,mc->me", design, p - labels[part])
        gradient[present] += np.add.reduceat(slopes, starts, axis=0)
        hessian[present] += np.add.reduceat(design.swapaxes(1, 2) @ weighted, starts, axis=0)
    return gradient, hessian


def label_shares(annotations: Any, n_classes: int, rows: Any = slice(None)) -> Floats:
    """Labels of these annotations as probabilities [M, C]; one-hot where a class was chosen."""
    if annotations.label_codes is None:
        return np.asarray(annotations.label_probabilities[rows])
    return np.asarray(np.eye(n_classes)[annotations.label_codes[rows]])


def mean_over_pairs(answers: Floats, rows: Ints) -> Floats:
    """The mean answer [N, C] of the pairs [P, C] of each text; ``rows`` [P] are their texts."""
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    sums: Floats = np.add.reduceat(answers, starts) if len(starts) else answers
    return sums / np.bincount(rows)[:, None]
