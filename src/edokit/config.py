"""What a fit is asked for: the objective, the solver, the pool and how labels are read.

In Python, options are objects (`Objective`, `Exact`, `Gumbel`). The command line, search spaces and
``settings`` in ``ensemble.json`` name them flat: ``lambda_div``, ``solver``, ``max_members``, ….
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from edokit._errors import InputError, check_seed, one_of, option, warn
from edokit.objective.settings import (
    FLAT_NAMES,
    PRESETS,
    SOLVERS,
    TERMS,
    Diversity,
    Exact,
    Gumbel,
    GumbelSettings,
    Objective,
    Settings,
)
from edokit.scales import DeclaredScale, ScaleLike

_PAPER = GumbelSettings()
PAPER_SOLVERS: Mapping[str, Exact | Gumbel] = {
    "exact": Exact(_PAPER.max_members),
    "gumbel": Gumbel(**{part.name: getattr(_PAPER, part.name) for part in fields(Gumbel)}),
}
"""What the name of a solver stands for under the paper's presets."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a fit is asked for, the objects of the preset filled in."""

    preset: str = "default"
    pool: str = "linear"
    groups: bool = False
    objective: Objective
    solver: Exact | Gumbel
    recalibrate: str | None = None
    scale: ScaleLike | None = None
    ties: Any = "first"
    random_state: int = 0

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Options:
        """The options that these parameters of `EDOEnsemble` stand for, checked."""
        for name in parameters:
            one_of("parameter", name, [part.name for part in fields(cls)])
        values = {name: value for name, value in parameters.items() if value is not None}
        preset = values.get("preset", "default")
        values["objective"] = objective_in_force(preset, values.get("objective"))
        values["solver"] = solver_in_force(preset, values.get("solver"))
        options = cls(**values)
        options._check()
        return options

    def _check(self) -> None:
        check_seed(self.random_state)
        if self.scale is not None:
            DeclaredScale(self.scale)  # refuses what is no scale
        if self.recalibrate is not None:
            one_of("recalibrate", self.recalibrate, ("temperature",))
        _ = self.settings  # refuses pools that do not go with the objective
        if not any(weight or weight is None for _, weight in self.objective.weights()):
            names = [option(term.flat_name) for term in TERMS.values()]
            raise InputError(
                f"there is nothing to optimise: {', '.join(names[:-1])} and {names[-1]} are all 0",
                f"set {option(TERMS['ce_weight'].flat_name)} to 1",
            )

    def warn_of_idle(self) -> None:
        """Warn of options without effect."""
        if self.objective.diversity is Diversity.SUPPRESS and self.objective.div == 0:
            warn(
                "the diversity term has weight 0, so its direction has no effect; set"
                f" {option(TERMS['div'].flat_name)}"
            )

    @property
    def label_options(self) -> dict[str, Any]:
        """What `FitData` needs to read labels."""
        return {"ties": self.ties, "random_state": self.random_state, "scale": self.scale}

    @property
    def settings(self) -> Settings:
        """The objective and its pool; a penalty still to be chosen takes the default."""
        return Settings.of(self.objective, self.pool)

    def to_flat(self) -> dict[str, Any]:
        """The options by their flat names."""
        shared = {name: getattr(self, name) for name in SHARED}
        objective = {flat: getattr(self.objective, name) for name, flat in FLAT_NAMES.items()}
        solver = {part.name: getattr(self.solver, part.name) for part in fields(self.solver)}
        return {**shared, "solver": self.solver.name, **solver, **objective}


SHARED = tuple(part.name for part in fields(Options) if part.name not in ("objective", "solver"))
"""Parameters of `EDOEnsemble` whose flat name is their own."""
SOLVER_OPTIONS = tuple(
    dict.fromkeys(part.name for kind in SOLVERS.values() for part in fields(kind))
)
"""Options of the solvers."""
OPTION_NAMES = (*SHARED, "solver", *SOLVER_OPTIONS, *FLAT_NAMES.values())
"""The flat names of all options."""


def objective_in_force(preset: str, objective: Objective | None) -> Objective:
    """The objective, or that of the preset."""
    one_of("preset", preset, PRESETS)
    if objective is None:
        return PRESETS[preset]
    if not isinstance(objective, Objective):
        raise InputError(
            f"{option('objective')} must be an Objective, but got {objective!r}",
            "write EDOEnsemble(objective=Objective(div=0.1)), for example",
        )
    return objective


def solver_in_force(preset: str, solver: Exact | Gumbel | str | None) -> Exact | Gumbel:
    """The solver, one of this name, or that of the preset."""
    one_of("preset", preset, PRESETS)
    if isinstance(solver, Exact | Gumbel):
        return solver
    by_default = preset == "default"
    name = solver or ("exact" if by_default else "gumbel")
    one_of("solver", name, SOLVERS)
    return SOLVERS[name]() if by_default else PAPER_SOLVERS[name]


def from_flat(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of `EDOEnsemble` from options by their flat names; None is the preset's.

    Options of the gumbel solver that the exact one does not have are left out, with a warning.
    """
    values = {name: value for name, value in flat.items() if value is not None}
    for name in values:
        one_of("option", name, OPTION_NAMES)
    parameters = {name: values[name] for name in (*SHARED, "solver") if name in values}
    preset = values.get("preset", "default")
    base = objective_in_force(preset, None)
    terms = {name: values[key] for name, key in FLAT_NAMES.items() if key in values}
    if (objective := replace(base, **terms)) != base:
        parameters["objective"] = objective
    base_solver = solver_in_force(preset, values.get("solver"))
    names = [part.name for part in fields(base_solver)]
    solver_options = {name: values[name] for name in SOLVER_OPTIONS if name in values}
    if idle := [name for name in solver_options if name not in names]:
        warn(f"{', '.join(map(option, idle))}: only the gumbel solver uses this")
    solver = replace(base_solver, **{n: v for n, v in solver_options.items() if n in names})
    if solver != base_solver:
        parameters["solver"] = solver
    return parameters
