"""The space of a search: parameters with ranges, choices or fixed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeGuard

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from edokit._errors import InputError, one_of
from edokit.annotations.core import Ties
from edokit.config import FitConfig
from edokit.objective.settings import (
    AUTO,
    AUTO_OPTIONS,
    CE,
    FLAT_NAMES,
    PAPER_STEPS,
    SCALE_TERMS,
    Diversity,
    Exact,
    Gumbel,
    Objective,
    Pool,
    check_pool,
)

Value = float | int | str | bool | None
"""A value of a parameter."""
ParameterSpace = Value | Sequence[Value] | BaseDistribution
"""One fixed value, a range (a pair of numbers), choices, or a distribution of Optuna's."""
SOLVERS = ("gumbel", "exact")
OBJECTIVE_FIELDS = {**{flat: name for name, flat in FLAT_NAMES.items()}, "pool": "pool"}
"""Field of `Objective` for each parameter of the space that belongs to the objective."""
GUMBEL_PARAMETERS = tuple(field.name for field in fields(Gumbel))
"""Parameters of the space that belong to the gumbel solver."""
SPACE_NAMES = ("thorough", "paper", "ordinal")
_LOG_SCALE = ("lambda_reg", "learning_rate")
"""Parameters whose ranges are on a log scale."""
WHOLE_NUMBERS = ("epochs", "batch_size", "min_members", "max_members")
_MODES = {"ce": CE, "diversity": Diversity, "pool": Pool}
"""Parameters whose values are those of an enumeration."""
_WITHOUT_RANGE = (*_MODES, "class_weights")


def trial_settings(config: FitConfig) -> dict[str, Any]:
    """Return the choices of a trial by name on the command line, ready for JSON.

    Terms of ordered classes that are 0 are left out, and gumbel's steps for the exact solver.
    """
    settings: dict[str, Any] = {}
    for field_name, name in FLAT_NAMES.items():
        value = getattr(config.objective, field_name)
        if value or name not in SCALE_TERMS:
            settings[name] = str(value) if name in _MODES else value
    settings["pool"] = str(config.pool)
    for solver_field in fields(config.solver):
        settings[solver_field.name] = getattr(config.solver, solver_field.name)
    return settings


