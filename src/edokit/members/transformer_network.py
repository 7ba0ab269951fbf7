"""An encoder, a pooling of its tokens, and heads on top."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from edokit.members.fine_tuning import Pooling

_DROPOUT = 0.1
_SPREAD = 0.02  # standard deviation of new weights, as in BERT


class MemberNetwork(nn.Module):  # type: ignore[misc]
    """Logits from tokens: [B, C] with one head, [B, H, C] with several."""

    def __init__(self, backbone: nn.Module, pooling: str, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.pooling = Pooling(pooling)
        self.dropout = nn.Dropout(_DROPOUT)
        self.head = head
        self.joint: Any = None
        """Ensemble weights that learn with the members; part of the state, not of the logits."""

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        target_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Logits in float32, also where the encoder computes in bfloat16."""
        segments = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        hidden = self.backbone(
            input_ids=input_ids, attention_mask=attention_mask, **segments
        ).last_hidden_state
        with torch.autocast(hidden.device.type, enabled=False):
            pooled = self._pool(hidden.float(), attention_mask, target_mask)
            logits: torch.Tensor = self.head(self.dropout(pooled))
        return logits

    def start_quietly(self, **batch: torch.Tensor) -> None:
        """Where the features of a first batch are loud, let new heads weigh them by so much less.

        A decoder's hidden states may be ten times an encoder's, and so would the first answers be.
        """
        training = self.training
        seen: list[torch.Tensor] = []
        look = self.dropout.register_forward_hook(lambda _, __, pooled: seen.append(pooled))
        with torch.no_grad():
            self.eval()(**batch)
            loudness = seen[0].float().pow(2).mean().sqrt()
            for weight in self.head.parameters():
                if weight.dim() > 1:
                    weight.div_(loudness.clamp(min=1.0))
        look.remove()
        self.train(training)

    def _pool(
        self, hidden: torch.Tensor, attention_mask: torch.Tensor, target_mask: torch.Tensor
    ) -> torch.Tensor:
        if self.pooling is Pooling.FIRST:
            return hidden[:, 0]
        if self.pooling is Pooling.LAST:
            # Padding stands at the right.
            return hidden[torch.arange(len(hidden)), attention_mask.sum(dim=1) - 1]
        everything = _mean(hidden, attention_mask)
        if self.pooling is Pooling.MEAN:
            return everything
        return torch.cat([everything, _mean(hidden, target_mask)], dim=-1)


class OneHead(nn.Module):  # type: ignore[misc]
    """Logits [B, C]; at the start every text has the class prior."""

    def __init__(self, width: int, n_classes: int) -> None:
        super().__init__()
        self.shared = _linear(width, n_classes)

    def forward(self, pooled: torch.Tensor) -> torch.Tensor:
        """Logits [B, C]."""
        logits: torch.Tensor = self.shared(pooled)
        return logits

    def start_at(self, prior: npt.NDArray[np.float64]) -> None:
        """Set the bias to the log of the class prior [C]."""
        _set_bias(self.shared, prior)


class AnnotatorHeads(nn.Module):  # type: ignore[misc]
    """Logits [B, A, C]: what all annotators share plus each one's deviation, 0 at the start.

    Annotators with few items stay close to the others.
    """

    def __init__(self, width: int, n_classes: int, n_annotators: int) -> None:
        super().__init__()
        self.shape = (n_annotators, n_classes)
        self.shared = _linear(width, n_classes)
        self.deviation = nn.Linear(width, n_annotators * n_classes)
        nn.init.zeros_(self.deviation.weight)
        nn.init.zeros_(self.deviation.bias)

    def forward(self, pooled: torch.Tensor) -> torch.Tensor:
        """Logits [B, A, C]."""
        own: torch.Tensor = self.deviation(pooled).unflatten(-1, self.shape)
        return self.shared(pooled).unsqueeze(1) + own

    def start_at(self, prior: npt.NDArray[np.float64]) -> None:
        """Set the shared bias to the log of the class prior [C]."""
        _set_bias(self.shared, prior)


class MemberHeads(nn.Module):  # type: ignore[misc]
    """Logits [B, K, C] of K members on one encoder, each from a start of its own."""

    def __init__(self, width: int, n_classes: int, n_members: int) -> None:
        super().__init__()
        self.shape = (n_members, n_classes)
        self.members = _linear(width, n_members * n_classes)

    def forward(self, pooled: torch.Tensor) -> torch.Tensor:
        """Logits [B, K, C]."""
        logits: torch.Tensor = self.members(pooled).unflatten(-1, self.shape)
        return logits

    def start_at(self, prior: npt.NDArray[np.float64]) -> None:
        """Set the bias of every member to the log of the class prior [C]."""
        _set_bias(self.members, np.tile(prior, self.shape[0]))


def pooled_width(backbone: Any, pooling: str) -> int:
    """How many features the heads see."""
    width = int(backbone.config.hidden_size)
    return 2 * width if Pooling(pooling) is Pooling.TARGET else width


def class_prior(targets: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Shares of the classes [C] in targets [N, C], as if one more item of each had been seen."""
    totals = targets.sum(axis=0) + 1.0
    prior: npt.NDArray[np.float64] = totals / totals.sum()
    return prior


def _mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1.0)


def _linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=_SPREAD)
    nn.init.zeros_(layer.bias)
    return layer


def _set_bias(layer: nn.Linear, prior: npt.NDArray[np.float64]) -> None:
    with torch.no_grad():
        layer.bias.copy_(torch.tensor([math.log(share) for share in prior]))
