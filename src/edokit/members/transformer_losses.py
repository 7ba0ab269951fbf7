"""What fine-tuning makes smaller: distances between logits and targets."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from edokit.members.fine_tuning import Loss


def target_loss(kind: str, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean over items of the distance between logits [..., C] and targets [..., C]."""
    if Loss(kind) is Loss.MD:
        return manhattan(logits, targets)
    return cross_entropy(logits, targets)


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """−mean Σ_c t_c ln p_c."""
    return -(targets * F.log_softmax(logits, dim=-1)).sum(dim=-1).mean()


def manhattan(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """mean Σ_c |p_c − t_c|."""
    return (F.softmax(logits, dim=-1) - targets).abs().sum(dim=-1).mean()


def annotator_loss(logits: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of heads [B, A, C] to answers [B, A, C]; a row of zeros: no answer.

    Annotators of an item count alike, and so do items.
    """
    per_answer = -(answers * F.log_softmax(logits, dim=-1)).sum(dim=-1)
    answered = (answers.sum(dim=-1) > 0).to(logits.dtype)
    return (per_answer.sum(dim=1) / answered.sum(dim=1).clamp(min=1.0)).mean()
