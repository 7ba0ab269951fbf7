"""What is optimised and how: the objective with its weights and modes, presets, and the solvers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, ClassVar, Literal, NamedTuple

from edokit._errors import InputError, check_number, one_of, option

LARGEST = 1e9
"""Largest weight of a term: beyond it the other terms are lost in rounding."""


class _Mode(str, Enum):
    """A choice by name; ``Diversity("preserve")`` and ``"preserve"`` are equal."""

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return repr(self.value)

    @classmethod
    def _missing_(cls, value: object) -> None:
        one_of(cls.__name__.lower(), value, [mode.value for mode in cls])


class CE(_Mode):
    """Whose cross-entropy counts."""

    MEAN = "mean"
    """that of the pool"""
    ALL = "all"
    """that of every member, by weight"""
    RANDOM = "random"
    """that of one member per item, drawn by weight"""


class Diversity(_Mode):
    """What to do with disagreement between members."""

    PRESERVE = "preserve"
    SUPPRESS = "suppress"

    @property
    def sign(self) -> float:
        """−1 rewards disagreement, +1 penalises it."""
        return -1.0 if self is Diversity.PRESERVE else 1.0  # s


class Pool(_Mode):
    """How members become one distribution."""

    LINEAR = "linear"
    LOG = "log"


class OptionFields:
    """Mixin of options dataclasses: ``repr`` shows only what differs from the defaults."""

    def __repr__(self) -> str:
        changes = (
            f"{option.name}={getattr(self, option.name)!r}"
            for option in fields(self)  # type: ignore[arg-type]
            if getattr(self, option.name) != option.default
        )
        return f"{type(self).__name__}({', '.join(changes)})"


def _term(default: float | None, meaning: str, name: str = "", ordinal: bool = False) -> Any:
    """A field that holds the weight of a term; ``name`` is its suffix in ``lambda_<name>``."""
    return field(default=default, metadata={"name": name, "meaning": meaning, "ordinal": ordinal})


@dataclass(frozen=True, kw_only=True, repr=False)
class Objective(OptionFields):
    """The objective of a fit: the weights (λ) of its terms, and how each term is computed.

    λ_F1·L_F1 + λ_CE·L_CE + s·λ_Div·L_Div + λ_Reg·L_Reg, on ordinal scales also
    + λ_RPS·L_RPS + λ_W1·L_W1. The command line and ``settings_`` call the weights ``lambda_f1``,
    ``lambda_ce`` and so on. The defaults are those of the preset ``default``, which came closest to
    the truth on the simulator (``benchmarks/defaults.py``).

    Parameters
    ----------
    ce : {"mean", "all", "random"}, default="mean"
        Cross-entropy of the pool, of every member by its weight, or of one member per item,
        sampled by weight.
    ce_weight : float, default=1.0
        Weight of the cross-entropy (λ_CE).
    f1 : float, default=0.3
        Weight of 1 − soft micro-F1 (λ_F1); for a log pool, of the members' weighted mean.
    div : float, default=0.0
        Weight of the mean pairwise disagreement between members (λ_Div).
    reg : float, default=None
        Weight of the squared norm of the weights (λ_Reg), which shrinks them towards uniform
        ones. None: chosen by five-fold cross-validation on the fit data.
    rps : float, default=0.0
        Weight of the ranked probability score (λ_RPS); ordinal scales and linear pools only.
    w1 : float, default=0.0
        Weight of the Wasserstein-1 distance (λ_W1); ordinal scales and linear pools only.
    diversity : {"preserve", "suppress"}, default="preserve"
        Reward or penalise disagreement between members; without effect if ``div`` is 0.
    class_weights : bool, default=False
        Weigh the classes in the cross-entropy by inverse frequency.

    Examples
    --------
    >>> from edokit import EDOEnsemble, Objective
    >>> EDOEnsemble(objective=Objective(div=0.1, diversity="suppress"))
    EDOEnsemble(objective=Objective(div=0.1, diversity='suppress'))
    """

    ce: CE | Literal["mean", "all", "random"] = CE.MEAN
    ce_weight: float = _term(1.0, "the cross-entropy", name="ce")
    f1: float = _term(0.3, "missed hard labels")
    div: float = _term(0.0, "the disagreement between members")
    reg: float | None = _term(None, "the penalty on large weights")
    rps: float = _term(0.0, "the ranked probability score", ordinal=True)
    w1: float = _term(0.0, "the Wasserstein-1 distance", ordinal=True)
    diversity: Diversity | Literal["preserve", "suppress"] = Diversity.PRESERVE
    class_weights: bool = False

    def __post_init__(self) -> None:
        for name, weight in self.weights():
            if name != "reg" or weight is not None:
                suppress = f"to penalise disagreement, choose {option('diversity', 'suppress')}"
                hint = suppress if name == "div" else "0 leaves the term out"
                check_number(TERMS[name].flat_name, weight, 0, LARGEST, hint=hint)
        for kind in (Diversity, CE):
            name = kind.__name__.lower()
            object.__setattr__(self, name, kind(getattr(self, name)))

    def weights(self) -> Iterator[tuple[str, float | None]]:
        """Names of the terms, and their weights (λ)."""
        return ((name, getattr(self, name)) for name in TERMS)

    @property
    def on_scale(self) -> bool:
        """Whether a term needs ordered classes."""
        return any(getattr(self, name) for name, term in TERMS.items() if term.ordinal)


class Term(NamedTuple):
    """A term of the objective."""

    name: str
    """Its name in losses."""
    flat_name: str
    """Name of its weight on the command line, in search spaces and in files."""
    meaning: str
    """What it measures, in words."""
    ordinal: bool
    """Whether it needs ordered classes."""


TERMS: dict[str, Term] = {
    weight.name: Term(
        name := weight.metadata["name"] or weight.name,
        f"lambda_{name}",
        weight.metadata["meaning"],
        weight.metadata["ordinal"],
    )
    for weight in fields(Objective)
    if weight.metadata
}
"""The terms by field of `Objective`."""
FLAT_NAMES: dict[str, str] = {
    part.name: TERMS[part.name].flat_name if part.name in TERMS else part.name
    for part in fields(Objective)
}
"""The fields of `Objective`, and their names on the command line, in search spaces and in files."""
SCALE_TERMS = tuple(term.flat_name for term in TERMS.values() if term.ordinal)
"""Weights of terms that need ordered classes."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Settings(Objective):
    """An objective with everything that the mathematics needs: the pool, and a value of ``reg``.

    Parameters
    ----------
    pool : {"linear", "log"}, default="linear"
        A log pool changes the cross-entropy of ``ce="mean"`` and the predictions, nothing else.

    Examples
    --------
    >>> Settings(div=0.1, diversity="suppress").diversity.sign
    1.0
    """

    reg: float = 0.03
    ce: CE = CE.MEAN
    diversity: Diversity = Diversity.PRESERVE
    pool: Pool = Pool.LINEAR

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "pool", Pool(self.pool))
        if self.on_scale and self.pool is Pool.LOG:
            raise InputError(
                f"{' and '.join(map(option, SCALE_TERMS))} are not convex for a log pool",
                f"choose {option('pool', 'linear')}",
            )

    def signed_weight(self, term: str) -> float:
        """Weight of a term in the loss; negative where the term is rewarded."""
        weight: float = getattr(self, term)
        return self.diversity.sign * weight if term == "div" else weight

    @classmethod
    def of(cls, objective: Objective, pool: Pool | str = Pool.LINEAR) -> Settings:
        """The objective with this pool; a penalty still to be chosen takes the default."""
        values = {part.name: getattr(objective, part.name) for part in fields(Objective)}
        if values["reg"] is None:
            del values["reg"]
        return cls(**values, pool=Pool(pool))


