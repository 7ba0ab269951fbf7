"""Search: NSGA-II over the objective's settings, the Pareto front, and a choice from it."""
