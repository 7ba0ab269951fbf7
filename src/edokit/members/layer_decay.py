"""Layer-wise learning rates: the closer to the words, the slower."""

from __future__ import annotations

import re
from typing import Any

from torch import nn

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
        below = _steps_below_heads(name, depth)
        decays = not name.endswith("bias") and name not in norms
        group = groups.setdefault(
            (below, decays),
            {
                "params": [],
                "lr": learning_rate * layer_decay**below,
                "weight_decay": weight_decay if decays else 0.0,
            },
        )
        group["params"].append(weight)
    return [groups[key] for key in sorted(groups)]


def _steps_below_heads(name: str, depth: int) -> int:
    if not name.startswith("backbone."):
        return 0
    found = _LAYER.search(name)
    # Embeddings, and biases of positions that all layers share, stand below the first layer.
    return depth - int(found[1]) if found else depth + 1
