"""Adversarial training: the same batch again, with word embeddings moved to hurt (FGM)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


def word_embeddings(backbone: nn.Module) -> nn.Parameter:
    """The matrix of word embeddings of an encoder."""
    weight: nn.Parameter = backbone.get_input_embeddings().weight
    return weight


@contextmanager
def moved_to_hurt(
    weight: nn.Parameter, norm: float, earlier: torch.Tensor | None = None
) -> Iterator[None]:
    """Inside, ``weight`` stands one step of this norm up its gradient; after it, as before.

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
