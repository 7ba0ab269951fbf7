"""The simulator: subjective annotation with the truth known."""

from edokit.datasets.simulate.generate import simulate
from edokit.datasets.simulate.presets import REGIMES
from edokit.datasets.simulate.regimes import Group, Regime
from edokit.datasets.simulate.simulation import Simulation
from edokit.datasets.simulate.variance import Variance

__all__ = ["REGIMES", "Group", "Regime", "Simulation", "Variance", "simulate"]
