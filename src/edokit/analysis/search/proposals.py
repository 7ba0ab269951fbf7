"""What NSGA-II proposes for the trials of a search."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import NSGAIISampler
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, create_trial

from edokit.analysis.search.space import Value

Place = tuple[int, int]
"""A generation, and a slot in it."""
DIRECTIONS = (StudyDirection.MAXIMIZE, StudyDirection.MINIMIZE, StudyDirection.MINIMIZE)


class Proposals:
    """Proposes parameter values for each place of a search with Optuna's NSGA-II.

    The draws depend on the seed and the place, and the parents on the finished generations. All
    processes of a search propose the same values for a place, whenever they do it.

    The sampler looks for parents in a study. This one is in memory and holds the finished
    generations in the order of their slots, whatever the order in the storage is.
    """

    def __init__(
        self, distributions: Mapping[str, BaseDistribution], population: int, seed: int
    ) -> None:
        self._distributions = distributions
        # The sampler crosses over only parameters that have several values.
        self._crossover_space: dict[str, BaseDistribution] = {}
        for name, distribution in distributions.items():
            if not distribution.single():
                self._crossover_space[name] = distribution
        self._population = population
        self._seed = seed
        self._generation = 0
        self._sampler = NSGAIISampler(population_size=population)
        self._study = optuna.create_study(directions=DIRECTIONS, sampler=self._sampler)
        self._open_trial = self._ask()

    def propose(self, place: Place, finished: Mapping[Place, FrozenTrial]) -> dict[str, Value]:
        """Values for a place; all places of the generations before it are finished."""
        generation, slot = place
        while self._generation < generation:
            self._add_generation(finished)
        # Two streams, so that crossover and mutation do not draw the same numbers.
        seeds = np.random.SeedSequence([self._seed, generation, slot])
        crossover_seed, draw_seed = seeds.generate_state(2)
        inherited: dict[str, Value] = {}
        if generation > 0:
            sampler = NSGAIISampler(population_size=self._population, seed=int(crossover_seed))
            inherited = sampler.sample_relative(
                self._study, self._open_trial, self._crossover_space
            )
        rng = np.random.default_rng(draw_seed)
        values: dict[str, Value] = {}
        for name, distribution in self._distributions.items():
            if name in inherited:
                values[name] = inherited[name]
            else:
                # In the first generation every value is drawn, later those that mutate.
                values[name] = _draw(distribution, rng)
        return values

    def _add_generation(self, finished: Mapping[Place, FrozenTrial]) -> None:
        """Tell the sampler the results of the current generation, and begin the next one."""
        for slot in range(self._population):
            trial = finished[self._generation, slot]
            self._study.add_trial(
                create_trial(
                    params=trial.params,
                    distributions=trial.distributions,
                    values=trial.values,
                    system_attrs=self._open_trial.system_attrs,
                )
            )
        self._generation += 1
        self._open_trial = self._ask()

    def _ask(self) -> FrozenTrial:
        """A trial that the sampler has assigned to the current generation."""
        number = self._study.ask().number
        trial = self._study.get_trials(deepcopy=False)[number]
        generation = self._sampler.get_trial_generation(self._study, trial)
        # Selected here, the parents have the same order for all places of the generation.
        self._sampler.get_parent_population(self._study, generation)
        return self._study.get_trials(deepcopy=False)[number]


def _draw(distribution: BaseDistribution, rng: np.random.Generator) -> Value:
    """Draw a value uniformly; on a log scale where the distribution has one."""
    if isinstance(distribution, CategoricalDistribution):
        choice: Value = distribution.choices[rng.integers(len(distribution.choices))]
        return choice
    if isinstance(distribution, IntDistribution):
        # Each whole number has the unit interval around it.
        value = _draw_between(
            distribution.low - 0.5, distribution.high + 0.5, distribution.log, rng
        )
        return int(min(max(round(value), distribution.low), distribution.high))
    if isinstance(distribution, FloatDistribution):
        value = _draw_between(distribution.low, distribution.high, distribution.log, rng)
        return float(min(max(value, distribution.low), distribution.high))
    raise TypeError(f"{distribution!r} is not a distribution of a search space")


def _draw_between(low: float, high: float, is_log: bool, rng: np.random.Generator) -> float:
    """Draw a number uniformly between two others, or its logarithm between theirs."""
    if is_log:
        return math.exp(rng.uniform(math.log(low), math.log(high)))
    return rng.uniform(low, high)
