"""How close predicted probabilities come to the people's answers.

Throughout, p are predicted probabilities [N, C], q soft labels [N, C] and y hard labels [N]
(codes of the classes). Logarithms are natural. ``*_items`` gives one value per item [N].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._types import Floats, Ints
from edokit.metrics import _checks

CLIP = 1e-12  # the official LeWiDi scoring keeps p in [CLIP, 1 − CLIP] inside the logarithm

# Entropies that differ by rounding alone (1/3 and 1 − 2/3) must count as ties.
ENTROPY_DECIMALS = 9


def f1(p: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Micro-F1 on hard labels: the share of items whose likeliest class is y."""
    return float(f1_items(p, y).mean())


def f1_items(p: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """1 where the likeliest class (the first one on ties) is y, else 0 [N]."""
    return right(*_with_codes(p, y))


def macro_f1(p: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """The plain mean of each class's F1, over the classes that occur in y or are predicted."""
    predicted, labels = _with_codes(p, y)
    hits, members = macro_parts(predicted, labels)
    return float(macro_from_parts(hits.sum(axis=0), members.sum(axis=0)))


def ce(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Cross-entropy −mean Σ q ln p, with p clipped to [1e-12, 1 − 1e-12]."""
    return float(ce_items(p, q).mean())


def ce_items(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """−Σ q ln p [N]."""
    return cross_entropy(*_checks.pair(p, q))


def md(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Manhattan distance mean ‖p − q‖₁, from 0 to 2."""
    return float(md_items(p, q).mean())


def md_items(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """‖p − q‖₁ [N]."""
    return manhattan(*_checks.pair(p, q))


def bs(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Brier score mean ‖p − q‖₂², from 0 to 2."""
    return float(bs_items(p, q).mean())


def bs_items(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """‖p − q‖₂² [N]."""
    return brier(*_checks.pair(p, q))


def jsd(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Jensen–Shannon divergence (not its root), mean over items, from 0 to ln 2."""
    return float(jsd_items(p, q).mean())


def jsd_items(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """Jensen–Shannon divergence of p and q [N]."""
    return jensen_shannon(*_checks.pair(p, q))


def entropy(q: npt.ArrayLike) -> float:
    """Mean entropy. Of the soft labels, it is the lowest CE that any prediction can have."""
    return float(entropy_items(q).mean())


def entropy_items(q: npt.ArrayLike) -> Floats:
    """Entropy −Σ q ln q [N]."""
    return shannon(_checks.probabilities("q", q))


def entropy_correlation(p: npt.ArrayLike, q: npt.ArrayLike) -> float | None:
    """Spearman correlation of H(p) and H(q): are we unsure where people disagree?

    None where it is undefined: all items have the same H(p), or the same H(q).
    """
    predicted, soft = _checks.pair(p, q)
    return spearman(rounded_entropy(predicted), rounded_entropy(soft))


# What follows takes checked arrays, so that a caller with many metrics checks once.


def right(p: Floats, y: Ints) -> Floats:
    hits: Floats = (p.argmax(axis=1) == y).astype(np.float64)
    return hits


def cross_entropy(p: Floats, q: Floats) -> Floats:
    logs = np.log(np.clip(p, CLIP, 1 - CLIP))
    total: Floats = -np.einsum("nc,nc->n", q, logs)
    return total


def manhattan(p: Floats, q: Floats) -> Floats:
    total: Floats = np.abs(p - q).sum(axis=1)
    return total


def brier(p: Floats, q: Floats) -> Floats:
    total: Floats = ((p - q) ** 2).sum(axis=1)
    return total


def shannon(p: Floats) -> Floats:
    logs = np.log(np.where(p > 0, p, 1.0))  # 0 ln 0 = 0
    total: Floats = -np.einsum("nc,nc->n", p, logs)
    return np.maximum(total, 0.0)


def jensen_shannon(p: Floats, q: Floats) -> Floats:
    divergence = shannon((p + q) / 2) - (shannon(p) + shannon(q)) / 2
    return np.clip(divergence, 0.0, np.log(2))  # rounding may step over the bounds


def rounded_entropy(p: Floats) -> Floats:
    return np.round(shannon(p), ENTROPY_DECIMALS)


def macro_parts(p: Floats, y: Ints) -> tuple[Floats, Floats]:
    """Per item and class [N, C]: 1 if rightly predicted, and in how many of ŷ, y it occurs."""
    classes = np.arange(p.shape[1])
    predicted = p.argmax(axis=1)[:, None] == classes
    true = y[:, None] == classes
    return (predicted & true).astype(np.float64), predicted.astype(np.float64) + true


def macro_from_parts(hits: Floats, members: Floats) -> Floats:
    """Macro-F1 from summed parts [..., C]; a class that does not occur is left out."""
    occurs = members > 0
    each = 2 * hits / np.where(occurs, members, 1.0)
    mean: Floats = each.sum(axis=-1) / occurs.sum(axis=-1)
    return mean


def _with_codes(p: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Ints]:
    predicted = _checks.probabilities("p", p)
    return predicted, _checks.codes("y", y, len(predicted), predicted.shape[1], "class")


@dataclass(frozen=True)
class AnnotatorErrors:
    """One entry per annotator who gave at least one annotation; every array is [A]."""

    annotator: Ints
    """Codes of the annotators, ascending."""
    n: Ints
    """How many annotations each one gave."""
    ce: Floats
    """Cross-entropy of the predictions on the annotator's own labels."""
    error: Floats
    """Share of the annotator's labels that differ from the likeliest class."""


def annotator_errors(
    p: npt.ArrayLike, items: npt.ArrayLike, annotators: npt.ArrayLike, labels: npt.ArrayLike
) -> AnnotatorErrors:
    """The error of predictions p [N, C] on each annotator's own labels.

    Annotation m says: annotator ``annotators[m]`` gave item ``items[m]`` the class
    ``labels[m]`` (codes [M]), or the probabilities ``labels[m]`` ([M, C]); then the error is
    one less the probability that the annotator gave to the likeliest class.
    """
    predicted = _checks.probabilities("p", p)
    count, classes = predicted.shape
    item = _checks.codes("items", items, None, count, "item")
    if not len(item):
        raise InputError("items must hold at least one annotation, but it is empty", "give some")
    annotator = _checks.codes("annotators", annotators, len(item), None, "annotator")

    logs = np.log(np.clip(predicted, CLIP, 1 - CLIP))
    likeliest = predicted.argmax(axis=1)[item]
    answers = _checks.as_array("labels", labels)
    if answers.ndim == 2:
        given = _checks.probabilities("labels", answers)
        if given.shape != (len(item), classes):
            raise InputError(
                f"labels must be codes [{len(item)}] or probabilities [{len(item)}, {classes}], "
                f"but got [{given.shape[0]}, {given.shape[1]}]",
                "give one row per annotation and one column per class of p",
            )
        losses = -np.einsum("mc,mc->m", given, logs[item])
        wrong = 1 - given[np.arange(len(item)), likeliest]
    else:
        label = _checks.codes("labels", answers, len(item), classes, "class")
        losses = -logs[item, label]
        wrong = (likeliest != label).astype(np.float64)

    who, place, n = np.unique(annotator, return_inverse=True, return_counts=True)
    return AnnotatorErrors(
        annotator=who,
        n=n.astype(np.int64),
        ce=np.bincount(place, weights=losses) / n,
        error=np.bincount(place, weights=wrong) / n,
    )


def spearman(x: Floats, y: Floats) -> float | None:
    """Spearman's ρ of x and y [N]; None where one of them is constant."""
    rho = RankCorrelation(x, y)(np.ones((1, len(x))))[0]
    return None if np.isnan(rho) else float(rho)


class RankCorrelation:
    """Spearman's ρ of x and y [N] as a function of how often each item is taken.

    Called with counts [B, N], it gives ρ of each multiset [B], NaN where undefined. It sorts
    once, so that a resample costs no sorting.
    """

    def __init__(self, x: Floats, y: Floats) -> None:
        self._order = np.argsort(x, kind="stable")  # with x in order, its ranks need no gather
        self._x = _Levels(x[self._order])
        self._y = _Levels(y[self._order])

    def __call__(self, counts: Floats) -> Floats:
        taken = counts[:, self._order]
        a, b = self._x.centred_ranks(taken), self._y.centred_ranks(taken)
        spread = np.einsum("bn,bn,bn->b", taken, a, a) * np.einsum("bn,bn,bn->b", taken, b, b)
        together = np.einsum("bn,bn,bn->b", taken, a, b)
        defined = spread > 0
        rho = np.clip(together / np.sqrt(np.where(defined, spread, 1.0)), -1.0, 1.0)
        return np.where(defined, rho, np.nan)


class _Levels:
    """The distinct values of an array [N], and which items have which."""

    def __init__(self, values: Floats) -> None:
        self._order = np.argsort(values, kind="stable")
        ordered = values[self._order]
        self._first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        sizes = np.diff(np.r_[self._first, len(values)])
        self._level: npt.NDArray[np.intp] = np.empty(len(values), dtype=np.intp)
        self._level[self._order] = np.repeat(np.arange(len(sizes)), sizes)

    def centred_ranks(self, counts: Floats) -> Floats:
        """Mid-ranks of the items in each multiset [B, N], less their mean."""
        weight = np.add.reduceat(counts[:, self._order], self._first, axis=1)
        total = weight.sum(axis=1, keepdims=True)
        centred = np.cumsum(weight, axis=1) - weight / 2 - total / 2
        ranks: Floats = centred[:, self._level]
        return ranks
