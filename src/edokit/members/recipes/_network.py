"""The network of a fine-tuned member: encoder, pooling, heads, links, losses, learning rates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from edokit._errors import InputError, option
from edokit._types import Floats
from edokit.members.arrays import NamedArrays
from edokit.members.recipes._tokens import Reader
from edokit.scales import NOMINAL, Scale

if TYPE_CHECKING:
    from edokit.members.recipes.transformer import TransformerMember

_DROPOUT = 0.1
_SPREAD = 0.02  # standard deviation of new weights, as in BERT
_SHRINKAGE = 10.0  # labels at which what is learned of an annotator counts half


class MemberNetwork(nn.Module):  # type: ignore[misc]
    """Logits from tokens: of each text, and of pairs of a text and an annotator."""

    def __init__(self, backbone: nn.Module, pooling: str, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.pooling = pooling
        self.dropout = nn.Dropout(_DROPOUT)
        self.head = head

    def forward(
        self,
        pair_rows: torch.Tensor | None = None,
        pair_annotators: torch.Tensor | None = None,
        **tokens: torch.Tensor,
    ) -> torch.Tensor:
        """Logits of the texts [B, …]; with pairs, [B + P, …] where those of the pairs follow.

        A pair is the row of a text [P] and the position of an annotator [P], -1 for an anonymous
        answer.
        """
        pooled = self.dropout(self.features(**tokens))
        with torch.autocast(pooled.device.type, enabled=False):
            logits: torch.Tensor
            if pair_rows is None:
                logits = self.head(pooled)
            else:
                logits = self.head(pooled, pair_rows, pair_annotators)
        return logits

    def features(self, target_mask: torch.Tensor, **inputs: torch.Tensor) -> torch.Tensor:
        """Pooled hidden states [B, W] in float32, also where the encoder computes in bfloat16."""
        hidden = self.backbone(**inputs).last_hidden_state
        with torch.autocast(hidden.device.type, enabled=False):
            return self._pool(hidden.float(), inputs["attention_mask"], target_mask)

    def rescale_heads(self, **tokens: torch.Tensor) -> None:
        """Adapt the initial weights of the head to the scale of the features of a first batch.

        A decoder's hidden states may be ten times an encoder's, and so would the first logits be.
        """
        training = self.training
        with torch.no_grad():
            scale = self.eval().features(**tokens).pow(2).mean().sqrt()
            self.head.rescale(scale)
        self.train(training)

    def _pool(
        self, hidden: torch.Tensor, attention_mask: torch.Tensor, target_mask: torch.Tensor
    ) -> torch.Tensor:
        if self.pooling == "first":
            return hidden[:, 0]
        if self.pooling == "last":
            # Padding is at the right.
            rows = torch.arange(len(hidden), device=hidden.device)
            return hidden[rows, attention_mask.sum(dim=1) - 1]
        mean = _mean(hidden, attention_mask)
        if self.pooling == "mean":
            return mean
        return torch.cat([mean, _mean(hidden, target_mask)], dim=-1)


class Link(nn.Module):  # type: ignore[misc]
    """From scores, one per class or label, to logits, whose softmax is a distribution.

    `make_link` chooses the link of an answer scale.

    Attributes
    ----------
    n_scores : int
        Number of classes or labels.
    steps : tensor of shape (C - 1,)
        Distances between neighbouring classes, for losses of ordinal scales.
    """

    def __init__(self, n_classes: int, scale: Scale) -> None:
        super().__init__()
        self.n_scores = n_classes
        if scale.steps is None:
            steps = torch.ones(n_classes - 1)
        else:
            steps = torch.tensor(scale.steps).float()
        # A buffer moves to the network's device; this one is not saved.
        self.register_buffer("steps", steps, persistent=False)

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        """Logits of scores."""
        raise NotImplementedError

    def probabilities(self, logits: torch.Tensor) -> torch.Tensor:
        """Probabilities [..., C] of classes, or [..., L] of labels, in double precision."""
        raise NotImplementedError

    def losses(self, kind: str, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Losses [...] of logits to shares [..., C] or [..., L]; kinds as of `row_losses`."""
        raise NotImplementedError

    def shares(self, totals: Floats, count: float | Floats) -> Floats:
        """Shares [..., C] of the totals of ``count`` answers, after adding one of each kind."""
        raise NotImplementedError

    def bias(self, shares: Floats) -> Floats:
        """Scores [..., C] whose probabilities are these shares [..., C]."""
        raise NotImplementedError


