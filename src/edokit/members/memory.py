"""When a GPU's memory is too small."""

from __future__ import annotations

import gc

import torch
from torch import nn


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that a device's memory ran out."""
    if isinstance(error, torch.cuda.OutOfMemoryError):
        return True
    # Metal and some CUDA libraries say it in words alone.
    return isinstance(error, RuntimeError) and "out of memory" in str(error).lower()


def free_memory(device: torch.device) -> None:
    """Let go of what a failed or finished training left on a GPU."""
    if device.type != "cpu":
        gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def kept_copy(network: nn.Module, device: torch.device) -> dict[str, torch.Tensor]:
    """The network's weights as they are now: on its GPU where there is ample room, else beside."""
    weights = network.state_dict()
    size = sum(value.numel() * value.element_size() for value in weights.values())
    ample = device.type == "cuda" and torch.cuda.mem_get_info(device)[0] > 8 * size
    where = device if ample else torch.device("cpu")
    return {name: value.detach().to(where, copy=True) for name, value in weights.items()}
