"""Answers for a metric: one step after pooling, fitted on the same items as the ensemble.

The pool is the best answer for the cross-entropy. Other metrics reward other answers: the Manhattan
and Wasserstein-1 distances a sharper distribution, F1 the mode (``benchmarks/answers.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from edokit._errors import InputError, one_of
from edokit._types import Bools, Floats, HardLabels, Ints
from edokit.folds import random_folds
from edokit.metrics import item_values
from edokit.objective.pools import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE, sharpen
from edokit.scales import Scale

Step = Literal["temperature", "cumulative-temperature", "mode"]
PositiveCount = Annotated[int, Field(ge=1, le=2**53)]
# Fitted temperatures can exceed the bounds by rounding, so files may, too.
Temperature = Annotated[float, Field(ge=0.99 * LOWEST_TEMPERATURE, le=1.01 * HIGHEST_TEMPERATURE)]
MAX_ITEMS = 5000
"""The largest number of items that steps and penalties are fitted on."""
FOLDS = 5
"""Number of folds in which steps and penalties are compared."""
LOG_TEMPERATURES = np.append(
    0.0, np.linspace(np.log(LOWEST_TEMPERATURE), np.log(HIGHEST_TEMPERATURE), 61)
)
"""Logarithms of the temperatures that are compared; that of 1 is the first."""


def _sharpen_cumulative(p: Floats, temperature: float) -> Floats:
    """Sharpen each cumulative probability of ordered classes, as one of two classes.

    Each cumulative probability F and 1 − F are raised to the power 1/temperature and normalised.
    """
    below = np.clip(np.cumsum(p, axis=1)[:, :-1], 0.0, 1.0)
    rows = np.stack([below, 1.0 - below], axis=-1).reshape(-1, 2)
    sharp = sharpen(rows, temperature)[:, 0].reshape(below.shape)
    return np.asarray(np.clip(np.diff(sharp, axis=1, prepend=0.0, append=1.0), 0.0, 1.0))


def _mode(p: Floats, _: float) -> Floats:
    """All probability on the likeliest class; the temperature has no effect."""
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
"""The metrics that each step serves."""
ANSWERS_FOR = tuple(metric for metrics in _METRICS.values() for metric in metrics)
"""The metrics for which there are answers."""


@dataclass(frozen=True)
class Answer:
    """The step that makes answers for a metric, and what it gained on the fit data.

    Attributes
    ----------
    step : {"temperature", "cumulative-temperature", "mode"}
        ``temperature`` raises the pool to the power 1/temperature; ``cumulative-temperature`` does
        so with each cumulative share of ordered classes; ``mode`` puts all probability on the
        likeliest class (for multi-label data, on each label above one half).
    temperature : float
        A temperature below 1 sharpens the pool; 1 leaves it unchanged.
    before, after : float
        The metric on the fit data without and with the step; in-sample, hence optimistic.
    items : int
        Items that it was fitted on.
    held_out : float or None
        The metric with the step on held-out fifths of the fit data, where each fifth gets the
        temperature that the other four choose. For ``mode``, where nothing is fitted, ``after``.
    """

    step: Step
    temperature: Temperature
    before: float
    after: float
    items: PositiveCount
    held_out: float | None = None

    def __str__(self) -> str:
        """What it does, and what it gained on the fit data."""
        if self.step == "mode":
            description = "the mode"
        elif self.step == "temperature":
            description = f"temperature {self.temperature:.3g}"
        else:
            description = f"temperature {self.temperature:.3g} of cumulative shares"
        values = f"{self.before:.4f} before, {self.after:.4f} after"
        if self.held_out is not None:
            values += f", {self.held_out:.4f} held out"
        return f"{description} (on the fit data {values})"

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
    for step, step_metrics in _METRICS.items():
        metrics = [metric for metric in step_metrics if metric in values]
        if not metrics:
            continue
        temperatures = [1.0]  # of the mode, on which it has no effect
        if step != "mode":
            temperatures = np.exp(LOG_TEMPERATURES[1:]).tolist()
        losses: dict[str, list[Floats]] = {metric: [values[metric](p, q, y)] for metric in metrics}
        for temperature in temperatures:
            changed = Answer(step, temperature, 0.0, 0.0, 1).apply(p, scale)
            for metric in metrics:
                losses[metric].append(values[metric](changed, q, y))
        for metric in metrics:
            before = float(losses[metric][0].mean())
            if step == "mode":  # nothing is fitted
                after = float(losses[metric][1].mean())
                answers[metric] = Answer(step, 1.0, before, after, len(p), held_out=after)
            else:
                temperature, after, held_out = _fit_step(np.array(losses[metric]), groups)
                answers[metric] = Answer(step, temperature, before, after, len(p), held_out)
    return answers


def _fit_step(losses: Floats, groups: Ints | None) -> tuple[float, float, float]:
    """The best temperature by the losses [T, N], its mean loss, and the held-out mean loss.

    For the held-out loss, each fold gets the temperature that is best on the other folds.
    """
    n_items = losses.shape[1]
    best = best_temperature(losses)
    folds = random_folds(n_items, FOLDS, seed=0, groups=groups)
    held_out_losses = np.empty(n_items)
    for fold in np.unique(folds):
        is_held_out = folds == fold
        fold_best = best_temperature(losses, ~is_held_out)
        held_out_losses[is_held_out] = losses[fold_best, is_held_out]
    return (
        float(np.exp(LOG_TEMPERATURES[best])),
        float(losses[best].mean()),
        float(held_out_losses.mean()),
    )


def best_temperature(losses: Floats, is_selected: Bools | None = None) -> int:
    """The position of the best temperature by losses [T, N] on the selected items; None: all items.

    It is the one nearest to 1 whose mean loss is within one standard error of the lowest mean loss.
    So it stays near 1 with few items, and approaches the lowest loss with many
    (``benchmarks/steps.py``). The standard error is that of the mean difference from the losses at
    the lowest mean.
    """
    selection = np.ones(losses.shape[1])
    if is_selected is not None:
        selection = is_selected.astype(np.float64)
    count = max(1.0, selection.sum())
    lowest = (losses @ selection).argmin()
    excess = losses - losses[lowest]
    means = excess @ selection / count
    variances = np.square(excess) @ selection / count - means**2
    within_error = np.flatnonzero(means <= np.sqrt(np.maximum(variances, 0.0) / count))
    nearest = np.abs(LOG_TEMPERATURES[within_error]).argmin()
    return int(within_error[nearest])


def find_answer(metric: Any, answers: Mapping[str, Answer], scale: Scale) -> Answer:
    """Return the step for a metric among those of an ensemble on this scale."""
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
