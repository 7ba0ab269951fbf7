"""The trials of a search as a table, and how settings and metrics correlate over them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit.metrics import SEARCH_METRICS
from edokit.tuning.space import Configuration, SearchSpace

if TYPE_CHECKING:
    import pyarrow as pa

ESTIMATES = (*SEARCH_METRICS, "ce_se")


@dataclass(frozen=True, eq=False)
class SearchTrial:
    """One configuration, and what came of it."""

    number: int
    generation: int
    slot: int
    state: str
    """``complete`` or ``failed``."""
    searched: Mapping[str, Any]
    """The values of the parameters that the space varies."""
    configuration: Configuration
    """All parameters."""
    judged: str
    """By which estimate it competes: ``cross-fitted`` or ``optimistic``."""
    estimates: Mapping[str, Mapping[str, float] | None] = field(default_factory=dict)
    """``optimistic`` and ``cross-fitted``: f1, ce, md and ce_se, the standard error of ce."""
    size: int = 0
    weights: tuple[float, ...] = ()
    """[K] fitted on all data."""
    failure: str | None = None

    @property
    def f1(self) -> float:
        """As judged."""
        return self._judged("f1")

    @property
    def ce(self) -> float:
        """As judged."""
        return self._judged("ce")

    @property
    def md(self) -> float:
        """As judged."""
        return self._judged("md")

    @property
    def ce_se(self) -> float:
        """Standard error of ``ce`` over items."""
        return self._judged("ce_se")

    def _judged(self, name: str) -> float:
        found = self.estimates.get(self.judged)
        return float("nan") if found is None else found[name]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        judged = {name: getattr(self, name) if self.estimates else None for name in ESTIMATES}
        return {
            "trial": self.number,
            "generation": self.generation,
            **judged,
            "size": self.size,
            "settings": dict(self.searched),
            "estimates": {
                name: None if found is None else dict(found)
                for name, found in self.estimates.items()
            },
        }


def trials_table(
    trials: Sequence[SearchTrial],
    *,
    members: Sequence[str],
    solver: str,
    front: Sequence[SearchTrial] = (),
    chosen: SearchTrial | None = None,
) -> pa.Table:
    """A row per trial: number, place, every setting, both estimates, size, weights (as JSON)."""
    import pyarrow as pa

    on_front = {trial.number for trial in front}
    rows = []
    for trial in trials:
        row: dict[str, Any] = {
            "number": trial.number,
            "generation": trial.generation,
            "slot": trial.slot,
            "state": trial.state,
            **_settings(trial, solver),
            **{name: getattr(trial, name) if trial.estimates else None for name in ESTIMATES},
        }
        for kind in ("optimistic", "cross-fitted"):
            found = trial.estimates.get(kind)
            prefix = kind.replace("-", "_")
            for name in ESTIMATES:
                row[f"{prefix}_{name}"] = None if found is None else found[name]
        named = dict(zip(members, trial.weights, strict=False))
        row["size"] = trial.size
        row["weights"] = json.dumps(named, ensure_ascii=False)
        row["on_front"] = trial.number in on_front
        row["chosen"] = chosen is not None and trial.number == chosen.number
        row["failure"] = trial.failure
        rows.append(row)
    whole = {"number", "generation", "slot", "size", "epochs", "batch_size"}
    whole |= {"min_members", "max_members"}

    def kind_of(name: str) -> pa.DataType:
        if name in whole:
            return pa.int64()
        if name in ("on_front", "chosen", "class_weights"):
            return pa.bool_()
        texts = ("state", "weights", "failure", "diversity", "ce_variant", "pool", "regularize")
        return pa.string() if name in texts else pa.float64()

    names = list(rows[0]) if rows else []
    return pa.table({name: pa.array([row[name] for row in rows], kind_of(name)) for name in names})


def _settings(trial: SearchTrial, solver: str) -> dict[str, Any]:
    """Every setting by name; the kind of cross-entropy is not to be taken for its value."""
    found = trial.configuration.parameters(solver)
    return {"ce_variant" if name == "ce" else name: value for name, value in found.items()}


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
            for metric in SEARCH_METRICS:
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
