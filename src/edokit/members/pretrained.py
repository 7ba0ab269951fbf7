"""Pretrained models by folder or hub id, the devices they run on, and their memory."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edokit._errors import EDOError, InputError, MissingExtraError, examples, warn

if TYPE_CHECKING:
    import torch
    from torch import nn

TO_PREDICT = ("torch", "transformers")
TO_FINE_TUNE = ("torch", "transformers", "accelerate", "safetensors")
_FILES = ("config.json", "modules.json")
DOWNLOAD = "EDO_DOWNLOAD"
"""The variable of the environment that lets models be downloaded."""
_PATIENCE = 10  # seconds in which the hub must answer
_HINT = "name a folder with config.json, weights and tokenizer, or a hub id such as 'org/model'"


def cache_folder() -> Path:
    """Where things that can be computed, or asked, again are kept."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("EDO_CACHE") or user / "edokit")


def require_packages(what: str, packages: tuple[str, ...] = TO_FINE_TUNE) -> None:
    """Raise an error that names the extra where a package is not installed."""
    for name in packages:
        try:
            import_module(name)
        except ImportError as error:
            raise MissingExtraError(
                f"{what} needs the package {name}, which can't be imported: {error}",
                'install it with: pip install "edokit[transformers]"',
            ) from error


def folder_or_id(model: str) -> str:
    """The folder of a model, also of a hub id whose files are on this machine.

    Nothing is downloaded unless the environment has EDO_DOWNLOAD; then a hub id stays one.
    """
    path = Path(model).expanduser()
    looks_local = (
        path.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1 or "\\" in model
    )
    if path.is_dir():
        if any((path / name).is_file() for name in _FILES):
            return str(path)
        found = f"holds neither {' nor '.join(_FILES)}"
    elif path.exists() or looks_local:
        found = "is a file" if path.exists() else "does not exist"
    else:
        return _from_hub(model)
    raise InputError(f"a model is a folder or a hub id, but {model} {found}", _HINT)


def _from_hub(model: str) -> str:
    require_packages(f"the model {model!r}", ("huggingface_hub",))
    from huggingface_hub import model_info, snapshot_download

    if not os.environ.get(DOWNLOAD):
        try:
            return snapshot_download(model, local_files_only=True)
        except Exception as error:
            raise InputError(
                f"{model!r} is no folder, and no model of that name has been downloaded",
                f"download it with `hf download {model}`, let edo do so with {DOWNLOAD}=1,"
                " or name a folder that holds it",
            ) from error
    try:
        # Asked once: the libraries that load a model would try for minutes.
        model_info(model, timeout=_PATIENCE)
    except Exception as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputError(
            f"the model {model!r} can't be downloaded: {reason}", "check the name and the network"
        ) from error
    return model


@contextmanager
def loading(model: str) -> Iterator[None]:
    """Silence the libraries' reports; whatever keeps the model from loading is one error."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    except EDOError:
        raise
    except Exception as error:  # each architecture fails in its own way
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputError(f"the model {model!r} can't be loaded: {reason}", _HINT) from error
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def load_backbone(model: str) -> nn.Module:
    """The encoder with its pretrained weights in float32, without a head of its own."""
    from transformers import AutoModel

    with loading(model):
        backbone, loaded = AutoModel.from_pretrained(folder_or_id(model), output_loading_info=True)
    # The pooler on top of the first token is not ours to train: heads pool for themselves.
    missing = sorted(name for name in loaded["missing_keys"] if not name.startswith("pooler."))
    if missing:
        warn(
            f"the weights of {model} lack {len(missing)} of the model's parameters, which start at"
            f" random: {examples(missing)}; check that the weights belong to the config"
        )
    return _encoder(backbone, model)


def empty_backbone(folder: Path) -> nn.Module:
    """The encoder that a folder's config describes, its weights still to be filled in."""
    from transformers import AutoConfig, AutoModel

    with loading(str(folder)):
        return _encoder(AutoModel.from_config(AutoConfig.from_pretrained(folder)), str(folder))


def load_tokenizer(model: str) -> Any:
    """The tokenizer that belongs to a model."""
    from transformers import AutoTokenizer

    with loading(model):
        tokenizer = AutoTokenizer.from_pretrained(folder_or_id(model))
    if tokenizer.pad_token_id is None:
        raise InputError(
            f"the tokenizer of {model} has no padding token",
            "choose an encoder such as 'google-bert/bert-base-uncased'",
        )
    return tokenizer


def choose_device(device: str | None) -> torch.device:
    """Where to compute, with the number of the GPU; one that was asked for must be there."""
    import torch

    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
    except RuntimeError:
        chosen = torch.device("meta")
    available = {
        "cpu": 1,
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
    }
    if chosen.type not in available:
        raise InputError(
            f"device is {device!r}, which is none of 'cpu', 'cuda', 'cuda:<number>' and 'mps'",
            "leave it out to use a GPU where there is one",
            parameters=("device",),
        )
    if (chosen.index or 0) >= available[chosen.type]:
        raise InputError(
            f"there is no device {device!r}: torch finds {available[chosen.type]} of this kind",
            "leave device out to compute on what there is",
            parameters=("device",),
        )
    return torch.device("cuda", chosen.index or 0) if chosen.type == "cuda" else chosen


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that a device's memory ran out."""
    import torch

    # Metal and some CUDA libraries say it in words alone.
    in_words = isinstance(error, RuntimeError) and "out of memory" in str(error).lower()
    return in_words or isinstance(error, torch.cuda.OutOfMemoryError)


def free_memory(device: torch.device) -> None:
    """Release what a failed or finished training holds on a GPU."""
    import torch

    if device.type != "cpu":
        gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _encoder(backbone: Any, model: str) -> nn.Module:
    if backbone.config.is_encoder_decoder:
        raise InputError(
            f"{model} is an encoder with a decoder, but members are encoders",
            "choose an encoder such as 'google-bert/bert-base-uncased'",
        )
    if getattr(backbone, "pooler", None) is not None:
        backbone.pooler = None
    # Checkpoints may be stored in half precision; training needs the full one.
    encoder: nn.Module = backbone.float()
    return encoder
