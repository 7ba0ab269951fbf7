"""Solvers of the joint objective."""

from typing import TYPE_CHECKING, Any

from edokit.solvers.exact import solve_exact
from edokit.solvers.solution import Certificate, GumbelSettings, Solution, Trajectory

if TYPE_CHECKING:
    from edokit.solvers.gumbel import solve_gumbel

__all__ = ["Certificate", "GumbelSettings", "Solution", "Trajectory", "solve_exact", "solve_gumbel"]


def __getattr__(name: str) -> Any:
    # An exact fit does without the Gumbel solver.
    if name != "solve_gumbel":
        raise AttributeError(f"module 'edokit.solvers' has no attribute {name!r}")
    from edokit.solvers.gumbel import solve_gumbel

    return solve_gumbel