# λ and class weights of the paper's ablations.
_PAPER = Objective(f1=1.0, div=1.0, reg=1e-3, class_weights=True)
PRESETS: dict[str, Objective] = {
    "default": Objective(),
    "paper-fixed": _PAPER,
    # The paper searches over λ and s; these are the values the search starts from.
    "paper": _PAPER,
}


def preset(name: str) -> Objective:
    """The objective of this name: ``default``, ``paper-fixed`` or ``paper``."""
    one_of("preset", name, PRESETS)
    return PRESETS[name]


# --- Solvers --------------------------------------------------------------------------------------

THOROUGH = ("epochs", "learning_rate", "temperature", "temperature_decay")
"""What `Gumbel.resolve` chooses by the number of items, where it is None."""
_STEPS = 2000  # at least, of a thorough search


@dataclass(frozen=True, repr=False)
class Exact(OptionFields):
    """The exact solver: the optimum over the simplex, with a certificate.

    Parameters
    ----------
    max_members : int, default=None
        Largest size; only members with the lowest cross-entropy on the fit data compete. None: all
        do.

    Examples
    --------
    >>> from edokit import EDOEnsemble, Exact
    >>> EDOEnsemble(solver=Exact(max_members=5))
    EDOEnsemble(solver=Exact(max_members=5))
    """

    name: ClassVar[str] = "exact"
    max_members: int | None = None

    def __post_init__(self) -> None:
        if self.max_members is not None:
            check_number("max_members", self.max_members, 1, whole=True)


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
        Largest size (K_max); only members with the lowest cross-entropy on the fit data compete.
        None: all do.

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

    def __post_init__(self) -> None:
        paper = {part.name: part.default for part in fields(GumbelSettings)}
        for part in fields(self):
            value, is_whole = getattr(self, part.name), str(part.type).startswith("int")
            if value is None and part.default is None:
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
