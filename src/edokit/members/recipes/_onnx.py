"""Sentence encoders through onnxruntime, read from the files that sentence-transformers writes."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import cpu_count

from edokit._errors import InputError
from edokit._io.documents import read_json
from edokit.members.pretrained import (
    ONNX_FILES,
    SAMPLE,
    model_errors,
    require_packages,
    silent_stderr,
)

Vectors = npt.NDArray[np.float32]
PACKAGES = ("onnxruntime", "tokenizers")
BATCH = 16  # texts at a time; they are sorted by length, so that padding is short
_QUANTISED = ("*int8*.onnx", "*quantized*.onnx")
# A quantised model agrees if no vector of length one is farther from the full model's, and if a
# text has the same vector alone and beside others: dynamic quantisation looks at the whole batch.
_MOST_DISTANCE = 0.1
_MOST_BATCH_EFFECT = 1e-4
_SAMPLES = (SAMPLE, "No.", "Thank you very much, that was a lovely evening!", "12 %", "why " * 40)
_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# Tokens of a model whose files do not say how many it reads.
_LENGTH = 512


class UnknownLayoutError(InputError):
    """A model has parts that only sentence-transformers can compute."""


@dataclass(frozen=True)
class SentenceLayout:
    """How a model makes one vector of a text, as its configuration files say.

    Attributes
    ----------
    poolings : tuple of str
        How the vectors of tokens become one; several are joined side by side.
    max_length : int
        Tokens that are read of a text.
    lowercase : bool
        Whether texts are lowercased before the tokenizer sees them.
    prompt : str
        What is put before every text.
    tokenizer : Path
        Folder of the tokenizer.
    """

    poolings: tuple[str, ...]
    max_length: int
    lowercase: bool
    prompt: str
    tokenizer: Path

    @classmethod
    def read(cls, folder: Path) -> SentenceLayout:
        """Read the layout of a folder; without ``modules.json`` the mean over all tokens."""
        try:
            return cls._read(folder)
        except InputError:
            raise
        # Files that were edited by hand may hold any JSON.
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"the configuration of the sentence encoder in {folder} is invalid:"
                f" {type(error).__name__}: {error}",
                "download or export the model again",
                code="unsupported-model",
            ) from error

    @classmethod
    def _read(cls, folder: Path) -> SentenceLayout:
        tokenizer = folder
        poolings: tuple[str, ...] = ("mean",)
        if (folder / "modules.json").is_file():
            folders = _module_folders(folder)
            tokenizer = folders["Transformer"]
            poolings = _poolings(folders["Pooling"] / "config.json")
        settings = _settings(tokenizer / "sentence_bert_config.json")
        general = _settings(folder / "config_sentence_transformers.json")
        prompts = general.get("prompts") or {}
        return cls(
            poolings=poolings,
            max_length=_max_length(tokenizer, settings),
            lowercase=bool(settings.get("do_lower_case")),
            prompt=str(prompts.get(general.get("default_prompt_name")) or ""),
            tokenizer=tokenizer,
        )


def _module_folders(folder: Path) -> dict[str, Path]:
    """The folder of each module by the name of its class."""
    folders: dict[str, Path] = {}
    for module in read_json(folder / "modules.json"):
        module_folder = Path(str(module["path"]))
        if module_folder.is_absolute() or ".." in module_folder.parts:
            raise UnknownLayoutError(
                f"{folder} has a module outside of it", code="unsupported-model"
            )
        folders[str(module["type"]).rpartition(".")[2]] = folder / module_folder
    # Vectors are scaled to length one in any case; dropout is for training.
    if folders.keys() - {"Normalize", "Dropout"} != {"Transformer", "Pooling"}:
        raise UnknownLayoutError(
            f"{folder} has modules that need sentence-transformers", code="unsupported-model"
        )
    return folders


def _settings(path: Path) -> Mapping[str, Any]:
    """The content of a configuration file; empty if there is none."""
    if not path.is_file():
        return {}
    settings: Mapping[str, Any] = read_json(path)
    return settings


def _poolings(path: Path) -> tuple[str, ...]:
    """How vectors of tokens are pooled, by the configuration of this version or an earlier one."""
    settings = _settings(path)
    modes = settings.get("pooling_mode")
    if modes is None:
        modes = [mode for key, mode in _POOLINGS.items() if settings.get(key)] or ["mean"]
    if isinstance(modes, str):
        modes = [modes]
    unknown = set(modes) - {"cls", "max", "mean", "mean_sqrt_len_tokens"}
    if unknown or not settings.get("include_prompt", True):
        raise UnknownLayoutError(
            f"{path} asks for a pooling that needs sentence-transformers", code="unsupported-model"
        )
    return tuple(modes)


def _max_length(folder: Path, settings: Mapping[str, Any]) -> int:
    """Tokens that a model reads."""
    declared = settings.get("max_seq_length")
    if declared:
        return int(declared)
    limits = [
        _settings(folder / "tokenizer_config.json").get("model_max_length"),
        _settings(folder / "config.json").get("max_position_embeddings"),
    ]
    # A tokenizer without a limit says 1e30; XLNet says -1.
    length_limits = [int(limit) for limit in limits if limit and 0 < limit < 1e6]
    return min(length_limits, default=_LENGTH)


def full_model(folder: Path) -> Path | None:
    """The ONNX file of a folder, in one of the places where the hub keeps it."""
    for name in ONNX_FILES:
        if (folder / name).is_file():
            return folder / name
    return None


def is_installed() -> bool:
    """Whether the packages are there."""
    return all(find_spec(name) is not None for name in PACKAGES)


def is_usable(folder: Path) -> bool:
    """Whether onnxruntime can compute the model here: its file, a known layout, and packages."""
    if full_model(folder) is None or not is_installed():
        return False
    try:
        layout = SentenceLayout.read(folder)
    except UnknownLayoutError:
        return False
    return (layout.tokenizer / "tokenizer.json").is_file()


class OnnxEncoder:
    """A sentence encoder that onnxruntime computes on the processor.

    Parameters
    ----------
    model : str
        The model's name in messages.
    file : Path
        The ONNX file.
    layout : SentenceLayout
        How its tokens become one vector.
    """

    def __init__(self, model: str, file: Path, layout: SentenceLayout) -> None:
        require_packages("this sentence encoder", PACKAGES)
        self.model = model
        self.file = file
        self.layout = layout
        # Both libraries report errors on stderr, too.
        with silent_stderr(), model_errors(model):
            import onnxruntime
            from tokenizers import Tokenizer

            self._tokenizer = Tokenizer.from_file(str(layout.tokenizer / "tokenizer.json"))
            self._set_up_tokenizer()
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = cpu_count()
            # Threads that wait in a loop take processors from everybody else.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            options.log_severity_level = 4
            self._session = onnxruntime.InferenceSession(
                str(file), options, providers=["CPUExecutionProvider"]
            )
            self._inputs = [entry.name for entry in self._session.get_inputs()]
            self._output = self._token_output()
            self.encode([SAMPLE])

    def _set_up_tokenizer(self) -> None:
        """Set truncation, padding and lower case; those in the file may be for other lengths."""
        from tokenizers.normalizers import Lowercase, Sequence

        tokenizer = self._tokenizer
        tokenizer.enable_truncation(self.layout.max_length)
        settings = _settings(self.layout.tokenizer / "tokenizer_config.json")
        entry = settings.get("pad_token") or "[PAD]"
        if isinstance(entry, dict):
            entry = entry["content"]
        number = tokenizer.token_to_id(str(entry))
        # Padding is masked: which token it is makes no difference.
        tokenizer.enable_padding(pad_id=number or 0, pad_token=str(entry))
        if self.layout.lowercase:
            steps = [Lowercase()]
            if tokenizer.normalizer is not None:
                steps.append(tokenizer.normalizer)
            tokenizer.normalizer = Sequence(steps)

    def _token_output(self) -> str:
        """The output with a vector of each token."""
        outputs = self._session.get_outputs()
        names = [output.name for output in outputs if len(output.shape) == 3]
        for name in ("last_hidden_state", "token_embeddings"):
            if name in names:
                return name
        if not names:
            raise InputError(
                f"{self.file} lacks an output with a vector per token",
                "export it again, with the output last_hidden_state",
                code="unsupported-model",
            )
        return str(names[0])

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors [N, D] of one text or more."""
        order = np.argsort([len(text) for text in texts], kind="stable")
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        with model_errors(self.model):
            parts = [self._encode_batch([texts[row] for row in rows]) for rows in batches]
        vectors = np.empty((len(texts), parts[0].shape[1]), dtype=np.float32)
        vectors[order] = np.concatenate(parts)
        return vectors

    def _encode_batch(self, texts: Sequence[str]) -> Vectors:
        encodings = self._tokenizer.encode_batch([self.layout.prompt + text for text in texts])
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        inputs = {
            "input_ids": np.array([encoding.ids for encoding in encodings], dtype=np.int64),
            "attention_mask": mask,
            "token_type_ids": np.array([e.type_ids for e in encodings], dtype=np.int64),
        }
        model_inputs = {name: inputs[name] for name in self._inputs}
        (hidden,) = self._session.run([self._output], model_inputs)
        vectors = [_pooled(hidden, mask, pooling) for pooling in self.layout.poolings]
        return np.concatenate(vectors, axis=1)


