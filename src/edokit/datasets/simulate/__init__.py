"""The simulator: subjective annotation with the truth known."""
