"""What a fit needs of predictions and labels, in memory or in shards."""
