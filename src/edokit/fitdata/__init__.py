"""What a fit needs of predictions and labels, in memory or in shards."""

from edokit.fitdata.data import FitData

__all__ = ["FitData"]
