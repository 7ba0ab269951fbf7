"""Diagnosis of disagreement: structured or noise, and what follows."""

from edokit.diagnosis.advice import Advice
from edokit.diagnosis.core import Diagnosis, diagnose

__all__ = ["Advice", "Diagnosis", "diagnose"]
