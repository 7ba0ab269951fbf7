"""Published hard labels that are not what the annotators said."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from edokit._errors import EDOWarning, examples
from edokit.annotations.core import Annotations

# Shares may be written with two digits only.
_ROUNDED = 0.0101


def contradicted(annotations: Annotations) -> npt.NDArray[np.bool_]:
    """Whether the published label of each item [N] is none of the classes chosen most often."""
    if annotations.published is None:
        return np.zeros(len(annotations.items), dtype=bool)
    shares = annotations.soft_labels
    near = 1e-12 if annotations.label_probabilities is None else _ROUNDED
    chosen = shares[np.arange(len(shares)), annotations.published]
    behind = chosen < shares.max(axis=1) - near
    found: npt.NDArray[np.bool_] = behind & (annotations.published >= 0)
    return found


def tell_of_contradictions(annotations: Annotations) -> None:
    """Say which published labels are used although the annotators said otherwise."""
    found = contradicted(annotations)
    if found.any():
        count, which = int(found.sum()), examples(annotations.items[found])
        warnings.warn(f"{contradiction(count, len(found))}: {which}", EDOWarning, stacklevel=4)


def contradiction(count: int, items: int) -> str:
    """The note about so many of the items."""
    return (
        f"hard_label of {count} of {items} items is used as given, though it is not the class that"
        f" {'its' if count == 1 else 'their'} annotators chose most often"
    )
