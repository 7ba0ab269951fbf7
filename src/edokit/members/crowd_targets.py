"""Answers of a crowd boiled down to one distribution per item, by models of the annotators.

Dawid–Skene and MACE (from crowd-kit, the extra ``crowds``) take it that every item has one right
answer and that people err. Where people rightly disagree that is not so; members trained on such
targets are here to be compared with members trained on what people said.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import InputError, MissingExtraError, one_of
from edokit._types import Floats

if TYPE_CHECKING:
    from edokit.annotations import Annotations


MODELS = ("dawid-skene", "mace")


def crowd_targets(
    annotations: Annotations,
    model: str = "dawid-skene",
    *,
    splits: Collection[str] | None = ("train",),
    restarts: int = 10,
    seed: int = 0,
) -> Annotations:
    """The same items with the model's posterior in place of the shares of the annotators.

    Only items of ``splits`` are changed (all, if None or if there are no splits), and only they
    are shown to the model; the others keep their shares. Published hard labels stay. Train on the
    result with the supervision ``soft``. MACE starts ``restarts`` times and keeps the best.
    """
    one_of("model", model, MODELS)
    if annotations.label_codes is None:
        raise InputError(
            f"{model} needs the class that each annotator chose, but these annotators gave"
            " probabilities",
            "use the supervision soft",
        )
    soft = annotations.soft_labels.copy()
    rows = np.arange(len(soft))
    if splits is not None and annotations.splits is not None:
        rows = np.flatnonzero(np.isin(annotations.splits, list(splits)))
    if not len(rows):
        raise InputError(
            f"{model} needs items to learn from, but there are none in {', '.join(splits or ())}",
            f"the splits are {', '.join(annotations.split_names)}",
        )
    soft[rows] = _posterior(annotations.take(rows), model, restarts, seed)
    items = np.arange(len(soft), dtype=np.int32)
    return replace(
        annotations,
        annotators=np.array([model], dtype=object),
        item_codes=items,
        annotator_codes=np.zeros_like(items),
        label_codes=None,
        label_probabilities=soft,
        attributes={},
    )


def _posterior(annotations: Annotations, model: str, restarts: int, seed: int) -> Floats:
    """[N, C] what the model believes of each item."""
    import pandas as pd

    crowds = _crowdkit()
    table = pd.DataFrame(
        {
            "task": annotations.item_codes,
            "worker": annotations.annotator_codes,
            "label": annotations.label_codes,
        }
    )
    with warnings.catch_warnings():
        # What a library's own dependencies say to programmers is nothing that a user can mend.
        warnings.simplefilter("ignore")
        if model == "dawid-skene":
            fitted: Any = crowds.DawidSkene()
        else:
            fitted = crowds.MACE(n_restarts=restarts, random_state=seed)
        found = fitted.fit_predict_proba(table)
    wanted = found.reindex(
        index=range(len(annotations.items)), columns=range(len(annotations.classes)), fill_value=0.0
    )
    posterior: Floats = wanted.to_numpy(dtype=np.float64, copy=True)
    posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior


def _crowdkit() -> Any:
    try:
        from crowdkit import aggregation
    except ImportError as error:
        raise MissingExtraError(
            f"Dawid–Skene and MACE need the package crowd-kit, but it can't be imported: {error}",
            'install it with: pip install "edokit[crowds]"',
        ) from error
    return aggregation
