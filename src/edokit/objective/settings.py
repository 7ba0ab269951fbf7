"""The choices that make up an objective, and the named sets of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import Enum

from edokit._errors import InputError, one_of

SCALE_TERMS = ("lambda_rps", "lambda_w1")
"""Terms that need ordered classes."""
LARGEST = 1e9
"""Largest weight of a term: beyond it the other terms are lost in rounding."""


class _Mode(str, Enum):
    """A choice by name; ``Diversity("preserve")`` and ``"preserve"`` are equal."""

    def __str__(self) -> str:
        return str(self.value)

    @classmethod
    def _missing_(cls, value: object) -> None:
        one_of(cls.__name__.lower(), value, [mode.value for mode in cls])


class CE(_Mode):
    """What the cross-entropy looks at."""

    MEAN = "mean"
    """the pool"""
    ALL = "all"
    """every member, weighted"""
    RANDOM = "random"
    """one member per item, drawn by weight"""


class Diversity(_Mode):
    """What to do with disagreement between members."""

    PRESERVE = "preserve"
    SUPPRESS = "suppress"

    @property
    def sign(self) -> float:
        """−1 rewards disagreement, +1 penalises it."""
        return -1.0 if self is Diversity.PRESERVE else 1.0  # s


class Regularize(_Mode):
    """Which weights the squared norm is taken of."""

    EFFECTIVE = "v"
    """the effective weights, after averaging over sizes; keeps ``preserve`` convex"""
    RAW = "w"
    """the weights before sizes, as the paper writes it; gumbel solver only"""


class Pool(_Mode):
    """How members become one distribution."""

    LINEAR = "linear"
    LOG = "log"


@dataclass(frozen=True)
class Settings:
    """One objective: λ_F1·L_F1 + λ_CE·L_CE + s·λ_Div·L_Div + λ_Reg·L_Reg.

    For ordered classes also + λ_RPS·L_RPS + λ_W1·L_W1.

    The defaults are what came closest to the truth on the simulator (``benchmarks/defaults.py``);
    `EDOEnsemble` chooses ``lambda_reg`` on the data instead.

    Parameters
    ----------
    lambda_f1 : float, default=0.3
        Weight of 1 − soft micro-F1; for a log pool, of the members' weighted mean.
    lambda_ce : float, default=1.0
        Weight of the cross-entropy.
    lambda_div : float, default=0.0
        Weight of the mean pairwise disagreement between members.
    lambda_reg : float, default=0.03
        Weight of the squared norm of the weights.
    diversity : {"preserve", "suppress"}, default="preserve"
        Whether disagreement is rewarded or penalised.
    ce : {"mean", "all", "random"}, default="mean"
        Cross-entropy of the pool, of every member by its weight, or of one member drawn per item.
    class_weights : bool, default=False
        Weigh the cross-entropy of each class by its inverse frequency.
    regularize : {"v", "w"}, default="v"
        Norm of the effective weights, or of the raw ones (gumbel only).
    pool : {"linear", "log"}, default="linear"
        A log pool changes the cross-entropy of ``ce="mean"`` and the predictions, nothing else.
    lambda_rps : float, default=0.0
        Weight of the ranked probability score; ordered classes and a linear pool only.
    lambda_w1 : float, default=0.0
        Weight of the Wasserstein-1 distance; likewise.

    Examples
    --------
    >>> Settings(lambda_div=0.1, diversity="suppress").diversity.sign
    1.0
    """

    lambda_f1: float = 0.3
    lambda_ce: float = 1.0
    lambda_div: float = 0.0
    lambda_reg: float = 0.03
    diversity: Diversity = Diversity.PRESERVE
    ce: CE = CE.MEAN
    class_weights: bool = False
    regularize: Regularize = Regularize.EFFECTIVE
    pool: Pool = Pool.LINEAR
    lambda_rps: float = 0.0
    lambda_w1: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not field.name.startswith("lambda_"):
                continue
            if not (math.isfinite(value) and value >= 0):
                raise InputError(
                    f"{field.name}={value!r} is not a number of at least 0",
                    "turn the diversity term round by diversity='suppress', not by a sign"
                    if field.name == "lambda_div"
                    else "give 0 to leave the term out",
                    parameters=(field.name, "diversity"),
                )
            if value > LARGEST:
                raise InputError(
                    f"{field.name}={value!r} is above {LARGEST:.0e}, where no other term counts",
                    "only the ratios of the terms matter: make the others smaller",
                    parameters=(field.name,),
                )
        for kind in (Diversity, CE, Regularize, Pool):
            name = kind.__name__.lower()
            object.__setattr__(self, name, kind(getattr(self, name)))
        if self.on_scale and self.pool is Pool.LOG:
            raise InputError(
                "lambda_rps and lambda_w1 are terms of a linear pool; of a log pool they are not"
                " convex",
                "choose pool='linear'",
                parameters=("lambda_rps", "lambda_w1", "pool"),
            )

    @property
    def on_scale(self) -> bool:
        """Whether a term needs ordered classes."""
        return bool(self.lambda_rps or self.lambda_w1)


# λ and class weights of the paper's ablations.
_PAPER = Settings(lambda_f1=1.0, lambda_ce=1.0, lambda_div=1.0, lambda_reg=1e-3, class_weights=True)

PRESETS: dict[str, Settings] = {
    "default": Settings(),
    "paper-fixed": _PAPER,
    # The paper searches over λ and s; these are the values the search starts from.
    "paper": _PAPER,
}


def preset(name: str) -> Settings:
    """The settings of this name: ``default``, ``paper-fixed`` or ``paper``."""
    one_of("preset", name, PRESETS)
    return PRESETS[name]