def _pooled(hidden: Vectors, mask: npt.NDArray[np.int64], pooling: str) -> Vectors:
    """Vectors [N, D] of texts from those of their tokens [N, T, D]."""
    present = mask[:, :, None].astype(np.float32)
    if pooling == "cls":
        first_tokens: Vectors = hidden[np.arange(len(hidden)), mask.argmax(axis=1)]
        return first_tokens
    if pooling == "max":
        largest: Vectors = np.where(present > 0, hidden, -np.inf).max(axis=1)
        return largest
    totals = (hidden * present).sum(axis=1)
    counts = np.maximum(present.sum(axis=1), 1e-9)
    if pooling == "mean_sqrt_len_tokens":
        counts = np.sqrt(counts)
    means: Vectors = totals / counts
    return means


@lru_cache(maxsize=2)
def load(model: str, folder: Path) -> OnnxEncoder:
    """The encoder of a folder: a quantised one if it agrees with the full one, else the full one.

    Only quantised files for this kind of processor are looked at, by their names.
    """
    file = full_model(folder)
    if file is None:
        raise InputError(
            f"{folder} has no {ONNX_FILES[0]}",
            "export the model, or download it again",
            code="missing-model",
        )
    layout = SentenceLayout.read(folder)
    full = OnnxEncoder(model, file, layout)
    for candidate in _quantised_files(file.parent):
        quantised = OnnxEncoder(model, candidate, layout)
        if _agree(quantised, full):
            return quantised
    return full


