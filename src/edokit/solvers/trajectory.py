"""How a fit went, epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass

from edokit._types import Floats


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
