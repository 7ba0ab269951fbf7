"""Solvers of the joint objective."""

from edokit.solvers.exact import solve_exact
from edokit.solvers.gumbel import GumbelSolver, solve_gumbel
from edokit.solvers.options import GumbelSettings
from edokit.solvers.sharded import solve_exact_shards, solve_gumbel_shards
from edokit.solvers.solution import Certificate, Solution, Trajectory

__all__ = [
    "Certificate",
    "GumbelSettings",
    "GumbelSolver",
    "Solution",
    "Trajectory",
    "solve_exact",
    "solve_exact_shards",
    "solve_gumbel",
    "solve_gumbel_shards",
]
