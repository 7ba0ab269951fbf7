"""Solvers of the joint objective."""

from typing import TYPE_CHECKING

from edokit._lazy import lazy_names
from edokit.solvers.exact import solve_exact
from edokit.solvers.solution import (
    Certificate,
    Exact,
    Gumbel,
    GumbelSettings,
    Solution,
    Trajectory,
)

if TYPE_CHECKING:
    from edokit.solvers.gumbel import solve_gumbel

__all__ = [
    "Certificate",
    "Exact",
    "Gumbel",
    "GumbelSettings",
    "Solution",
    "Trajectory",
    "solve_exact",
    "solve_gumbel",
]
# An exact fit does without the Gumbel solver.
__getattr__ = lazy_names(__name__, {"gumbel": ("solve_gumbel",)})
