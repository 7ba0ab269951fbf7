"""Answers for a metric: one step after pooling, fitted on the items that the ensemble is fitted on.

The pool is the best answer for the cross-entropy. Other metrics reward another one: Manhattan and
Wasserstein-1 distances a sharper distribution, F1 the mode (``benchmarks/answers.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from edokit._errors import InputError, one_of, warn
from edokit._types import Floats
from edokit.metrics import item_values
from edokit.objective.pools import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE, sharpen
from edokit.scales import Scale

Step = Literal["temperature", "cumulative-temperature", "mode"]
Positive = Annotated[int, Field(ge=1, le=2**53)]
Temperature = Annotated[float, Field(ge=0.99 * LOWEST_TEMPERATURE, le=1.01 * HIGHEST_TEMPERATURE)]
MAX_ITEMS = 5000
"""Steps, penalties and costs are estimated on so many items at most."""
FOLDS = 5
"""Each fifth of them is held out in turn."""
_GRID = 61  # temperatures that are compared


def _sharpen_cumulative(p: Floats, temperature: float) -> Floats:
    """Ordered classes: each cumulative share and its rest to the power 1/temperature."""
    below = np.clip(np.cumsum(p, axis=1)[:, :-1], 0.0, 1.0)
    rows = np.stack([below, 1.0 - below], axis=-1).reshape(-1, 2)
    sharp = sharpen(rows, temperature)[:, 0].reshape(below.shape)
    return np.asarray(np.clip(np.diff(sharp, axis=1, prepend=0.0, append=1.0), 0.0, 1.0))


def _mode(p: Floats, _: float) -> Floats:
    return np.asarray(np.eye(p.shape[1])[p.argmax(axis=1)])


_STEPS: Mapping[Step, Callable[[Floats, float], Floats]] = {
    "temperature": sharpen,
    "cumulative-temperature": _sharpen_cumulative,
    "mode": _mode,
}
STEPS = tuple(_STEPS)
"""Names of the steps."""
ORDERED_STEP: Step = "cumulative-temperature"
"""The step that needs ordered classes."""
_STEP_FOR: dict[str, Step] = {
    "ce": "temperature",
    "md": "temperature",
    "w1": ORDERED_STEP,
    "f1": "mode",
}
ANSWERS_FOR = tuple(_STEP_FOR)
"""Metrics that answers are made for."""


@dataclass(frozen=True)
class Answer:
    """The step that makes answers for a metric, and what it gained on the fit data.

    Attributes
    ----------
    step : {"temperature", "cumulative-temperature", "mode"}
        The pool to the power 1/temperature; the same of each cumulative share of ordered classes;
        or all probability on the likeliest class (of sets: on each label above one half).
    temperature : float
        Below 1 sharpens; 1 leaves the pool as it is.
    before, after : float
        The metric on the fit data without and with the step (in-sample, hence optimistic).
    items : int
        Items that it was fitted on.
    held_out : float or None
        The metric with the step on fifths of the fit data, each fitted on the other four (with a
        coarser choice of temperatures).
    """

    step: Step
    temperature: Temperature
    before: float
    after: float
    items: Positive
    held_out: float | None = None

    def __str__(self) -> str:
        """What it does, and what it gained on the fit data."""
        step = {
            "temperature": f"temperature {self.temperature:.3g}",
            "cumulative-temperature": f"temperature {self.temperature:.3g} of cumulative shares",
            "mode": "the mode",
        }[self.step]
        held_out = "" if self.held_out is None else f", {self.held_out:.4f} held out"
        return (
            f"{step} (on the fit data {self.before:.4f} before, {self.after:.4f} after{held_out})"
        )

    def apply(self, pooled: Floats, scale: Scale) -> Floats:
        """Return the answers to give [N, C], from the pool [N, C]."""
        rows = _STEPS[self.step](scale.rows(pooled), self.temperature)
        return scale.from_rows(rows, pooled.shape[1])


def fit_answers(p: Floats, q: Floats, y: Any, scale: Scale) -> dict[str, Answer]:
    """Return the step for each metric of the scale, fitted on a pool and labels of items."""
    values, answers = item_values(scale), {}
    for metric, step in _STEP_FOR.items():
        if metric not in values:
            continue

        def losses_at(temperature: float, step: Step = step, metric: str = metric) -> Floats:
            sharpened = Answer(step, temperature, 0.0, 0.0, 1).apply(p, scale)
            return np.asarray(values[metric](sharpened, q, y))

        before = values[metric](p, q, y)
        if step == "mode":  # nothing is fitted
            after = held_out = float(losses_at(1.0).mean())
            temperature = 1.0
        else:
            temperature, after, held_out = _best_temperature(losses_at, before)
        answers[metric] = Answer(step, temperature, float(before.mean()), after, len(p), held_out)
    return answers


def _best_temperature(
    losses_at: Callable[[float], Floats], at_one: Floats
) -> tuple[float, float, float]:
    """The temperature for a metric, its mean loss, and the loss on held-out items.

    The temperature is the one nearest to 1 whose mean loss is within one standard error of the
    lowest: few items hardly move it, many reach the lowest loss (``benchmarks/steps.py``).
    """
    low, high = np.log(LOWEST_TEMPERATURE), np.log(HIGHEST_TEMPERATURE)
    logs = np.append(0.0, np.linspace(low, high, _GRID))
    losses = np.array([at_one, *(losses_at(float(np.exp(log))) for log in logs[1:])])
    best = _least_step(losses, np.abs(logs))
    return float(np.exp(logs[best])), float(losses[best].mean()), _held_out(losses, logs)


def _least_step(losses: Floats, steps: Floats) -> int:
    """The smallest of the steps [T] within one standard error of the lowest mean of losses [T, N].

    The error is that of the difference from the lowest, item by item.
    """
    excess = losses - losses[losses.mean(axis=1).argmin()]
    error = excess.std(axis=1) / np.sqrt(excess.shape[1])
    near = np.flatnonzero(excess.mean(axis=1) <= error)
    return int(near[steps[near].argmin()])


def _held_out(losses: Floats, logs: Floats) -> float:
    """Mean loss where each fold takes the step that the others choose; [T, N] losses."""
    folds = np.random.default_rng(0).permutation(losses.shape[1]) % FOLDS
    held_out = np.empty(losses.shape[1])
    for fold in np.unique(folds):
        is_held_out = folds == fold
        # A single item leaves nothing to choose by.
        best = 0 if is_held_out.all() else _least_step(losses[:, ~is_held_out], np.abs(logs))
        held_out[is_held_out] = losses[best, is_held_out]
    return float(held_out.mean())


def find_answer(metric: Any, answers: Mapping[str, Answer], scale: Scale) -> Answer:
    """Return the step for this metric, of an ensemble with these answers on this scale."""
    one_of("answer_for", metric, ANSWERS_FOR)
    if metric not in answers:
        raise InputError(
            f"{metric} is a distance on an ordinal scale, but the answers of this ensemble are"
            f" {scale.kind}",
            f"choose {', '.join(answers)}, or fit again on an ordinal scale"
            " (`edo fit --scale ordinal`)",
        )
    answer = answers[metric]
    if answer.temperature < 1.01 * LOWEST_TEMPERATURE:
        warn(
            f"the step for {metric} has the lowest temperature that is tried, so that its answers"
            f" are next to certain: {answer}"
        )
    return answer
