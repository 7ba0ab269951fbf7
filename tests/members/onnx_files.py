"""Encoders as ONNX files, exported with torch from the folders that transformers writes."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path

from tiny_transformer import torch

NAMES = ["input_ids", "attention_mask", "token_type_ids"]


def with_onnx(model: str, folder: Path) -> Path:
    """A model's folder, its files linked, with ``onnx/model.onnx``, as the hub has it."""
    from transformers import AutoModel

    shutil.copytree(model, folder, copy_function=os.link)
    (folder / "onnx").mkdir()
    network = _HiddenState(AutoModel.from_pretrained(model, attn_implementation="eager").eval())
    tokens = torch.ones(2, 7, dtype=torch.long)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter is an older one, which needs onnx alone
        torch.onnx.export(
            network,
            (tokens, tokens.clone(), torch.zeros_like(tokens)),
            str(folder / "onnx" / "model.onnx"),
            input_names=NAMES,
            output_names=["last_hidden_state"],
            dynamic_axes={
                name: {0: "texts", 1: "tokens"} for name in [*NAMES, "last_hidden_state"]
            },
            opset_version=17,
            dynamo=False,
        )
    return folder


class _HiddenState(torch.nn.Module):
    """A network that returns the vectors of its tokens and nothing else."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, tokens: torch.Tensor, mask: torch.Tensor, types: torch.Tensor
    ) -> torch.Tensor:
        hidden: torch.Tensor = self.network(
            input_ids=tokens, attention_mask=mask, token_type_ids=types
        ).last_hidden_state
        return hidden
