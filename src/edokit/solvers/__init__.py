"""Solvers of the joint objective, ``exact`` and ``gumbel``, and what both return."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from edokit._errors import counted
from edokit._io.documents import ReadAs
from edokit._types import Floats, Ints

# Shares this close to equal ones, relatively, were not learned.
UNLEARNED = 0.1


@dataclass(frozen=True)
class Certificate:
    """How far a solution can be from the best one.

    Attributes
    ----------
    gap : float
        The Frank–Wolfe gap ∇f(v)·v − min_k ∇f(v)_k, plus what smoothed kinks can hide: if
        ``convex``, no weights are better by more than this. 0 where the objective is concave.
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
        competing = ""
        if self.among is not None:
            competing = f" of the {counted(len(self.among), 'competing member')}"
        gap = max(self.gap, 1e-12)  # a gap below this is rounding
        return f"Certificate: no other weights{competing} lower the loss by more than {gap:.1e}."


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
        The terms of the loss at these weights: ``f1``, ``ce`` and ``reg``; ``div``, ``rps`` and
        ``w1`` where they were computed; and their weighted sum, ``total``.
    order : array of shape (n_members,)
        Positions of the members, those that are kept first. The exact solver sorts the competing
        members by weight, the gumbel solver all members by cross-entropy.
    ce_gradient : array of shape (n_members,)
        Gradient of the cross-entropy term in the weights. 0 for members that did not compete,
        except where the gumbel solver learned from a sample and its weights were evaluated on all
        items: that gradient covers all members.
    trajectory : Trajectory or None
        How the fit went, epoch by epoch; None for the exact solver, and where the gumbel solver was
        not asked for it.
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
"""An array with an entry per epoch, a number or a row of numbers; in a file, a list."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """E epochs of one configuration; entry e is the state after epoch e + 1.

    The losses are those of ``weights``, without sampling noise, over all items (terms over items:
    over the sample, where data are larger than memory).
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
    """[E, n] logits of the weights of the n competing members, best first."""
    pi: Column
    """[E, M] logits of the sizes."""

    def __len__(self) -> int:
        return len(self.total)

    @property
    def unlearned(self) -> bool:
        """Whether weights and size probabilities end near the equal shares they start from.

        Near means: within the fraction `UNLEARNED` of them. False for a single member, which has
        nothing to learn.
        """
        if self.theta.shape[-1] <= 1:
            return False
        furthest = []
        for logits in (self.theta, self.pi):
            final = np.asarray(logits[-1], dtype=np.float64)
            # exp(logit − mean) is a share relative to the geometric mean of the shares. A file may
            # hold any logits: those of which a share overflows are far from equal.
            with np.errstate(over="ignore", invalid="ignore"):
                deviations = np.expm1(final - final.mean())
            furthest.append(float(np.abs(deviations).max()))
        return all(deviation <= UNLEARNED for deviation in furthest)