def _quantised_files(folder: Path) -> list[Path]:
    """The quantised files for this kind of processor, by their names."""
    is_arm = platform.machine().lower() in ("arm64", "aarch64")
    files = {file for pattern in _QUANTISED for file in folder.glob(pattern)}
    fitting = []
    for file in sorted(files):
        for_arm = "arm64" in file.name
        for_intel = "avx" in file.name
        if (is_arm and not for_intel) or (not is_arm and not for_arm):
            fitting.append(file)
    return fitting


def _agree(quantised: OnnxEncoder, full: OnnxEncoder) -> bool:
    """Whether a quantised model has the same vectors, whatever texts are beside a text."""
    expected = unit_length(full.encode(_SAMPLES))
    batch_vectors = unit_length(quantised.encode(_SAMPLES))
    single_vectors = unit_length(np.concatenate([quantised.encode([text]) for text in _SAMPLES]))
    if batch_vectors.shape != expected.shape:
        return False
    distance = np.linalg.norm(single_vectors - expected, axis=1).max()
    batch_effect = np.linalg.norm(single_vectors - batch_vectors, axis=1).max()
    return bool(distance <= _MOST_DISTANCE and batch_effect <= _MOST_BATCH_EFFECT)


def unit_length(vectors: npt.NDArray[Any]) -> Vectors:
    """Vectors [N, D] scaled to length one; those of length zero stay."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(length > 0, length, 1)).astype(np.float32)
