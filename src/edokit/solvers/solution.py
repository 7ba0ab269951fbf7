"""What every solver returns: weights, the terms of the objective there, and how it got there."""

from __future__ import annotations

from dataclasses import dataclass

from edokit._types import Floats, Ints


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
    """

    gap: float
    convex: bool
    global_optimum: bool
    reason: str


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


@dataclass(frozen=True, eq=False)
class Trajectory:
    """E epochs of one configuration; entry e is the state after epoch e + 1.

    The losses are those of ``weights``, without sampling noise, over all items of the fit data.
    """

    total: Floats
    """[E] the joint loss."""
    f1: Floats
    """[E] 1 − soft micro-F1."""
    ce: Floats
    """[E] cross-entropy, in the chosen variant (``random``: its expectation)."""
    div: Floats
    """[E] mean pairwise disagreement, without sign."""
    reg: Floats
    """[E] squared norm of the weights."""
    temperature: Floats
    """[E] of the Gumbel-Softmax during the epoch."""
    sizes: Floats
    """[E, M] learned distribution over the candidate sizes."""
    weights: Floats
    """[E, K] effective weights averaged over that distribution, members as they were given."""
    theta: Floats
    """[E, R] logits of the weights of the R members that can be kept, best first."""
    pi: Floats
    """[E, M] logits of the sizes."""

    def __len__(self) -> int:
        return len(self.total)
