"""What the objective needs to know of the items, as sums that add over shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from array_api_compat import is_numpy_array
from numpy.typing import NDArray

from edokit._errors import InputError, one_of
from edokit.objective.arrays import Array, device_of, double, namespace
from edokit.objective.kernels import block_sums, tensor_sums


@dataclass(frozen=True, eq=False)
class Summaries:
    """Sums over items, in float64. ``a + b`` are the summaries of both shards together."""

    items: int
    """N, the number of items."""
    class_counts: Array
    """[C] N_c, the items per hard label."""
    soft_counts: Array
    """[C] Σ_i q_ic, the soft-label mass per class."""
    hits: Array
    """[K] Σ_i P[i, k, y_i], the probability given to the hard labels."""
    distances: Array
    """[K, K] Σ_i ‖P[i, k] − P[i, l]‖₁; None if they were left out."""
    log_losses: Array
    """[K, C] −Σ_i q_ic ln(P[i, k, c] + ε); None if they were left out."""

    @classmethod
    def from_arrays(
        cls,
        P: Array,
        q: Array,
        y: Array,
        *,
        distances: bool = True,
        log_losses: bool = True,
        threads: int | None = None,
    ) -> Summaries:
        """Summaries of predictions P [N, K, C], soft labels q [N, C], hard label codes y [N].

        One pass. Rows of P must sum to one. numpy arrays use ``threads`` threads (all cores
        by default); the sums are the same for any number. float32 stays float32 inside a block
        of items, blocks are added up in float64. Torch tensors work too, and keep gradients.
        ``distances`` and ``log_losses`` can be left out (numpy only; they are None then).
        """
        check_arrays(P, q, y)
        if not is_numpy_array(P):
            counts, soft_counts, hits, apart, losses = tensor_sums(P, q, y)
        else:
            P = P if P.dtype in (np.float32, np.float64) else P.astype(np.float64)
            if distances:
                counts, hits, apart, soft_counts, losses = block_sums(P, q, y, threads)
            else:
                counts, hits = _label_sums(P, y)
                soft_counts, losses, apart = q.sum(axis=0, dtype=np.float64), None, None
                if log_losses:
                    losses = block_sums(P, q, None, threads)[4]
                elif len(P) and not (P.min() >= 0 and P.max() < np.inf and q.min() >= 0):
                    raise not_finite()
        sums = cls(P.shape[0], counts, soft_counts, hits, apart, losses)
        sums._check()
        return sums

    @property
    def members(self) -> int:
        """K, the number of members."""
        return int(self.hits.shape[0])

    @property
    def classes(self) -> int:
        """C, the number of classes."""
        return int(self.class_counts.shape[0])

    def __add__(self, other: Summaries) -> Summaries:
        if not isinstance(other, Summaries):
            return NotImplemented
        if (self.members, self.classes) != (other.members, other.classes):
            raise InputError(
                "shards must share members and classes, but one has "
                f"{self.members} members and {self.classes} classes, the other "
                f"{other.members} and {other.classes}",
                "summarise the same members, in the same order, on every shard",
            )
        return Summaries(
            *(getattr(self, field.name) + getattr(other, field.name) for field in fields(self))
        )

    def __radd__(self, other: object) -> Summaries:
        # sum(shards) starts at 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def select(self, members: Sequence[int] | NDArray[Any]) -> Summaries:
        """Summaries of these members (positions), in this order."""
        xp = namespace(self.hits)
        index = xp.asarray(np.asarray(members, dtype=np.int64), device=device_of(self.hits))
        return Summaries(
            self.items,
            self.class_counts,
            self.soft_counts,
            xp.take(self.hits, index, axis=0),
            None
            if self.distances is None
            else xp.take(xp.take(self.distances, index, axis=0), index, axis=1),
            None if self.log_losses is None else xp.take(self.log_losses, index, axis=0),
        )

    @property
    def hit_rates(self) -> Array:
        """[K] mean probability on the hard label; a pool's soft micro-F1 is their weighted mean."""
        return self.hits / self._count()  # t

    @property
    def mean_distances(self) -> Array:
        """[K, K] mean L1 distance between members; zero on the diagonal."""
        return self.distances / self._count()  # D

    def member_ce(self, class_weights: bool = False) -> Array:
        """[K] cross-entropy of each member alone, against the soft labels."""
        xp = namespace(self.log_losses)
        losses = self.log_losses  # A
        if class_weights:
            losses = losses * self.class_weights()
        return xp.sum(losses, axis=1) / self._count()  # a

    def class_weights(self, names: Sequence[str] | None = None) -> Array:
        """[C] inverse-frequency weights N / (C·N_c).

        A class that is nobody's hard label has no such weight. That is an error if it has
        soft-label mass; without any it cannot enter the loss, and its weight is 0.
        """
        xp = namespace(self.class_counts)
        empty = self.class_counts == 0
        lost = empty & (self.soft_counts > 0)
        if bool(xp.any(lost)):
            where = [c for c in range(self.classes) if bool(lost[c])]
            named = ", ".join(repr(names[c]) if names else str(c) for c in where)
            raise InputError(
                "class weights need every class as a hard label, but no item of the fit data "
                f"has class {named} though annotators chose it",
                "turn class weights off with class_weights=False, or fit on more items",
                parameters=("class_weights",),
            )
        counts = xp.where(empty, xp.ones_like(self.class_counts), self.class_counts)
        weights = self._count() / (self.classes * counts)  # α
        return xp.where(empty, xp.zeros_like(weights), weights)

    def _count(self) -> int:
        if self.items == 0:
            raise InputError("a mean needs items, but these summaries have none", "add a shard")
        return self.items

    def _check(self) -> None:
        xp = namespace(self.hits)
        counted = int(xp.sum(self.class_counts))
        if counted != self.items:
            raise not_codes(self.items - counted, self.items, self.classes)
        parts = (self.hits, self.soft_counts, self.distances, self.log_losses)
        if not all(part is None or bool(xp.all(xp.isfinite(part))) for part in parts):
            raise not_finite()


