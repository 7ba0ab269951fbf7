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

_LEAST = 1e-6
"""Probabilities closer to 0 or 1 do not count as more certain."""
_ROUNDS = 20
_BLOCK = 1 << 16
"""Annotations at a time."""


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
    z: Floats = np.log(kept)
    if scale.is_multi_label:
        z -= np.log1p(-kept)
    return z


def _moved(z: Floats, effects: Floats, scale: Scale) -> Floats:
    """Probabilities [M, C] of annotators with these effects [M, C + 1]."""
    from scipy.special import expit, softmax  # as slow to import as all of members

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


def label_shares(annotations: Any, n_classes: int, which: Any = slice(None)) -> Floats:
    """Labels of these annotations as probabilities [M, C]; one-hot where a class was chosen."""
    if annotations.label_codes is None:
        return np.asarray(annotations.label_probabilities[which])
    return np.asarray(np.eye(n_classes)[annotations.label_codes[which]])


def asked_pairs(
    annotators: Sequence[Iterable[str]], known: Iterable[object], n_texts: int
) -> tuple[Ints, Ints]:
    """The text and the annotator of each pair that is asked for [P], as positions.

    An annotator that is not known is -1, and so is that of a text without any.
    """
    if len(annotators) != n_texts:
        raise InputError(
            f"{counted(n_texts, 'text')} came with {counted(len(annotators), 'list')} of"
            " annotators",
            "give one list of annotators per text",
        )
    code_of = {str(name): code for code, name in enumerate(known)}
    asked = [[code_of.get(str(name), -1) for name in names] or [-1] for names in annotators]
    rows = np.repeat(np.arange(n_texts), list(map(len, asked)))
    return rows, np.array([code for codes in asked for code in codes], dtype=np.int64)


def mean_over_pairs(answers: Floats, rows: Ints) -> Floats:
    """The mean answer [N, C] of the pairs [P, C] of each text; ``rows`` as of `asked_pairs`."""
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    sums: Floats = np.add.reduceat(answers, first) if len(first) else answers
    return sums / np.bincount(rows)[:, None]
