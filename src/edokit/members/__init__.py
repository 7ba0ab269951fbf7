"""From texts and annotations to fitted members and their predictions."""

from edokit.members.linear import LinearMember, TextFeatures
from edokit.members.supervision import random_select

__all__ = ["LinearMember", "TextFeatures", "random_select"]