@dataclass(frozen=True)
class SearchSpace:
    """The settings that a search varies; `SearchSpace.paper` is the paper's space.

    Each parameter is a range ``(low, high)``, a list of choices, or one fixed value; a distribution
    of Optuna's will do, too. The ranges of ``lambda_reg`` and ``learning_rate`` are on a log scale.
    ``None``, for the parameters that have it as their default, takes a value that depends on the
    number of items, with which the weights come close to the optimum.

    Parameters
    ----------
    lambda_f1, lambda_ce, lambda_div : default=(0, 1)
        Weights of the F1 term, the cross-entropy and the diversity term.
    diversity : default=["preserve", "suppress"]
        Sign of the diversity term (s).
    lambda_reg : default=(1e-5, 1e-2)
        Weight of the squared norm.
    ce : default=["mean", "all", "random"]
        What the cross-entropy is computed for: the pool, all members, or one drawn at random.
    class_weights : default=True
        Weigh rare classes up.
    pool : default="linear"
        The kind of pool: linear or log.
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
    FloatDistribution(high=0.1, log=True, low=0.0001, step=None)
    >>> "lambda_div" in space.searched
    False
    """

    lambda_f1: ParameterSpace = (0.0, 1.0)
    lambda_ce: ParameterSpace = (0.0, 1.0)
    lambda_div: ParameterSpace = (0.0, 1.0)
    diversity: ParameterSpace = ("preserve", "suppress")
    lambda_reg: ParameterSpace = (1e-5, 1e-2)
    ce: ParameterSpace = ("mean", "all", "random")
    class_weights: ParameterSpace = True
    pool: ParameterSpace = "linear"
    lambda_rps: ParameterSpace = 0.0
    lambda_w1: ParameterSpace = 0.0
    learning_rate: ParameterSpace = None
    temperature: ParameterSpace = None
    temperature_decay: ParameterSpace = None
    min_temperature: ParameterSpace = 0.1
    epochs: ParameterSpace = None
    batch_size: ParameterSpace = 32
    min_members: ParameterSpace = 1
    max_members: ParameterSpace = 10

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, _checked_parameter(name, value))
        terms = [name for name in vars(self) if name.startswith("lambda_")]
        if all(getattr(self, name) == 0 for name in terms):
            raise InputError(
                f"{', '.join(terms)} are all 0, so that no term counts",
                "leave lambda_ce at its default",
                code="no-objective",
            )
        if self._has_scale_terms and "log" in _possible_values(self.pool):
            check_pool(Objective(rps=1.0), Pool.LOG)
        largest_minimum = max(_possible_values(self.min_members))
        smallest_maximum = min(_possible_values(self.max_members))
        if largest_minimum > smallest_maximum:
            raise InputError(
                f"min_members goes up to {largest_minimum}, and max_members starts below it, at"
                f" {smallest_maximum}",
                "fix one of them",
                code="invalid-range",
            )

    @classmethod
    def paper(cls, **changes: ParameterSpace) -> SearchSpace:
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
        steps: dict[str, ParameterSpace] = {
            "learning_rate": (1e-5, 1e-3),
            "temperature": (0.1, 1.0),
            "temperature_decay": (0.01, 0.2),
            "epochs": 10,
        }
        return cls(**{**steps, **changes})

    @classmethod
    def named(cls, name: str) -> SearchSpace:
        """The space of this name: ``thorough``, which is the default, ``paper``, or ``ordinal``
        with the terms of ordered classes."""
        one_of("space", name, SPACE_NAMES)
        if name == "ordinal":
            return cls(**dict.fromkeys(SCALE_TERMS, (0.0, 1.0)))
        if name == "paper":
            return cls.paper()
        return cls()

    def with_(self, **changes: ParameterSpace) -> SearchSpace:
        """The same space with other ranges, choices or fixed values for these parameters."""
        for name in changes:
            one_of("a parameter of the search space", name, vars(self))
        return replace(self, **changes)

    def for_solver(self, solver: str) -> SearchSpace:
        """The space with the parameters fixed that this solver does not have.

        The exact solver takes no steps. It draws no members either: in expectation,
        ``ce="random"`` is ``"all"``.
        """
        one_of("solver", solver, SOLVERS)
        if solver == "gumbel":
            return self
        fixed = {
            name: getattr(PAPER_STEPS, name) for name in GUMBEL_PARAMETERS if name != "max_members"
        }
        expected = ["all" if kind == "random" else kind for kind in _possible_values(self.ce)]
        return replace(self, **fixed, ce=expected)

    @property
    def _has_scale_terms(self) -> bool:
        """Whether terms of ordered classes are searched, or fixed at a value other than 0."""
        return any(getattr(self, name) != 0 for name in SCALE_TERMS)

    @property
    def searched(self) -> tuple[str, ...]:
        """Names of the parameters that vary."""
        return tuple(
            name for name, value in vars(self).items() if isinstance(value, BaseDistribution)
        )

    def distributions(self) -> dict[str, BaseDistribution]:
        """The distribution of each parameter that varies."""
        return {name: getattr(self, name) for name in self.searched}

    def fit_config(
        self,
        chosen: Mapping[str, Value],
        items: int,
        *,
        solver: str = "gumbel",
        groups: bool = False,
        ties: Ties = "first",
        seed: int = 0,
    ) -> FitConfig:
        """Return the configuration with these values where the space varies.

        Steps that are left open are chosen to learn from ``items``.
        """
        values = dict(vars(self))
        for name in self.searched:
            values[name] = chosen[name]
        # A term that the space does not name keeps its default.
        objective = Objective(
            **{name: values[flat] for name, flat in FLAT_NAMES.items() if flat in values}
        )
        steps = Gumbel(**{name: values[name] for name in GUMBEL_PARAMETERS}).resolve(items)
        trial_solver: Exact | Gumbel = Gumbel(**asdict(steps))
        if solver == "exact":
            trial_solver = Exact(steps.max_members)
        return FitConfig(
            objective=objective,
            solver=trial_solver,
            pool=Pool(values["pool"]),
            groups=groups,
            ties=ties,
            seed=seed,
        )

    @property
    def takes_paper_steps(self) -> bool:
        """Whether epochs, step size and temperature are those of the paper."""
        paper = SearchSpace.paper()
        return all(getattr(self, step) == getattr(paper, step) for step in AUTO_OPTIONS)

    def to_dict(self) -> dict[str, Any]:
        """The space in plain values, ready for JSON."""
        content = dict(vars(self))
        for name, value in vars(self).items():
            if name in SCALE_TERMS and not self._has_scale_terms:
                del content[name]
            elif isinstance(value, CategoricalDistribution):
                content[name] = list(value.choices)
            elif isinstance(value, BaseDistribution):
                content[name] = {part: getattr(value, part) for part in ("low", "high", "log")}
        return content


