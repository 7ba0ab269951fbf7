"""The trials of a search: settings, estimates, size and weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from edokit.search.space import Configuration, SearchSpace

if TYPE_CHECKING:
    import pyarrow as pa
    from optuna.trial import FrozenTrial

ESTIMATES = ("f1", "ce", "md", "ce_se")


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


def read_trials(
    finished: Sequence[FrozenTrial], space: SearchSpace, judge: str
) -> list[SearchTrial]:
    """The finished trials of a study."""
    from edokit.search.sampler import PLACE
    from edokit.search.study import FAILURE, RESULT

    trials = []
    for trial in finished:
        generation, slot = trial.user_attrs[PLACE]
        result = trial.user_attrs.get(RESULT) or {}
        failure = trial.user_attrs.get(FAILURE)
        trials.append(
            SearchTrial(
                number=trial.number,
                generation=generation,
                slot=slot,
                state="complete" if failure is None else "failed",
                searched=trial.params,
                configuration=space.configuration(trial.params),
                judged=judge,
                estimates={name: result[name] for name in ("optimistic", "cross-fitted")}
                if failure is None
                else {},
                size=result.get("size", 0),
                weights=tuple(result.get("weights", ())),
                failure=failure,
            )
        )
    return trials


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
