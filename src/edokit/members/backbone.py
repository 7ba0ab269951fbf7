"""Pretrained encoders and their tokenizers, from a folder or the hub, and where they compute."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging as hub_logging

from edokit._errors import EDOWarning, InputError, examples

_HINT = "name a folder with config.json, weights and tokenizer, or a hub id such as 'org/model'"


def load_backbone(model: str) -> nn.Module:
    """The encoder with its pretrained weights in float32, without a head of its own."""
    where = _source(model)
    with quiet(), _one_line(model):
        backbone, loaded = AutoModel.from_pretrained(where, output_loading_info=True)
    # The pooler on top of the first token is not ours to train: heads pool for themselves.
    missing = sorted(name for name in loaded["missing_keys"] if not name.startswith("pooler."))
    if missing:
        warnings.warn(
            f"the weights of {model} lack {len(missing)} of the model's parameters, which start at"
            f" random: {examples(missing)}; check that the weights belong to the config",
            EDOWarning,
            stacklevel=2,
        )
    return _encoder(backbone, model)


def empty_backbone(folder: Path) -> nn.Module:
    """The encoder that a folder's config describes, its weights still to be filled in."""
    with quiet(), _one_line(str(folder)):
        return _encoder(AutoModel.from_config(AutoConfig.from_pretrained(folder)), str(folder))


def load_tokenizer(model: str) -> Any:
    """The tokenizer that belongs to a model."""
    where = _source(model)
    with quiet(), _one_line(model):
        tokenizer = AutoTokenizer.from_pretrained(where)
    if tokenizer.pad_token_id is None:
        raise InputError(
            f"the tokenizer must have a padding token, but that of {model} has none",
            "choose an encoder such as 'google-bert/bert-base-uncased'",
        )
    return tokenizer


def choose_device(device: str | None) -> torch.device:
    """Where to compute, with the number of the GPU; one that was asked for must be there."""
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
    except RuntimeError:
        chosen = torch.device("meta")
    if chosen.type not in ("cpu", "cuda", "mps"):
        raise InputError(
            f"device must be 'cpu', 'cuda', 'cuda:<number>' or 'mps', but got {device!r}",
            "leave it out to use a GPU where there is one",
        )
    here = {
        "cpu": 1,
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
    }[chosen.type]
    if (chosen.index or 0) >= here:
        raise InputError(
            f"device {device!r} must be there, but torch sees {here} such device(s)",
            "leave device out to compute on what there is",
        )
    return torch.device("cuda", chosen.index or 0) if chosen.type == "cuda" else chosen


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the libraries' own progress bars and reports."""
    level, bars = hub_logging.get_verbosity(), hub_logging.is_progress_bar_enabled()
    hub_logging.set_verbosity_error()
    hub_logging.disable_progress_bar()
    try:
        yield
    finally:
        hub_logging.set_verbosity(level)
        if bars:
            hub_logging.enable_progress_bar()


@contextmanager
def _one_line(model: str) -> Iterator[None]:
    """Whatever keeps a model from loading, as one sentence."""
    try:
        yield
    except Exception as error:  # each architecture fails in its own way
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputError(f"model {model!r} must be loadable, but: {reason}", _HINT) from error


def _source(model: str) -> str:
    """The folder or hub id; a path that holds no model is refused."""
    path = Path(model).expanduser()
    looks_local = (
        path.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1 or "\\" in model
    )
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise InputError(f"a model folder must hold config.json, but {model} does not", _HINT)
        return str(path)
    if path.exists() or looks_local:
        found = "is a file" if path.exists() else "does not exist"
        raise InputError(f"a model must be a folder or a hub id, but {model} {found}", _HINT)
    return model


def _encoder(backbone: Any, model: str) -> nn.Module:
    if backbone.config.is_encoder_decoder:
        raise InputError(
            f"the model must be an encoder, but {model} is an encoder with a decoder",
            "choose an encoder such as 'google-bert/bert-base-uncased'",
        )
    if getattr(backbone, "pooler", None) is not None:
        backbone.pooler = None
    # Checkpoints may be stored in half precision; training needs the full one.
    encoder: nn.Module = backbone.float()
    return encoder
