"""What an ensemble says about items, and how sure and how united its members are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edokit._types import Floats, Strings
from edokit.metrics import entropy_items


@dataclass(frozen=True, eq=False)
class Pooled:
    """One distribution per item, with its entropy and the spread of the members around it."""

    items: Strings
    """Item ids [N]."""
    classes: tuple[str, ...]
    """Class names [C]."""
    probabilities: Floats
    """[N, C]."""
    spread: Floats
    """Weighted mean L1 distance of the members to their linear pool [N]: 0 if they agree."""

    @property
    def entropy(self) -> Floats:
        """Of each distribution, in nats [N]."""
        return entropy_items(self.probabilities)

    @property
    def labels(self) -> Strings:
        """The likeliest class of each item [N]; the first of equals."""
        names = np.array(self.classes, dtype=object)
        chosen: Strings = names[self.probabilities.argmax(axis=1)]
        return chosen

    def to_table(self) -> pa.Table:
        """``item, p_<class> …, entropy, spread, label``, one row per item."""
        columns: dict[str, Any] = {"item": pa.array(self.items.tolist(), pa.string())}
        for c, name in enumerate(self.classes):
            columns[f"p_{name}"] = self.probabilities[:, c]
        columns["entropy"] = self.entropy
        columns["spread"] = self.spread
        columns["label"] = pa.array(self.labels.tolist(), pa.string())
        return pa.table(columns)


def spread_items(probabilities: npt.NDArray[Any], weights: Floats) -> Floats:
    """Σ_k v_k ‖p_k − φ‖₁ of each item [N], φ the linear pool of [N, K, C]."""
    kept = np.flatnonzero(weights > 0)
    v = weights[kept]
    members = probabilities[:, kept]
    centre = np.einsum("nkc,k->nc", members, v)
    spread = np.zeros(len(members))
    for k in range(len(kept)):
        spread += v[k] * np.abs(members[:, k] - centre).sum(axis=1)
    return spread
