"""Options of the objective and of the solvers, and their presets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from edokit._errors import InputError, check_number, one_of, option

LARGEST = 1e9
"""Largest weight of a term: beyond it the other terms are lost in rounding."""


class _Mode(str, Enum):  # noqa: UP042 (StrEnum is made of strings alone, and s may be -1)
    """A named choice that equals its name: ``Diversity.PRESERVE == "preserve"``."""

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return repr(self.value)

    @classmethod
    def _missing_(cls, value: object) -> _Mode | None:
        """Refuse a value that is not a choice; `Enum` calls this for values that it lacks."""
        one_of(cls.__name__.lower(), value, [mode.value for mode in cls])
        return None


class CE(_Mode):
    """Which cross-entropy is minimised."""

    MEAN = "mean"
    """That of the pool."""
    ALL = "all"
    """The weighted mean of those of the members."""
    RANDOM = "random"
    """That of one member per item, drawn with the weights as probabilities."""


class Diversity(_Mode):
    """What to do with disagreement between members; the paper's s = −1 and s = +1 are accepted."""

    PRESERVE = "preserve"
    SUPPRESS = "suppress"

    @classmethod
    def _missing_(cls, value: object) -> _Mode | None:
        """Return the mode of the sign −1 or 1."""
        if not isinstance(value, bool):
            for mode in cls:
                if mode.sign == value:
                    return mode
        return super()._missing_(value)

    @property
    def sign(self) -> float:
        """The paper's s: −1 rewards disagreement, +1 penalises it."""
        if self is Diversity.PRESERVE:
            return -1.0
        return 1.0


class Pool(_Mode):
    """How the members' probabilities are combined into one distribution."""

    LINEAR = "linear"
    LOG = "log"


class Shape(_Mode):
    """Whether a term of the objective is convex or concave over the simplex of the weights."""

    LINEAR = "linear"
    CONVEX = "convex"
    CONCAVE = "concave"
    NEITHER = "neither"

    @property
    def is_convex(self) -> bool:
        """Whether the term is convex, as linear terms are."""
        return self in (Shape.LINEAR, Shape.CONVEX)

    def times(self, weight: float) -> Shape:
        """The shape of the term times a weight; a negative one makes a convex term concave."""
        if weight >= 0 or self in (Shape.LINEAR, Shape.NEITHER):
            return self
        if self is Shape.CONVEX:
            return Shape.CONCAVE
        return Shape.CONVEX


class OptionFields:
    """Mixin for dataclasses of options: ``repr`` shows only what differs from the defaults."""

    def __repr__(self) -> str:
        changes = []
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value != field.default:
                changes.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(changes)})"


