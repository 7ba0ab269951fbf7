"""The four scores of the benchmark, with numpy alone: the training room runs on bare machines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edokit._types import Floats

_SMALLEST = 1e-12  # ε of the official scoring


def dev_scores(
    probabilities: Floats, soft_labels: Floats, hard_labels: npt.NDArray[np.int32]
) -> dict[str, float]:
    """f1, ce, md and bs of probabilities [N, C] against soft labels [N, C] and hard labels [N]."""
    logs = np.log(np.clip(probabilities, _SMALLEST, 1 - _SMALLEST))
    gap = probabilities - soft_labels
    return {
        "f1": float((probabilities.argmax(axis=1) == hard_labels).mean()),
        "ce": float(-(soft_labels * logs).sum(axis=1).mean()),
        "md": float(np.abs(gap).sum(axis=1).mean()),
        "bs": float((gap**2).sum(axis=1).mean()),
    }
