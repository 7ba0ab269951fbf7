"""What K members say about N items: probabilities [N, K, C], checked and named."""

from edokit.predictions.core import Invalid, Predictions
from edokit.predictions.join import ModelFile, join_models, read_model_file
from edokit.predictions.layout import Layout
from edokit.predictions.shards import (
    Shards,
    describe_predictions,
    read_predictions,
    read_shards,
    write_predictions,
)

__all__ = [
    "Invalid",
    "Layout",
    "ModelFile",
    "Predictions",
    "Shards",
    "describe_predictions",
    "join_models",
    "read_model_file",
    "read_predictions",
    "read_shards",
    "write_predictions",
]
