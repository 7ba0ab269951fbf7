"""Which configurations of a call can share arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from edokit._errors import InputError
from edokit.objective import CE, Regularize, Settings
from edokit.solvers.descent import Columns
from edokit.solvers.gumbel_settings import GumbelSettings

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
                f"a seed must be a whole number of at least 0, but got {seed!r}", "use seeds=0"
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
