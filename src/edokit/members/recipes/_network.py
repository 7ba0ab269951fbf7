"""The network of a fine-tuned member: encoder, pooling, heads, losses, learning rates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from edokit._errors import InputError
from edokit._types import Floats
from edokit.members.pretrained import free_memory, out_of_memory
from edokit.members.recipes._tokens import Arrays, Reader, Tokens

_DROPOUT = 0.1
_SPREAD = 0.02  # standard deviation of new weights, as in BERT


class MemberNetwork(nn.Module):  # type: ignore[misc]
    """Logits from tokens: [B, C] with one head, [B, H, C] with several."""

    def __init__(self, backbone: nn.Module, pooling: str, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.pooling = pooling
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

    def rescale_heads(self, **batch: torch.Tensor) -> None:
        """Divide the weights of new heads by the scale of a first batch's features, if above 1.

        A decoder's hidden states may be ten times an encoder's, and so would the first logits be.
        """
        training = self.training
        features: list[torch.Tensor] = []
        hook = self.dropout.register_forward_hook(lambda _, __, pooled: features.append(pooled))
        with torch.no_grad():
            self.eval()(**batch)
            scale = features[0].float().pow(2).mean().sqrt()
            for weight in self.head.parameters():
                if weight.dim() > 1:
                    weight.div_(scale.clamp(min=1.0))
        hook.remove()
        self.train(training)

    def _pool(
        self, hidden: torch.Tensor, attention_mask: torch.Tensor, target_mask: torch.Tensor
    ) -> torch.Tensor:
        if self.pooling == "first":
            return hidden[:, 0]
        if self.pooling == "last":
            # Padding is at the right.
            return hidden[torch.arange(len(hidden)), attention_mask.sum(dim=1) - 1]
        everything = _mean(hidden, attention_mask)
        if self.pooling == "mean":
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

    def set_prior(self, prior: Floats) -> None:
        """Set the bias to the log of the class prior [C]."""
        _set_bias(self.shared, prior)


class AnnotatorHeads(OneHead):
    """Logits [B, A, C]: what all annotators share plus each one's deviation, 0 at the start.

    Annotators with few items stay close to the others.
    """

    def __init__(self, width: int, n_classes: int, n_annotators: int) -> None:
        super().__init__(width, n_classes)
        self.shape = (n_annotators, n_classes)
        self.deviation = nn.Linear(width, n_annotators * n_classes)
        nn.init.zeros_(self.deviation.weight)
        nn.init.zeros_(self.deviation.bias)

    def forward(self, pooled: torch.Tensor) -> torch.Tensor:
        """Logits [B, A, C]."""
        own: torch.Tensor = self.deviation(pooled).unflatten(-1, self.shape)
        return self.shared(pooled).unsqueeze(1) + own


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

    def set_prior(self, prior: Floats) -> None:
        """Set the bias of every member to the log of the class prior [C]."""
        _set_bias(self.members, np.tile(prior, self.shape[0]))


def class_prior(targets: Floats) -> Floats:
    """Shares of the classes [C] in targets [N, C], as if one more item of each had been seen."""
    totals = targets.sum(axis=0) + 1.0
    prior: Floats = totals / totals.sum()
    return prior


def _mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1.0)


def _linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=_SPREAD)
    nn.init.zeros_(layer.bias)
    return layer


def _set_bias(layer: nn.Linear, prior: Floats) -> None:
    with torch.no_grad():
        layer.bias.copy_(torch.tensor([math.log(share) for share in prior]))


def target_loss(kind: str, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean over items of the distance between logits [..., C] and targets [..., C]."""
    return (manhattan if kind == "md" else cross_entropy)(logits, targets)


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """−mean Σ_c t_c ln p_c."""
    return -(targets * F.log_softmax(logits, dim=-1)).sum(dim=-1).mean()


