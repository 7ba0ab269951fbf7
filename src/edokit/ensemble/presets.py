"""Named sets of choices: the objective, the solver and what happens around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from edokit.errors import one_of
from edokit.objective import PRESETS as OBJECTIVES

SOLVERS = ("exact", "gumbel")

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
    "paper-fixed": {**_PAPER, **asdict(OBJECTIVES["paper-fixed"])},
    "paper": {**_PAPER, **asdict(OBJECTIVES["paper"])},
}
"""Every choice under every preset; a parameter that is given wins over its preset."""


def choices(preset: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The preset's choices, with those that were given (not None) in their place."""
    one_of("preset", preset, PRESETS)
    chosen = dict(PRESETS[preset])
    chosen.update({name: value for name, value in given.items() if value is not None})
    one_of("solver", chosen["solver"], SOLVERS)
    return chosen
