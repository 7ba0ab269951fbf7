"""Who said what about which item, and the soft and hard labels that follow from it."""

from edokit.annotations.core import Annotations, Duplicates, Ties

__all__ = ["Annotations", "Duplicates", "Ties"]