def _checked_parameter(name: str, value: ParameterSpace) -> Value | BaseDistribution:
    """A distribution for a range or choices, or the fixed value; every value is checked."""
    if name in AUTO_OPTIONS and value in (None, AUTO):
        return None
    if _is_pair(value):
        low, high = value
        return _range(name, low, high)
    unchecked = value if isinstance(value, list | tuple) else _possible_values(value)
    choices = [_checked_value(name, choice) for choice in unchecked]
    if isinstance(value, FloatDistribution | IntDistribution):
        return value
    if not choices:
        raise InputError(
            f"the list of choices for {name} is empty", "give at least one", code="empty-option"
        )
    distinct = tuple(dict.fromkeys(choices))
    if len(distinct) == 1:
        return distinct[0]
    return CategoricalDistribution(distinct)


def _range(name: str, low: float, high: float) -> BaseDistribution:
    """The distribution of the numbers from low to high."""
    if name in _WITHOUT_RANGE:
        raise InputError(
            f"{name} has choices and no range, such as {low!r} to {high!r}",
            f"write {name}=[…]",
            code="invalid-range",
        )
    for end in (low, high):
        _checked_value(name, end)
    log = name in _LOG_SCALE
    if not low < high or (log and low <= 0):
        hint = "give its lower end first, or a single value to fix it"
        if log:
            hint = "give its lower end first, which is above 0, or a single value to fix it"
        raise InputError(
            f"the range of {name} starts at {low!r} and ends at {high!r}",
            hint,
            code="invalid-range",
        )
    if name in WHOLE_NUMBERS:
        return IntDistribution(int(low), int(high))
    return FloatDistribution(low, high, log=log)


def _checked_value(name: str, value: Any) -> Value:
    """The value, if the objective or the solver takes it."""
    if name in _MODES:
        return str(_MODES[name](value))
    if name == "class_weights":
        if not isinstance(value, bool):
            raise InputError(
                f"class_weights is {value!r}, but must be True or False",
                "choose one, or both",
                code="invalid-option",
            )
    elif name in OBJECTIVE_FIELDS:
        Objective(**{OBJECTIVE_FIELDS[name]: value})
    else:
        if value in (None, AUTO):
            raise InputError(
                f"a choice of {name} is {value!r}", "give numbers", code="invalid-number"
            )
        Gumbel(**{name: value})
    checked: Value = value
    return checked


def _is_pair(value: object) -> TypeGuard[tuple[float, float]]:
    """Whether a value is a range: a tuple of two numbers."""
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _possible_values(value: object) -> Sequence[Any]:
    """The choices of a parameter, the two ends of its range, or its one value."""
    if isinstance(value, FloatDistribution | IntDistribution):
        return value.low, value.high
    if isinstance(value, CategoricalDistribution):
        return value.choices
    return (value,)
