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

from edokit._errors import InputError, one_of
from edokit._types import Floats, HardLabels, Ints
from edokit.folds import random_folds
from edokit.metrics import item_values
from edokit.objective.pools import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE, sharpen
from edokit.scales import Scale

Step = Literal["temperature", "cumulative-temperature", "mode"]
Positive = Annotated[int, Field(ge=1, le=2**53)]
Temperature = Annotated[float, Field(ge=0.99 * LOWEST_TEMPERATURE, le=1.01 * HIGHEST_TEMPERATURE)]
MAX_ITEMS = 5000
"""Steps, penalties and losses are estimated on at most this many items."""
FOLDS = 5
"""Each fifth of them is held out in turn."""
LOGS = np.append(0.0, np.linspace(np.log(LOWEST_TEMPERATURE), np.log(HIGHEST_TEMPERATURE), 61))
"""Logarithms of the temperatures that are compared, 1 first."""


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
ORDERED_STEP: Step = "cumulative-temperature"
"""The step that needs ordered classes."""
_METRICS: Mapping[Step, tuple[str, ...]] = {
    "temperature": ("ce", "md"),
    ORDERED_STEP: ("w1",),
    "mode": ("f1",),
}
ANSWERS_FOR = tuple(metric for metrics in _METRICS.values() for metric in metrics)
"""Metrics that answers are made for."""


@dataclass(frozen=True)
class Answer:
    """The step that makes answers for a metric, and what it gained on the fit data.

    Attributes
    ----------
    step : {"temperature", "cumulative-temperature", "mode"}
        The pool to the power 1/temperature; the same of each cumulative share of ordered classes;
        or all probability on the likeliest class (for multi-label data: on each label above one
        half).
    temperature : float
        Below 1 sharpens the pool; 1 leaves it unchanged.
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
        if self.held_out is None:
            held_out = ""
        else:
            held_out = f", {self.held_out:.4f} held out"
        return (
            f"{step} (on the fit data {self.before:.4f} before, {self.after:.4f} after{held_out})"
        )

    def apply(self, pooled: Floats, scale: Scale) -> Floats:
        """Return the answers to give [N, C], from the pool [N, C]."""
        rows = _STEPS[self.step](scale.rows(pooled), self.temperature)
        return scale.from_rows(rows, pooled.shape[1])


def fit_answers(
    p: Floats, q: Floats, y: HardLabels, scale: Scale, groups: Ints | None = None
) -> dict[str, Answer]:
    """Return the step for each metric of the scale, fitted on a pool and labels of items.

    Items with the same number in ``groups`` [N] are held out together.
    """
    values = item_values(scale)
    answers = {}
    # Numpy sums over a few classes of many items several times as fast in this layout.
    p = np.asfortranarray(p)
    q = np.asfortranarray(q)
    for step, metrics in _METRICS.items():
        losses = {metric: [values[metric](p, q, y)] for metric in metrics if metric in values}
        if not losses:
            continue
        for temperature in (1.0,) if step == "mode" else np.exp(LOGS[1:]).tolist():
            changed = Answer(step, temperature, 0.0, 0.0, 1).apply(p, scale)
            for metric, rows in losses.items():
                rows.append(values[metric](changed, q, y))
        for metric, rows in losses.items():
            before = float(rows[0].mean())
            if step == "mode":  # nothing is fitted
                temperature = 1.0
                after = held_out = float(rows[1].mean())
            else:
                temperature, after, held_out = _best_temperature(np.array(rows), groups)
            answers[metric] = Answer(step, temperature, before, after, len(p), held_out)
    return answers


def _best_temperature(losses: Floats, groups: Ints | None) -> tuple[float, float, float]:
    """The temperature by the losses [T, N] at each, its mean loss, and that on held-out items.

    On held-out items, each fold takes the temperature that the others choose.
    """
    items = losses.shape[1]
    folds = random_folds(items, FOLDS, seed=0, groups=groups)
    without_fold = [folds != fold for fold in range(min(FOLDS, items))]
    best, *by_fold = least_steps(losses, np.array([folds >= 0, *without_fold], dtype=np.float64))
    held_out = losses[np.array(by_fold)[folds], np.arange(items)]
    return float(np.exp(LOGS[best])), float(losses[best].mean()), float(held_out.mean())


def least_steps(losses: Floats, selections: Floats) -> list[int]:
    """The best of the temperatures by losses [T, N] for each selection [S, N] of items (0 or 1).

    It is the one nearest to 1 whose mean loss is within one standard error of the lowest: few items
    hardly move it, many reach the lowest loss (``benchmarks/steps.py``). The error is that of the
    difference from the lowest, item by item.
    """
    steps = []
    for selection in selections:
        count = max(1.0, selection.sum())
        excess = losses - losses[(losses @ selection).argmin()]
        means = excess @ selection / count
        variances = np.square(excess, out=excess) @ selection / count - means**2
        near = np.flatnonzero(means <= np.sqrt(np.maximum(variances, 0.0) / count))
        steps.append(int(near[np.abs(LOGS[near]).argmin()]))
    return steps


def find_answer(metric: Any, answers: Mapping[str, Answer], scale: Scale) -> Answer:
    """Return the step for this metric, of an ensemble with these answers on this scale."""
    one_of("answer_for", metric, ANSWERS_FOR)
    if metric not in answers:
        raise InputError(
            f"{metric} is a distance on an ordinal scale, but the answers of this ensemble are"
            f" {scale.kind}",
            f"choose {', '.join(answers)}, or fit again on an ordinal scale"
            " (`edo fit --scale ordinal`)",
            code="unordered-scale",
        )
    return answers[metric]
