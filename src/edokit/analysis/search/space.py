"""What a search varies (ranges and choices by name, everything else fixed), and its options."""

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
    CE,
    CHOSEN_STEPS,
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
OBJECTIVE = {**{flat: name for name, flat in FLAT_NAMES.items()}, "pool": "pool"}
"""Parameters of the space that are the objective's, and its fields."""
STEERING = tuple(field.name for field in fields(Gumbel))
SPACES = ("thorough", "paper", "ordinal")
_LOG = ("lambda_reg", "learning_rate")  # parameters whose ranges are on a log scale
WHOLE_NUMBERS = ("epochs", "batch_size", "min_members", "max_members")
_MODES = {"ce": CE, "diversity": Diversity, "pool": Pool}
WITHOUT_RANGE = (*_MODES, "class_weights")


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
    ``None``, for the parameters that have it as their default, takes what comes close to the
    optimum on the items there are.

    Parameters
    ----------
    lambda_f1, lambda_ce, lambda_div : default=(0, 1)
        Weights of the F1 term, the cross-entropy and the diversity term.
    diversity : default=["preserve", "suppress"]
        Sign of the diversity term (s).
    lambda_reg : default=(1e-5, 1e-2)
        Weight of the squared norm.
    ce : default=["mean", "all", "random"]
        What the cross-entropy is taken of.
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
            object.__setattr__(self, name, _clean(name, value))
        terms = [name for name in vars(self) if name.startswith("lambda_")]
        if all(getattr(self, name) == 0 for name in terms):
            raise InputError(
                f"{', '.join(terms)} are all 0, so that no term counts",
                "leave lambda_ce at its default",
                code="no-objective",
            )
        if self._on_scale and "log" in _values(self.pool):
            check_pool(Objective(rps=1.0), Pool.LOG)
        largest_minimum = max(_values(self.min_members))
        smallest_maximum = min(_values(self.max_members))
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
        one_of("space", name, SPACES)
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
        """What is left to search for this solver.

        The exact solver takes no steps, and ``ce="random"`` in expectation, which is ``"all"``.
        """
        one_of("solver", solver, SOLVERS)
        if solver == "gumbel":
            return self
        fixed = {name: getattr(PAPER_STEPS, name) for name in STEERING if name != "max_members"}
        expected = ["all" if kind == "random" else kind for kind in _values(self.ce)]
        return replace(self, **fixed, ce=expected)

    @property
    def _on_scale(self) -> bool:
        """Whether terms of ordered classes are searched, or fixed above 0."""
        return any(getattr(self, name) != 0 for name in SCALE_TERMS)

    @property
    def searched(self) -> tuple[str, ...]:
        """The parameters that vary."""
        return tuple(name for name, v in vars(self).items() if isinstance(v, BaseDistribution))

    def distributions(self) -> dict[str, BaseDistribution]:
        """The parameters that vary."""
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
        steps = Gumbel(**{name: values[name] for name in STEERING}).resolve(items)
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
        return all(getattr(self, step) == getattr(paper, step) for step in CHOSEN_STEPS)

    def to_dict(self) -> dict[str, Any]:
        """The space in plain values, ready for JSON."""
        content = dict(vars(self))
        for name, value in vars(self).items():
            if name in SCALE_TERMS and not self._on_scale:
                del content[name]
            elif isinstance(value, CategoricalDistribution):
                content[name] = list(value.choices)
            elif isinstance(value, BaseDistribution):
                content[name] = {part: getattr(value, part) for part in ("low", "high", "log")}
        return content


def _clean(name: str, value: ParameterSpace) -> Value | BaseDistribution:
    """A distribution, or one value; each checked."""
    if name in CHOSEN_STEPS and value in (None, AUTO):
        return None
    if _is_pair(value):
        low, high = value
        return _range(name, low, high)
    unchecked_choices = value if isinstance(value, list | tuple) else _values(value)
    choices = [_one_value(name, choice) for choice in unchecked_choices]
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
    """All numbers from low to high."""
    if name in WITHOUT_RANGE:
        raise InputError(
            f"{name} has choices and no range, such as {low!r} to {high!r}",
            f"write {name}=[…]",
            code="invalid-range",
        )
    for end in (low, high):
        _one_value(name, end)
    log = name in _LOG
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


def _one_value(name: str, value: Any) -> Value:
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
    elif name in OBJECTIVE:
        Objective(**{OBJECTIVE[name]: value})
    else:
        if value in (None, AUTO):
            raise InputError(
                f"a choice of {name} is {value!r}", "give numbers", code="invalid-number"
            )
        Gumbel(**{name: value})
    checked: Value = value
    return checked


def _is_pair(value: object) -> TypeGuard[tuple[float, float]]:
    """(low, high)"""
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _values(value: object) -> Sequence[Any]:
    """The values that a parameter may have; of a range, its ends."""
    if isinstance(value, FloatDistribution | IntDistribution):
        return value.low, value.high
    if isinstance(value, CategoricalDistribution):
        return value.choices
    return (value,)
