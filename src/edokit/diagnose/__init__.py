"""What kind of disagreement is this?"""

from edokit.diagnose.diagnosis import Diagnosis, diagnose

__all__ = ["Diagnosis", "diagnose"]