Auto: TypeAlias = Literal["auto"]
"""A value that the fit chooses."""
AUTO: Auto = "auto"


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
    reg : float or "auto", default="auto"
        Weight of the squared norm of the weights (λ_Reg), which shrinks them towards uniform
        ones. ``"auto"`` (or None): chosen by five-fold cross-validation on the fit data.
    rps : float, default=0.0
        Weight of the ranked probability score (λ_RPS); ordinal scales and linear pools only.
    w1 : float, default=0.0
        Weight of the Wasserstein-1 distance (λ_W1); ordinal scales and linear pools only.
    diversity : {"preserve", "suppress", -1, 1}, default="preserve"
        Reward or penalise disagreement between members; without effect if ``div`` is 0. The paper's
        sign s is accepted: −1 preserves, +1 suppresses.
    class_weights : bool, default=False
        Weigh the classes in the cross-entropy by inverse frequency.

    Examples
    --------
    >>> from edokit import EDOEnsemble, Objective
    >>> EDOEnsemble(objective=Objective(div=0.1, diversity="suppress"))
    EDOEnsemble(objective=Objective(div=0.1, diversity='suppress'))
    """

    ce: CE | Literal["mean", "all", "random"] = CE.MEAN
    ce_weight: float = 1.0
    f1: float = 0.3
    div: float = 0.0
    reg: float | Auto | None = AUTO
    rps: float = 0.0
    w1: float = 0.0
    diversity: Diversity | Literal["preserve", "suppress", -1, 1] = Diversity.PRESERVE
    class_weights: bool = False

    def __post_init__(self) -> None:
        if self.reg is None:
            object.__setattr__(self, "reg", AUTO)
        for name, term in TERMS.items():
            weight = getattr(self, name)
            if name == "reg" and weight == AUTO:
                continue
            hint = "0 leaves the term out"
            if name == "div":
                hint = f"to penalise disagreement, choose {option('diversity', 'suppress')}"
            check_number(term.flat_name, weight, 0, LARGEST, hint=hint)
        object.__setattr__(self, "diversity", Diversity(self.diversity))
        object.__setattr__(self, "ce", CE(self.ce))

    @property
    def needs_order(self) -> bool:
        """Whether a term needs ordered classes."""
        return self.rps != 0 or self.w1 != 0

    def resolve(self, pool: Pool | str = "linear", reg: float = 0.03) -> ObjectiveSettings:
        """Return the settings of the loss, with ``reg`` in place of ``"auto"``.

        Examples
        --------
        >>> Objective(div=0.1, diversity="suppress").resolve().diversity.sign
        1.0
        """
        return ObjectiveSettings(
            ce=CE(self.ce),
            ce_weight=self.ce_weight,
            f1=self.f1,
            div=self.div,
            reg=_value_or(self.reg, reg),
            rps=self.rps,
            w1=self.w1,
            diversity=Diversity(self.diversity),
            class_weights=self.class_weights,
            pool=Pool(pool),
        )


class TermOption(NamedTuple):
    """A term of the objective."""

    name: str
    """Its name in losses."""
    flat_name: str
    """Name of its weight on the command line, in search spaces and in files."""
    meaning: str
    """What it measures, in words."""
    shape: Shape
    """Whether it is convex in the weights, before its sign; the certificate depends on it."""
    ordinal: bool = False
    """Whether it needs ordered classes."""


TERMS: dict[str, TermOption] = {
    "ce_weight": TermOption("ce", "lambda_ce", "the cross-entropy", Shape.CONVEX),
    "f1": TermOption("f1", "lambda_f1", "missed hard labels", Shape.LINEAR),
    "div": TermOption("div", "lambda_div", "the disagreement between members", Shape.CONCAVE),
    "reg": TermOption("reg", "lambda_reg", "the penalty on large weights", Shape.CONVEX),
    "rps": TermOption(
        "rps", "lambda_rps", "the ranked probability score", Shape.CONVEX, ordinal=True
    ),
    "w1": TermOption("w1", "lambda_w1", "the Wasserstein-1 distance", Shape.CONVEX, ordinal=True),
}
"""The terms by field of `Objective`."""
FLAT_NAMES: dict[str, str] = {
    "ce": "ce",
    **{name: term.flat_name for name, term in TERMS.items()},
    "diversity": "diversity",
    "class_weights": "class_weights",
}
"""The fields of `Objective`, and their names on the command line, in search spaces and in files."""
SCALE_TERMS = tuple(term.flat_name for term in TERMS.values() if term.ordinal)
"""Weights of terms that need ordered classes."""


@dataclass(frozen=True, kw_only=True)
class ObjectiveSettings:
    """An objective with a value for every option, and the pool: what losses and solvers take.

    `Objective.resolve` makes it from checked options. It is not checked again.
    """

    ce: CE
    ce_weight: float
    f1: float
    div: float
    reg: float
    rps: float
    w1: float
    diversity: Diversity
    class_weights: bool
    pool: Pool
    """A log pool changes the cross-entropy of ``ce="mean"`` and the predictions, nothing else."""

    @property
    def needs_order(self) -> bool:
        """Whether a term needs ordered classes."""
        return self.rps != 0 or self.w1 != 0

    def signed_weight(self, term: str) -> float:
        """Weight of a term in the loss; negative if the term is rewarded."""
        weight: float = getattr(self, term)
        if term == "div":
            return self.diversity.sign * weight
        return weight


def check_pool(objective: Objective, pool: Pool) -> None:
    """Refuse terms of ordered classes for a log pool."""
    if objective.needs_order and pool is Pool.LOG:
        raise InputError(
            f"{' and '.join(map(option, SCALE_TERMS))} are not convex for a log pool",
            f"choose {option('pool', 'linear')}",
            code="conflicting-options",
        )


_PAPER_OBJECTIVE = Objective(f1=1.0, div=1.0, reg=1e-3, class_weights=True)
"""The weights and class weights of the paper's ablations."""
PRESETS: dict[str, Objective] = {"default": Objective(), "paper-fixed": _PAPER_OBJECTIVE}
"""The objective of each preset."""


