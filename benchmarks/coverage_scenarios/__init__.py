"""Simulations of the intervals, tests and promises that users see; `coverage.py` runs them."""
