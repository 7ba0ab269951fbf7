"""Members on a frozen sentence encoder: cached embeddings, and logistic regression."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._io.atomic import whole_folder
from edokit._types import Floats
from edokit.members.pretrained import (
    TO_PREDICT,
    cache_folder,
    choose_device,
    folder_or_id,
    load_backbone,
    load_tokenizer,
    loading,
    require_packages,
)
from edokit.members.recipe import (
    MemberData,
    Progress,
    Text,
    read_arrays,
    write_arrays,
)
from edokit.members.recipes._annotators import Classifier, ClassifierMember
from edokit.members.recipes._ranges import Range, check_ranges
from edokit.members.recipes._regression import LINKS, LOSSES, check_loss

_FILE = "encoder.npz"
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_RANGES = {"strength": Range(0, above=True), "context": Range(0)}


@dataclass(frozen=True, eq=False)
class TextVectors:
    """Vectors [T, D] of texts that were embedded before, and the row of each text."""

    rows: dict[str, int]
    vectors: Vectors

    @classmethod
    def of(cls, texts: Sequence[Text], model: str, device: str | None = None) -> TextVectors:
        """Embed every text once, pairs in their parts; the last ones are remembered."""
        return _last_vectors(tuple(texts), model, device)

    def __call__(self, texts: Sequence[Text], context: float) -> Floats:
        """Features [N, D]; of pairs [N, 4 D]: the text, the context (scaled by its weight), both
        as one text, and how far text and context are apart in each dimension."""
        single = sum(isinstance(text, str) for text in texts)
        if 0 < single < len(texts):
            raise InputError(
                "texts must all be single or all be pairs (text, context), but both occur",
                "add a context to every text; it may be empty",
            )
        columns = zip(*map(_parts, texts), strict=True) if single == 0 else [texts]
        rows = [np.fromiter(map(self.rows.__getitem__, column), np.intp) for column in columns]
        vectors = [self.vectors[column].astype(np.float64) for column in rows]
        if len(vectors) == 1:
            return vectors[0]
        utterance, before, joined = vectors
        return np.hstack([utterance, context * before, joined, np.abs(utterance - before)])

    def knows(self, texts: Sequence[Text]) -> bool:
        """Whether all of the texts were embedded."""
        return self.rows.keys() >= set(chain.from_iterable(map(_parts, texts)))


def _parts(text: Text) -> tuple[str, ...]:
    """What is embedded of a text: itself; of a pair text, context, and both as they were read."""
    if isinstance(text, str):
        return (text,)
    return (*text, "\n".join(filter(None, reversed(text))))


@lru_cache(maxsize=1)
def _last_vectors(texts: tuple[Text, ...], model: str, device: str | None) -> TextVectors:
    rows = _rows(texts)
    return TextVectors(rows, embed(list(rows), model, device))


def _rows(texts: Sequence[Text]) -> dict[str, int]:
    """Each part of the texts once, and its row."""
    return {part: row for row, part in enumerate(dict.fromkeys(chain(*map(_parts, texts))))}


class EncoderMember(ClassifierMember):
    """Logistic regression on the vectors of a sentence encoder that stays as it is."""

    def __init__(
        self,
        n_classes: int,
        *,
        model: str = MODEL,
        strength: float = 5.0,
        context: float = 0.5,
        loss: str = LOSSES[0],
        link: str = LINKS[0],
        annotators: bool = False,
        attributes: str = "",
        device: str | None = None,
    ) -> None:
        """``model`` is a hub id or folder, ``strength`` how freely weights may grow, ``context``
        what a context counts against the text itself; ``loss``, ``link``, ``annotators`` and
        ``attributes`` are as in the recipe ``linear``."""
        self.n_classes, self.model, self.device = n_classes, model, device
        self.strength, self.context = strength, context
        self.loss, self.link = loss, link
        self.annotators, self.attributes = annotators, attributes
        check_loss(loss, link)
        check_ranges(self, _RANGES)
        self._vectors: TextVectors | None = None
        self._encoder: Encoder | None = None  # in memory, in a bundle

    @property
    def models(self) -> Sequence[str]:
        """The encoder."""
        return (self.model,)

    @classmethod
    def prepare(cls, texts: Sequence[Text], options: Mapping[str, Any]) -> TextVectors:
        """Vectors of all texts."""
        return TextVectors.of(texts, options.get("model", MODEL), options.get("device"))

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> EncoderMember:
        """Fit the targets of epoch 0; the optimum is unique, so ``random_state`` plays no part."""
        self._vectors = data.shared
        self._learn(self._features(data.texts), data)
        return self

    def save(self, folder: Path) -> None:
        """Write one file of plain arrays; the encoder itself stays where it is."""
        assert self._classifier is not None
        options = {"model": np.array(self.model), "context": np.array(self.context)}
        write_arrays(folder / _FILE, **options, **self._classifier.arrays())

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        device: str | None = None,
        models: Mapping[str, Path] | None = None,
    ) -> EncoderMember:
        """Read what ``save`` wrote; with ``models``, its encoder is among them."""
        path = folder / _FILE
        arrays = read_arrays(path, {"model": "t", "context": "f", **Classifier.arrays_needed})
        model, context = str(arrays["model"]), float(arrays["context"])
        member = cls(int(arrays["n_classes"]), model=model, context=context, device=device)
        member._classifier = Classifier.of(path, arrays)
        if models is not None:
            if model not in models:
                raise InputError(
                    f"{path} needs the encoder {model!r}, which is not in the bundle",
                    "make the bundle again with `edo bundle`",
                )
            require_packages("a sentence encoder", TO_PREDICT)
            member._encoder = Encoder.in_memory(str(models[model]), device)
        return member

    def _features(self, texts: Sequence[Text]) -> Floats:
        if self._encoder is not None:
            return self._encoder.vectors(texts)(texts, self.context)
        if self._vectors is None or not self._vectors.knows(texts):
            self._vectors = TextVectors.of(texts, self.model, self.device)
        return self._vectors(texts, self.context)


Vectors = npt.NDArray[np.float32]
BATCH = 16  # texts at a time on a processor, of like length, so that few are padded far
LARGE_BATCH = 128  # on a GPU, which waits for the processor between batches
_VECTORS = "vectors.npy"
_FILES = (".safetensors", ".bin", ".json", ".txt", ".model")
_LARGE = 1 << 20


def embed(texts: Sequence[str], model: str, device: str | None = None) -> Vectors:
    """Vectors [N, D] of length one.

    They are kept under ``EDO_CACHE`` (else the user's cache folder), named after what the model
    and the texts hold, so that the same texts are never embedded twice.
    """
    require_packages("a sentence encoder", TO_PREDICT)
    encoder = Encoder(model, device)
    digest = hashlib.sha256(encoder.identity.encode())
    for text in texts:
        digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
    place = cache_folder() / "embeddings" / digest.hexdigest()[:32]
    try:
        cached: Vectors = np.load(place / _VECTORS, allow_pickle=False)
        if len(cached) == len(texts):
            return cached
    except (OSError, ValueError, EOFError):
        pass
    vectors = encoder(texts)
    try:
        with whole_folder(place) as folder:
            np.save(folder / _VECTORS, vectors)
    except InputError:
        pass  # a cache that can't be written costs time, not results
    return vectors


class Encoder:
    """A sentence encoder by hub id or folder.

    It is read by sentence-transformers where that is installed, else by transformers with the
    mean over the tokens.
    """

    def __init__(self, model: str, device: str | None = None) -> None:
        self.model, self.device = model, device
        self._where = folder_or_id(model)
        self._sentence = find_spec("sentence_transformers") is not None
        reader = "sentence-transformers" if self._sentence else "mean"
        self.identity = f"{reader} {_identity(self._where)}"  # what the vectors depend on
        self._encode: Callable[[list[str]], Any] | None = None
        self._last: tuple[tuple[Text, ...], TextVectors] | None = None

    @classmethod
    def in_memory(cls, model: str, device: str | None) -> Encoder:
        """The encoder in a folder, loaded once for all members that refer to it."""
        key = os.path.realpath(model), device
        encoder = _encoders.get(key)
        if encoder is None:
            encoder = _encoders.setdefault(key, cls(model, device))
            encoder(["a text"])
        return encoder

    def vectors(self, texts: Sequence[Text]) -> TextVectors:
        """Vectors of texts; the last ones are remembered."""
        key, cached = tuple(texts), self._last
        if cached is None or cached[0] != key:
            rows = _rows(key)
            self._last = cached = key, TextVectors(rows, self(list(rows)))
        return cached[1]

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Vectors [N, D] of length one."""
        if self._encode is None:
            device = choose_device(self.device)
            self._encode = (self._load_sentence if self._sentence else self._load_mean)(device)
        vectors = np.asarray(self._encode(list(texts)), dtype=np.float32)
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(length > 0, length, 1)).astype(np.float32)

    def _load_sentence(self, device: Any) -> Callable[[list[str]], Any]:
        with loading(self.model):
            from sentence_transformers import SentenceTransformer

            model = SentenceTransformer(self._where, device=str(device))
        size = BATCH if device.type == "cpu" else LARGE_BATCH
        return lambda texts: model.encode(texts, batch_size=size, show_progress_bar=False)

    def _load_mean(self, device: Any) -> Callable[[list[str]], Any]:
        """The mean over the tokens."""
        from edokit.members.recipes._network import in_batches
        from edokit.members.recipes._tokens import Reader

        reader = Reader(load_tokenizer(self.model), 512)
        backbone = load_backbone(self.model).to(device).eval()

        def mean(target_mask: Any, **inputs: Any) -> Any:
            mask = inputs["attention_mask"].unsqueeze(-1).float()
            states = backbone(**inputs).last_hidden_state
            return ((states * mask).sum(1) / mask.sum(1)).float()

        size = BATCH if device.type == "cpu" else LARGE_BATCH
        return lambda texts: in_batches(mean, reader(texts), reader, size, device)


_encoders: WeakValueDictionary[tuple[str, str | None], Encoder] = WeakValueDictionary()


def _identity(where: str) -> str:
    """A folder by its files, a hub id by its name and commit.

    Weights count by size and the times of change, of which the system sets one at every change
    itself: to read all of them would take as long as to embed hundreds of texts.
    """
    folder = Path(where)
    if not folder.is_dir():
        with loading(where):
            from transformers import AutoConfig

            commit = getattr(AutoConfig.from_pretrained(where), "_commit_hash", None)
        return f"{where} {commit}"
    content = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix in _FILES:
            status = file.stat()
            content.update(f"{file.relative_to(folder).as_posix()} {status.st_size} ".encode())
            times = f"{status.st_mtime_ns} {status.st_ctime_ns} "
            content.update(times.encode() if status.st_size > _LARGE else file.read_bytes())
    return content.hexdigest()
