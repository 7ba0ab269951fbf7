"""Solvers of the joint objective, ``exact`` and ``gumbel``, and what both return."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from edokit._errors import counted
from edokit._io.documents import ReadAs
from edokit._types import Floats, Ints

UNLEARNED = 0.1


@dataclass(frozen=True)
class Certificate:
    """How far a solution can be from the best one.

    Attributes
    ----------
    gap : float
        The Frank–Wolfe gap ∇f(v)·v − min_k ∇f(v)_k: no weights are better by more than this, if
        ``convex``.
    convex : bool
        Whether the objective is convex, so that the gap is a bound.
    global_optimum : bool
        Whether the solution is known to be the best there is, to within the gap.
    reason : str
        In words, why.
    among : tuple of str or None
        The members that competed, where ``max_members`` left others out: gap and optimum are those
        of weights of these members. None: all members.
    """

    gap: float
    convex: bool
    global_optimum: bool
    reason: str
    among: tuple[str, ...] | None = None

    def __str__(self) -> str:
        """What is known about how good the weights are, in a sentence."""
        if not self.global_optimum:
            return f"No certificate: {self.reason}."
        if not self.convex:
            return f"Certificate: {self.reason}."
        weights = "weights"
        if self.among is not None:
            weights += f" of the {counted(len(self.among), 'member')} that may have weight"
        gap = max(self.gap, 1e-12)  # a gap below this is rounding
        return f"Certificate: no other {weights} lower the loss by more than {gap:.1e}."


@dataclass(frozen=True, eq=False)
class Solution:
    """Member weights, and what they are worth on the fit data.

    Attributes
    ----------
    weights : array of shape (n_members,)
        On the simplex, in the order of the members.
    size : int
        The number of members that are kept (K*).
    terms : dict of str to float
        ``f1``, ``ce``, ``div`` and ``reg`` before weighting, and the ``total``, at these weights.
    order : array of shape (n_members,)
        Positions of the members, best first; the members that are kept come first.
    ce_gradient : array of shape (n_members,)
        Gradient of the cross-entropy term in the weights; 0 for members that did not compete.
    trajectory : Trajectory or None
        How the fit went, epoch by epoch; None for the exact solver.
    certificate : Certificate or None
        A bound on what is left to gain; None for the gumbel solver.
    """

    weights: Floats
    size: int
    terms: dict[str, float]
    order: Ints
    ce_gradient: Floats
    trajectory: Trajectory | None = None
    certificate: Certificate | None = None


Numbers = list[float | None]  # what is not finite is written as null
Column = Annotated[Floats, ReadAs(Numbers | list[Numbers], partial(np.array, dtype=float))]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """E epochs of one configuration; entry e is the state after epoch e + 1.

    The losses are those of ``weights``, without sampling noise, over all items of the fit data.
    """

    total: Column
    """[E] the joint loss."""
    f1: Column
    """[E] 1 − soft micro-F1."""
    ce: Column
    """[E] cross-entropy, in the chosen variant (``random``: its expectation)."""
    div: Column
    """[E] mean pairwise disagreement, without sign."""
    reg: Column
    """[E] squared norm of the weights."""
    temperature: Column
    """[E] of the Gumbel-Softmax during the epoch."""
    sizes: Column
    """[E, M] learned distribution over the candidate sizes."""
    weights: Column
    """[E, K] effective weights averaged over that distribution, members as they were given."""
    theta: Column
    """[E, R] logits of the weights of the R members that can be kept, best first."""
    pi: Column
    """[E, M] logits of the sizes."""

    def __len__(self) -> int:
        return len(self.total)

    @property
    def unlearned(self) -> bool:
        """Whether weights and size probabilities end where they start, at equal shares, or within
        a tenth of them."""
        ends = [np.asarray(logits[-1], dtype=np.float64) for logits in (self.theta, self.pi)]
        return len(ends[0]) > 1 and all(
            float(np.abs(np.expm1(logits - logits.mean())).max()) <= UNLEARNED for logits in ends
        )
