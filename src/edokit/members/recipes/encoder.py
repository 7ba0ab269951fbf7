"""Members on a frozen sentence encoder: cached embeddings, and logistic regression."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Annotated, Protocol

import numpy as np

from edokit._errors import InputError
from edokit._io.atomic import whole_file
from edokit._io.digests import digest_parts
from edokit._io.locks import take_lock
from edokit._types import Floats
from edokit.members.arrays import read_arrays, write_arrays
from edokit.members.catalogue import find_encoder, get_encoder
from edokit.members.contexts import Text, text_parts
from edokit.members.pretrained import (
    DOWNLOAD,
    SAMPLE,
    cache_folder,
    check_code,
    choose_device,
    loading,
    local_folder,
    model_errors,
    require_packages,
)
from edokit.members.recipe import Capabilities
from edokit.members.recipe_options import Range
from edokit.members.recipes import _onnx
from edokit.members.recipes._onnx import Vectors
from edokit.members.recipes._regression import ARRAYS, RETIRED, ClassifierMember

_FILE = "encoder.npz"
MODEL = "sentence-transformers/all-MiniLM-L6-v2"


@lru_cache(maxsize=2)
def _part_vectors(
    texts: tuple[Text, ...],
    model: str,
    device: str | None,
    encoder: Callable[[list[str]], Vectors] | None,
) -> tuple[dict[str, int], Vectors]:
    """The row of each part of the texts, and the vector of each row.

    An ``encoder`` that is in memory computes them; otherwise they are also kept on disk.
    """
    strings = list(dict.fromkeys(chain.from_iterable(text_parts(text) for text in texts)))
    row_of = {string: row for row, string in enumerate(strings)}
    if encoder is None:
        return row_of, embed(strings, model, device)
    return row_of, encoder(strings)


@dataclass(eq=False)
class EncoderMember(ClassifierMember):
    """Logistic regression on the vectors of a frozen sentence encoder.

    Options are those of `ClassifierMember`, the ``model`` (a hub id or folder) and the ``device``.
    """

    capabilities = Capabilities(
        device=True, multi_label=True, pretrained="model", separate_model=True, retired=RETIRED
    )

    context: Annotated[float, Range(0)] = 0.5
    model: str = MODEL
    device: str | None = None
    _encoder: Encoder | None = field(default=None, init=False, repr=False)  # of a bundle

    def save(self, folder: Path) -> None:
        """Write one file of plain arrays; the encoder itself is not copied."""
        options = {"model": np.array(self.model), "context": np.array(self.context)}
        write_arrays(folder / _FILE, **options, **self._arrays())

    @classmethod
    def load(
        cls, folder: Path, *, device: str | None = None, models: Mapping[str, Path] | None = None
    ) -> EncoderMember:
        """Read what ``save`` wrote; with ``models``, its encoder is among them."""
        arrays = read_arrays(folder / _FILE, (*ARRAYS, "model", "context"))
        member = cls(
            int(arrays["n_classes"]),
            model=str(arrays["model"]),
            context=float(arrays["context"]),
            device=device,
        )
        member._take_arrays(arrays)
        member.use_encoder(models)
        return member

    def use_encoder(self, models: Mapping[str, Path] | None) -> None:
        """Use the encoder among the ``models`` of a bundle; without a bundle, the installed one."""
        if models is not None:
            self._encoder = _resident_encoder(os.path.realpath(models[self.model]), self.device)

    @property
    def onnx_file(self) -> Path | None:
        """The ONNX file of its encoder, where it computes with onnxruntime."""
        folder = encoder_folder(self.model)
        if not runs_on_onnx(folder, self.device):
            return None
        return _onnx.load(self.model, folder).file

    def _text_encoder(self) -> Callable[[list[str]], Vectors] | None:
        """The encoder that computes vectors, if it is in memory."""
        return self._encoder

    def _features(self, texts: Sequence[Text]) -> Floats:
        """Features [N, D] of texts, or [N, 4 D] of pairs (text, context).

        Those of pairs are the vectors of the text, of the context (scaled by its weight), of both
        as one text, and the absolute difference of the first two.
        """
        parts = [text_parts(text) for text in texts]
        encoder = self._text_encoder()
        corpus = tuple(self._corpus or texts)
        row_of, part_vectors = _part_vectors(corpus, self.model, self.device, encoder)
        if any(part not in row_of for part in chain.from_iterable(parts)):
            # Some texts are not in the corpus.
            row_of, part_vectors = _part_vectors(tuple(texts), self.model, self.device, encoder)
        rows = np.array([[row_of[part] for part in text_parts] for text_parts in parts])
        vectors: list[Floats] = [part_vectors[column].astype(np.float64) for column in rows.T]
        if len(vectors) == 1:
            return vectors[0]
        text, context, text_and_context = vectors
        difference = np.abs(text - context)
        return np.hstack([text, self.context * context, text_and_context, difference])


LARGE_BATCH = 128  # on a GPU, which waits for the processor between batches
PACKAGES = ("torch", "transformers", "sentence_transformers")


def embed(texts: Sequence[str], model: str, device: str | None = None) -> Vectors:
    """Vectors [N, D] of length one.

    They are kept under ``EDO_CACHE`` (else the user's cache folder) in a file that is named after
    the model's files and the texts, so that the same texts are never embedded twice.
    """
    folder = encoder_folder(model)
    back_end = b"torch"
    if runs_on_onnx(folder, device):
        back_end = b"onnx"
    parts = [model_identity(folder).encode(), back_end]
    parts += [b"\0" + text.encode("utf-8", "surrogatepass") for text in texts]
    path = cache_folder() / "embeddings" / f"{digest_parts(parts)[:32]}.npy"
    with ExitStack() as stack:
        with suppress(OSError):  # members that train at the same time wait for the first
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = take_lock(Path(f"{path}.lock"), wait=True)
            stack.callback(lock.release)
        with suppress(OSError, ValueError, EOFError):
            cached: Vectors = np.load(path, allow_pickle=False)
            if len(cached) == len(texts):
                return cached
        vectors = Encoder(model, device)(texts)
        # A cache that can't be written costs time, not results.
        with suppress(InputError), whole_file(path) as temporary:
            np.save(temporary, vectors)
    return vectors


class Network(Protocol):
    """What computes the vectors of texts."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors [N, D]."""


class Encoder:
    """A sentence encoder by hub id or folder; one whose settings name code is refused.

    It runs on onnxruntime where the folder has an ONNX file and no other device is asked for, else
    on torch. Both give the same vectors.
    """

    def __init__(self, model: str, device: str | None = None) -> None:
        folder = encoder_folder(model)
        check_code(folder)
        self._model = model
        self._network: Network
        if runs_on_onnx(folder, device):
            self._network = _onnx.load(model, folder)
        else:
            self._network = _TorchEncoder(model, folder, device)

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Vectors [N, D] of length one."""
        # Tokenizers refuse unpaired surrogates.
        valid = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        vectors = self._network.encode(valid)
        if not np.isfinite(vectors).all():
            raise InputError(
                f"the model {self._model!r} returns vectors that are not finite",
                "export it again, or choose another encoder",
                code="unsupported-model",
            )
        return _onnx.unit_length(vectors)


def encoder_folder(model: str) -> Path:
    """The folder of an encoder: a folder, a short name that EDO knows, or a hub id.

    An encoder that `edo models get` has put on this machine has an ONNX file and no other weights,
    so it counts only where onnxruntime can compute it.
    """
    encoder = find_encoder(model)
    if encoder is None or Path(model).exists():
        return local_folder(model)
    if _onnx.is_installed():
        folder = encoder.folder()
        if folder is not None:
            return folder
        if os.environ.get(DOWNLOAD):
            return get_encoder(model)
    return local_folder(encoder.repository)


def check_available(model: str) -> None:
    """Raise an error unless the encoder is on this machine, and packages that compute it."""
    folder = encoder_folder(model)
    if not runs_on_onnx(folder, None):
        _require_torch(model, folder)


def _require_torch(model: str, folder: Path) -> None:
    """Raise an error that names the extra where torch, or else onnxruntime, is missing."""
    if _onnx.full_model(folder) is not None and not find_spec(PACKAGES[0]):
        require_packages(f"the sentence encoder {model}", _onnx.PACKAGES)
    require_packages("a sentence encoder without an ONNX file", PACKAGES)


def runs_on_onnx(folder: Path, device: str | None) -> bool:
    """Whether onnxruntime computes a model; on other devices than the processor torch does."""
    return device in (None, "cpu") and _onnx.is_usable(folder)


class _TorchEncoder:
    """A sentence encoder that torch computes."""

    def __init__(self, model: str, folder: Path, device: str | None) -> None:
        _require_torch(model, folder)
        chosen_device = choose_device(device)
        self.model = model
        self.batch_size = _onnx.BATCH if chosen_device.type == "cpu" else LARGE_BATCH
        with loading(model):
            from sentence_transformers import SentenceTransformer

            self._network = SentenceTransformer(str(folder), device=str(chosen_device))
            self._network.encode([SAMPLE], show_progress_bar=False)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors [N, D]."""
        with model_errors(self.model):
            vectors: Vectors = self._network.encode(
                list(texts), batch_size=self.batch_size, show_progress_bar=False
            )
        return vectors


# The encoder of a bundle, loaded once for all members that refer to it.
_resident_encoder = lru_cache(maxsize=2)(Encoder)


def model_identity(folder: Path) -> str:
    """A text that changes whenever a file of a model does.

    Files are told apart by size and times of change, of which the system sets one itself. Reading
    the weights instead would take as long as embedding hundreds of texts.
    """
    files = []
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        status = file.stat()
        name = str(file.relative_to(folder))
        files.append((name, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return str(files)
