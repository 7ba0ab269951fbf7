"""The configuration of a fit: one frozen record, `FitConfig`, checked when it is made.

`from_parameters` makes it from the parameters of `EDOEnsemble`. The command line and the search
make an `EDOEnsemble` from their flags and trials, and ``ensemble.json`` stores its parameters:
`parameters_from_document` reads them, `parameters_to_document` writes them, and
`settings_document` lists the choices of a fit by name on the command line.
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
    """All options of a fit. A field is a value, or ``"auto"`` if the fit chooses the value.

    Parameters
    ----------
    objective : Objective
        Weights and modes of the loss; ``reg`` may be ``"auto"``.
    solver : Exact or Gumbel
        The solver and its options.
    pool : {"linear", "log"}, default="linear"
        Linear or logarithmic opinion pool.
    groups : bool, default=False
        Whether the members of a group are averaged first.
    recalibrate : {"temperature"}, default=None
        What is fitted after pooling; None for nothing.
    scale : str or Scale, default="auto"
        The declared answer scale; ``"auto"`` for that of the data.
    ties : {"first", "error", "random"}, default="first"
        Hard label of items whose annotators are evenly split.
    seed : int, default=0
        Seed of gumbel, of random ties and of the folds of the cross-validation.
    people : bool, default=True
        Whether to estimate how the annotators differ from the pool.

    Raises
    ------
    InputError
        If a value is not allowed, or values contradict each other.
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
        if all(getattr(self.objective, name) == 0 for name in TERMS):
            names = [option(term.flat_name) for term in TERMS.values()]
            raise InputError(
                f"there is nothing to optimise: {', '.join(names[:-1])} and {names[-1]} are all 0",
                f"set {option(TERMS['ce_weight'].flat_name)} to 1",
                code="no-objective",
            )
        check_pool(self.objective, self.pool)

    @property
    def declared_scale(self) -> ScaleLike | None:
        """The declared answer scale; None if the data decide."""
        if self.scale == AUTO:
            return None
        return self.scale

    def warn_of_unused_options(self) -> None:
        """Warn of options that have no effect in this configuration."""
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
    """Return the checked configuration that these parameters of `EDOEnsemble` describe.

    None means the default: files of earlier versions contain it for any parameter.
    """
    if people is None:
        people = True
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
        people=people,
    )


def to_parameters(config: FitConfig, preset: str) -> dict[str, Any]:
    """Return parameters of `EDOEnsemble`, with this preset, that describe a configuration."""
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

_REMOVED_OPTIONS = ("order", "regularize")
"""Options of earlier builds, which this version ignores: they do not change the answers."""
_OTHER_PARAMETERS = (
    "preset",
    "pool",
    "groups",
    "recalibrate",
    "scale",
    "ties",
    "random_state",
    "people",
    "solver",
)
"""In files of version 0.1.0, the parameters that are not options of the objective or the solver."""


def settings_document(
    config: FitConfig,
    objective: ObjectiveSettings | Objective,
    solver: Exact | Gumbel | GumbelSteps,
    *,
    preset: str,
    scale: str | None,
) -> dict[str, Any]:
    """Return the choices of a fit by name on the command line, for ``settings`` of the file.

    ``people`` is not among them. ``objective`` and ``solver`` have the values that the fit chose in
    place of ``"auto"``.
    """
    document: dict[str, Any] = {
        "preset": preset,
        "pool": str(config.pool),
        "groups": config.groups,
        "recalibrate": config.recalibrate,
    }
    if scale is not None:
        document["scale"] = scale
    document |= {
        "ties": config.ties,
        "random_state": config.seed,
        "solver": config.solver.name,
        **_with_null_for_auto(solver),
    }
    for name, flat_name in FLAT_NAMES.items():
        document[flat_name] = getattr(objective, name)
    return document


def parameters_to_document(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of `EDOEnsemble` as ``ensemble.json`` stores them; ``"auto"`` is null."""
    document = dict(parameters)
    if document.get("objective") is not None:
        document["objective"] = _with_null_for_auto(document["objective"])
    solver = document.get("solver")
    if isinstance(solver, Exact | Gumbel):
        document["solver"] = {"name": solver.name, **_with_null_for_auto(solver)}
    return document


def parameters_from_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of `EDOEnsemble` that ``ensemble.json`` stores, checked.

    A ValueError completes the sentence "parameters …" of the message about the file.
    """
    parameters = _without_removed_options(document)
    if parameters.get("preset") == "paper":  # its name in earlier builds
        parameters["preset"] = "paper-fixed"
    if parameters.pop("label_weights", "shared") != "shared":  # a parameter of earlier builds
        raise ValueError("have weights for each label, which this version no longer has")
    try:
        if "objective" not in parameters:
            parameters = _from_flat_document(parameters)
        else:
            if parameters["objective"] is not None:
                terms = _without_removed_options(parameters["objective"])
                parameters["objective"] = Objective(**terms)
            if isinstance(parameters["solver"], dict):
                options = _without_removed_options(parameters["solver"])
                solver_class = SOLVERS[options.pop("name")]
                parameters["solver"] = solver_class(**options)
        from_parameters(**parameters)
    except (InputError, TypeError, LookupError) as error:
        raise ValueError(f"can't be used: {error}") from error
    return parameters


def _from_flat_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters from a file of version 0.1.0, where all options are on one level."""
    options = {name: value for name, value in document.items() if value is not None}
    parameters: dict[str, Any] = {}
    for name in _OTHER_PARAMETERS:
        if name in options:
            parameters[name] = options.pop(name)
    preset = parameters.get("preset", "default")
    default_objective = preset_objective(preset)
    terms = {}
    for name, flat_name in FLAT_NAMES.items():
        if flat_name in options:
            terms[name] = options.pop(flat_name)
    objective = replace(default_objective, **terms)
    if objective != default_objective:
        parameters["objective"] = objective
    default_solver = preset_solver(preset, parameters.get("solver"))
    solver_options = {}
    for field in fields(default_solver):
        if field.name in options:
            solver_options[field.name] = options.pop(field.name)
    solver = replace(default_solver, **solver_options)
    if solver != default_solver:
        parameters["solver"] = solver
    # These files contain the options of both solvers; those of the unused one are ignored.
    gumbel_options = [field.name for field in fields(Gumbel)]
    for name in options:
        one_of("option", name, gumbel_options)
    return parameters


def _without_removed_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without those that existed in earlier builds only."""
    return {name: value for name, value in dict(options).items() if name not in _REMOVED_OPTIONS}


def _with_null_for_auto(options: Objective | Exact | Gumbel | GumbelSteps) -> dict[str, Any]:
    """Return the fields by name, with None in place of ``"auto"``."""
    values = asdict(options)
    return {name: None if value == AUTO else value for name, value in values.items()}
