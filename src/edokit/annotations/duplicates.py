"""The same annotator twice on an item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, counted
from edokit.annotations.core import Annotations, Duplicates


def settle_duplicates(
    annotations: Annotations, policy: Duplicates, where: Callable[[int], str]
) -> Annotations:
    """The annotations with each annotator once on an item, or all of them, by the policy."""
    if policy is Duplicates.ALL or not (again := annotations.repeated).any():
        return annotations
    if policy is Duplicates.ERROR:
        row = int(np.flatnonzero(again)[0])
        raise InputError(
            "an annotator labels an item once, but annotator"
            f" {annotations.annotators[annotations.annotator_codes[row]]!r} labels item"
            f" {annotations.items[annotations.item_codes[row]]!r} again in {where(row)}"
            f" ({counted(int(again.sum()), 'such row')})",
            "choose duplicates='first' to keep the first, 'all' to count each",
        )

    def kept(values: npt.NDArray[Any] | None) -> Any:
        return None if values is None else values[~again]

    return replace(
        annotations,
        item_codes=kept(annotations.item_codes),
        annotator_codes=kept(annotations.annotator_codes),
        label_codes=kept(annotations.label_codes),
        label_probabilities=kept(annotations.label_probabilities),
    )
