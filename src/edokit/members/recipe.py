"""The small protocol behind which every kind of member stands.

A recipe is a class with this protocol as its base, made with ``Recipe(n_classes, **options)``;
every option is a keyword argument with a default of a plain type (str, int, float, bool or None).
A recipe that computes with torch also takes ``device: str | None``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from edokit._types import Floats

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
    """The annotations of the N texts, for recipes with a head per annotator: an object with
    ``annotators`` [A], ``item_codes`` [M], ``annotator_codes`` [M], ``label_codes`` [M] (or
    ``label_probabilities`` [M, C]) as in `edokit.annotations.Annotations`."""
    shared: Any = None
    """What ``prepare`` returned, the same for all members of a group."""


class Member(Protocol):
    """One classifier of the ensemble."""

    resamples: ClassVar[bool] = False
    """Whether ``fit`` asks for the targets of every epoch; else it asks for epoch 0 alone."""
    stops_early: ClassVar[bool] = False
    """Whether ``fit`` uses the dev texts."""
    on_device: ClassVar[bool] = False
    """Whether ``fit`` computes with torch: one member then trains per device at a time."""

    @property
    def tells_apart(self) -> Sequence[str]:
        """The annotators whose answers it can tell apart; none unless it says so.

        Where there are some, ``predict_proba`` also takes ``annotators``: for each text those who
        judge it.
        """
        return ()

    @classmethod
    def prepare(cls, texts: Sequence[Text], options: Mapping[str, Any]) -> Any:
        """Work that all members of a group share, done once for all texts that they will see.

        It reaches the members as ``lesson.shared``, by way of pickle.
        """
        return None

    def fit(self, lesson: Lesson, *, seed: int, progress: Progress | None = None) -> Any:
        """Learn; the same seed gives the same member on the same machine."""

    def predict_proba(self, texts: Sequence[Text]) -> Floats:
        """Probabilities [N, C]."""

    def save(self, folder: Path) -> None:
        """Write everything that ``load`` needs, nothing that executes on load.

        The folder exists and is empty; the name ``member.json`` is taken.
        """

    @classmethod
    def load(cls, folder: Path) -> Any:
        """Read what ``save`` wrote; may also take ``device``, and ``trust`` (names of packages)."""