def _check_preset(preset: str) -> None:
    """Refuse an unknown preset, and "paper", which is a search."""
    if preset == "paper":
        raise InputError(
            f"{option('preset', 'paper')} is not a fit: the paper searches for the settings of"
            " its objective",
            "run this search with `edo search --space paper` (edokit.search(..., space='paper')),"
            f" or choose {option('preset', 'paper-fixed')}, the settings of its ablations",
            code="unknown-choice",
        )
    one_of("preset", preset, PRESETS)


def preset_objective(preset: str, objective: Objective | None = None) -> Objective:
    """Return the objective if it is given, else that of the preset."""
    _check_preset(preset)
    if objective is None:
        return PRESETS[preset]
    if not isinstance(objective, Objective):
        raise InputError(
            f"{option('objective')} must be an Objective, but got {objective!r}",
            "write EDOEnsemble(objective=Objective(div=0.1)), for example",
            code="unsupported-type",
        )
    return objective


# --- Solvers --------------------------------------------------------------------------------------

_FEWEST_STEPS = 2000
"""Fewest steps of the gumbel solver if the number of epochs is ``"auto"``."""


@dataclass(frozen=True, repr=False)
class Exact(OptionFields):
    """The exact solver: the optimum over the simplex, with a certificate.

    Parameters
    ----------
    max_members : int, default=None
        Largest size: only this many members, those with the lowest cross-entropy on the fit data,
        compete. None: all members do.

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


@dataclass(frozen=True)
class GumbelSteps:
    """Options of the gumbel solver, with a value for each; the defaults are the paper's.

    `Gumbel.resolve` makes it from checked options. It is not checked again.
    """

    epochs: int = 10
    batch_size: int = 32
    learning_rate: float = 1e-3
    temperature: float = 0.5
    temperature_decay: float = 0.05
    min_temperature: float = 0.1
    min_members: int = 1
    max_members: int = 10


PAPER_STEPS = GumbelSteps()
"""The paper's options of the gumbel solver."""


