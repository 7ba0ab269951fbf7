"""`plan`: how many annotators an item needs, and how many items a budget should buy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from edokit._errors import InputError, option
from edokit._types import Floats
from edokit.analysis.human_labels import HumanLabels, match_jury
from edokit.analysis.plan import text
from edokit.analysis.plan.comparison import detectable, difference_spreads
from edokit.analysis.plan.learning import FEWEST_TEXTS, planned_losses, train_on_parts
from edokit.analysis.plan.options import PlanOptions
from edokit.analysis.plan.result import CurveRow, Plan
from edokit.analysis.plan.soft_labels import soft_label_errors
from edokit.datasets.item_groups import item_clusters
from edokit.fitdata.inputs import load_annotations, load_predictions
from edokit.fitdata.reading import (
    AnnotationsLike,
    PredictionsLike,
    ReadOptions,
    separate_settings,
)
from edokit.item_array import Order
from edokit.metrics import headline_metric
from edokit.metrics.resampling import central_interval
from edokit.predictions.core import Predictions

# Means are resampled this many times as often: it is fast, and decisions then hardly depend on the
# seed.
_MORE_SAMPLES = 10
# Variances of labels that are not zero by rounding alone.
_ROUNDING = 1e-12


def plan(
    annotations: AnnotationsLike,
    options: PlanOptions | None = None,
    *,
    predictions: PredictionsLike | None = None,
    split: str | Sequence[str] | None = None,
    order: Order | None = None,
    **settings: object,
) -> Plan:
    """Plan annotation from a pilot: how many annotators an item needs, and how many items.

    Near-duplicate texts and items of a group are kept together where the pilot is resampled.

    Parameters
    ----------
    annotations : Annotations, table, str or Path
        The pilot, of which some items have two annotators or more.
    options : PlanOptions, default=None
        Costs of annotation, and samples and intervals of the plan.
    predictions : Predictions, array of shape (N, K, C), str or Path, default=None
        Answers of models to the items of the pilot: the two best are what a comparison compares
        (a single one is compared with a constant answer).
    split : str or sequence of str, default=None
        Only these splits of the annotations.
    order : {"annotations"}, default=None
        If only the predictions or only the annotations have item ids, they are refused, unless this
        declares that the rows of both are in the same order.
    **settings
        Single fields of `PlanOptions`, such as ``budget=500``, and further arguments of
        `read_annotations` for annotations that are files.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If no item has two annotators, the budget buys no item, or items and classes of the
        predictions do not match.

    Examples
    --------
    >>> import edokit
    >>> pilot = edokit.simulate("crowd", random_state=0, items=(150, 1, 1)).annotations
    >>> plan = edokit.plan(pilot, budget=600, annotators=(1, 3, 9), train=False)
    >>> [(row["annotators"], row["items"]) for row in plan.curve]
    [(1, 600), (3, 200), (9, 66)]
    >>> errors = [row["soft_label"]["md"][0] for row in plan.curve]
    >>> errors[0] > errors[1] > errors[2]
    True
    """
    changes, arguments = separate_settings(settings, PlanOptions)
    options = replace(options or PlanOptions(), **changes)
    reading = ReadOptions.from_arguments(arguments, split=split, order=order)
    pilot = load_annotations(annotations, reading).annotations
    jury = None
    if predictions is not None:
        jury, pilot = match_jury(load_predictions(predictions, reading, pilot), pilot)
    labels = HumanLabels(pilot)
    if not labels.has_several.any():
        raise InputError(
            "no item of the pilot has labels of two annotators, so it does not show how much they"
            " differ",
            "have at least 50 items labelled by two annotators or more",
            code="too-few-labels",
        )
    item_groups = item_clusters(pilot)
    if item_groups is not None:
        item_groups = np.unique(item_groups, return_inverse=True)[1]
    if options.budget is None:
        cost = len(pilot) * options.price + len(pilot.items) * options.item_price
        options = replace(options, budget=cost)
    counts = _affordable_counts(options)
    item_counts = [options.items(count) for count in counts]
    metric = headline_metric(pilot.scale)
    samples = _MORE_SAMPLES * options.samples
    notes = []
    comparison: dict[str, Floats] = {}
    compared: list[str] = []
    if jury is None:
        notes.append(text.NO_PREDICTIONS)
    else:
        compared, models = _models_to_compare(jury, labels)
        spreads = difference_spreads(labels, *models, counts, samples, item_groups)
        for name, spread in spreads.items():
            comparison[name] = detectable(spread, item_counts, options.level, options.power)
    model: dict[str, Floats] = {}
    if options.train:
        if pilot.texts is None:
            notes.append(text.NO_TEXTS)
        elif len(pilot.items) < FEWEST_TEXTS:
            notes.append(text.FEW_TEXTS)
        else:
            rng = np.random.default_rng(options.random_state)
            runs = train_on_parts(pilot, labels, rng, item_groups)
            model[metric] = planned_losses(runs, item_counts, counts, samples, rng)
    if not (labels.variance > _ROUNDING).any():
        notes.append(text.unanimous_note(int(labels.has_several.sum())))
    soft_label = soft_label_errors(
        labels,
        counts,
        options.samples,
        options.random_state,
        level=options.level,
        item_groups=item_groups,
    )
    curve: list[CurveRow] = []
    for position, count in enumerate(counts):
        curve.append(
            {
                "annotators": count,
                "items": item_counts[position],
                "soft_label": {name: error.at(position) for name, error in soft_label.items()},
                "comparison": _estimates(comparison, position, options.level),
                "model": _estimates(model, position, options.level),
            }
        )
    best = {}
    if metric in model:
        best["model"] = best_counts(model[metric], counts, options.level)
    if metric in comparison:
        best["comparison"] = best_counts(comparison[metric], counts, options.level)
    return Plan(
        items=len(pilot.items),
        labels=len(pilot),
        scale=pilot.scale.kind,
        metric=metric,
        budget=float(options.budget or 0),
        price=options.price,
        item_price=options.item_price,
        level=options.level,
        power=options.power,
        curve=curve,
        best=best,
        compared=compared,
        notes=notes,
    )


def _affordable_counts(options: PlanOptions) -> list[int]:
    """The numbers of annotators for which the budget buys an item."""
    counts = [count for count in sorted(set(options.annotators)) if options.items(count) > 0]
    if not counts:
        raise InputError(
            f"{option('budget', options.budget)} does not buy the labels of one item",
            f"raise it, or lower {option('annotators')}",
            code="invalid-number",
        )
    return counts


def _estimates(
    samples: Mapping[str, Floats], position: int, level: float
) -> dict[str, list[float]]:
    """By metric, estimate and interval of one column of resampled values [samples, counts]."""
    estimates = {}
    for name, values in samples.items():
        column = values[:, position]
        estimates[name] = [float(np.median(column)), *central_interval(column, level)]
    return estimates


def best_counts(samples: Floats, counts: Sequence[int], level: float) -> list[int]:
    """The number of annotators with the lowest value, then the others that are not clearly worse.

    ``samples`` [samples, counts] are resampled values. A number is clearly worse if the lower end
    of its difference to the lowest one is above 0.
    """
    lowest = int(np.median(samples, axis=0).argmin())
    differences = np.quantile(samples - samples[:, [lowest]], (1 - level) / 2, axis=0)
    best = [counts[lowest]]
    for position, count in enumerate(counts):
        if position != lowest and differences[position] <= 0:
            best.append(count)
    return best


def _models_to_compare(
    jury: Predictions, labels: HumanLabels
) -> tuple[list[str], tuple[Floats, Floats]]:
    """The two members with the lowest loss and their probabilities [N, C].

    A single member is compared with a constant answer.
    """
    P = np.asarray(jury.probabilities, dtype=np.float64)
    if P.shape[1] == 1:
        constant = np.tile(labels.shares.mean(axis=0), (len(P), 1))
        return [jury.members[0], "a constant answer"], (P[:, 0], constant)
    losses = [labels.losses(P[:, k]).mean() for k in range(P.shape[1])]
    best, second = np.argsort(losses, kind="stable")[:2]
    return [jury.members[best], jury.members[second]], (P[:, best], P[:, second])
