"""A frozen sentence encoder, logistic regression."""

from edokit.members.encoder import EncoderMember

__all__ = ["EncoderMember"]
