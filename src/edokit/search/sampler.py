"""NSGA-II whose next proposal depends on its place in the search and on nothing else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import NSGAIISampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

PLACE = "place"
"""The attribute of a trial that holds its generation and its slot in it."""


class PlaceSampler(NSGAIISampler):
    """Proposes the trials of a generation, slot by slot.

    Its numbers come from the seed and the place, its parents from the generations before, so
    that a search that was interrupted proposes what it would have proposed anyway.
    """

    def __init__(self, population: int, seed: int, generation: int) -> None:
        # The first generation has no parents to cross, and needs no generator for it.
        super().__init__(population_size=population, seed=seed % 2**32 if generation else None)
        self._place = (seed, generation)
        self._draws = np.random.default_rng(0)

    def propose(
        self, study: Study, trial: FrozenTrial, space: dict[str, BaseDistribution], slot: int
    ) -> dict[str, Any]:
        """A value for every parameter of the space."""
        # Two streams: crossover and mutation must not draw the same numbers.
        crossing, drawing = np.random.SeedSequence([*self._place, slot]).generate_state(2)
        self._draws = np.random.default_rng(drawing)
        inherited: dict[str, Any] = {}
        if self._place[1] > 0:
            self._rng.rng.seed(crossing)
            several = {name: one for name, one in space.items() if not one.single()}
            inherited = self.sample_relative(study, trial, several)
        return {
            name: inherited[name] if name in inherited else _drawn(distribution, self._draws)
            for name, distribution in space.items()
        }

    def get_trial_generation(self, study: Study, trial: FrozenTrial) -> int:
        """The generation that is being filled."""
        return self._place[1]

    def get_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        """The completed trials of a generation, by slot."""
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return _by_place([t for t in done if t.user_attrs.get(PLACE, (None,))[0] == generation])

    def get_parent_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        """The best of the generations before, always in the same order."""
        return _by_place(super().get_parent_population(study, generation))


def _by_place(trials: list[FrozenTrial]) -> list[FrozenTrial]:
    return sorted(trials, key=lambda trial: tuple(trial.user_attrs[PLACE]))


def _drawn(distribution: BaseDistribution, draws: np.random.Generator) -> Any:
    """A value of the first generation, or a mutated one."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[draws.integers(len(distribution.choices))]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    low, high = float(distribution.low), float(distribution.high)
    whole = isinstance(distribution, IntDistribution)
    if whole:
        # Each whole number has the unit interval around it.
        low, high = low - 0.5, high + 0.5
    if distribution.log:
        value = math.exp(draws.uniform(math.log(low), math.log(high)))
    else:
        value = draws.uniform(low, high)
    within = min(max(round(value) if whole else value, distribution.low), distribution.high)
    return int(within) if whole else float(within)
