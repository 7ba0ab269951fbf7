"""What K members say about N items: probabilities [N, K, C], checked and named."""

from edokit.predictions.core import Invalid, Predictions
from edokit.predictions.describe import describe_predictions
from edokit.predictions.join import join_models
from edokit.predictions.model_file import ModelFile, read_model_file
from edokit.predictions.shapes import Layout
from edokit.predictions.shards import Shards
from edokit.predictions.storage import read_predictions, read_shards, write_predictions

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
