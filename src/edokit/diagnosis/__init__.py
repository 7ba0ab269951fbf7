"""Diagnosis of disagreement: structured or noise, and what follows."""
