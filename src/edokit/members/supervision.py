"""Targets [N, C] of a member from annotations, seed and epoch; posteriors of crowd models.

A target is a distribution over classes or, of sets of labels, 0 … 1 for each label on its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from edokit._errors import InputError, MissingExtraError, counted, one_of, warn
from edokit._types import Floats, Ints
from edokit.annotator_effects import label_shares

if TYPE_CHECKING:
    from edokit.annotations import Annotations
    from edokit.members.training_data import TrainingData

    Labels: TypeAlias = Annotations | TrainingData

MODELS = ("dawid-skene", "mace")


class Supervision(str, Enum):
    """Which labels are a member's targets."""

    RANDOM_SELECT = "random-select"
    """One annotator's label (or set of labels) per item, drawn uniformly."""
    PER_ANNOTATOR = "per-annotator"
    """Each member trains on one annotator's labels, the most active first."""
    SOFT = "soft"
    """The share of annotators per class, or per label of sets."""
    MAJORITY = "majority"
    """The hard label, or the labels that more than half of the annotators chose."""


class Draw(str, Enum):
    """When random-select draws."""

    EPOCH = "epoch"
    """Anew at every epoch: over epochs the targets are distributed like the soft labels."""
    ONCE = "once"
    """Once per member."""


def random_select(annotations: Labels, random_state: int, epoch: int = 0) -> Floats:
    """One annotator's label of each item [N, C], the annotator drawn uniformly.

    A row is one-hot where annotators chose a class, else the set of labels, or the probabilities,
    that the drawn one gave. Over seeds and epochs its mean is the item's soft label.

    Examples
    --------
    >>> from edokit import Annotations
    >>> from edokit.members import random_select
    >>> annotations = Annotations.from_matrix([[0, 1], [1, 1]])
    >>> random_select(annotations, 0)[1]
    array([0., 1.])
    """
    order = np.argsort(annotations.item_codes, kind="stable")
    counts = annotations.annotations_per_item
    starts = np.cumsum(counts) - counts
    draw = np.random.default_rng([random_state, epoch]).random(len(counts))
    rows = order[starts + (draw * counts).astype(np.int64)]
    return label_shares(annotations, len(annotations.classes), rows)


def soft(annotations: Labels) -> Floats:
    """The share of annotators per class [N, C]."""
    return annotations.soft_labels


def majority(annotations: Labels) -> Floats:
    """The hard label of each item, one-hot [N, C]; of sets 1 for each label of the majority."""
    indicators = annotations.scale.indicators(annotations.hard_labels(), len(annotations.classes))
    return indicators.astype(np.float64)


def per_annotator(annotations: Labels, annotator: str) -> tuple[Ints, Floats]:
    """The items that one annotator labelled [n], and these labels [n, C].

    Two labels of one item count half each.
    """
    names = [str(name) for name in annotations.annotators]
    rows = np.flatnonzero(annotations.annotator_codes == names.index(annotator))
    positions, row = np.unique(np.asarray(annotations.item_codes)[rows], return_inverse=True)
    targets = np.zeros((len(positions), len(annotations.classes)))
    np.add.at(targets, row, label_shares(annotations, targets.shape[1], rows))
    return positions.astype(np.int64), targets / np.bincount(row)[:, None]


def most_active(annotations: Labels, members: int) -> list[str]:
    """The annotators that per-annotator members train on, the most active first.

    Equally active ones are in the order of their first annotation. More members than annotators
    of the least annotated item give a warning; more members than annotators are refused.
    """
    available = len(annotations.annotators)
    if members > available:
        raise InputError(
            f"{members} per-annotator members need an annotator each, but there"
            f" {'is' if available == 1 else 'are'} {counted(available, 'annotator')}",
            f"ask for {counted(available, 'member')} at most",
        )
    fewest = int(annotations.annotations_per_item.min())
    if members > fewest:
        warn(
            f"{members} per-annotator members are more than the {counted(fewest, 'annotator')} of"
            " the least annotated item (the paper's K ≤ min A_i): not every item was labelled by"
            f" all of them; {counted(fewest, 'member')} or random-select would keep the rule"
        )
    activity = np.bincount(annotations.annotator_codes, minlength=available)
    return [str(annotations.annotators[a]) for a in np.argsort(-activity, kind="stable")[:members]]


def crowd_targets(
    annotations: Annotations,
    model: str = "dawid-skene",
    *,
    splits: Collection[str] | None = ("train",),
    restarts: int = 10,
    random_state: int = 0,
) -> Annotations:
    """Replace soft labels by the posterior of an annotation model.

    Train on the result with the supervision ``soft``. Published hard labels stay.

    Parameters
    ----------
    annotations : Annotations
        Annotations with a class each.
    model : {"dawid-skene", "mace"}, default="dawid-skene"
        The model; needs the extra ``crowds``.
    splits : collection of str, default=("train",)
        Splits whose items the model is fitted to and whose soft labels are replaced. None: all.
    restarts : int, default=10
        Starts of MACE, of which the best is kept.
    random_state : int, default=0
        Seed of MACE.

    Returns
    -------
    Annotations
        The same items, with the model as the only annotator.
    """
    one_of("model", model, MODELS)
    if annotations.label_codes is None:
        gave = "sets of labels" if annotations.scale.is_multi_label else "probabilities"
        raise InputError(
            f"{model} needs the class that each annotator chose, but these annotators gave {gave}",
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
    soft[rows] = _posterior(annotations.take(rows), model, restarts, random_state)
    items = np.arange(len(soft), dtype=np.int32)
    return replace(
        annotations,
        annotators=np.array([model], dtype=object),
        item_codes=items,
        annotator_codes=np.zeros_like(items),
        label_codes=None,
        label_probabilities=soft,
        attributes={},
        annotation_columns={},
    )


def _posterior(annotations: Annotations, model: str, restarts: int, seed: int) -> Floats:
    """Posterior of the model [N, C]."""
    import pandas as pd

    try:
        from crowdkit import aggregation
    except ImportError as error:
        raise MissingExtraError(
            f"Dawid–Skene and MACE need the package crowd-kit, but it can't be imported: {error}",
            'install it with: pip install "edokit[crowds]"',
        ) from error
    table = pd.DataFrame(
        {
            "task": annotations.item_codes,
            "worker": annotations.annotator_codes,
            "label": annotations.label_codes,
        }
    )
    with warnings.catch_warnings():
        # Deprecations inside the library are of no use to users.
        warnings.simplefilter("ignore")
        mace: dict[str, Any] = {"n_restarts": restarts, "random_state": seed}
        fitted: Any = (
            aggregation.DawidSkene() if model == "dawid-skene" else aggregation.MACE(**mace)
        )
        probabilities = fitted.fit_predict_proba(table)
    index, columns = range(len(annotations.items)), range(len(annotations.classes))
    filled = probabilities.reindex(index=index, columns=columns, fill_value=0.0)
    posterior: Floats = filled.to_numpy(dtype=np.float64, copy=True)
    posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior
