"""How settings and metrics go together over the trials: Spearman's ρ, sign by sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edokit.search.space import SearchSpace
from edokit.search.trials import SearchTrial

METRICS = ("f1", "ce", "md")
SIGNS = ("preserve", "suppress")
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Correlation:
    """Spearman's ρ of a parameter (or the size) and a metric over the trials of one sign."""

    diversity: str
    parameter: str
    metric: str
    rho: float
    p_value: float
    trials: int

    @property
    def significant(self) -> bool:
        """p < 0.05, as the paper marks it; nothing corrects for the number of pairs."""
        return self.p_value < SIGNIFICANT


def correlations(trials: Sequence[SearchTrial], space: SearchSpace) -> list[Correlation]:
    """Each numeric parameter of the space, and the size, against each metric, for each sign.

    Pairs in which something does not vary, and signs with fewer than three trials, are left out.
    """
    from scipy.stats import spearmanr

    numeric = [name for name in space.searched if name in _NUMERIC]
    found = []
    for sign in SIGNS:
        here = [
            t for t in trials if t.estimates and str(t.configuration.settings.diversity) == sign
        ]
        if len(here) < 3:
            continue
        columns = {name: _column(here, name) for name in (*numeric, "size")}
        for name, values in columns.items():
            for metric in METRICS:
                scores = np.array([getattr(trial, metric) for trial in here])
                if np.ptp(values) == 0 or np.ptp(scores) == 0:
                    continue
                rho, p_value = spearmanr(values, scores)
                pair = (sign, name, metric, float(rho), float(p_value), len(here))
                found.append(Correlation(*pair))
    return found


_NUMERIC = (
    "lambda_f1",
    "lambda_ce",
    "lambda_div",
    "lambda_reg",
    "learning_rate",
    "temperature",
    "temperature_decay",
    "min_temperature",
    "epochs",
    "batch_size",
    "min_members",
    "max_members",
)


def _column(trials: Sequence[SearchTrial], name: str) -> Any:
    if name == "size":
        return np.array([trial.size for trial in trials], dtype=np.float64)
    return np.array([trial.searched[name] for trial in trials], dtype=np.float64)
