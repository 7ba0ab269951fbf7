"""How close predicted probabilities come to the people's answers.

Throughout, p are predicted probabilities [N, C], q soft labels [N, C] and y hard labels [N]
(codes of the classes). Logarithms are natural. ``*_items`` gives one value per item [N].
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edokit._types import Floats, Ints
from edokit.metrics import _checks
from edokit.metrics.ranks import spearman

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
