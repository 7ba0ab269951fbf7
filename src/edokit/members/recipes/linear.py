"""TF-IDF of words and characters, logistic regression: seconds on a CPU."""

from edokit.members.linear import LinearMember

__all__ = ["LinearMember"]
