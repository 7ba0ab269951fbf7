"""The small protocol behind which every kind of member stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Text = str | tuple[str, str]
"""One text, or (utterance, context) for dialogue."""
Progress = Callable[[dict[str, Any]], None]
"""Called with what happened: epoch, dev CE, …"""


@dataclass(frozen=True)
class Lesson:
    """What one member learns from: N texts, and targets that may change from epoch to epoch."""

    texts: Sequence[Text]
    """Texts [N]."""
    targets: Callable[[int], Floats]
    """Targets [N, C] of an epoch; rows that are one-hot are drawn or chosen classes."""
    dev_texts: Sequence[Text] = ()
    """Texts to stop early on."""
    dev_soft_labels: Floats | None = None
    """Soft labels [N_dev, C] of the dev texts."""
    dev_hard_labels: npt.NDArray[np.int32] | None = None
    """Hard labels [N_dev] of the dev texts."""
    annotations: Any = None
    """The annotations of the N texts, for recipes with a head per annotator."""


class Member(Protocol):
    """One classifier of the ensemble."""

    def fit(self, lesson: Lesson, *, seed: int, progress: Progress | None = None) -> Any:
        """Learn; the same seed gives the same member on the same machine."""

    def predict_proba(self, texts: Sequence[Text]) -> Floats:
        """Probabilities [N, C]."""

    def save(self, folder: Path) -> None:
        """Write everything that ``load`` needs, nothing that executes on load."""

    @classmethod
    def load(cls, folder: Path) -> Any:
        """Read what ``save`` wrote."""