@dataclass(frozen=True, repr=False)
class Gumbel(OptionFields):
    """The gumbel solver: the paper's search over weights and sizes, by Adam.

    With ``"auto"`` (or None) for `epochs`, `learning_rate`, `temperature` and `temperature_decay`
    the weights come close to the optimum: there are at least 2,000 steps (the paper's ten epochs
    are 50 on 141 items), the learning rate is thirty times the paper's, and the temperature falls
    from 1 to 0.1 over all epochs.

    Parameters
    ----------
    epochs : int or "auto", default="auto"
        Passes over the items.
    batch_size : int, default=32
        Items per step; for multi-label data, rows, of which an item has one per label. If there are
        fewer items, all of them.
    learning_rate : float or "auto", default="auto"
        Step size of Adam (η).
    temperature : float or "auto", default="auto"
        Temperature of the Gumbel-Softmax in the first epoch (T₀).
    temperature_decay : float or "auto", default="auto"
        The temperature falls at this rate: T₀·exp(−γ·epoch), epochs counted from 0 (γ).
    min_temperature : float, default=0.1
        The temperature does not fall below this.
    min_members : int, default=1
        Smallest size (K_min).
    max_members : int, default=None
        Largest size (K_max): only this many members, those with the lowest cross-entropy on the fit
        data, compete. None: all members do.

    Examples
    --------
    >>> from edokit import EDOEnsemble, Gumbel
    >>> EDOEnsemble("paper-fixed", solver=Gumbel(epochs=20))
    EDOEnsemble(preset='paper-fixed', solver=Gumbel(epochs=20))
    """

    name: ClassVar[str] = "gumbel"
    epochs: int | Auto | None = AUTO
    batch_size: int = 32
    learning_rate: float | Auto | None = AUTO
    temperature: float | Auto | None = AUTO
    temperature_decay: float | Auto | None = AUTO
    min_temperature: float = 0.1
    min_members: int = 1
    max_members: int | None = None

    def __post_init__(self) -> None:
        for name in AUTO_OPTIONS:
            if getattr(self, name) is None:
                object.__setattr__(self, name, AUTO)
        for name in _WHOLE_NUMBERS:
            if name != "max_members" or self.max_members is not None:
                self._check(name, 1, whole=True)
        for name in ("learning_rate", "temperature", "min_temperature"):
            self._check(name, 0, LARGEST, above=True)
        self._check("temperature_decay", 0, LARGEST)
        if self.max_members is not None and self.min_members > self.max_members:
            raise InputError(
                f"no ensemble size lies between {option('min_members', self.min_members)} and"
                f" {option('max_members', self.max_members)}",
                "leave them out to let every size compete",
                code="invalid-range",
            )

    def _check(
        self,
        name: str,
        least: float,
        most: float = math.inf,
        *,
        above: bool = False,
        whole: bool = False,
    ) -> None:
        """Refuse a value that is neither a number within these bounds nor an allowed "auto"."""
        value = getattr(self, name)
        if value == AUTO and name in AUTO_OPTIONS:
            return
        hint = f"the paper uses {getattr(PAPER_STEPS, name)!r}"
        check_number(name, value, least, most, above=above, whole=whole, hint=hint)

    def resolve(self, items: int, members: int = 10) -> GumbelSteps:
        """Return the options with a value for each, for this many items and members."""
        learning_rate = _value_or(self.learning_rate, 0.03)
        temperature = _value_or(self.temperature, 1.0)
        if self.epochs is None or isinstance(self.epochs, str):
            steps_per_epoch = math.ceil(items / min(self.batch_size, items))
            epochs = max(10, math.ceil(_FEWEST_STEPS / steps_per_epoch))
        else:
            epochs = self.epochs
        # With this decay, the last epoch is the first one at the lowest temperature.
        ratio = max(1.0, temperature / self.min_temperature)
        decay = math.log(ratio) / max(1, epochs - 1)
        max_members = self.max_members
        if max_members is None:
            max_members = members
        return GumbelSteps(
            epochs=epochs,
            batch_size=self.batch_size,
            learning_rate=learning_rate,
            temperature=temperature,
            temperature_decay=_value_or(self.temperature_decay, decay),
            min_temperature=self.min_temperature,
            min_members=self.min_members,
            max_members=max_members,
        )


def _value_or(value: float | Auto | None, auto_value: float) -> float:
    """Return the value, or ``auto_value`` in place of ``"auto"`` or None."""
    if value is None or isinstance(value, str):
        return auto_value
    return value


AUTO_OPTIONS = ("epochs", "learning_rate", "temperature", "temperature_decay")
"""Options of `Gumbel` that may be ``"auto"``; `Gumbel.resolve` chooses their values."""
_WHOLE_NUMBERS = ("epochs", "batch_size", "min_members", "max_members")
"""Options of `Gumbel` that are whole numbers."""
SOLVERS: Mapping[str, type[Exact | Gumbel]] = {"exact": Exact, "gumbel": Gumbel}
"""The solvers by name."""
DEFAULT_SOLVERS: Mapping[str, Exact | Gumbel] = {"exact": Exact(), "gumbel": Gumbel()}
"""The solver of each name under the preset ``default``."""
PAPER_SOLVERS: Mapping[str, Exact | Gumbel] = {
    "exact": Exact(PAPER_STEPS.max_members),
    "gumbel": Gumbel(**asdict(PAPER_STEPS)),
}
"""The solver of each name under the preset ``paper-fixed``."""


def preset_solver(preset: str, solver: Exact | Gumbel | str | None = None) -> Exact | Gumbel:
    """Return the solver if it is one, the preset's solver of this name, or the preset's default."""
    _check_preset(preset)
    if isinstance(solver, Exact | Gumbel):
        return solver
    if preset == "default":
        name = solver or "exact"
        one_of("solver", name, SOLVERS)
        return DEFAULT_SOLVERS[name]
    name = solver or "gumbel"
    one_of("solver", name, SOLVERS)
    return PAPER_SOLVERS[name]
