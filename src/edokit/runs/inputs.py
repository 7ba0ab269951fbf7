"""Files of predictions and annotations that a run reads, and how it reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edokit._io.documents import Json
from edokit.annotations.core import Annotations
from edokit.datasets.read import read_annotations
from edokit.predictions.core import Predictions, view_labels, view_pairs
from edokit.predictions.shards import read_predictions


@dataclass(frozen=True)
class Input:
    """A file or folder that a run read.

    Attributes
    ----------
    path : str
        Where, as it was given; inside the run's folder, relative to it.
    sha256 : str or None
        Digest of its bytes; none above one GiB.
    options : Mapping[str, Json]
        How annotations were read: arguments of ``read_annotations`` and ``learn``; of
        predictions, the ``scale`` that was declared, and ``learn``.
    """

    path: str
    sha256: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)


def read_recorded_predictions(path: Path, options: Mapping[str, Any]) -> Predictions:
    """Predictions, on the scale that was declared for those without one."""
    predictions = read_predictions(path)
    if options.get("scale"):
        predictions = predictions.on_scale(options["scale"])
    return view_pairs(predictions, options.get("learn"))


def read_recorded_annotations(path: Path, options: Mapping[str, Any]) -> Annotations:
    """Annotations, read as a record says."""
    arguments = dict(options)
    learn = arguments.pop("learn", None)
    # Earlier records keep several splits under a name of their own.
    arguments["split"] = arguments.pop("splits", None) or arguments.get("split")
    return view_labels(read_annotations(path, **arguments), learn)
