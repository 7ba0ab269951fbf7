"""How the Gumbel solver searches, and which of its configurations can share arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from edokit._errors import InputError
from edokit.objective import CE, Regularize, Settings
from edokit.solvers.descent import Columns


@dataclass(frozen=True)
class GumbelSettings:
    """How to search; the defaults are the paper's."""

    epochs: int = 10
    """Passes over the items."""
    batch_size: int = 32
    """Items per step; at most all of them."""
    learning_rate: float = 1e-3
    """Step size of Adam (η)."""
    temperature: float = 0.5
    """Of the Gumbel-Softmax in the first epoch (T₀)."""
    temperature_decay: float = 0.05
    """The temperature falls at this rate: T₀·exp(−γ·epoch), epochs counted from 0 (γ)."""
    min_temperature: float = 0.1
    """It falls no further than this."""
    min_members: int = 1
    """Smallest size (K_min)."""
    max_members: int = 10
    """Largest size (K_max); members ranked below it get no weight. At most all members."""

    @classmethod
    def thorough(
        cls, items: int, *, batch_size: int = 32, min_members: int = 1, max_members: int = 10
    ) -> GumbelSettings:
        """Settings that come close to the optimum on so many items.

        At least 2,000 steps (the paper's ten epochs are 50 on 141 items), a learning rate thirty
        times the paper's, and a temperature that cools from 1 to 0.1 over all of them.
        """
        steps = math.ceil(items / min(batch_size, items))
        epochs = max(10, math.ceil(2000 / steps))
        return cls(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=0.03,
            temperature=1.0,
            temperature_decay=math.log(10.0) / (epochs - 1),
            min_members=min_members,
            max_members=max_members,
        )

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "min_members", "max_members"):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            _require(whole and value >= 1, name, "a whole number of at least 1", value)
        for name in ("learning_rate", "temperature", "min_temperature"):
            value = getattr(self, name)
            _require(math.isfinite(value) and value > 0, name, "a number above 0", value)
        decay = self.temperature_decay
        allowed = math.isfinite(decay) and decay >= 0
        _require(allowed, "temperature_decay", "a number of at least 0", decay)
        if self.min_members > self.max_members:
            raise InputError(
                "min_members <= max_members must hold, but got "
                f"min_members={self.min_members}, max_members={self.max_members}",
                "make them equal to fix the size",
            )


def _require(holds: bool, name: str, rule: str, value: Any) -> None:
    if not holds:
        usual = next(field.default for field in fields(GumbelSettings) if field.name == name)
        raise InputError(f"{name} must be {rule}, but got {value!r}", f"the paper uses {usual!r}")


_KINDS = (CE.MEAN, CE.ALL, CE.RANDOM)


@dataclass(frozen=True)
class Run:
    """One configuration with its seed, and its place in the call."""

    place: int
    settings: Settings
    options: GumbelSettings
    seed: int

    @property
    def shape(self) -> tuple[Hashable, ...]:
        """Runs that agree on this can share arrays; in all else they may differ."""
        chosen, options = self.settings, self.options
        how = (options.epochs, options.batch_size, options.min_members, options.max_members)
        return (chosen.class_weights, chosen.pool, *how)


def as_runs(
    settings: Settings | Sequence[Settings],
    options: GumbelSettings | Sequence[GumbelSettings],
    seeds: int | Sequence[int],
) -> list[Run]:
    """One run per configuration; what is given once serves all."""
    columns: list[list[Any]] = [
        [settings] if isinstance(settings, Settings) else list(settings),
        [options] if isinstance(options, GumbelSettings) else list(options),
        [seeds] if isinstance(seeds, int | np.integer) else list(seeds),
    ]
    counts = [len(column) for column in columns]
    count = max(counts)
    if not set(counts) <= {1, count}:
        raise InputError(
            "settings, options and seeds must be one for all or one per configuration, but got "
            f"{counts[0]} settings, {counts[1]} options and {counts[2]} seeds",
            "repeat them so that their numbers agree",
        )
    for seed in columns[2]:
        if not isinstance(seed, int | np.integer) or seed < 0:
            raise InputError(
                f"random_state={seed!r} is not a whole number of at least 0",
                "use random_state=0",
                ("random_state",),
            )
    columns = [column * count if len(column) == 1 else column for column in columns]
    return [
        Run(place, chosen, how, int(seed))
        for place, (chosen, how, seed) in enumerate(zip(*columns, strict=True))
    ]


def batches_of(runs: Sequence[Run]) -> list[list[list[Run]]]:
    """Batches of S seeds with R runs each; the runs of a batch have one shape, and those of a seed
    stand in the order that `Columns` asks for.

    Seeds with other numbers of runs of some kind come in other batches, so that none has gaps.
    """
    batches = []
    for alike in _grouped(runs, lambda run: run.shape):
        by_seed = _grouped(alike, lambda run: run.seed)
        in_order = [sorted(own, key=lambda run: _KINDS.index(run.settings.ce)) for own in by_seed]
        batches.extend(_grouped(in_order, _counts))
    return batches


def columns_of(batch: Sequence[Sequence[Run]]) -> Columns:
    """The numbers in which the runs of a batch differ, each [S, R, 1]."""

    def column(value: Callable[[Run], float]) -> Any:
        return np.array([[[value(run)] for run in seed] for seed in batch], dtype=np.float64)

    counts = _counts(batch[0])
    return Columns(
        lambda_f1=column(lambda run: run.settings.lambda_f1),
        lambda_ce=column(lambda run: run.settings.lambda_ce),
        lambda_div=column(lambda run: run.settings.diversity.sign * run.settings.lambda_div),
        lambda_reg=column(lambda run: run.settings.lambda_reg),
        on_raw=column(lambda run: float(run.settings.regularize is Regularize.RAW)),
        learning_rate=column(lambda run: run.options.learning_rate),
        temperature=column(lambda run: run.options.temperature),
        temperature_decay=column(lambda run: run.options.temperature_decay),
        min_temperature=column(lambda run: run.options.min_temperature),
        pooled=counts[0],
        drawn=counts[2],
    )


def _counts(runs: Sequence[Run]) -> tuple[int, ...]:
    """How many runs there are of each kind."""
    kinds = [run.settings.ce for run in runs]
    return tuple(kinds.count(kind) for kind in _KINDS)


_T = TypeVar("_T")


def _grouped(values: Sequence[_T], key: Callable[[_T], Hashable]) -> list[list[_T]]:
    groups: dict[Hashable, list[_T]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return list(groups.values())
