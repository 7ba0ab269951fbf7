"""Pools to test the Gumbel solver on, and the algorithm written step by step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from edokit import simulate
from edokit.fitdata.data import FitData
from edokit.objective.loss import joint_loss
from edokit.objective.pools import effective_weights, softmax
from edokit.objective.settings import CE, GumbelSteps, ObjectiveSettings
from edokit.objective.summaries import Problem, Summaries
from edokit.solvers import Solution
from edokit.solvers.batches import Draws
from edokit.solvers.gumbel import solve_gumbel
from tests.objective.gradients import effective_weights_vjp, softmax_vjp


class Data(NamedTuple):
    """Predictions with soft and hard labels."""

    P: np.ndarray  # [N, K, C]
    q: np.ndarray  # [N, C]
    y: np.ndarray  # [N]


def fit(data: Data) -> FitData:
    """The data in the form that solvers take."""
    return FitData.from_arrays(*data)


def solve_by_seed(
    data: Data, settings: ObjectiveSettings, options: GumbelSteps, seeds: Iterable[int]
) -> list[Solution]:
    """One configuration with each of the seeds."""
    fit_data = fit(data)
    return [solve_gumbel(fit_data, settings, options, random_state=seed)[0] for seed in seeds]


def random_pool(items: int = 60, members: int = 5, classes: int = 3, seed: int = 0) -> Data:
    """Members that know something of the labels, some more than others."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(classes), size=items)
    q = rng.multinomial(5, truth) / 5
    errors = rng.uniform(0.2, 1.5, members)[:, None] * rng.normal(size=(items, members, classes))
    return Data(softmax(np.log(truth + 1e-3)[:, None] + errors), q, q.argmax(axis=1))


def three_of_ten(seed: int = 0) -> Data:
    """Simulated people; three members close to the truth, seven that know nothing, shuffled."""
    simulation = simulate("partial-panel", random_state=seed)
    rng = np.random.default_rng(seed)
    dev = simulation.annotations.split("dev")
    truth = simulation.truth[simulation.rows("dev")]
    good = np.log(truth + 1e-3)[:, None] + 0.7 * rng.normal(size=(len(truth), 3, 2))
    noise = np.log(truth.mean(axis=0)) + rng.normal(size=(len(truth), 7, 2))
    P = softmax(np.concatenate([good, noise], axis=1))
    return Data(P, dev.soft_labels, dev.hard_labels())


def step_by_step(
    data: Data,
    settings: ObjectiveSettings,
    options: GumbelSteps,
    seed: int,
    steps_between: np.ndarray | None = None,
) -> np.ndarray:
    """The final weights [K] of a configuration for members in order, batch by batch."""
    items, members, _ = data.P.shape
    all_items = Summaries.from_arrays(*data, steps=steps_between)
    draws = Draws(seed)
    sizes = min(options.max_members, members) - options.min_members + 1
    theta = np.zeros(members)
    pi = np.zeros(sizes)
    averages = [np.zeros(members + sizes), np.zeros(members + sizes)]
    steps = 0
    for epoch in range(options.epochs):
        cooled = options.temperature * np.exp(-options.temperature_decay * epoch)
        temperature = max(options.min_temperature, cooled)
        order = draws.shuffle(items)
        for start in range(0, items, options.batch_size):
            batch = order[start : start + options.batch_size]
            batch_data = [part[batch] for part in data]
            problem = Problem.from_arrays(*batch_data, pool=settings.pool, steps=steps_between)
            if steps_between is not None:
                scaled = all_items.rank_products * len(batch) / items  # of all items at every step
                summaries = replace(problem.summaries, rank_products=scaled)
                problem = replace(problem, summaries=summaries)
            if settings.class_weights:
                problem = replace(problem, class_weights=all_items.class_weights())
            soft = softmax((pi + draws.size_noise(1, sizes)[0]) / temperature)
            v = effective_weights(theta, soft, options.min_members)
            noise = None
            if settings.ce is CE.RANDOM:
                width = min(options.batch_size, items)
                noise = draws.member_noise(1, width, members)[0, : len(batch)]
            loss = joint_loss(v, problem, settings, noise=noise, temperature=temperature)
            in_theta, in_sizes = effective_weights_vjp(
                theta, soft, loss.gradient, options.min_members
            )
            gradient = np.concatenate([in_theta, softmax_vjp(soft, in_sizes) / temperature])
            steps += 1
            averages[0] = 0.9 * averages[0] + 0.1 * gradient
            averages[1] = 0.999 * averages[1] + 0.001 * gradient**2
            mean = averages[0] / (1 - 0.9**steps)
            square = averages[1] / (1 - 0.999**steps)
            move = options.learning_rate * mean / (np.sqrt(square) + 1e-8)
            theta = theta - move[:members]
            pi = pi - move[members:]
    size = options.min_members + int(pi.argmax())
    return np.concatenate([softmax(theta[:size]), np.zeros(members - size)])
