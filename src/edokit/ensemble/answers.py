"""Answers for a metric: one step after pooling, fitted on the items that the ensemble is fitted on.

The pool is the best answer for the cross-entropy. Other metrics reward another one: Manhattan and
Wasserstein-1 distances a sharper distribution, F1 the mode (``benchmarks/answers.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from edokit._errors import InputError, one_of
from edokit._types import Floats, Ints
from edokit.metrics import ce, f1, md, w1
from edokit.objective import sharpen
from edokit.objective.pools import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE
from edokit.scales import Scale

AnswerFor = Literal["ce", "md", "w1", "f1"]
"""Metrics that answers are made for."""
ITEMS = 5000
"""A step is fitted on so many items at most."""
_COARSE, _FINE, _ROUNDS = 41, 9, 3  # temperatures that are compared


def _sharpen_cumulative(p: Floats, temperature: float) -> Floats:
    """Ordered classes: each cumulative share and its rest to the power 1/temperature."""
    below = np.clip(np.cumsum(p, axis=1)[:, :-1], 0.0, 1.0)
    rows = np.stack([below, 1.0 - below], axis=-1).reshape(-1, 2)
    sharp = sharpen(rows, temperature)[:, 0].reshape(below.shape)
    return np.asarray(np.clip(np.diff(sharp, axis=1, prepend=0.0, append=1.0), 0.0, 1.0))


def _mode(p: Floats, _: float) -> Floats:
    return np.asarray(np.eye(p.shape[1])[p.argmax(axis=1)])


_STEPS: Mapping[str, Callable[[Floats, float], Floats]] = {
    "temperature": sharpen,
    "cumulative-temperature": _sharpen_cumulative,
    "mode": _mode,
}
STEPS = tuple(_STEPS)
"""Names of the steps."""
ORDERED_STEP = "cumulative-temperature"
"""The step that needs ordered classes."""


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
    """

    step: str
    temperature: float
    before: float
    after: float
    items: int

    def __str__(self) -> str:
        """What it does, and what it gained on the fit data."""
        what = {
            "temperature": f"temperature {self.temperature:.3g}",
            "cumulative-temperature": f"temperature {self.temperature:.3g} of cumulative shares",
            "mode": "the mode",
        }[self.step]
        return f"{what}, {self.before:.4f} -> {self.after:.4f} on the fit data"

    def apply(self, pooled: Floats, scale: Scale) -> Floats:
        """Return the answers to give [N, C], from the pool [N, C]."""
        made = _STEPS[self.step](scale.rows(pooled), self.temperature)
        return scale.from_rows(made, pooled.shape[1])


def fit_answers(p: Floats, q: Floats, y: Ints, scale: Scale, items: int) -> dict[str, Answer]:
    """Return the step for each metric of the scale, fitted on rows p, q [n, C] and y [n]."""
    metrics: dict[str, tuple[str, Callable[[Floats], float]]] = {
        "ce": ("temperature", lambda made: ce(made, q)),
        "md": ("temperature", lambda made: md(made, q)),
        "f1": ("mode", lambda made: f1(made, y)),
    }
    if scale.positions is not None:
        metrics["w1"] = (ORDERED_STEP, lambda made: w1(made, q, scale.positions))
    found = {}
    for metric, (step, value) in metrics.items():
        before = value(p)
        if step == "mode":
            found[metric] = Answer(step, 1.0, before, value(_mode(p, 1.0)), items)
            continue
        temperature, after = _lowest(partial(_value_at, p, step, value), before)
        found[metric] = Answer(step, temperature, before, after, items)
    return found


def _value_at(p: Floats, step: str, value: Callable[[Floats], float], temperature: float) -> float:
    return value(_STEPS[step](p, temperature))


def _lowest(value: Callable[[float], float], at_one: float) -> tuple[float, float]:
    """The temperature with the lowest value, which may have several local minima, and the value."""
    low, high = np.log(LOWEST_TEMPERATURE), np.log(HIGHEST_TEMPERATURE)
    best, least = 0.0, at_one
    for count in (_COARSE, *[_FINE] * _ROUNDS):
        for log in np.linspace(low, high, count):
            if (found := value(float(np.exp(log)))) < least:
                best, least = float(log), found
        width = (high - low) / (count - 1)
        low, high = max(best - width, low), min(best + width, high)
    return float(np.exp(best)), least


def find_answer(metric: Any, answers: Mapping[str, Answer] | None, scale: Scale) -> Answer:
    """Return the step for this metric, of an ensemble with these answers on this scale."""
    one_of("answer_for", metric, get_args(AnswerFor))
    if answers is None:
        raise InputError(
            "this ensemble was saved by an earlier version, without answers for a metric",
            "fit it again (`edo fit`)",
            parameters=("answer_for",),
        )
    if metric not in answers:
        raise InputError(
            f"{metric} is a distance on an ordinal scale, but the answers of this ensemble are"
            f" {scale.kind}",
            f"choose {', '.join(answers)}, or fit again on an ordinal scale"
            " (`edo fit --scale ordinal`)",
            parameters=("answer_for",),
        )
    return answers[metric]
