"""Fine-tuned networks on disk: safetensors, JSON and the tokenizer's files, nothing executable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from safetensors.torch import load, save
from torch import nn

from edokit._errors import InputError
from edokit.members.backbone import choose_device, empty_backbone, load_tokenizer
from edokit.members.fine_tune import FineTuned
from edokit.members.fine_tuning import FineTuning
from edokit.members.tokens import Reader
from edokit.members.transformer_network import MemberNetwork, pooled_width

_WEIGHTS = "model.safetensors"


def save_tuned(tuned: FineTuned, folder: Path) -> None:
    """Write weights, the encoder's config and the tokenizer."""
    weights = {
        name: value.detach().cpu().contiguous()
        for name, value in tuned.network.state_dict().items()
        if not name.startswith("joint.")
    }
    (folder / _WEIGHTS).write_bytes(save(weights))
    tuned.network.backbone.config.save_pretrained(folder)
    tuned.reader.tokenizer.save_pretrained(folder)


def load_tuned(folder: Path, options: FineTuning, head: Callable[[int], nn.Module]) -> FineTuned:
    """The network that was saved in a folder, ready to predict."""
    device = choose_device(options.device)
    reader = Reader(
        load_tokenizer(str(folder)), options.max_length, speaker_tags=options.speaker_tags
    )
    backbone = empty_backbone(folder)
    network = MemberNetwork(
        backbone, options.pooling, head(pooled_width(backbone, options.pooling))
    )
    weights = folder / _WEIGHTS
    try:
        network.load_state_dict(load(weights.read_bytes()))
    except Exception as error:  # cut off, missing, or of another model
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f"{weights} must hold the weights of the saved member, but: {reason}",
            "train the member again",
        ) from error
    return FineTuned(network.to(device).eval(), reader, device, [], None)
