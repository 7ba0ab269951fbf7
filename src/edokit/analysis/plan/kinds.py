"""Bounds of the error of soft labels, over all mixtures of kinds of items that fit a pilot.

Two labels of each item show how often two annotators agree, not why: some items may divide people
in two halves while the others are clear, or all items may be a little unclear. Two annotators agree
equally often in both cases, but the number of annotators that it takes to find an item's most
frequent answer differs. So items are taken to be a mixture of kinds. A mixture fits the pilot if r
annotators agree as often in it as in the pilot; the error lies between the lowest and the highest
of these mixtures (a linear programme).

An item's most frequent answer is its top answer; answers of the others are its rivals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from edokit._types import Floats, Ints

# Metrics whose error depends on more than how often two annotators agree.
SHAPE_METRICS = ("f1", "md")
# Kinds with one rival: numbers of its shares, from 0 to 1/2.
_ONE_RIVAL_KINDS = 16
# Kinds with several rivals: numbers of their joint shares, from 0 to the largest possible one (the
# first, 0, is among the kinds above), and items that are simulated of each.
_SEVERAL_RIVALS_KINDS = 8
_DRAWS = 3000
# Differences of shares that are rounding alone.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Kinds:
    """Kinds of items [K]: how often annotators agree on them, and the errors of soft labels.

    Attributes
    ----------
    orders : tuple of int
        Numbers of annotators whose agreement is compared with the pilot [R].
    agreements : Floats
        Probability that each of these numbers of annotators agree unanimously [R, K].
    errors : dict of str to Floats
        By metric, the error of the soft label of each number of annotators [counts, K].
    """

    orders: tuple[int, ...]
    agreements: Floats
    errors: Mapping[str, Floats]


def make_kinds(
    rows: Floats,
    label_counts: Ints,
    next_answers: Floats,
    counts: Sequence[int],
    reference: int | None,
    rng: np.random.Generator,
) -> Kinds:
    """Kinds of items like those of a pilot with these soft labels [M, C].

    ``next_answers`` is what another annotator answers, given the label of one [C, C]. An item's
    most frequent answer has one rival or, with more than two classes, all others as rivals.
    """
    orders = _orders(rows.shape[1], label_counts)
    kinds = []
    for share in np.linspace(0.0, 0.5, _ONE_RIVAL_KINDS):
        kinds.append(_kind_with_one_rival(share, orders, counts, reference))
    if rows.shape[1] > 2:
        for q in _distributions_with_rivals(rows, next_answers, rng):
            kinds.append(_simulated_kind(q, orders, counts, reference, rng))
    return Kinds(
        orders,
        np.column_stack([kind.agreements[:, 0] for kind in kinds]),
        {name: np.hstack([kind.errors[name] for kind in kinds]) for name in SHAPE_METRICS},
    )


def _kind_with_one_rival(
    share: float, orders: tuple[int, ...], counts: Sequence[int], reference: int | None
) -> Kinds:
    """The kind of items on which this share of annotators gives the rival answer."""
    agreements = [(1 - share) ** order + share**order for order in orders]
    target = np.array([share])
    target_probabilities = np.ones(1)
    if reference is not None:
        target = np.arange(reference + 1) / reference
        target_probabilities = _binomial(reference, share)
    f1 = []
    md = []
    for count in counts:
        rival_shares = np.arange(count + 1) / count
        probabilities = np.outer(_binomial(count, share), target_probabilities)
        is_rival = _is_mode(rival_shares)[:, None]
        target_is_rival = _is_mode(target)
        agreement = is_rival * target_is_rival + (1 - is_rival) * (1 - target_is_rival)
        f1.append((probabilities * agreement).sum())
        md.append((probabilities * 2 * np.abs(rival_shares[:, None] - target)).sum())
    errors = {"f1": np.reshape(f1, (-1, 1)), "md": np.reshape(md, (-1, 1))}
    return Kinds(orders, np.reshape(agreements, (-1, 1)), errors)


def _binomial(number: int, share: float) -> Floats:
    """The probability of 0, 1, …, n successes in n draws, where ``share`` succeed."""
    from scipy.special import comb

    successes = np.arange(number + 1)
    return np.asarray(
        comb(number, successes) * share**successes * (1 - share) ** (number - successes)
    )


def _is_mode(shares: Floats) -> Floats:
    """Whether one of two answers with these shares is the more frequent one; 1/2 for a tie."""
    return np.asarray((1 + np.sign(np.round(shares - 0.5, 9))) / 2)


def _simulated_kind(
    q: Floats,
    orders: tuple[int, ...],
    counts: Sequence[int],
    reference: int | None,
    rng: np.random.Generator,
) -> Kinds:
    """The kind of items with these distributions [D, C]."""
    target = q
    if reference is not None:
        target = rng.multinomial(reference, q) / reference
    f1 = []
    md = []
    for count in counts:
        soft_labels = rng.multinomial(count, q) / count
        f1.append(same_mode(soft_labels, target).mean())
        md.append(np.abs(soft_labels - target).sum(axis=1).mean())
    agreements = [(q**order).sum(axis=1).mean() for order in orders]
    errors = {"f1": np.reshape(f1, (-1, 1)), "md": np.reshape(md, (-1, 1))}
    return Kinds(orders, np.reshape(agreements, (-1, 1)), errors)


def _orders(classes: int, label_counts: Ints) -> tuple[int, ...]:
    """The numbers of annotators whose agreement is compared: two, and more where labels show it.

    With two classes, the agreement of three annotators follows from that of two.
    """
    usual_count = int(np.median(label_counts))
    if usual_count >= 4:
        return (2, 4)
    if usual_count == 3 and classes > 2:
        return (2, 3)
    return (2,)


def _distributions_with_rivals(
    rows: Floats, next_answers: Floats, rng: np.random.Generator
) -> list[Floats]:
    """Simulated distributions [D, C] of each kind whose top answer has all others as rivals."""
    top = rows.argmax(axis=1)[rng.integers(len(rows), size=_DRAWS)]
    # Rivals are as frequent as in the pilot; where it shows none, all are alike.
    rivals = (next_answers + 1e-6)[top]
    rivals[np.arange(_DRAWS), top] = 0.0
    rivals /= rivals.sum(axis=1, keepdims=True)
    is_top = np.eye(rows.shape[1])[top]
    # The top answer stays at least as frequent as each rival.
    largest_share = 1 / (1 + rivals.max(axis=1, keepdims=True))
    distributions = []
    for part in np.linspace(0.0, 1.0, _SEVERAL_RIVALS_KINDS)[1:]:
        share_of_rivals = part * largest_share
        distributions.append((1 - share_of_rivals) * is_top + share_of_rivals * rivals)
    return distributions


def same_mode(p: Floats, q: Floats) -> Floats:
    """The probability that the most frequent classes of p and q [N, C] are the same.

    Ties are broken at random.
    """
    return np.asarray((_modes(p) * _modes(q)).sum(axis=1))


def _modes(p: Floats) -> Floats:
    """The most frequent class of each distribution, or several tied ones, as shares [N, C]."""
    is_mode = p >= p.max(axis=1, keepdims=True) - _ROUNDING
    return np.asarray(is_mode / is_mode.sum(axis=1, keepdims=True))


def agreements(rows: Floats, label_counts: Ints, orders: Sequence[int]) -> Floats:
    """How often each number of annotators of an item agree unanimously [R], without bias.

    All sets of that many annotators of an item count, on items that have as many.
    """
    counts = np.rint(rows * label_counts[:, None])
    observed = []
    for order in orders:
        has_enough = label_counts >= order
        agreeing = np.ones_like(counts[has_enough])
        possible = np.ones(int(has_enough.sum()))
        for n_drawn in range(order):
            agreeing *= np.maximum(counts[has_enough] - n_drawn, 0)
            possible *= label_counts[has_enough] - n_drawn
        observed.append((agreeing.sum(axis=1) / possible).mean())
    return np.array(observed)


def error_bounds(kinds: Kinds, observed: Floats) -> dict[str, tuple[Floats, Floats]]:
    """By metric, the lowest and highest error [samples, counts] of mixtures that fit a pilot.

    ``observed`` are agreements of resampled pilots [samples, R]. Where no mixture has them, the
    nearest that a mixture has are taken.
    """
    observed = observed.copy()
    pair_agreement = kinds.agreements[0]
    observed[:, 0] = np.clip(observed[:, 0], pair_agreement.min(), pair_agreement.max())
    for place in range(1, len(kinds.orders)):
        low, high = _bounds(
            kinds.agreements[:place], observed[:, :place], kinds.agreements[[place]]
        )
        observed[:, place] = np.clip(observed[:, place], low[:, 0], high[:, 0])
    return {
        name: _bounds(kinds.agreements, observed, errors) for name, errors in kinds.errors.items()
    }


def _bounds(agreements: Floats, observed: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Lowest and highest value [samples, V] of mixtures of kinds with the observed agreements.

    An optimum of this linear programme mixes at most R + 1 kinds, so all sets of R + 1 kinds are
    tried.
    """
    size = len(agreements) + 1
    sets = np.array(list(combinations(range(agreements.shape[1]), size)))
    # Weights sum to one and mix the agreements to those observed.
    systems = np.concatenate([np.ones((1, agreements.shape[1])), agreements])[:, sets]
    systems = systems.transpose(1, 0, 2)
    is_regular = np.abs(np.linalg.det(systems)) > 1e-12
    inverses = np.linalg.inv(systems[is_regular])
    sets = sets[is_regular]
    low = np.empty((len(observed), len(values)))
    high = np.empty_like(low)
    for sample, moments in enumerate(observed):
        weights = inverses @ np.concatenate([[1.0], moments])
        # The least infeasible mixtures count as feasible: rounding leaves none otherwise.
        lowest_weights = weights.min(axis=1)
        feasible = lowest_weights >= min(-1e-7, float(lowest_weights.max()))
        mixed = (values[:, sets[feasible]] * weights[feasible]).sum(axis=2)
        low[sample] = mixed.min(axis=1)
        high[sample] = mixed.max(axis=1)
    return low, high
