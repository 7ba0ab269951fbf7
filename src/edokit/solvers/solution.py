"""The solvers' options, and what every solver returns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np

from edokit._errors import InputError, check_number, counted, one_of, option
from edokit._io.documents import ReadAs
from edokit._types import Floats, Ints
from edokit.objective.settings import LARGEST, OptionFields

ORDERS = ("ce", "given")
"""How members are ranked."""

UNLEARNED = 0.1

THOROUGH = ("epochs", "learning_rate", "temperature", "temperature_decay")
"""What `Gumbel.resolve` chooses by the number of items, where it is None."""
_STEPS = 2000  # at least, of a thorough search


@dataclass(frozen=True, repr=False)
class Exact(OptionFields):
    """The exact solver: the optimum over the simplex, with a certificate.

    Parameters
    ----------
    max_members : int, default=None
        Largest size; lower-ranked members get no weight. None: all members compete.
    order : {"ce", "given"}, default="ce"
        How members are ranked: by their own cross-entropy on the fit data, or as they come.

    Examples
    --------
    >>> from edokit import EDOEnsemble, Exact
    >>> EDOEnsemble(solver=Exact(max_members=5))
    EDOEnsemble(solver=Exact(max_members=5))
    """

    name: ClassVar[str] = "exact"
    max_members: int | None = None
    order: Literal["ce", "given"] = "ce"

    def __post_init__(self) -> None:
        if self.max_members is not None:
            check_number("max_members", self.max_members, 1, whole=True)
        one_of("order", self.order, ORDERS)


@dataclass(frozen=True, repr=False)
class Gumbel(OptionFields):
    """The gumbel solver: the paper's search over weights and sizes, by Adam.

    None in `epochs`, `learning_rate`, `temperature` and `temperature_decay` comes close to the
    optimum: at least 2,000 steps (the paper's ten epochs are 50 on 141 items), a learning rate
    thirty times the paper's, and a temperature that cools from 1 to 0.1 over all of them.

    Parameters
    ----------
    epochs : int, default=None
        Passes over the items.
    batch_size : int, default=32
        Items per step (of sets, rows: an item has one per label); at most all of them.
    learning_rate : float, default=None
        Step size of Adam (η).
    temperature : float, default=None
        Of the Gumbel-Softmax in the first epoch (T₀).
    temperature_decay : float, default=None
        The temperature falls at this rate: T₀·exp(−γ·epoch), epochs counted from 0 (γ).
    min_temperature : float, default=0.1
        It falls no further than this.
    min_members : int, default=1
        Smallest size (K_min).
    max_members : int, default=None
        Largest size (K_max); lower-ranked members get no weight. None: all members compete.
    order : {"ce", "given"}, default="ce"
        How members are ranked: by their own cross-entropy on the fit data, or as they come.

    Examples
    --------
    >>> from edokit import EDOEnsemble, Gumbel
    >>> EDOEnsemble("paper-fixed", solver=Gumbel(epochs=20))
    EDOEnsemble(preset='paper-fixed', solver=Gumbel(epochs=20))
    """

    name: ClassVar[str] = "gumbel"
    epochs: int | None = None
    batch_size: int = 32
    learning_rate: float | None = None
    temperature: float | None = None
    temperature_decay: float | None = None
    min_temperature: float = 0.1
    min_members: int = 1
    max_members: int | None = None
    order: Literal["ce", "given"] = "ce"

    def __post_init__(self) -> None:
        paper = {part.name: part.default for part in fields(GumbelSettings)}
        for part in fields(self):
            value, is_whole = getattr(self, part.name), str(part.type).startswith("int")
            if part.name == "order" or (value is None and part.default is None):
                continue
            check_number(
                part.name,
                value,
                1 if is_whole else 0,
                math.inf if is_whole else LARGEST,
                above=not is_whole and part.name != "temperature_decay",
                whole=is_whole,
                hint=f"the paper uses {paper[part.name]!r}",
            )
        one_of("order", self.order, ORDERS)
        if self.max_members is not None and self.min_members > self.max_members:
            raise InputError(
                f"no ensemble size lies between {option('min_members', self.min_members)} and"
                f" {option('max_members', self.max_members)}",
                "leave them out to let every size compete",
            )

    def resolve(self, items: int, members: int = 10) -> GumbelSettings:
        """The same with a value for every None, to learn from so many items and members."""
        values = {"learning_rate": 0.03, "temperature": 1.0, "max_members": members}
        options = {part.name: getattr(self, part.name) for part in fields(self)}
        values |= {name: value for name, value in options.items() if value is not None}
        if self.epochs is None:
            steps = math.ceil(items / min(self.batch_size, items))
            values["epochs"] = max(10, math.ceil(_STEPS / steps))
        if self.temperature_decay is None:
            fall = max(1.0, values["temperature"] / self.min_temperature)
            values["temperature_decay"] = math.log(fall) / max(1, values["epochs"] - 1)
        return GumbelSettings(**values)  # type: ignore[arg-type]


@dataclass(frozen=True, repr=False)
class GumbelSettings(Gumbel):
    """How to search, with a value for everything; the defaults are the paper's."""

    epochs: int = 10
    learning_rate: float = 1e-3
    temperature: float = 0.5
    temperature_decay: float = 0.05
    max_members: int = 10


SOLVERS: Mapping[str, type[Exact | Gumbel]] = {"exact": Exact, "gumbel": Gumbel}
"""The solvers by name."""


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
