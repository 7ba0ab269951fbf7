"""The search space: ranges and choices by name, everything else fixed."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from edokit._errors import InputError, examples, one_of, option
from edokit.objective.settings import (
    CE,
    FLAT_NAMES,
    SCALE_TERMS,
    THOROUGH,
    Diversity,
    Gumbel,
    GumbelSettings,
    Pool,
    Regularize,
    Settings,
)
from edokit.scales import Scale

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

SOLVERS = ("gumbel", "exact")
OBJECTIVE = {**{flat: name for name, flat in FLAT_NAMES.items()}, "pool": "pool"}
"""Parameters of the space that are the objective's, and its fields."""
STEERING = tuple(field.name for field in fields(GumbelSettings) if field.name != "order")
SPACES = ("thorough", "paper", "ordinal")
_LOG = ("lambda_reg", "learning_rate")  # parameters whose ranges are on a log scale
WHOLE_NUMBERS = ("epochs", "batch_size", "min_members", "max_members")
_MODES = {"ce": CE, "diversity": Diversity, "pool": Pool, "regularize": Regularize}
WITHOUT_RANGE = (*_MODES, "class_weights")


@dataclass(frozen=True)
class Range:
    """All numbers from low to high; with ``log``, orders of magnitude are equally likely."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Choice:
    """One of several values; a list stands for it."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Configuration:
    """One point of the space: an objective, and how gumbel searches it."""

    settings: Settings
    options: GumbelSettings

    def parameters(self, solver: str) -> dict[str, Any]:
        """What `EDOEnsemble` calls these choices; for the exact solver without gumbel's, and
        without terms of ordered classes that are 0."""
        steering = STEERING if solver == "gumbel" else ("max_members",)
        values = {name: getattr(self.settings, field) for name, field in OBJECTIVE.items()}
        values = {name: v for name, v in values.items() if v or name not in SCALE_TERMS}
        settings = {name: str(v) if name in _MODES else v for name, v in values.items()}
        return {**settings, **{name: getattr(self.options, name) for name in steering}}


