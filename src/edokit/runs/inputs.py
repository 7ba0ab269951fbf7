"""Files of predictions and annotations that a run reads, with the options for reading them."""

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
        The path as the user wrote it; relative to the run's folder if it is within it.
    sha256 : str or None
        Digest of its bytes; None above one GiB.
    options : Mapping[str, Json]
        For annotations, the arguments of ``read_annotations``, and ``learn``; for predictions, the
        declared ``scale``, and ``learn``.
    """

    path: str
    sha256: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)


def read_predictions_file(path: Path, options: Mapping[str, Any]) -> Predictions:
    """Read predictions on the scale of the options, if any, and of the rows to learn from."""
    predictions = read_predictions(path)
    if options.get("scale"):
        predictions = predictions.on_scale(options["scale"])
    return view_pairs(predictions, options.get("learn"))


def read_annotations_file(path: Path, options: Mapping[str, Any]) -> Annotations:
    """Read annotations with options as ``run.json`` keeps them."""
    arguments = dict(options)
    learn = arguments.pop("learn", None)
    # Earlier records have a separate key for several splits.
    arguments["split"] = arguments.pop("splits", None) or arguments.get("split")
    return view_labels(read_annotations(path, **arguments), learn)
