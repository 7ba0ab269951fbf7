"""What kind of disagreement is this?"""

from edokit.diagnosis.core import Diagnosis, diagnose

__all__ = ["Diagnosis", "diagnose"]