def manhattan(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """mean Σ_c |p_c − t_c|."""
    return (F.softmax(logits, dim=-1) - targets).abs().sum(dim=-1).mean()


def annotator_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of heads [B, A, C] to labels [B, A, C]; a row of zeros: no label.

    Annotators of an item count alike, and so do items.
    """
    per_label = -(labels * F.log_softmax(logits, dim=-1)).sum(dim=-1)
    labelled = (labels.sum(dim=-1) > 0).to(logits.dtype)
    return (per_label.sum(dim=1) / labelled.sum(dim=1).clamp(min=1.0)).mean()


_LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks?)\.(\d+)\.")


def parameter_groups(
    network: nn.Module, learning_rate: float, layer_decay: float, weight_decay: float
) -> list[dict[str, Any]]:
    """Parameters for an optimizer, by learning rate and by whether weight decay applies.

    Heads learn at ``learning_rate``, the encoder's top layer at ``layer_decay`` times it, each
    layer below at that times the one above, embeddings slowest. Biases and norms don't decay.
    """
    named = [(name, weight) for name, weight in network.named_parameters() if weight.requires_grad]
    numbers = [int(found[1]) for name, _ in named if (found := _LAYER.search(name))]
    depth = max(numbers, default=-1) + 1
    norms = {
        f"{name}.weight"
        for name, module in network.named_modules()
        if "norm" in type(module).__name__.lower()
    }
    groups: dict[tuple[int, bool], dict[str, Any]] = {}
    for name, weight in named:
        below = 0
        if name.startswith("backbone."):
            found = _LAYER.search(name)
            # Embeddings, and biases of positions that all layers share, are below the first layer.
            below = depth - int(found[1]) if found else depth + 1
        decays = not name.endswith("bias") and name not in norms
        rates = {
            "lr": learning_rate * layer_decay**below,
            "weight_decay": weight_decay if decays else 0.0,
        }
        groups.setdefault((below, decays), {"params": [], **rates})["params"].append(weight)
    return [groups[key] for key in sorted(groups)]


@contextmanager
def adversarial_step(
    weight: nn.Parameter, norm: float, earlier: torch.Tensor | None = None
) -> Iterator[None]:
    """Inside, ``weight`` is moved one step of this norm up its gradient; after it, as before.

    ``earlier`` is the part of the gradient that other batches left, where gradients accumulate.
    Without a gradient nothing moves.
    """
    if weight.grad is None:
        yield
        return
    with torch.no_grad():
        gradient = weight.grad if earlier is None else weight.grad - earlier
        length = gradient.norm()
        # Chosen on the device, so that the host need not wait for the length.
        usable = torch.isfinite(length) & (length > 0)
        step = torch.where(usable, norm / length, torch.zeros_like(length))
        before = weight.detach().clone()
        weight.add_(torch.where(usable, gradient * step, torch.zeros_like(gradient)))
    try:
        yield
    finally:
        with torch.no_grad():
            weight.copy_(before)


def in_batches(
    forward: Callable[..., torch.Tensor],
    tokens: Sequence[Tokens],
    reader: Reader,
    batch_size: int,
    device: torch.device,
) -> npt.NDArray[Any]:
    """What ``forward`` gives for all tokens [N, …], computed in batches of similar length."""
    order = np.argsort([-len(one.ids) for one in tokens], kind="stable")
    parts = []
    for start in range(0, len(order), batch_size):
        batch = reader.padded([tokens[i] for i in order[start : start + batch_size]])
        with torch.no_grad():
            parts.append(forward(**on_device(batch, device)).cpu().numpy())
    result = np.empty((len(tokens), *parts[0].shape[1:]), dtype=parts[0].dtype)
    result[order] = np.concatenate(parts)
    return result


def predict_probabilities(
    network: nn.Module, tokens: Sequence[Tokens], reader: Reader, size: int, device: torch.device
) -> Floats:
    """Softmax of the network's logits [N, …, C], in the order of the texts.

    Where a batch does not fit into memory, batches half as large are tried once.
    """
    network.eval()
    half = uses_bfloat16(device)

    def forward(**batch: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device.type, dtype=torch.bfloat16) if half else nullcontext():
            logits = network(**batch)
        if device.type == "mps":  # no double precision there
            logits = logits.cpu()
        return torch.softmax(logits.double(), dim=-1)

    for smaller in (size, -(-size // 2)):
        try:
            return in_batches(forward, tokens, reader, smaller, device)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
        free_memory(device)
    raise InputError(
        f"a batch of {smaller} texts does not fit into the GPU's memory",
        "lower eval_batch_size or max_length",
    )


def on_device(arrays: Arrays, device: torch.device) -> dict[str, torch.Tensor]:
    """Arrays as tensors where the network is; to a GPU without making the host wait."""
    cuda = device.type == "cuda"
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return {
        name: (tensor.pin_memory() if cuda else tensor).to(device, non_blocking=cuda)
        for name, tensor in tensors.items()
    }


def uses_bfloat16(device: torch.device) -> bool:
    """Whether the encoder computes in bfloat16 there."""
    return device.type == "cuda" and bool(torch.cuda.is_bf16_supported())
