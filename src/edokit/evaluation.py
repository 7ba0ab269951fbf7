"""Evaluation of probabilities against annotations: all metrics, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from edokit._errors import InputError, examples, warn
from edokit._types import Codes, Floats
from edokit.annotations import Annotations, Ties
from edokit.baselines.methods import ConstantAnswer
from edokit.baselines.scores import Score, constant_of, score_answers, worth
from edokit.baselines.slices import Slice, find_slices, score_slices, worst_slice
from edokit.ensemble import EDOEnsemble
from edokit.ensemble.fitted import Constant
from edokit.ensemble.inputs import as_predictions, select_members
from edokit.metrics import (
    MAIN_METRICS,
    Interval,
    annotator_errors,
    bootstrap,
    compute_metrics,
    entropy,
    entropy_items,
)
from edokit.predictions import Predictions, model_from_table, read_model_file
from edokit.runs import InputReader

FEWEST_SAMPLES = 50
"""With fewer resamples the ends of an interval are mostly noise."""
Table: TypeAlias = pd.DataFrame | pa.Table | Mapping[str, Any]


@dataclass(frozen=True)
class Evaluation:
    """Metrics of one set of probabilities, as `edokit.evaluate` returns them."""

    items: int
    """Number of items."""
    metrics: dict[str, float | None]
    """Metrics by name; None where undefined."""
    ce_floor: float
    """Lowest possible CE: the mean entropy of the soft labels."""
    level: float
    """Level of the intervals."""
    intervals: dict[str, Interval]
    """Bootstrap interval of each metric; empty where there are none."""
    annotators: list[dict[str, Any]]
    """Number of labels ``n``, ``ce`` and ``error`` of the predictions for each ``annotator``."""
    scores: tuple[Score, ...]
    """F1, CE, MD and BS of the probabilities (``edo`` where an ensemble made them), of ``uniform``
    where members' predictions were given, and of ``constant``, with paired tests between them."""
    constant: Constant
    """The constant answer."""
    slices: tuple[Slice, ...] = ()
    """The same by the values of item columns."""
    subject: str = "The predictions"
    """What the headline is about."""

    @property
    def headline(self) -> list[str]:
        """What must not be missed: no better than a constant, one label for all, a bad slice."""
        return [
            *worth(
                self.scores[0],
                self.scores[-1],
                self.items,
                subject=self.subject,
                source=self.constant.source,
            ),
            *worst_slice(self.slices, self.level),
        ]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={self.metrics[name]:.4f}" for name in MAIN_METRICS)
        return f"Evaluation({self.items} items, {shown})"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as ``edo evaluate --json`` prints it.

        Returns
        -------
        dict
            The metrics by name, ``items``, ``ce_floor``, ``level``, ``intervals`` as
            ``[low, high]``, ``headline``, ``constant``, ``methods``, ``slices`` and ``annotators``.
        """
        result: dict[str, Any] = {
            "items": self.items,
            **self.metrics,
            "ce_floor": self.ce_floor,
            "level": self.level,
        }
        if self.intervals:
            result["intervals"] = {name: [i.low, i.high] for name, i in self.intervals.items()}
        return {
            **result,
            "headline": self.headline,
            "constant": {"shares": self.constant.shares.tolist(), "source": self.constant.source},
            "methods": [score.on_items() for score in self.scores],
            "slices": [one.to_dict() for one in self.slices],
            "annotators": self.annotators,
        }


def evaluate(
    probabilities: str | Path | Table | npt.ArrayLike | None,
    annotations: Annotations | str | Path | Table,
    *,
    predictions: Predictions | npt.ArrayLike | str | Path | None = None,
    ensemble: EDOEnsemble | str | Path | None = None,
    train_annotations: Annotations | str | Path | Table | None = None,
    by: str | Sequence[str] | None = None,
    invalid: Literal["error", "normalize"] = "error",
    ties: Ties = "first",
    samples: int = 1000,
    level: float = 0.95,
    random_state: int = 0,
) -> Evaluation:
    """Evaluate probabilities against annotations with every metric.

    Parameters
    ----------
    probabilities : path, pandas.DataFrame, pyarrow.Table, mapping or array-like
        A file or table with ``item`` and one ``p_<class>`` column per class, matched by item id
        (the index of a DataFrame without ``item``); or an array [N, C] in the order of the
        annotations' items and classes. None for those of ``ensemble`` on ``predictions``.
    annotations : Annotations, path or table
        Annotations of the same items; a path is read with `edokit.read_annotations`, a table with
        `Annotations.from_table`.
    predictions : Predictions, array of shape (N, K, C), str or Path, default=None
        The members' predictions of the same items: their uniform mean is evaluated, too.
    ensemble : EDOEnsemble, str or Path, default=None
        The ensemble, or its folder, that made the probabilities. The constant answer then has the
        shares of the items that it was fitted on.
    train_annotations : Annotations, path or table, default=None
        Training items, whose shares the constant answer has instead. Without an ensemble, too, it
        has the shares of the evaluated items, which no constant can beat on them.
    by : str or sequence of str, default=None
        Columns of the items (see `Annotations.item_columns`) to evaluate by: each value is a slice,
        a column of many numbers is put into quarters, missing values are a slice of their own.
    invalid : {"error", "normalize"}, default="error"
        What to do with rows that do not sum to 1: raise, or divide them by their sum.
    ties : {"first", "error", "random"}, default="first"
        Hard label of evenly split items.
    samples : int, default=1000
        Bootstrap resamples; 0 for no intervals.
    level : float, default=0.95
        Level of the intervals.
    random_state : int, default=0
        Seed of the bootstrap and of ``ties="random"``.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        If the items or classes differ, a row holds no probabilities, or ``samples`` is too small.

    Examples
    --------
    >>> import edokit
    >>> annotations = edokit.Annotations.from_matrix(
    ...     [["no", "yes", "yes"], ["no", "no", "no"]], items=["a", "b"]
    ... )
    >>> probabilities = {"item": ["b", "a"], "p_no": [0.9, 0.4], "p_yes": [0.1, 0.6]}
    >>> found = edokit.evaluate(probabilities, annotations, samples=0)
    >>> found
    Evaluation(2 items, f1=1.0000, ce=0.3757, md=0.1667, bs=0.0144)
    >>> round(found.ce_floor, 4)
    0.3183
    """
    if 0 < samples < FEWEST_SAMPLES:
        raise InputError(
            f"{samples} bootstrap samples are too few for an interval;"
            f" it takes at least {FEWEST_SAMPLES}",
            "use 1000, or 0 for no intervals",
        )
    labelled = _annotations(annotations)
    slices = find_slices(labelled, by)
    if isinstance(ensemble, str | Path):
        ensemble = EDOEnsemble.load(ensemble)
    members = None
    if predictions is not None:
        read = InputReader().predictions("predictions", predictions)
        members = as_predictions(read).align(labelled.items)
    if probabilities is not None:
        own = _aligned(probabilities, labelled, invalid)
    elif members is not None and ensemble is not None:
        pooled = ensemble.predict_proba(members)[:, None]
        own = Predictions(pooled, members.items, ("edo",), ensemble.fitted_.classes)
    else:
        raise InputError(
            "there is nothing to evaluate",
            "give probabilities='FILE', or ensemble='FOLDER' and predictions='FILE'",
            parameters=("probabilities", "ensemble", "predictions"),
        )
    if ensemble is not None and set(ensemble.fitted_.classes) != set(own.classes):
        raise InputError(
            f"the ensemble is about the classes {examples(ensemble.fitted_.classes, 20)}, the"
            f" probabilities are about {examples(own.classes, 20)}",
            "give the ensemble that made them",
            parameters=("ensemble",),
        )
    if set(labelled.classes) < set(own.classes):
        labelled = labelled.with_classes(own.classes)
    classes, q = labelled.classes, labelled.soft_labels
    p: Floats = own.order_classes(classes).probabilities[:, 0].astype(np.float64, copy=False)
    y = labelled.hard_labels(ties=ties, random_state=random_state)
    answers = {own.members[0]: p}
    if members is not None:
        known = (
            members
            if ensemble is None
            else select_members(members, ensemble.members_, "predictions")
        )
        answers["uniform"] = known.order_classes(classes).uniform
    resampling: Any = {"samples": samples, "level": level, "random_state": random_state}
    constant = _constant(ensemble, train_annotations, classes, q, y, ties)
    scores, losses = score_answers(answers, constant, q, y, classes, **resampling)
    intervals = bootstrap(p, q, y, **resampling) if samples else {}
    errors = annotator_errors(p, labelled.item_codes, labelled.annotator_codes, labelled.labels)
    columns = (errors.annotator, errors.n, errors.ce, errors.error)
    subject = "The predictions" if ensemble is None else "The ensemble"
    return Evaluation(
        items=len(q),
        metrics=compute_metrics(p, q, y),
        ce_floor=entropy(q),
        level=level,
        intervals=intervals,
        annotators=[
            {"annotator": str(labelled.annotators[a]), "n": n, "ce": ce, "error": error}
            for a, n, ce, error in zip(*(column.tolist() for column in columns), strict=True)
        ],
        scores=tuple(scores),
        constant=constant,
        slices=score_slices(slices, scores, losses, entropy_items(q), "uniform", **resampling),
        subject=Path(probabilities).name if isinstance(probabilities, str | Path) else subject,
    )


def _annotations(source: Annotations | str | Path | Table) -> Annotations:
    if isinstance(source, Annotations):
        return source
    if isinstance(source, str | Path):
        from edokit.datasets import read_annotations

        return read_annotations(source)
    return Annotations.from_table(source)


def _constant(
    ensemble: EDOEnsemble | None,
    train: Annotations | str | Path | Table | None,
    classes: tuple[str, ...],
    q: Floats,
    y: Codes,
    ties: Ties,
) -> Constant:
    """The constant answer: of the training items, else of the ensemble, else of these items."""
    if train is not None:
        labels = _annotations(train).with_classes(classes)
        return ConstantAnswer(ties=ties).take_shares(labels, "train").constant_
    if ensemble is not None and ensemble.constant_ is None:
        warn(
            "the ensemble was saved by an earlier version, without the shares of its fit data; the"
            " constant answer has the shares of these items"
        )
    return constant_of(ensemble, classes, q, y)


def _aligned(
    source: str | Path | Table | npt.ArrayLike,
    annotations: Annotations,
    invalid: Literal["error", "normalize"],
) -> Predictions:
    """The probabilities as one member, in the order of the annotations' items."""
    if isinstance(source, str | Path):
        model = read_model_file(source, invalid=invalid)
    else:
        if isinstance(source, pd.DataFrame):
            if "item" not in source.columns:
                source = source.rename_axis(index="item").reset_index()
            table = pa.Table.from_pandas(source, preserve_index=False)
        elif isinstance(source, pa.Table | Mapping):
            table = source if isinstance(source, pa.Table) else pa.table(dict(source))
        else:
            array = np.asarray(source)
            n, c = len(annotations.items), len(annotations.classes)
            if array.shape != (n, c):
                raise InputError(
                    f"the probabilities have the shape {array.shape}, the annotations {n} items"
                    f" and {c} classes",
                    f"give an array of shape ({n}, {c}), or a table with item and p_<class>"
                    " columns",
                )
            columns = {f"p_{name}": array[:, k] for k, name in enumerate(annotations.classes)}
            table = pa.table({"item": annotations.items, **columns})
        model = model_from_table(table, "the probabilities", invalid=invalid)
    one = Predictions(model.probabilities[:, None], model.items, ("predictions",), model.classes)
    return one.align(annotations.items)
