"""`compare`: methods side by side, fitted on one sample of items, evaluated once on another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from edokit._errors import InputError, option
from edokit._progress import Progress, no_progress
from edokit.analysis.compare.method import EDO, find_method, method_names
from edokit.analysis.compare.methods.constant import ConstantAnswer
from edokit.analysis.compare.options import CompareOptions
from edokit.analysis.compare.result import ComparedData, Comparison
from edokit.analysis.compare.samples import (
    Samples,
    align_extra_pool,
    read_samples,
    read_test_samples,
)
from edokit.analysis.compare.statistics import (
    Candidate,
    MethodFit,
    correct_tests,
    fit_methods,
    score_whole_metrics,
)
from edokit.analysis.scores.result import CONSTANT, UNIFORM
from edokit.analysis.scores.statistics import score_methods
from edokit.annotations.core import Annotations
from edokit.datasets.item_groups import item_clusters
from edokit.fitdata.inputs import load_annotations
from edokit.fitdata.reading import LabelsLike, PredictionsLike, ReadOptions, separate_settings
from edokit.item_array import Order
from edokit.metrics import METRIC, best_possible, main_metrics
from edokit.metrics.registry import checked_names
from edokit.metrics.resampling import Resampling
from edokit.predictions.core import Predictions
from edokit.scales import Scale

SOFT = "soft"
"""The row of the best member that learned soft labels; also the supervision of such members."""

_SLOW = "a search that takes seconds to minutes; ask for it by name, or for all methods"


def compare(
    predictions: PredictionsLike,
    annotations: LabelsLike,
    test_predictions: PredictionsLike | None = None,
    test_annotations: LabelsLike = None,
    options: CompareOptions | None = None,
    *,
    split: str | Sequence[str] | None = None,
    test_split: str | Sequence[str] | None = None,
    train_split: str | Sequence[str] | None = None,
    order: Order | None = None,
    extra: Mapping[str, tuple[PredictionsLike, PredictionsLike]] | None = None,
    progress: Progress = no_progress,
    **settings: object,
) -> Comparison:
    """Fit EDO and every baseline on the same members and evaluate them once on test items.

    Without test items they are cross-validated: every item is evaluated by methods that were fitted
    on the items of other folds, and near-duplicate texts share a fold.

    Parameters
    ----------
    predictions : Predictions, array of shape (N, K, C), str or Path
        The members' predictions of the items to fit on (dev), or a file of them.
    annotations : Annotations, array, str or Path
        The annotations of these items, or a file that `read_annotations` reads.
    test_predictions : Predictions, array of shape (M, K, C), str or Path, default=None
        The same members' predictions of the items to evaluate on. None: cross-validation; the
        members should not have been trained on the items, as in ``fit.npz`` of a cross-fit.
    test_annotations : Annotations, array, str or Path, default=None
        The annotations of these; ``annotations`` if None.
    options : CompareOptions, default=None
        Which methods are compared, and how.
    split, test_split : str or sequence of str, default=None
        Only these splits of ``annotations`` and of ``test_annotations``.
    train_split : str or sequence of str, default=None
        The splits of ``annotations`` that the members were trained on; the constant answer then has
        their shares, else those of the items to fit on.
    order : {"annotations"}, default=None
        If only the predictions or only the annotations have item ids, they are refused, unless this
        declares that the rows of both are in the same order.
    extra : mapping of str to (predictions, test_predictions), default=None
        Other pools of members on the same items (without test predictions: the predictions twice).
        Each gives a row ``NAME``, the uniform mean of its members, and, if there are several,
        ``edo:NAME``.
    progress : callable, default=no_progress
        Called before each fit with the methods done, their number, and the name of the next.
    **settings
        Single fields of `CompareOptions`, such as ``seeds=5`` or ``metrics=["ce", "macro_f1"]``,
        and further arguments of `read_annotations`, such as ``columns`` or ``classes``, for
        annotations that are files.

    Returns
    -------
    Comparison
        A score per method, with intervals and paired tests against ``uniform`` and ``constant``. A
        method that these data do not allow is left out, with the reason in ``skipped``.

    Raises
    ------
    InputError
        If predictions and annotations do not match, dev and test share items, or a name is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from edokit import compare
    >>> rng = np.random.default_rng(0)
    >>> def sample(n):
    ...     share = rng.random(n)
    ...     labels = (rng.random((n, 5)) < share[:, None]).astype(int)
    ...     members = [np.clip(share + rng.normal(0, s, n), 0.05, 0.95) for s in (0.1, 0.2, 0.8)]
    ...     p = np.stack(members, axis=1)
    ...     return np.stack([1 - p, p], axis=2), labels
    >>> methods = ["best-single", "edo"]
    >>> comparison = compare(*sample(80), *sample(80), methods=methods, samples=200)
    >>> [score.name for score in comparison.scores]
    ['constant', 'uniform', 'best-single', 'edo']
    >>> comparison["edo"].ce < comparison["uniform"].ce
    True
    """
    changes, arguments = separate_settings(settings, CompareOptions)
    options = replace(options or CompareOptions(), **changes)
    reading = ReadOptions.from_arguments(arguments, split=split, order=order)
    if test_predictions is None:
        _refuse_test_options(test_annotations, test_split)
        data = read_samples(predictions, annotations, reading, options)
    else:
        data = read_test_samples(
            predictions,
            annotations,
            reading,
            test_predictions,
            annotations if test_annotations is None else test_annotations,
            replace(reading, split=test_split),
        )
    if train_split is not None:
        data = _with_train_labels(data, annotations, replace(reading, split=train_split))

    names, skipped = _requested_methods(options.methods)
    candidates = _method_candidates(names, data)
    extra_pools = {} if extra is None else extra
    soft_candidate = _soft_candidate(data)
    if soft_candidate is not None and SOFT not in extra_pools:
        candidates.append(soft_candidate)
    for name, pool in extra_pools.items():
        candidates.extend(_pool_candidates(name, pool, data, reading, with_edo=EDO in names))
    metrics = _requested_metrics(options.metrics, data.scale)
    fits, failures = fit_methods(candidates, data, options, metrics.item_means, progress)

    losses = {fit.score.name: fit.losses for fit in fits}
    clusters = item_clusters(data.test_labels)
    if options.correct == "holm":
        options = _with_enough_samples(options, len(fits) * len(metrics.names))
    resampling = Resampling(options.samples, options.level, options.random_state, clusters)
    scores = score_methods(
        [fit.score for fit in fits], losses, UNIFORM, resampling, data.scale, metrics.item_means
    )
    scores = score_whole_metrics(
        scores, fits, metrics.whole_set, data.test_labels, options, clusters
    )
    if options.correct == "holm":
        scores = correct_tests(scores, metrics.names)
    probabilities = np.stack([fit.probabilities for fit in fits], axis=1)
    return Comparison(
        scores=tuple(scores),
        fitted={fit.score.name: fit.method for fit in fits},
        test_predictions=Predictions(
            probabilities, data.test.rows, tuple(losses), data.classes, scale=data.scale
        ),
        data=_compared_data(data, options, fits, metrics),
        skipped=skipped | failures,
        inputs=data.inputs,
        losses=losses,
        clusters=clusters,
    )


def _with_train_labels(data: Samples, annotations: LabelsLike, reading: ReadOptions) -> Samples:
    """The data with ``train_labels``, read from these annotations."""
    if not isinstance(annotations, Annotations | str | Path):
        raise InputError(
            f"{option('train_split')} needs annotations with splits, but they are an array",
            "give Annotations, or the path to a table",
            code="missing-splits",
        )
    train = load_annotations(annotations, reading, "train_annotations")
    labels = train.annotations.with_classes(data.classes)
    return replace(data, train_labels=labels, inputs={**data.inputs, **train.inputs})


def _refuse_test_options(
    test_annotations: LabelsLike, test_split: str | Sequence[str] | None
) -> None:
    """Refuse options about test items, where there are no test predictions."""
    for name, value in {"test_annotations": test_annotations, "test_split": test_split}.items():
        if value is not None:
            raise InputError(
                f"{option(name)} is about test items, but there is no {option('test_predictions')}",
                "add test predictions, or leave this out to cross-validate",
                code="missing-option",
            )


@dataclass(frozen=True)
class _RequestedMetrics:
    """Metrics of a comparison.

    Tables show ``names``. Computed are these and the main metrics: ``item_means``, which are means
    over items, and ``whole_set``, which are not.
    """

    names: tuple[str, ...]
    item_means: tuple[str, ...]
    whole_set: tuple[str, ...]


def _requested_metrics(names: Iterable[str] | None, scale: Scale) -> _RequestedMetrics:
    """The metrics that were asked for, and the main metrics of the scale."""
    main = main_metrics(scale)
    if names is None:
        return _RequestedMetrics(main, main, ())
    requested = tuple(dict.fromkeys(checked_names(names, scale)))
    item_means = list(main)
    whole_set: list[str] = []
    for name in requested:
        if name in main:
            continue
        if METRIC[name].is_mean:
            item_means.append(name)
        else:
            whole_set.append(name)
    return _RequestedMetrics(requested, tuple(item_means), tuple(whole_set))


def _with_enough_samples(options: CompareOptions, tests: int) -> CompareOptions:
    """The options, with enough samples that a corrected p-value can be below 1 − ``level``.

    The smallest p-value of twice as many sign flips, 1 / (1 + 2 · samples), is multiplied by the
    number of tests.
    """
    enough = math.ceil(tests / (1 - options.level))
    if options.samples == 0 or options.samples >= enough:
        return options
    return replace(options, samples=enough)


def _requested_methods(
    methods: Iterable[str] | Literal["all"] | None,
) -> tuple[list[str], dict[str, str]]:
    """The methods to compare in the order of the table, and why others are left out."""
    registered = method_names()
    if methods is None:
        fast = [name for name in registered if not find_method(name).slow]
        return fast, {name: _SLOW for name in registered if name not in fast}
    requested = [methods] if isinstance(methods, str) else list(methods)
    if "all" in requested:
        requested = [*registered, *(name for name in requested if name != "all")]
    names = dict.fromkeys((CONSTANT, UNIFORM))
    for name in requested:
        names[find_method(name).name] = None
    in_order = [name for name in registered if name in names]
    in_order.extend(name for name in names if name not in registered)
    return in_order, {}


def _method_candidates(names: Sequence[str], data: Samples) -> list[Candidate]:
    """These methods, to fit on all members."""
    candidates: list[Candidate] = []
    for name in names:
        candidates.append(Candidate(name, find_method(name).description, name, data.dev, data.test))
    return candidates


def _soft_candidate(data: Samples) -> Candidate | None:
    """The best single member of those that learned soft labels; None if there are none."""
    members: list[str] = []
    for name in data.dev.members:
        info = data.dev.member_info.get(name, {})
        if info.get("supervision") == SOFT:
            members.append(name)
    if not members:
        return None
    return Candidate(
        name=SOFT,
        description="the soft-label member with the lowest CE on dev",
        method="best-single",
        dev=data.dev.select(members),
        test=data.test.select(members),
    )


def _pool_candidates(
    name: str,
    pool: tuple[PredictionsLike, PredictionsLike],
    data: Samples,
    reading: ReadOptions,
    *,
    with_edo: bool,
) -> list[Candidate]:
    """The uniform mean of another pool of members and, if it has several, EDO on them."""
    if ":" in name or not name or name in method_names():
        raise InputError(
            f"{option('extra')}: the name of a pool is empty, has a colon or is the name of a"
            f" method: {name!r}",
            "choose another name",
            code="invalid-name",
        )
    if not isinstance(pool, tuple | list) or len(pool) != 2:
        raise InputError(
            f"{option('extra')}: the pool {name!r} must be a pair (predictions, test predictions)",
            "without test predictions, give the predictions twice",
            code="invalid-option",
        )
    dev, test = align_extra_pool(name, pool, data, reading)
    count = len(dev.members)
    if count == 1:
        return [Candidate(name, f"{name} alone", UNIFORM, dev, test)]
    description = f"the uniform mean of the {count} {name} members"
    candidates = [Candidate(name, description, UNIFORM, dev, test)]
    if with_edo:
        description = f"EDO on the {count} {name} members"
        candidates.append(Candidate(f"{EDO}:{name}", description, EDO, dev, test))
    return candidates


def _compared_data(
    data: Samples,
    options: CompareOptions,
    fits: Sequence[MethodFit],
    metrics: _RequestedMetrics,
) -> ComparedData:
    """What the result says of the data, and of how methods were evaluated."""
    labels = data.test_labels
    hard = labels.hard_labels(ties=options.ties, random_state=options.random_state)
    constant = next(fit.method for fit in fits if isinstance(fit.method, ConstantAnswer))
    return ComparedData(
        items={"dev": len(data.dev.rows.items), "test": len(data.test.rows.items)},
        rows={"dev": len(data.dev.rows), "test": len(data.test.rows)},
        ties=int(labels.tied.sum()),
        members=len(data.dev.members),
        classes=data.classes,
        scale=data.scale,
        constant=constant.constant_,
        best_possible=best_possible(
            labels.soft_labels,
            hard,
            metrics=[*metrics.item_means, *metrics.whole_set],
            scale=data.scale,
        ),
        folds=None if data.folds is None else options.folds,
        level=options.level,
        samples=options.samples,
        seed=options.random_state,
        metrics=metrics.names,
        seeds=options.seeds,
        correct=options.correct,
    )