@dataclass(frozen=True)
class SearchSpace:
    """The settings that a search varies; `SearchSpace.paper` is the paper's space.

    Each parameter is a `Range`, a list of choices, or one fixed value. A pair ``(low, high)``
    stands for a range on the scale that the parameter has. ``None``, for the parameters that have
    it as their default, takes what comes close to the optimum on the items there are.

    Parameters
    ----------
    lambda_f1, lambda_ce, lambda_div : default=Range(0, 1)
        Weights of the F1 term, the cross-entropy and the diversity term.
    diversity : default=["preserve", "suppress"]
        Sign of the diversity term (s).
    lambda_reg : default=Range(1e-5, 1e-2, log=True)
        Weight of the squared norm.
    ce : default=["mean", "all", "random"]
        What the cross-entropy is taken of.
    class_weights : default=True
        Weigh rare classes up.
    pool : default="linear"
        The kind of pool: linear or log.
    regularize : default="v"
        Whose norm counts: the effective weights (v) or the raw ones (w).
    lambda_rps, lambda_w1 : default=0
        Weights of the ranked probability score and of the Wasserstein-1 distance, for ordered
        classes and a linear pool.
    learning_rate : default=None
        Step size of Adam (η), for the gumbel solver as all that follows but ``max_members``. None
        is 0.03.
    temperature : default=None
        Temperature of the Gumbel-Softmax in the first epoch (T₀). None is 1.
    temperature_decay : default=None
        How fast it falls (γ). None: it reaches its lower bound in the last epoch.
    min_temperature : default=0.1
        Its lower bound.
    epochs : default=None
        Passes over the data. None: as many as 2,000 steps need, and ten at least.
    batch_size : default=32
        Items per step.
    min_members, max_members : default=1, 10
        Smallest and largest ensemble size (K_min, K_max).

    Raises
    ------
    InputError
        If a value is not allowed, or nothing is left to choose from.

    Examples
    --------
    >>> from edokit import SearchSpace
    >>> space = SearchSpace(lambda_div=0.0, ce=["mean", "all"], lambda_reg=(1e-4, 1e-1))
    >>> space.lambda_reg
    Range(low=0.0001, high=0.1, log=True)
    >>> "lambda_div" in space.searched
    False
    """

    lambda_f1: Any = Range(0.0, 1.0)
    lambda_ce: Any = Range(0.0, 1.0)
    lambda_div: Any = Range(0.0, 1.0)
    diversity: Any = Choice(("preserve", "suppress"))
    lambda_reg: Any = Range(1e-5, 1e-2, log=True)
    ce: Any = Choice(("mean", "all", "random"))
    class_weights: Any = True
    pool: Any = "linear"
    regularize: Any = "v"
    lambda_rps: Any = 0.0
    lambda_w1: Any = 0.0
    learning_rate: Any = None
    temperature: Any = None
    temperature_decay: Any = None
    min_temperature: Any = 0.1
    epochs: Any = None
    batch_size: Any = 32
    min_members: Any = 1
    max_members: Any = 10

    def __post_init__(self) -> None:
        for field in fields(self):
            value = _clean(field.name, getattr(self, field.name), field.name in _LOG)
            object.__setattr__(self, field.name, value)
        terms = [field.name for field in fields(self) if field.name.startswith("lambda_")]
        if all(getattr(self, name) == 0 for name in terms):
            raise InputError(
                f"{', '.join(terms)} are all 0, so that no term counts",
                "leave lambda_ce as it is",
            )
        if self._on_scale and "log" in self._choices("pool"):
            # Refused as the objective does.
            Settings(rps=1.0, pool=Pool.LOG)
        low, high = _ends(self.min_members)[1], _ends(self.max_members)[0]
        if low > high:
            raise InputError(
                f"min_members goes up to {low}, and max_members starts below it, at {high}",
                "fix one of them",
            )

    @classmethod
    def paper(cls, **changes: Any) -> SearchSpace:
        """The paper's space: ten epochs of small steps, whose size and temperature are searched.

        Parameters
        ----------
        **changes
            Other ranges, choices or fixed values, as for `SearchSpace`.

        Examples
        --------
        >>> from edokit import SearchSpace
        >>> SearchSpace.paper(ce="mean").epochs
        10
        """
        steps = {
            "learning_rate": Range(1e-5, 1e-3, log=True),
            "temperature": Range(0.1, 1.0),
            "temperature_decay": Range(0.01, 0.2),
            "epochs": 10,
        }
        return cls(**{**steps, **changes})

    @classmethod
    def named(cls, name: str) -> SearchSpace:
        """The space of this name: ``thorough``, which is the default, ``paper``, or ``ordinal``
        with the terms of ordered classes."""
        if name not in SPACES:
            raise InputError(
                f"there is no search space {name!r}; there are {', '.join(map(repr, SPACES))}",
                f"choose one of these for {option('space')}; a parameter of the space is given"
                " with its values",
            )
        if name == "ordinal":
            return cls(**dict.fromkeys(SCALE_TERMS, Range(0.0, 1.0)))
        return cls.paper() if name == "paper" else cls()

    def with_(self, **changes: Any) -> SearchSpace:
        """The same space with other ranges, choices or fixed values for these parameters."""
        for name, value in changes.items():
            one_of("a parameter of the search space", name, [field.name for field in fields(self)])
            current = getattr(self, name)
            # A pair keeps the scale that the parameter has.
            if _is_pair(value) and isinstance(current, Range):
                changes[name] = Range(value[0], value[1], current.log)
        return replace(self, **changes)

    def for_solver(self, solver: str) -> SearchSpace:
        """What is left to search for this solver: exact has no steps to steer, and takes
        ``ce="random"`` in expectation, which is ``"all"``."""
        one_of("solver", solver, SOLVERS)
        if solver == "gumbel":
            return self
        fixed = {
            name: getattr(GumbelSettings(), name) for name in STEERING if name != "max_members"
        }
        kinds = self._choices("ce")
        expected = dict.fromkeys("all" if kind == "random" else kind for kind in kinds)
        return replace(self, **fixed, ce=list(expected), regularize="v")

    def _choices(self, name: str) -> tuple[Any, ...]:
        value = getattr(self, name)
        return value.values if isinstance(value, Choice) else (value,)

    @property
    def _on_scale(self) -> bool:
        """Whether terms of ordered classes are searched, or fixed above 0."""
        return any(getattr(self, name) != 0 for name in SCALE_TERMS)

    def check_scale(self, scale: Scale) -> None:
        """Refuse terms of ordered classes where classes have no order."""
        if self._on_scale and scale.steps is None:
            raise InputError(
                "the space has lambda_rps or lambda_w1, which need ordered classes, but these have"
                " no order",
                f"declare an ordinal {option('scale')}, or leave these terms out",
            )

    @property
    def searched(self) -> tuple[str, ...]:
        """The parameters that vary."""
        return tuple(name for name, v in vars(self).items() if isinstance(v, Range | Choice))

    def distributions(self) -> dict[str, BaseDistribution]:
        """The parameters that vary, in Optuna's words."""
        from optuna import distributions as kinds

        distributions: dict[str, BaseDistribution] = {}
        for name in self.searched:
            value = getattr(self, name)
            if isinstance(value, Choice):
                distributions[name] = kinds.CategoricalDistribution(value.values)
            elif name in WHOLE_NUMBERS:
                distributions[name] = kinds.IntDistribution(
                    int(value.low), int(value.high), log=value.log
                )
            else:
                distributions[name] = kinds.FloatDistribution(value.low, value.high, log=value.log)
        return distributions

    def configuration(self, chosen: dict[str, Any], items: int) -> Configuration:
        """The configuration with these values where the space varies, to learn from ``items``."""
        values = {**vars(self), **{name: chosen[name] for name in self.searched}}
        return Configuration(
            Settings(
                **{field: values[name] for name, field in OBJECTIVE.items() if name in values}
            ),
            Gumbel(**{name: values[name] for name in STEERING}).resolve(items),
        )

    @property
    def takes_paper_steps(self) -> bool:
        """Whether epochs, step size and temperature are those of the paper."""
        paper = SearchSpace.paper()
        return all(getattr(self, step) == getattr(paper, step) for step in THOROUGH)

    def to_dict(self) -> dict[str, Any]:
        """The space in plain values, ready for JSON."""
        content = asdict(self)
        if not self._on_scale:  # as before there were such terms
            for name in SCALE_TERMS:
                del content[name]
        for name, value in vars(self).items():
            if isinstance(value, Choice):
                content[name] = list(value.values)
        return content


