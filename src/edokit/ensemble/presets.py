"""Named sets of choices: the objective, the solver and what happens around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from edokit._errors import InputError, one_of, warn
from edokit.objective import PRESETS as OBJECTIVES
from edokit.objective import Settings
from edokit.solvers import GumbelSettings

GUMBEL_ONLY = [name for name in GumbelSettings.__dataclass_fields__ if name != "max_members"]

# What the paper fixes outside the objective: its ablations' values, ten epochs, up to ten members.
_PAPER = {
    "solver": "gumbel",
    "groups": False,
    "min_members": 1,
    "max_members": 10,
    "epochs": 10,
    "batch_size": 32,
    "learning_rate": 1e-3,
    "temperature": 0.5,
    "temperature_decay": 0.05,
    "min_temperature": 0.1,
    "recalibrate": None,
}
# None: as many members as there are; and where gumbel is asked for, as many steps, as large and as
# hot as they need to be to come close to the optimum (`GumbelSettings.thorough`).
_OURS = {
    **_PAPER,
    "solver": "exact",
    "max_members": None,
    "epochs": None,
    "learning_rate": None,
    "temperature": None,
    "temperature_decay": None,
}

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "default": {**_OURS, **asdict(OBJECTIVES["default"])},
    # Pool, groups, penalty and temperature are then settled on the data (`edokit.ensemble.auto`).
    "auto": {**_OURS, **asdict(OBJECTIVES["default"])},
    "paper-fixed": {**_PAPER, **asdict(OBJECTIVES["paper-fixed"])},
    "paper": {**_PAPER, **asdict(OBJECTIVES["paper"])},
}
"""Every choice under every preset; a parameter that is given wins over its preset."""


def choices(preset: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The preset's choices, with those that were given (not None) in their place.

    Bounds that leave no size are refused; parameters without effect are warned of.
    """
    one_of("preset", preset, PRESETS)
    chosen = dict(PRESETS[preset])
    chosen.update({name: value for name, value in given.items() if value is not None})
    one_of("solver", chosen["solver"], ("exact", "gumbel"))
    if chosen["recalibrate"] is not None:
        one_of("recalibrate", chosen["recalibrate"], ("temperature", "none"))
    if chosen["recalibrate"] == "none":
        chosen["recalibrate"] = None
    least, most = chosen["min_members"], chosen["max_members"]
    if least < 1 or (most is not None and most < least):
        raise InputError(
            f"no ensemble size lies between min_members={least} and max_members={most}",
            "leave them out to let every size from 1 on compete",
            parameters=("min_members", "max_members"),
        )
    if not any(chosen[name] for name in ("lambda_f1", "lambda_ce", "lambda_div", "lambda_reg")):
        raise InputError(
            "there is nothing to optimise: lambda_f1, lambda_ce, lambda_div and lambda_reg are all"
            " 0",
            "leave lambda_ce at 1",
            parameters=("lambda_f1", "lambda_ce", "lambda_div", "lambda_reg"),
        )
    idle = [name for name in GUMBEL_ONLY if given.get(name) is not None]
    if idle and chosen["solver"] == "exact":
        warn(
            f"only the gumbel solver uses {', '.join(idle)}; without effect on the exact one",
            parameters=idle,
        )
    if given.get("diversity") is not None and chosen["lambda_div"] == 0:
        warn(
            "the diversity term has weight 0, so its direction has no effect; give lambda_div",
            parameters=("lambda_div",),
        )
    if chosen["ce"] == "random" and chosen["solver"] == "exact":
        warn(
            "the exact solver takes ce='random' in expectation, which is ce='all'",
            parameters=("ce",),
        )
    return chosen


def objective_of(chosen: Mapping[str, Any]) -> Settings:
    """The part of the choices that is the objective's."""
    return Settings(**{name: chosen[name] for name in Settings.__dataclass_fields__})


def gumbel_settings(chosen: dict[str, Any], items: int) -> GumbelSettings:
    """How gumbel searches; what the preset leaves open is filled in, and kept in ``chosen``."""
    thorough = GumbelSettings.thorough(
        items,
        batch_size=chosen["batch_size"],
        min_members=chosen["min_members"],
        max_members=chosen["max_members"],
    )
    names = GumbelSettings.__dataclass_fields__
    for name in names:
        if chosen[name] is None:
            chosen[name] = getattr(thorough, name)
    return GumbelSettings(**{name: chosen[name] for name in names})
