"""Fine-tuning with Hugging Face's Trainer."""

from edokit.members.transformer import TransformerMember

__all__ = ["TransformerMember"]
