"""What K members predict for N items: probabilities [N, K, C], checked and named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edokit.predictions.core import Invalid, Layout, Predictions
from edokit.predictions.files import write_predictions
from edokit.predictions.shards import Shards, describe_predictions, read_predictions, read_shards

if TYPE_CHECKING:
    from edokit.predictions.join import ModelFile, join_models, model_from_table, read_model_file

__all__ = [
    "Invalid",
    "Layout",
    "ModelFile",
    "Predictions",
    "Shards",
    "describe_predictions",
    "join_models",
    "model_from_table",
    "read_model_file",
    "read_predictions",
    "read_shards",
    "write_predictions",
]


def __getattr__(name: str) -> Any:
    # What reads one file per model is loaded when it is first used.
    if name in ("ModelFile", "join_models", "model_from_table", "read_model_file"):
        from edokit.predictions import join

        return getattr(join, name)
    raise AttributeError(f"module 'edokit.predictions' has no attribute {name!r}")
