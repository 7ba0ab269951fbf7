"""What a fit is asked for: one frozen record, `FitConfig`, checked when it is made.

`from_parameters` makes it of the parameters of `EDOEnsemble`. The command line and the search make
an `EDOEnsemble` of their flags and trials, and ``ensemble.json`` keeps its parameters:
`parameters_from_document` and `parameters_to_document` read and write them, `settings_document`
lists every choice of a fit by its name on the command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from edokit._errors import InputError, check_seed, one_of, option, warn
from edokit.annotations.core import Ties
from edokit.objective.settings import (
    AUTO,
    FLAT_NAMES,
    SOLVERS,
    TERMS,
    Auto,
    Diversity,
    Exact,
    Gumbel,
    GumbelSteps,
    Objective,
    ObjectiveSettings,
    Pool,
    check_pool,
    preset_objective,
    preset_solver,
)
from edokit.scales import DeclaredScale, ScaleLike


@dataclass(frozen=True, kw_only=True)
class FitConfig:
    """Everything a fit is asked for; a field is a value, or ``"auto"`` where the fit chooses it.

    Parameters
    ----------
    objective : Objective
        Weights and modes of the loss; ``reg`` may be ``"auto"``.
    solver : Exact or Gumbel
        The solver and its options.
    pool : {"linear", "log"}, default="linear"
        The kind of opinion pool.
    groups : bool, default=False
        Whether the members of a group are averaged first.
    recalibrate : {"temperature"}, default=None
        What is fitted after pooling; None: nothing.
    scale : str or Scale, default="auto"
        The declared answer scale; ``"auto"``: that of the data.
    ties : {"first", "error", "random"}, default="first"
        Hard label of items whose annotators are evenly split.
    seed : int, default=0
        Seed of gumbel, of random ties and of the folds of the cross-validation.
    people : bool, default=True
        Whether to estimate how the annotators differ from the pool.

    Raises
    ------
    InputError
        If a value is not allowed, or some do not go together.
    """

    objective: Objective
    solver: Exact | Gumbel
    pool: Pool = Pool.LINEAR
    groups: bool = False
    recalibrate: Literal["temperature"] | None = None
    scale: ScaleLike | Auto = AUTO
    ties: Ties = "first"
    seed: int = 0
    people: bool = True

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if self.scale != AUTO:
            DeclaredScale(self.scale)  # refuses anything but a scale
        if self.recalibrate is not None:
            one_of("recalibrate", self.recalibrate, ("temperature",))
        one_of("ties", self.ties, get_args(Ties))
        weights = [getattr(self.objective, name) for name in TERMS]
        if weights.count(0) == len(weights):
            names = [option(term.flat_name) for term in TERMS.values()]
            raise InputError(
                f"there is nothing to optimise: {', '.join(names[:-1])} and {names[-1]} are all 0",
                f"set {option(TERMS['ce_weight'].flat_name)} to 1",
                code="no-objective",
            )
        check_pool(self.objective, self.pool)

    @property
    def declared_scale(self) -> ScaleLike | None:
        """The declared answer scale, if there is one."""
        return None if self.scale == AUTO else self.scale

    def warn_of_unused_options(self) -> None:
        """Warn of options without effect on this fit."""
        if self.objective.diversity is Diversity.SUPPRESS and self.objective.div == 0:
            warn(
                "the diversity term has weight 0, so its direction has no effect; set"
                f" {option(TERMS['div'].flat_name)}"
            )


def from_parameters(
    *,
    preset: str = "default",
    pool: str | None = None,
    groups: bool | None = None,
    objective: Objective | None = None,
    solver: Exact | Gumbel | str | None = None,
    recalibrate: Literal["temperature"] | None = None,
    scale: ScaleLike | None = None,
    ties: Ties | None = "first",
    random_state: int | None = 0,
    people: bool | None = True,
) -> FitConfig:
    """Return the configuration of these parameters of `EDOEnsemble`, checked.

    Files of earlier versions may hold None for any of them.
    """
    if pool is None:
        pool = Pool.LINEAR
    if scale is None:
        scale = AUTO
    if ties is None:
        ties = "first"
    if random_state is None:
        random_state = 0
    return FitConfig(
        objective=preset_objective(preset, objective),
        solver=preset_solver(preset, solver),
        pool=Pool(pool),
        groups=bool(groups),
        recalibrate=recalibrate,
        scale=scale,
        ties=ties,
        seed=random_state,
        people=people is None or people,
    )


def to_parameters(config: FitConfig, preset: str) -> dict[str, Any]:
    """Return the parameters of `EDOEnsemble` that ask for a configuration under this preset."""
    if config.objective == preset_objective(preset):
        objective = None
    else:
        objective = config.objective
    solver: Exact | Gumbel | str = config.solver
    if solver == preset_solver(preset, config.solver.name):
        solver = config.solver.name
    return {
        "preset": preset,
        "pool": str(config.pool),
        "groups": config.groups,
        "objective": objective,
        "solver": solver,
        "recalibrate": config.recalibrate,
        "scale": config.declared_scale,
        "ties": config.ties,
        "random_state": config.seed,
        "people": config.people,
    }


# --- ensemble.json --------------------------------------------------------------------------------

_SHARED = ("preset", "pool", "groups", "recalibrate", "scale", "ties", "random_state", "people")
"""Parameters of `EDOEnsemble` that are plain values."""
_EARLIER = ("order", "regularize")
"""Options of earlier builds, which do not change the answers."""


def settings_document(
    config: FitConfig,
    objective: ObjectiveSettings | Objective,
    solver: Exact | Gumbel | GumbelSteps,
    *,
    preset: str,
    scale: str | None,
) -> dict[str, Any]:
    """Return every choice of a fit by its name on the command line, as ``settings`` keeps them.

    ``objective`` and ``solver`` are those of the configuration with the values that the fit chose.
    """
    document: dict[str, Any] = {
        "preset": preset,
        "pool": str(config.pool),
        "groups": config.groups,
        "recalibrate": config.recalibrate,
        "scale": scale,
        "ties": config.ties,
        "random_state": config.seed,
        "solver": config.solver.name,
        **_without_auto(solver),
    }
    if scale is None:
        del document["scale"]
    for name, flat_name in FLAT_NAMES.items():
        document[flat_name] = getattr(objective, name)
    return document


def parameters_to_document(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of `EDOEnsemble` as ``ensemble.json`` keeps them; ``"auto"`` is null."""
    document = dict(parameters)
    if document.get("objective") is not None:
        document["objective"] = _without_auto(document["objective"])
    solver = document.get("solver")
    if isinstance(solver, Exact | Gumbel):
        document["solver"] = {"name": solver.name, **_without_auto(solver)}
    return document


