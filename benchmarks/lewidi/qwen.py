"""Qwen2.5-Coder-1.5B-Instruct as a folder of weights, from a GGUF file of four bits.

    python benchmarks/lewidi/qwen.py FILE.gguf FOLDER

Needs the package gguf. The weights are Apache-2.0 upstream; none are here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModel, AutoTokenizer


def main(file: Path, out: Path) -> None:
    """Write the decoder without its language-model head, in bfloat16, and the tokenizer."""
    out.mkdir(parents=True, exist_ok=True)
    source = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    model = AutoModel.from_pretrained(**source, dtype=torch.bfloat16)
    del model.config.quantization_config  # the weights are no longer quantized
    model.config.save_pretrained(out)
    weights = {name: weight.contiguous() for name, weight in model.state_dict().items()}
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    AutoTokenizer.from_pretrained(**source).save_pretrained(out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
