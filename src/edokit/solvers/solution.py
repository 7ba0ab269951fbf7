"""How the Gumbel solver searches, and what every solver returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from edokit._errors import InputError, check_number
from edokit._types import Floats, Ints
from edokit.objective.settings import LARGEST

THOROUGH = ("epochs", "learning_rate", "temperature", "temperature_decay")
"""What `GumbelSettings.thorough` settles by the number of items, where it is None."""

UNLEARNED = 0.1


@dataclass(frozen=True)
class GumbelSettings:
    """How to search; the defaults are the paper's."""

    epochs: int = 10
    """Passes over the items."""
    batch_size: int = 32
    """Items per step (of sets, rows: an item has one per label); at most all of them."""
    learning_rate: float = 1e-3
    """Step size of Adam (η)."""
    temperature: float = 0.5
    """Of the Gumbel-Softmax in the first epoch (T₀)."""
    temperature_decay: float = 0.05
    """The temperature falls at this rate: T₀·exp(−γ·epoch), epochs counted from 0 (γ)."""
    min_temperature: float = 0.1
    """It falls no further than this."""
    min_members: int = 1
    """Smallest size (K_min)."""
    max_members: int = 10
    """Largest size (K_max); members ranked below it get no weight. At most all members."""

    @classmethod
    def thorough(cls, items: int, **given: Any) -> GumbelSettings:
        """Settings that come close to the optimum on so many items; what is given is kept.

        At least 2,000 steps (the paper's ten epochs are 50 on 141 items), a learning rate thirty
        times the paper's, and a temperature that cools from 1 to 0.1 over all of them.
        """
        usual = {field.name: field.default for field in fields(cls)}
        chosen: dict[str, Any] = {
            **usual,
            **dict.fromkeys(THOROUGH),
            "learning_rate": 0.03,
            "temperature": 1.0,
        }
        chosen.update({name: value for name, value in given.items() if value is not None})
        if chosen["epochs"] is None:
            steps = math.ceil(items / min(chosen["batch_size"], items))
            chosen["epochs"] = max(10, math.ceil(2000 / steps))
        if chosen["temperature_decay"] is None:
            fall = max(1.0, chosen["temperature"] / chosen["min_temperature"])
            chosen["temperature_decay"] = math.log(fall) / max(1, chosen["epochs"] - 1)
        return cls(**chosen)

    def __post_init__(self) -> None:
        for field in fields(self):
            whole, may_be_zero = field.type == "int", field.name == "temperature_decay"
            check_number(
                field.name,
                getattr(self, field.name),
                1 if whole else 0,
                math.inf if whole else LARGEST,
                above=not whole and not may_be_zero,
                whole=whole,
                hint=f"the paper uses {field.default!r}",
            )
        if self.min_members > self.max_members:
            raise InputError(
                "min_members <= max_members must hold, but got "
                f"min_members={self.min_members}, max_members={self.max_members}",
                "make them equal to fix the size",
            )


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

    @property
    def unlearned(self) -> bool:
        """Whether weights and size probabilities end where they start, at equal shares, or within
        a tenth of them."""
        ends = [np.asarray(logits[-1], dtype=np.float64) for logits in (self.theta, self.pi)]
        return len(ends[0]) > 1 and all(
            float(np.abs(np.expm1(logits - logits.mean())).max()) <= UNLEARNED for logits in ends
        )
