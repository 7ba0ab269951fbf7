"""Evaluation of probabilities against annotations: all metrics, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from edokit._errors import InputError
from edokit._types import Floats
from edokit.annotations import Annotations, Ties
from edokit.metrics import (
    MAIN_METRICS,
    Interval,
    annotator_errors,
    bootstrap,
    compute_metrics,
    entropy,
)
from edokit.predictions import Predictions, model_from_table, read_model_file

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

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={self.metrics[name]:.4f}" for name in MAIN_METRICS)
        return f"Evaluation({self.items} items, {shown})"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as ``edo evaluate --json`` prints it.

        Returns
        -------
        dict
            The metrics by name, ``items``, ``ce_floor``, ``level``, ``intervals`` as
            ``[low, high]`` and ``annotators``.
        """
        result: dict[str, Any] = {
            "items": self.items,
            **self.metrics,
            "ce_floor": self.ce_floor,
            "level": self.level,
        }
        if self.intervals:
            result["intervals"] = {name: [i.low, i.high] for name, i in self.intervals.items()}
        return {**result, "annotators": self.annotators}


def evaluate(
    probabilities: str | Path | Table | npt.ArrayLike,
    annotations: Annotations | str | Path | Table,
    *,
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
        annotations' items and classes.
    annotations : Annotations, path or table
        Annotations of the same items; a path is read with `edokit.read_annotations`, a table with
        `Annotations.from_table`.
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
    if isinstance(annotations, Annotations):
        labelled = annotations
    elif isinstance(annotations, str | Path):
        from edokit.datasets import read_annotations

        labelled = read_annotations(annotations)
    else:
        labelled = Annotations.from_table(annotations)
    p, q = _aligned(probabilities, labelled, invalid), labelled.soft_labels
    y = labelled.hard_labels(ties=ties, random_state=random_state)
    intervals = {}
    if samples:
        intervals = bootstrap(p, q, y, samples=samples, level=level, random_state=random_state)
    errors = annotator_errors(p, labelled.item_codes, labelled.annotator_codes, labelled.labels)
    columns = (errors.annotator, errors.n, errors.ce, errors.error)
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
    )


def _aligned(
    source: str | Path | Table | npt.ArrayLike,
    annotations: Annotations,
    invalid: Literal["error", "normalize"],
) -> Floats:
    """The probabilities [N, C] in the order of the annotations' items and classes."""
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
    one = Predictions(model.probabilities[:, None], model.items, ("model",), model.classes)
    matched = one.align(annotations.items).order_classes(annotations.classes)
    p: Floats = matched.probabilities[:, 0].astype(np.float64, copy=False)
    return p
