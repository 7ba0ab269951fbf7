"""Probabilities from a network, batch by batch, long texts together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from edokit._errors import InputError
from edokit._types import Floats
from edokit.members.memory import free_memory, out_of_memory
from edokit.members.tokens import Tokens, padded


def probabilities(
    network: nn.Module,
    tokens: Sequence[Tokens],
    *,
    pad_id: int,
    max_length: int,
    batch_size: int,
    device: torch.device,
) -> Floats:
    """Softmax of the network's logits [N, …, C], in the order of the texts.

    Where a batch does not fit into memory, batches half as large are tried once.
    """
    network.eval()
    order = np.argsort([-len(one.ids) for one in tokens], kind="stable")
    for size in (batch_size, -(-batch_size // 2)):
        try:
            parts = [
                _batch(
                    network, [tokens[i] for i in order[s : s + size]], pad_id, max_length, device
                )
                for s in range(0, len(order), size)
            ]
            break
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
        free_memory(device)
    else:
        raise InputError(
            f"a batch must fit into the GPU's memory, but one of {size} texts does not",
            "lower eval_batch_size or max_length",
        )
    result = np.empty((len(tokens), *parts[0].shape[1:]))
    result[order] = np.concatenate(parts)
    return result


def on_device(arrays: dict[str, npt.NDArray[Any]], device: torch.device) -> dict[str, torch.Tensor]:
    """Arrays as tensors where the network is; to a GPU without making the host wait."""
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    if device.type == "cuda":
        return {
            name: tensor.pin_memory().to(device, non_blocking=True)
            for name, tensor in tensors.items()
        }
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def uses_bfloat16(device: torch.device) -> bool:
    """Whether the encoder computes in bfloat16 there."""
    return device.type == "cuda" and bool(torch.cuda.is_bf16_supported())


def _batch(
    network: nn.Module, tokens: list[Tokens], pad_id: int, max_length: int, device: torch.device
) -> Floats:
    half = uses_bfloat16(device)
    precision = torch.autocast(device.type, dtype=torch.bfloat16) if half else nullcontext()
    with torch.no_grad(), precision:
        logits = network(**on_device(padded(tokens, pad_id, max_length), device))
        shares = torch.softmax(logits.double(), dim=-1) if device.type != "mps" else logits
    if device.type == "mps":  # no double precision there
        shares = torch.softmax(shares.cpu().double(), dim=-1)
    result: Floats = shares.cpu().numpy()
    return result
