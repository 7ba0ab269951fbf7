"""What the objective needs of the data: sums that add over shards, and the problem to solve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from array_api_compat import device, is_numpy_array
from numpy.typing import NDArray

from edokit._errors import InputError, option
from edokit._types import Ints
from edokit.objective.pools import (
    Additive,
    Array,
    double,
    like,
    log_probabilities,
    member_rows,
    namespace,
    slices,
    take,
)
from edokit.objective.settings import SCALE_TERMS, ObjectiveSettings, Pool

_BLOCK = 2**17
"""Most probabilities of a numpy array that are summed at a time, so that they stay in the cache."""
_TENSOR_BLOCK = 2**24
"""Most probabilities of a tensor that are summed at a time: enough to keep a GPU busy."""


@dataclass(frozen=True, eq=False)
class Summaries(Additive):
    """Sums over items, in float64; ``a + b`` is the summaries of both shards together.

    For multi-label data, each label of an item counts as an item with two classes.
    """

    items: int
    """N, the number of items."""
    class_counts: Array
    """[C] N_c, the items per hard label."""
    soft_counts: Array
    """[C] Σ_i q_ic, the sum of the soft labels per class."""
    hits: Array
    """[K] Σ_i P[i, k, y_i], the probability given to the hard labels."""
    distances: Array
    """[K, K] Σ_i ‖P[i, k] − P[i, l]‖₁; None if they were left out."""
    log_losses: Array
    """[K, C] −Σ_i q_ic ln(P[i, k, c] + ε); None if they were left out."""
    rank_products: Array = None
    """[K, K] Σ_i Σ_c s_c (F_ikc − G_ic)(F_ilc − G_ic) of ordered classes with steps s between
    them, F and G the cumulative P and q; None for classes without an order."""

    @classmethod
    def from_arrays(
        cls,
        P: Array,
        q: Array,
        y: Array,
        *,
        distances: bool = True,
        log_losses: bool = True,
        steps: Array | None = None,
    ) -> Summaries:
        """Sum up predictions P [N, K, C], soft labels q [N, C] and hard label codes y [N].

        P and q must be distributions, and y codes of classes. Sums of torch tensors are on their
        device, and gradients flow through.

        Parameters
        ----------
        P, q, y : arrays
            numpy arrays or torch tensors.
        distances, log_losses : bool, default=True
            Whether these sums are computed; they are None otherwise.
        steps : array of shape (C − 1,), default=None
            Distances between ordered classes. The members' distances are then those of their
            cumulative probabilities.

        Returns
        -------
        Summaries
        """
        items, members, classes = P.shape
        numbers = _TENSOR_BLOCK
        if is_numpy_array(P):
            numbers = _BLOCK
        block_length = max(1, numbers // (members * classes))
        blocks = list(slices(items, block_length)) or [slice(0, 0)]
        return sum(
            cls._from_block(P[s, ...], q[s, ...], y[s], distances, log_losses, steps)
            for s in blocks
        )  # type: ignore[return-value]

    @classmethod
    def _from_block(
        cls, P: Array, q: Array, y: Array, distances: bool, log_losses: bool, steps: Array | None
    ) -> Summaries:
        """The sums over the items of one block, in float64."""
        xp = namespace(P)
        items, members, classes = P.shape
        # Items last, so that the axis to sum over is long and contiguous.
        rows = _transposed(xp.reshape(P, (items, members * classes)))
        rows = xp.reshape(rows, (members, classes * items))
        labels = _transposed(q)
        codes = xp.arange(classes, dtype=xp.int64, device=device(y))
        is_hard = double(xp.astype(y, xp.int64, copy=False)[None, :] == codes[:, None])
        loss_sums = None
        if log_losses:
            logs = xp.reshape(log_probabilities(rows), (members, classes, items))
            loss_sums = -xp.vecdot(logs, xp.broadcast_to(labels, logs.shape))
        gaps = None
        rank_products = None
        if steps is not None:
            widths = like(steps, P)[:, None]
            shares = xp.cumulative_sum(xp.reshape(rows, (members, classes, items)), axis=1)
            shares = shares[:, :-1, :]
            label_shares = xp.cumulative_sum(labels, axis=0)[:-1, :]
            errors = xp.reshape((shares - label_shares) * xp.sqrt(widths), (members, -1))
            rank_products = errors @ xp.permute_dims(errors, (1, 0))
            if distances:
                gaps = _l1_distances(xp.reshape(shares * widths, (members, -1)))
        elif distances and classes == 2 and not getattr(P, "requires_grad", False):
            # Rows sum to one: ‖p − p'‖₁ = 2·|p_1 − p'_1|.
            gaps = 2.0 * _l1_distances(rows[:, items:])
        elif distances:
            gaps = _l1_distances(rows)
        return cls(
            items=items,
            class_counts=xp.sum(is_hard, axis=1),
            soft_counts=xp.sum(labels, axis=1),
            hits=rows @ xp.reshape(is_hard, (-1,)),
            distances=gaps,
            log_losses=loss_sums,
            rank_products=rank_products,
        )

    @property
    def members(self) -> int:
        """K, the number of members."""
        return int(self.hits.shape[0])

    @property
    def classes(self) -> int:
        """C, the number of classes."""
        return int(self.class_counts.shape[0])

    def select(self, members: Sequence[int] | Ints) -> Summaries:
        """The summaries of the members at these positions, in this order."""
        return replace(
            self,
            hits=take(self.hits, members, 0),
            distances=take(self.distances, members, 0, 1),
            log_losses=take(self.log_losses, members, 0),
            rank_products=take(self.rank_products, members, 0, 1),
        )

    @property
    def hit_rates(self) -> Array:
        """[K] mean probability of the hard label: the soft micro-F1 of each member."""
        return self.hits / self.items  # t

    @cached_property
    def matrices(self) -> dict[str, Array]:
        """The matrices M [K, K] of the terms that are quadratic forms vᵀMv, by name of the term.

        ``div``: D, the mean L1 distance between members. ``rps``, for ordered classes: the ranked
        probability score.
        """
        matrices: dict[str, Array] = {}
        if self.distances is not None:
            matrices["div"] = self.distances / self.items
        if self.rank_products is not None:
            matrices["rps"] = self.rank_products / self.items
        return matrices

    def member_ce(self, class_weights: Array | None = None) -> Array:
        """[K] cross-entropy of each member alone, with class weights [C] if they are given."""
        losses = self.log_losses  # A
        if class_weights is not None:
            losses = losses * class_weights
        return namespace(losses).sum(losses, axis=1) / self.items  # a

    @property
    def classes_without_hard_label(self) -> list[int]:
        """Positions of the classes that annotators chose but that no item has as its hard label."""
        is_missing = (self.class_counts == 0) & (self.soft_counts > 0)
        return [c for c in range(self.classes) if bool(is_missing[c])]

    def class_weights(self, names: Sequence[str] | None = None) -> Array:
        """[C] inverse-frequency weights N / (C·N_c).

        A class that is never a hard label is an error if annotators chose it. Otherwise it has no
        effect on the loss, and its weight is 0.
        """
        xp = namespace(self.class_counts)
        if self.classes_without_hard_label:
            if names is None:
                listed = ", ".join(str(c) for c in self.classes_without_hard_label)
            else:
                listed = ", ".join(repr(names[c]) for c in self.classes_without_hard_label)
            raise InputError(
                "class weights need every class as a hard label, but no item of the fit data "
                f"has class {listed} though annotators chose it",
                f"turn class weights off with {option('class_weights', False)}, or fit on more"
                " items",
                code="missing-class",
            )
        empty = self.class_counts == 0
        counts = xp.where(empty, xp.ones_like(self.class_counts), self.class_counts)
        weights = self.items / (self.classes * counts)  # α
        return xp.where(empty, xp.zeros_like(weights), weights)


def _transposed(matrix: Array) -> Array:
    """The transpose of a matrix in float64, contiguous if it is a numpy array."""
    matrix = namespace(matrix).permute_dims(matrix, (1, 0))
    if is_numpy_array(matrix):
        return np.ascontiguousarray(matrix, np.float64)
    return double(matrix)


def _l1_distances(rows: Array) -> Array:
    """[K, K] L1 distances between the rows of a matrix [K, n]."""
    if not is_numpy_array(rows):
        import torch

        return torch.cdist(rows, rows, p=1)
    from scipy.spatial.distance import pdist, squareform

    return squareform(pdist(rows, "cityblock"))


def rank_members(summaries: Summaries) -> NDArray[np.int64]:
    """[K] member positions by ascending cross-entropy of each member alone; ties keep their order.

    Class weights are not applied, so that the ranks do not depend on the objective.
    """
    losses = np.asarray([float(loss) for loss in summaries.member_ce()])
    return np.argsort(losses, kind="stable")


@dataclass(frozen=True, eq=False)
class Problem:
    """The predictions of K members for N items of C classes, in float64, arranged for pooling.

    Without items it serves all terms that are not pool terms.
    """

    summaries: Summaries
    """Sums over these items, or over more, such as those of all shards."""
    rows: Array
    """[K, N·C] the numbers that a pool averages: probabilities, or logarithms for a log pool."""
    soft_labels: Array
    """[N, C] q."""
    class_weights: Array = None
    """[C] α, weights of the classes in the cross-entropy; None if all are 1."""
    pool: Pool = Pool.LINEAR
    steps: Array = None
    """[C − 1] distances between neighbouring classes; None without an order."""

    @classmethod
    def from_arrays(
        cls,
        P: Array,
        q: Array,
        y: Array,
        *,
        class_weights: bool = False,
        pool: Pool | str = Pool.LINEAR,
        summaries: Summaries | None = None,
        steps: Array | None = None,
    ) -> Problem:
        """The problem of P [N, K, C], soft labels q [N, C] and hard label codes y [N]."""
        if summaries is None:
            summaries = Summaries.from_arrays(P, q, y, steps=steps)
        kind = Pool(pool)
        rows = member_rows(P)
        if kind is Pool.LOG:
            rows = log_probabilities(rows)
        alpha = None
        if class_weights:
            alpha = summaries.class_weights()
        if steps is not None:
            steps = like(steps, summaries.hits)
        return cls(summaries, rows, double(q), alpha, kind, steps)

    @cached_property
    def member_ce(self) -> Array:
        """[K] a: the cross-entropy of each member alone, with class weights if there are any."""
        return self.summaries.member_ce(self.class_weights)

    @cached_property
    def targets(self) -> Array:
        """[N, C] soft labels q, times the class weights α if there are any."""
        alpha = self.class_weights
        if alpha is None:
            return self.soft_labels
        return self.soft_labels * alpha

    @property
    def members(self) -> int:
        """K, the number of members."""
        return int(self.rows.shape[0])

    @property
    def items(self) -> int:
        """N, the number of items."""
        return int(self.soft_labels.shape[0])

    @cached_property
    def item_losses(self) -> Array:
        """[N, K] cross-entropy of each member on each item."""
        xp = namespace(self.rows)
        rows = xp.reshape(self.rows, (self.members, *self.targets.shape))
        logs = rows
        if self.pool is not Pool.LOG:
            logs = log_probabilities(rows)
        return -xp.sum(xp.permute_dims(logs, (1, 0, 2)) * self.targets[:, None, :], axis=2)

    def check_scale(self, settings: ObjectiveSettings) -> None:
        """Refuse terms of ordered classes unless the classes are ordered."""
        if settings.needs_order and self.steps is None:
            raise InputError(
                f"{' and '.join(map(option, SCALE_TERMS))} need ordered classes, but these are not",
                "declare an ordinal scale, or leave these terms out",
                code="unordered-scale",
            )

    def take(self, items: Array) -> Problem:
        """The problem with only the items at these positions in the pool terms.

        The other terms are still those of all items, so a mini-batch adds no noise to them.
        """
        xp = namespace(self.rows)
        rows = xp.reshape(self.rows, (self.members, *self.soft_labels.shape))
        return replace(
            self,
            rows=xp.reshape(take(rows, items, 1), (self.members, -1)),
            soft_labels=take(self.soft_labels, items, 0),
        )

    @cached_property
    def coordinates(self) -> dict[type, tuple[Array, Array]]:
        """A cache of the rows and targets of pool terms, by class of the term."""
        return {}

    def select(self, members: Array) -> Problem:
        """The problem with the members at these positions, in this order."""
        return replace(
            self, summaries=self.summaries.select(members), rows=take(self.rows, members, 0)
        )
