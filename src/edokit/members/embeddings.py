"""Texts as vectors of a frozen sentence encoder, computed once and kept on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit.members.model_place import folder_or_id, loading, need_models
from edokit.members.storing import whole_folder

Vectors = npt.NDArray[np.float32]
BATCH = 64
_FILE = "vectors.npy"
_WEIGHTS = (".safetensors", ".bin", ".json", ".txt", ".model")


def embed(texts: Sequence[str], model: str, device: str | None = None) -> Vectors:
    """Vectors [N, D] of length one.

    They are kept under ``EDO_CACHE`` (else the user's cache folder), named after what the model
    and the texts hold, so that the same texts are never embedded twice.
    """
    need_models("a sentence encoder")
    encoder = Encoder(model)
    wanted = hashlib.sha256(encoder.identity.encode())
    for text in texts:
        wanted.update(b"\0" + text.encode("utf-8", "surrogatepass"))
    place = cache_folder() / "embeddings" / wanted.hexdigest()[:32]
    try:
        kept: Vectors = np.load(place / _FILE, allow_pickle=False)
        if len(kept) == len(texts):
            return kept
    except (OSError, ValueError, EOFError):
        pass
    vectors = encoder(texts, device)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = (vectors / np.where(length > 0, length, 1)).astype(np.float32)
    try:
        with whole_folder(place) as folder:
            np.save(folder / _FILE, vectors)
    except InputError:
        pass  # a cache that can't be written costs time, not results
    return vectors


def cache_folder() -> Path:
    """Where things that can be computed again are kept."""
    given = os.environ.get("EDO_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edokit"


class Encoder:
    """A sentence encoder by hub id or folder.

    It is read by sentence-transformers where that is installed, else by transformers with the
    mean over the tokens.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self._where = folder_or_id(model)
        self._sentence = find_spec("sentence_transformers") is not None
        how = "sentence-transformers" if self._sentence else "mean"
        self.identity = f"{how} {_identity(self._where)}"
        """What the vectors depend on."""

    def __call__(self, texts: Sequence[str], device: str | None = None) -> Vectors:
        """Vectors [N, D]."""
        from edokit.members.backbone import choose_device, quiet

        chosen = choose_device(device)
        if not self._sentence:
            return self._mean_of_tokens(texts, chosen)
        with quiet(), loading(self.model):
            from sentence_transformers import SentenceTransformer

            model = SentenceTransformer(self._where, device=str(chosen))
        vectors: Vectors = model.encode(
            list(texts), batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(vectors, dtype=np.float32)

    def _mean_of_tokens(self, texts: Sequence[str], device: Any) -> Vectors:
        import torch

        from edokit.members.backbone import load_backbone, load_tokenizer
        from edokit.members.tokens import Reader, padded
        from edokit.members.transformer_predict import on_device

        tokenizer = load_tokenizer(self.model)
        backbone = load_backbone(self.model).to(device).eval()
        reader = Reader(tokenizer, 512)
        tokens = reader(list(texts))
        order = np.argsort([-len(one.ids) for one in tokens], kind="stable")
        parts = []
        for start in range(0, len(order), BATCH):
            batch = [tokens[i] for i in order[start : start + BATCH]]
            inputs = on_device(padded(batch, tokenizer.pad_token_id, reader.max_length), device)
            inputs.pop("target_mask")
            mask = inputs["attention_mask"].unsqueeze(-1).float()
            with torch.no_grad():
                states = backbone(**inputs).last_hidden_state
            parts.append(((states * mask).sum(1) / mask.sum(1)).float().cpu().numpy())
        vectors = np.empty((len(texts), parts[0].shape[1]), dtype=np.float32)
        vectors[order] = np.concatenate(parts)
        return vectors


def _identity(where: str) -> str:
    """A folder by what is in it, a hub id by its name and commit."""
    folder = Path(where)
    if not folder.is_dir():
        with loading(where):
            from transformers import AutoConfig

            commit = getattr(AutoConfig.from_pretrained(where), "_commit_hash", None)
        return f"{where} {commit}"
    content = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix in _WEIGHTS:
            content.update(file.relative_to(folder).as_posix().encode())
            with file.open("rb") as stream:
                while block := stream.read(1 << 22):
                    content.update(block)
    return content.hexdigest()