class ClassLink(Link):
    """The link of exclusive classes: scores [..., C] are logits."""

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        """The scores."""
        return scores

    def probabilities(self, logits: torch.Tensor) -> torch.Tensor:
        """Probabilities [..., C], in double precision."""
        return _double_softmax(logits)

    def losses(self, kind: str, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Losses [...] of logits to shares [..., C]."""
        return row_losses(kind, logits, targets, self.steps)

    def shares(self, totals: Floats, count: float | Floats) -> Floats:
        """Shares [..., C] of the totals, after adding an answer of each class."""
        smoothed = totals + 1.0
        shares: Floats = smoothed / smoothed.sum(-1, keepdims=True)
        return shares

    def bias(self, shares: Floats) -> Floats:
        """Scores whose softmax is these shares."""
        return np.log(shares)


class LabelLink(Link):
    """The link of multi-label data: logits [..., L, 2] are those of "not chosen" and "chosen"."""

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        """Logits [..., L, 2]: 0, and the score of the label."""
        return torch.stack([torch.zeros_like(scores), scores], dim=-1)

    def probabilities(self, logits: torch.Tensor) -> torch.Tensor:
        """Probabilities [..., L] that each label is chosen, in double precision."""
        return _double_softmax(logits)[..., 1]

    def losses(self, kind: str, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Losses [...] of logits to shares [..., L], means over the labels."""
        row_targets = torch.stack([1 - targets, targets], dim=-1)
        return row_losses(kind, logits, row_targets, self.steps).mean(dim=-1)

    def shares(self, totals: Floats, count: float | Floats) -> Floats:
        """Shares [..., L] of ``count`` answers, after adding one with each label and one without.

        ``totals`` are the answers with each label.
        """
        shares: Floats = (totals + 1.0) / (count + 2.0)
        return shares

    def bias(self, shares: Floats) -> Floats:
        """Scores whose sigmoid is these shares."""
        return np.log(shares) - np.log1p(-shares)


def make_link(n_classes: int, scale: Scale = NOMINAL) -> Link:
    """The link of an answer scale with this number of classes, or labels."""
    if scale.is_multi_label:
        return LabelLink(n_classes, scale)
    return ClassLink(n_classes, scale)


def _double_softmax(logits: torch.Tensor) -> torch.Tensor:
    if logits.device.type == "mps":  # no double precision there
        logits = logits.cpu()
    return torch.softmax(logits.double(), dim=-1)


class Head(nn.Module):  # type: ignore[misc]
    """A linear layer from pooled features to logits [B, …]; at first, all texts get the prior."""

    def __init__(self, width: int, link: Link) -> None:
        super().__init__()
        self.shared = _linear(width, link.n_scores)
        self.link = link

    def forward(self, pooled: torch.Tensor) -> torch.Tensor:
        """Logits of each text."""
        logits: torch.Tensor = self.link(self.shared(pooled))
        return logits

    def set_prior(self, targets: Floats) -> None:
        """Predict the mean of targets [N, C] whatever the text."""
        _set_bias(self.shared, self.link.bias(self.link.shares(targets.sum(axis=0), len(targets))))

    def rescale(self, scale: torch.Tensor) -> None:
        """Divide the weights by the features' scale, so that first logits are as small as usual."""
        self.shared.weight.div_(scale.clamp(min=1.0))


class AnnotatorHead(nn.Module):  # type: ignore[misc]
    """One hidden layer, to which each annotator adds a vector, and offsets to the scores.

    Both are multiplied by n / (n + 10), where n is the annotator's number of labels. Anonymous
    answers (-1) have neither.
    """

    def __init__(self, width: int, link: Link, labels: Sequence[float]) -> None:
        super().__init__()
        self.first = _linear(width, width)
        self.shared = _linear(width, link.n_scores)
        self.dropout = nn.Dropout(_DROPOUT)
        self.link = link
        self.vectors = nn.Parameter(torch.zeros(len(labels), width))
        self.offsets = nn.Parameter(torch.zeros(len(labels), link.n_scores))
        self.counts = np.array(labels, dtype=float)
        share = self.counts / (self.counts + _SHRINKAGE)
        self.register_buffer("share", torch.from_numpy(share).float().unsqueeze(1))
        self.register_buffer("scale", torch.ones(()))

    def forward(
        self,
        pooled: torch.Tensor,
        rows: torch.Tensor | None = None,
        annotators: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Logits [B, …] of each text, followed by those of the pairs [P, …]."""
        hidden = self.first(pooled)
        offsets = self.offsets.new_zeros((len(hidden), self.offsets.shape[1]))
        if rows is not None and annotators is not None:
            codes = annotators.clamp(min=0)
            share = F.embedding(codes, self.share) * (annotators >= 0).unsqueeze(-1)
            vectors = F.embedding(codes, self.vectors) * (share * self.scale)
            pair_offsets = F.embedding(codes, self.offsets) * share
            # The layer is linear: each text goes through it once, each vector is added after it.
            pair_hidden = hidden[rows] + F.linear(vectors, self.first.weight)
            hidden = torch.cat([hidden, pair_hidden])
            offsets = torch.cat([offsets, pair_offsets])
        logits: torch.Tensor = self.link(self.shared(self.dropout(F.gelu(hidden))) + offsets)
        return logits

    def set_prior(self, targets: Floats, labels: Floats) -> None:
        """Predict the mean of targets [N, C] whatever the text.

        Each annotator starts at the mean of their labels, whose sums are ``labels`` [A, C], and of
        10 more labels with the mean of all.
        """
        prior = self.link.shares(targets.sum(axis=0), len(targets))
        scores = self.link.bias(prior)
        _set_bias(self.shared, scores)
        means = (labels + _SHRINKAGE * prior) / (self.counts[:, None] + _SHRINKAGE)
        offsets = self.link.bias(means) - scores
        with torch.no_grad():
            self.offsets.copy_(torch.from_numpy(offsets) / self.share.clamp(min=1e-3))

    def rescale(self, scale: torch.Tensor) -> None:
        """Divide the weights by the features' scale, so that first logits are as small as usual.

        The vectors of annotators, which are added to the features, are multiplied by it.
        """
        scale = scale.clamp(min=1.0)
        self.first.weight.div_(scale)
        self.scale.copy_(scale)


def with_adapters(backbone: nn.Module, rank: int) -> nn.Module:
    """The encoder, frozen, with trainable low-rank adapters in all of its linear layers."""
    from peft import LoraConfig, get_peft_model

    settings = LoraConfig(
        r=rank, lora_alpha=2 * rank, lora_dropout=_DROPOUT, target_modules="all-linear"
    )
    encoder: nn.Module = get_peft_model(backbone, settings)
    return encoder


def _mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1.0)


def _linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=_SPREAD)
    nn.init.zeros_(layer.bias)
    return layer


def _set_bias(layer: nn.Linear, scores: Floats) -> None:
    with torch.no_grad():
        layer.bias.copy_(torch.from_numpy(scores))


def row_losses(
    kind: str, logits: torch.Tensor, targets: torch.Tensor, steps: torch.Tensor
) -> torch.Tensor:
    """Losses [...] of logits [..., C] to targets [..., C].

    ``ce``: −Σ_c t_c ln p_c. ``md``: Σ_c |p_c − t_c|. ``rps``: Σ_c step_c (F_c − G_c)² on cumulative
    shares. ``ce+rps``: both.
    """
    total = logits.new_zeros(logits.shape[:-1])
    for name in kind.split("+"):
        if name == "ce":
            total = total - (targets * F.log_softmax(logits, dim=-1)).sum(dim=-1)
            continue
        gaps = F.softmax(logits, dim=-1) - targets
        if name == "rps":
            total = total + (gaps.cumsum(dim=-1)[..., :-1].square() * steps).sum(dim=-1)
        else:
            total = total + gaps.abs().sum(dim=-1)
    return total


_LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks?)\.(\d+)\.")
_ANNOTATORS = ("head.vectors", "head.offsets")


def parameter_groups(
    network: nn.Module, options: TransformerMember, weight_decay: float
) -> list[dict[str, Any]]:
    """Parameters for an optimizer, by learning rate and by whether weight decay applies.

    Heads and parameters of annotators have their own learning rates. The learning rate of the
    encoder's top layer is multiplied by ``layer_decay``, and so is that of each layer below,
    relative to the layer above; that of the embeddings is the lowest. Weight decay does not apply
    to biases, norms and annotators.
    """
    encoder_rate = options.learning_rate
    head_rate = options.head_learning_rate
    if head_rate is None:
        head_rate = encoder_rate
    # The layer of each parameter of the encoder, counted from the bottom. Embeddings, and biases of
    # positions that all layers share, are below layer 0.
    layers: dict[str, int] = {}
    for name, _ in network.named_parameters():
        if name.startswith("backbone."):
            match = _LAYER.search(name)
            layers[name] = -1
            if match is not None:
                layers[name] = int(match[1])
    n_layers = max(layers.values(), default=-1) + 1
    groups: dict[tuple[float, float], dict[str, Any]] = {}
    for name, weight in network.named_parameters():
        if not weight.requires_grad:
            continue
        decay = 0.0
        if weight.dim() > 1:
            decay = weight_decay
        if name in layers:
            rate = encoder_rate * options.layer_decay ** (n_layers - layers[name])
        elif name in _ANNOTATORS:
            rate = options.annotator_learning_rate
            decay = 0.0
        else:
            rate = head_rate
        # Few groups: an optimizer launches its kernels for each of them.
        group = groups.setdefault((rate, decay), {"params": [], "lr": rate, "weight_decay": decay})
        group["params"].append(weight)
    return list(groups.values())


@contextmanager
def adversarial_step(weight: nn.Parameter, norm: float) -> Iterator[None]:
    """Move ``weight`` by a step of this norm up its gradient, and restore it at the end.

    Without a finite gradient it is not moved.
    """
    before = weight.detach().clone()
    if weight.grad is not None:
        step = weight.grad * (norm / weight.grad.norm())
        weight.data.add_(step.nan_to_num(0.0, 0.0, 0.0))
    try:
        yield
    finally:
        weight.data.copy_(before)


def in_batches(
    forward: Callable[..., torch.Tensor],
    tokens: Sequence[NamedArrays],
    reader: Reader,
    batch_size: int,
    device: torch.device,
) -> npt.NDArray[Any]:
    """The outputs [N, …] of ``forward`` for all texts, computed in batches of similar length."""
    order = np.argsort([-len(text["input_ids"]) for text in tokens], kind="stable")
    outputs = []
    with torch.no_grad():
        for start in range(0, len(order), batch_size):
            texts = [tokens[i] for i in order[start : start + batch_size]]
            outputs.append(forward(**on_device(reader.padded(texts), device)))
    # Copied from the device all at once: a copy of each batch would wait for its computation.
    in_computed_order = torch.cat(outputs).cpu().numpy()
    result: npt.NDArray[Any] = np.empty_like(in_computed_order)
    result[order] = in_computed_order
    return result


@contextmanager
def memory_errors(size_option: str, batch_size: int) -> Iterator[None]:
    """Turn a lack of memory for a batch into an error that names the option of its size."""
    try:
        yield
    except RuntimeError as error:  # Metal and some CUDA libraries say it in words alone
        if "out of memory" not in str(error).lower():
            raise
        raise InputError(
            f"a batch of {batch_size} texts does not fit into the GPU's memory",
            f"lower {option(size_option)} or {option('max_length')}, or choose a smaller model",
            code="too-little-memory",
        ) from None


def on_device(arrays: NamedArrays, device: torch.device) -> dict[str, torch.Tensor]:
    """Arrays as tensors on a device."""
    return {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}


def half_precision(device: torch.device) -> torch.autocast:
    """A context in which the encoder computes in bfloat16 if the device can."""
    enabled = device.type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.autocast(device.type, torch.bfloat16, enabled=enabled)
