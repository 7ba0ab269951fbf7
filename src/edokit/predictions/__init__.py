"""What K members predict for N items: probabilities [N, K, C], checked and named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edokit._package import lazy_names
from edokit.predictions.core import Invalid, Layout, Predictions
from edokit.predictions.files import write_predictions
from edokit.predictions.shards import Shards, describe_predictions, read_predictions, read_shards

if TYPE_CHECKING:
    from edokit.predictions.join import JoinOptions, join_models, model_from_table

__all__ = [
    "JoinOptions",
    "Invalid",
    "Layout",
    "Predictions",
    "Shards",
    "describe_predictions",
    "join_models",
    "model_from_table",
    "read_predictions",
    "read_shards",
    "write_predictions",
]
__getattr__ = lazy_names(__name__, {"join": ("JoinOptions", "join_models", "model_from_table")})