def _clean(name: str, value: Any, log: bool) -> Any:
    """A range, several choices, or one value; each checked."""
    if value is None and name in THOROUGH:
        return None
    if _is_pair(value):
        value = Range(value[0], value[1], log)
    if isinstance(value, Range):
        _check_range(name, value.low, value.high, value.log)
        return value
    if isinstance(value, Choice):
        value = value.values
    if isinstance(value, list | tuple):
        choices = tuple(dict.fromkeys(_one_value(name, choice) for choice in value))
        if not choices:
            raise InputError(f"the list of choices for {name} is empty", "give at least one")
        return Choice(choices) if len(choices) > 1 else choices[0]
    return _one_value(name, value)


def _check_range(name: str, low: Any, high: Any, log: bool) -> None:
    if name in WITHOUT_RANGE:
        raise InputError(
            f"{name} has choices and no range, such as {low!r} to {high!r}", f"write {name}=[…]"
        )
    if not (_is_number(low) and _is_number(high) and low < high):
        raise InputError(
            f"the range of {name} starts at {low!r} and ends at {high!r}, which is not above it",
            "give a single value to fix it",
        )
    if log and low <= 0:
        raise InputError(
            f"the range of {name} starts at {low!r}, and one on the log scale starts above 0",
            f"start it at a small number, or write Range({low!r}, {high!r}) for a linear scale",
        )
    for end in (low, high):
        _one_value(name, end)


def _one_value(name: str, value: Any) -> Any:
    """The value, if the objective or the solver takes it."""
    if name in _MODES:
        return str(_MODES[name](value))
    if name == "class_weights":
        if not isinstance(value, bool):
            raise InputError(
                f"class_weights is {value!r}, and neither True nor False", "choose one, or both"
            )
        return value
    if not _is_number(value):
        raise InputError(
            f"{name} is {examples([value])}, which is no number", "give a number or a Range"
        )
    if name in OBJECTIVE:
        Settings(**{OBJECTIVE[name]: value})
    else:
        bounds = {"max_members": max(10, int(value))} if name == "min_members" else {}
        GumbelSettings(**{**bounds, name: value})
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_pair(value: Any) -> bool:
    """(low, high)"""
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value))


def _ends(value: Any) -> tuple[float, float]:
    """The smallest and the largest value of a parameter."""
    if isinstance(value, Range):
        return value.low, value.high
    several = value.values if isinstance(value, Choice) else (value,)
    return min(several), max(several)
