"""Solvers of the joint objective."""

from edokit.solvers.exact import solve_exact
from edokit.solvers.gumbel import solve_gumbel
from edokit.solvers.options import GumbelSettings
from edokit.solvers.solution import Certificate, Solution, Trajectory

__all__ = [
    "Certificate",
    "GumbelSettings",
    "Solution",
    "Trajectory",
    "solve_exact",
    "solve_gumbel",
]