def parameters_from_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of `EDOEnsemble` that ``ensemble.json`` keeps, checked."""
    parameters = _current(document)
    if parameters.get("preset") == "paper":  # in earlier builds; it had the same settings
        parameters["preset"] = "paper-fixed"
    if parameters.pop("label_weights", "shared") != "shared":  # a parameter of earlier builds
        raise ValueError("have weights for each label, which this version no longer has")
    try:
        if "objective" not in parameters:
            parameters = _from_flat_document(parameters)
        else:
            if parameters["objective"] is not None:
                parameters["objective"] = Objective(**_current(parameters["objective"]))
            if isinstance(parameters["solver"], dict):
                options = _current(parameters["solver"])
                parameters["solver"] = SOLVERS[options.pop("name")](**options)
        from_parameters(**parameters)
    except (InputError, TypeError, LookupError) as error:
        raise ValueError(f"can't be used: {error}") from error
    return parameters


def _from_flat_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a file of version 0.1.0, which names all options flat."""
    stored = {name: value for name, value in document.items() if value is not None}
    parameters: dict[str, Any] = {}
    for name in (*_SHARED, "solver"):
        if name in stored:
            parameters[name] = stored.pop(name)
    preset = parameters.get("preset", "default")
    base = preset_objective(preset)
    terms = {name: stored.pop(flat) for name, flat in FLAT_NAMES.items() if flat in stored}
    objective = replace(base, **terms)
    if objective != base:
        parameters["objective"] = objective
    base_solver = preset_solver(preset, parameters.get("solver"))
    names = [part.name for part in fields(base_solver)]
    steps = {name: stored.pop(name) for name in names if name in stored}
    solver = replace(base_solver, **steps)
    if solver != base_solver:
        parameters["solver"] = solver
    for name in stored:  # options of the other solver are left out
        one_of("option", name, [part.name for part in fields(Gumbel)])
    return parameters


def _current(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without those of earlier builds alone."""
    return {name: value for name, value in dict(options).items() if name not in _EARLIER}


def _without_auto(options: Objective | Exact | Gumbel | GumbelSteps) -> dict[str, Any]:
    """Return the fields by name, None where the value is ``"auto"``."""
    values = asdict(options)
    return {name: None if value == AUTO else value for name, value in values.items()}