def _label_sums(P: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Class counts [C] and hits [K]."""
    classes = P.shape[2]
    inside = (y >= 0) & (y < classes)
    if not inside.all():
        raise not_codes(int((~inside).sum()), len(y), classes)
    counts = np.bincount(y, minlength=classes).astype(np.float64)
    return counts, P[np.arange(len(y)), :, y].sum(axis=0, dtype=np.float64)


def rank_members(summaries: Summaries, order: str = "ce") -> NDArray[np.int64]:
    """[K] member positions, best first.

    ``"ce"``: ascending cross-entropy of each member alone, without class weights, so that the
    ranks do not depend on the objective's settings; ties keep their order. ``"given"``: as given.
    """
    one_of("order", order, ("ce", "given"))
    if order == "given":
        return np.arange(summaries.members)
    losses = np.asarray([float(loss) for loss in summaries.member_ce()])
    return np.argsort(losses, kind="stable")


def check_arrays(P: Array, q: Array, y: Array) -> None:
    """Refuse shapes that do not belong together, and predictions that are no probabilities."""
    if P.ndim != 3 or P.shape[1] == 0:
        raise InputError(
            f"predictions must have shape [items, members, classes], but got {tuple(P.shape)}",
            "stack one [items, classes] table per member along the second axis",
        )
    items, _, classes = P.shape
    if tuple(q.shape) != (items, classes) or tuple(y.shape) != (items,):
        raise InputError(
            f"{items} items of {classes} classes need soft labels of shape ({items}, {classes}) "
            f"and {items} hard labels, but got {tuple(q.shape)} and {tuple(y.shape)}",
            "give labels for the items of the predictions, in their order",
        )
    # A few rows tell logits or percentages from probabilities; Predictions checks every row.
    xp = namespace(P)
    totals = xp.sum(double(P[:64, ...]), axis=-1)
    if bool(xp.any(xp.abs(totals - 1.0) > 1e-3)):
        raise InputError(
            "the probabilities of an item must sum to one for every member, but got sums from "
            f"{float(xp.min(totals)):.4g} to {float(xp.max(totals)):.4g}",
            "normalise each member's row over the classes (softmax, for logits)",
        )


def not_codes(wrong: int, items: int, classes: int) -> InputError:
    """So many hard labels are no class."""
    return InputError(
        f"hard label codes must lie between 0 and {classes - 1}, but {wrong} of {items} do not",
        "number the classes from 0 in the order of the last axis of the predictions",
    )


def not_finite() -> InputError:
    """Some probabilities or soft labels are no numbers."""
    return InputError(
        "probabilities and soft labels must be finite and not negative, but some are not",
        "look for NaN, infinite or negative values",
    )
