"""The simulator: subjective annotation with the truth known."""

from edokit.datasets.simulate.regimes import REGIMES, Group, Regime
from edokit.datasets.simulate.simulation import Simulation, simulate

__all__ = ["REGIMES", "Group", "Regime", "Simulation", "simulate"]
