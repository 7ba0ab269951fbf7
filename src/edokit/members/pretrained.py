"""Pretrained models by folder or hub id, and the devices that they run on."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

from edokit._errors import EDOError, InputError, examples, missing_extra, option, warn
from edokit._io.atomic import files_below
from edokit._io.digests import digest_file, digest_text
from edokit._io.documents import read_json
from edokit.members.catalogue import find_encoder

if TYPE_CHECKING:
    import torch
    from torch import nn

PREDICTION_PACKAGES = ("torch", "transformers")
TRAINING_PACKAGES = ("torch", "transformers", "safetensors")
# The extras of packages; that of all others is "transformers".
_EXTRAS = {
    "huggingface_hub": "hub",
    "onnxruntime": "encoder",
    "peft": "adapters",
    "tokenizers": "encoder",
}
_FILES = ("config.json", "modules.json")
# Files of a member that was fine-tuned: its options, and the weights of encoder and head.
FINE_TUNED = "transformer.json"
WEIGHTS = "model.safetensors"
# The variable of the environment that lets models be downloaded.
DOWNLOAD = "EDO_DOWNLOAD"
_UNUSED = ["*.h5", "*.msgpack", "*.ot", "*.onnx*", "openvino/*"]  # weights for other libraries
SAMPLE = "A text of 3 words: ß 語"  # known and unknown characters, on which tokenizers are tried
_HINT = "name a folder with config.json, weights and tokenizer, or a hub id such as 'org/model'"


def cache_folder() -> Path:
    """The folder for cached vectors and answers, all of which can be made again."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("EDO_CACHE") or user / "edokit")


def require_packages(what: str, packages: tuple[str, ...] = TRAINING_PACKAGES) -> None:
    """Raise an error that names the extra to install if a package is missing."""
    for name in packages:
        try:
            import_module(name)
        except ImportError as error:
            extra = _EXTRAS.get(name, "transformers")
            raise missing_extra(
                f"{what} needs the package {name}, which can't be imported: {error}", extra
            ) from error


def local_folder(model: str, files: tuple[str, ...] = _FILES, **download_options: Any) -> Path:
    """The folder of a model that holds one of these files; a hub id has one on this machine.

    A hub id is downloaded only if the environment has EDO_DOWNLOAD; ``download_options`` are
    further arguments of ``huggingface_hub.snapshot_download``, such as ``revision``.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        if any((path / name).is_file() for name in files):
            return path
        problem = f"holds no {files[0]}"
        if len(files) > 1:
            problem = f"holds neither {' nor '.join(files)}"
    elif path.exists() or _looks_local(model):
        problem = "is a file" if path.exists() else "does not exist"
    else:
        return _from_hub(model, **download_options)
    raise InputError(
        f"a model is a folder or a hub id, but {model} {problem}", _HINT, code="unknown-model"
    )


def _looks_local(model: str) -> bool:
    local = Path(model).is_absolute() or model.startswith((".", "~"))
    return local or model.count("/") > 1 or "\\" in model


def public_name(model: str) -> str:
    """A model as others may read it: its hub id, or the last part of its folder alone."""
    path = Path(model).expanduser()
    if not model or not (path.exists() or _looks_local(model)):
        return model
    if path.exists():
        return PureWindowsPath(path.resolve()).name
    return PureWindowsPath(model).name


def _from_hub(model: str, **download_options: Any) -> Path:
    """The folder of a hub id in the hub's cache, downloaded if the environment allows it."""
    require_packages(f"the model {model!r}", ("huggingface_hub",))
    from huggingface_hub import snapshot_download

    encoder = find_encoder(model)
    if encoder is not None:
        model = encoder.repository
    offline = not os.environ.get(DOWNLOAD)
    try:
        download_options["local_files_only"] = offline
        # Weights in *.bin are pickles: they are downloaded only if safetensors are missing.
        patterns = [*_UNUSED, "*.bin"]
        folder = Path(snapshot_download(model, **download_options, ignore_patterns=patterns))
        if not offline and not any(folder.glob("*.safetensors")):
            folder = Path(snapshot_download(model, **download_options, ignore_patterns=_UNUSED))
        return folder
    except Exception as error:
        if offline:
            raise InputError(
                f"{model!r} is not a folder, and no model of that name has been downloaded",
                f"{_how_to_get(model)}, let edo do so with {DOWNLOAD}=1, or name a folder that"
                " holds it",
                code="unknown-model",
            ) from error
        raise InputError(
            f"{model!r} can't be downloaded: {_reason(error)}",
            "check the name and the network",
            code="failed-download",
        ) from error


def _how_to_get(model: str) -> str:
    encoder = find_encoder(model)
    if encoder is not None:
        return f"get it with `edo models get {encoder.alias}`"
    return f"download it with `hf download {model}`"


def _reason(error: BaseException) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__


# Keys of a configuration that say where a model was loaded from.
_ORIGINS = ("_name_or_path", "name_or_path")
ONNX = ".onnx"
# Where the hub keeps the ONNX file of a model, the usual place first.
ONNX_FILES = ("onnx/model.onnx", "model.onnx")
# Endings of a model's files from which nothing is executed.
SAFE_FILES = (".safetensors", ONNX, ".json", ".txt", ".model", ".jinja")
# Modules of sentence-transformers that import no further code.
_LAYERS = ("Pooling", "Normalize", "Dense", "LayerNorm", "Dropout")
_MODULES = ("Transformer", "StaticEmbedding", *_LAYERS)


def link_root(folder: Path) -> Path:
    """The folder that links in a model's folder must not leave.

    In the hub's cache, the files of a snapshot are links to blobs beside the snapshots.
    """
    if folder.parent.name == "snapshots":
        return folder.parent.parent
    return folder


def copy_model(model: str, out: Path, onnx_file: Path | None = None) -> str:
    """Copy a pretrained model below a folder, under a name that is a digest of its content.

    Of its weights, the ``onnx_file`` is copied, or the safetensors.
    """
    if onnx_file is None:
        folder = local_folder(model)
    elif onnx_file.parent.name == "onnx":
        folder = onnx_file.parent.parent
    else:
        folder = onnx_file.parent
    files: dict[str, Path] = {}
    for name, path in files_below(folder, link_root(folder)).items():
        if path.suffix in SAFE_FILES and path.suffix != ONNX and not name.startswith("."):
            files[name] = path
    weights = [name for name in files if name.endswith(".safetensors")]
    if onnx_file is not None:
        for name in weights:
            del files[name]
        # A quantised file, too, is the only one of the bundle, and has the name of the full one.
        files[ONNX_FILES[0]] = onnx_file
    elif not weights:
        raise InputError(
            f"the model {model!r} has no weights as safetensors, and others could run code when"
            " they are loaded",
            "load it and save it again: AutoModel.from_pretrained(…).save_pretrained(…)",
            code="unsafe-weights",
        )
    lines = [f"{name} {digest_file(path)}\n" for name, path in files.items()]
    name = digest_text("".join(lines))[:16]
    for file, path in files.items():
        _copy_file(path, out / name / file)
    check_model(out / name)
    return name


def _copy_file(path: Path, out: Path) -> None:
    """Copy a file of a model; its configuration names no folder of this machine."""
    out.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, out)
    if path.name.endswith("config.json"):
        with suppress(ValueError, AttributeError):  # it is refused when it is read
            config = json.loads(path.read_text(encoding="utf-8"))
            paths = {key: public_name(str(config[key])) for key in _ORIGINS if key in config}
            if paths:
                out.write_text(json.dumps({**config, **paths}, indent=2) + "\n", encoding="utf-8")


def check_model(folder: Path, home: Path | None = None) -> None:
    """Refuse a model in a bundle that has files other than weights, settings and vocabulary.

    ``home`` is the folder that links must not leave; None: the folder of the model.
    """
    for path in files_below(folder, home).values():
        if path.suffix not in SAFE_FILES:
            raise InputError(
                f"{path} is not a file of weights, settings or vocabulary",
                "remove it",
                code="unsupported-model",
            )
    check_code(folder)


def check_code(folder: Path) -> None:
    """Refuse a model whose settings name code, which would run when it is loaded."""
    for path in folder.rglob("*.json"):
        if path.name != "modules.json" and not path.name.endswith("config.json"):
            continue
        content = read_json(path)
        # Other lists, such as that of the data that a model was trained on, are never loaded.
        modules = []
        if path.name == "modules.json":
            modules = content if isinstance(content, list) else [content]
        settings = {}
        if isinstance(content, dict):
            settings = content
        function = str(settings.get("activation_function", ""))
        custom = "." in function and not function.startswith("torch.nn.")
        if custom or "auto_map" in settings or not all(map(_is_safe_module, modules)):
            raise InputError(
                f"{path} names code, which would run", "choose another model", code="untrusted-code"
            )


def _is_safe_module(module: object) -> bool:
    """Whether an entry of modules.json is a module of sentence-transformers without code."""
    if not isinstance(module, dict):
        return False
    package, _, name = str(module.get("type")).rpartition(".")
    return f"{package}.".startswith("sentence_transformers.") and name in _MODULES


@contextmanager
def model_errors(model: str) -> Iterator[None]:
    """Turn whatever the libraries raise into one error that names the model."""
    try:
        yield
    except (EDOError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # each architecture fails in its own way, tokenizers by a panic
        problem = f"the model {model!r} can't be loaded: {_reason(error)}"
        raise InputError(problem, _HINT, code="unloadable-model") from error


@contextmanager
def loading(model: str) -> Iterator[None]:
    """Like `model_errors`, for loading a model: nothing is written to stderr meanwhile."""
    with without_messages(), silent_stderr(), model_errors(model):
        yield


@contextmanager
def without_messages() -> Iterator[None]:
    """Keep transformers from showing progress bars and warnings."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def silent_stderr() -> Iterator[None]:
    """Discard what is written to stderr, also by libraries in other languages."""
    try:
        stderr = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


def load_backbone(model: str) -> nn.Module:
    """The encoder with its pretrained weights in float32, without a head of its own.

    The model may also be the folder of a fine-tuned member, whose encoder is trained further.
    """
    from transformers import AutoModel

    folder = local_folder(model)
    # A member's own weights are those of its encoder beside its head.
    names = None
    if (folder / FINE_TUNED).is_file():
        names = {r"^backbone\.": ""}
    with loading(model):
        backbone, loaded = AutoModel.from_pretrained(
            folder, output_loading_info=True, trust_remote_code=False, key_mapping=names
        )
    # Heads pool for themselves, without the pooler on top of the first token.
    missing = sorted(name for name in loaded["missing_keys"] if not name.startswith("pooler."))
    if missing:
        warn(
            f"the weights of {model} lack {len(missing)} of the model's parameters, which start at"
            f" random: {examples(missing)}; check that the weights belong to the config"
        )
    return _as_encoder(backbone, model)


def empty_backbone(folder: Path) -> nn.Module:
    """The encoder that a folder's config describes, its weights still to be filled in."""
    from transformers import AutoConfig, AutoModel

    with loading(str(folder)):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        return _as_encoder(AutoModel.from_config(config, trust_remote_code=False), str(folder))


def load_tokenizer(model: str) -> Any:
    """The tokenizer that belongs to a model."""
    from transformers import AutoTokenizer

    with loading(model):
        tokenizer = AutoTokenizer.from_pretrained(local_folder(model), trust_remote_code=False)
        for texts in ([SAMPLE], [SAMPLE, SAMPLE]):  # alone, and as a pair
            tokenizer(*texts)
        # Settings with invalid Unicode could be read, but not saved again.
        json.dumps(tokenizer.init_kwargs, ensure_ascii=False, default=str).encode()
    if tokenizer.pad_token_id is None:
        raise InputError(
            f"the tokenizer of {model} lacks a padding token",
            "choose an encoder such as 'google-bert/bert-base-uncased'",
            code="unsupported-model",
        )
    return tokenizer


def vocabulary_size(model: str) -> float:
    """Number of tokens that a model knows; infinite if its configuration does not say."""
    from transformers import AutoConfig

    with loading(model):
        config = AutoConfig.from_pretrained(local_folder(model), trust_remote_code=False)
        return float(getattr(config.get_text_config(), "vocab_size", math.inf))


def weight_bytes(model: object) -> int:
    """The size of a model's weight files; 0 if they are not on this machine."""
    if not isinstance(model, str):
        return 0
    with suppress(EDOError, OSError):
        folder = local_folder(model)
        files = [*folder.glob("*.safetensors")] or [*folder.glob("*.bin")]
        return sum(file.stat().st_size for file in files)
    return 0


def choose_device(device: str | None) -> torch.device:
    """The device to compute on, with the number of the GPU; by default a GPU if there is one."""
    import torch

    gpus = 0
    if torch.cuda.is_available():
        gpus = torch.cuda.device_count()
    if device is None:
        device = "cpu"
        if gpus:
            device = "cuda"
    # Number of devices of each type.
    available = {"cpu": 1, "cuda": gpus, "mps": int(torch.backends.mps.is_available())}
    found_device: torch.device | None = None
    with suppress(RuntimeError):  # not the name of a device
        found_device = torch.device(device)
    if found_device is None or (found_device.index or 0) >= available.get(found_device.type, 0):
        raise InputError(
            f"{option('device', device)} does not exist; devices are 'cpu', 'cuda',"
            f" 'cuda:<number>' (torch finds {gpus}) and 'mps'",
            "leave it out to use a GPU if there is one",
            code="unknown-device",
        )
    if found_device.type == "cuda":
        return torch.device("cuda", found_device.index or 0)
    return found_device


def _as_encoder(backbone: Any, model: str) -> nn.Module:
    """The backbone in float32 and without its pooler; one with a decoder is refused."""
    if backbone.config.is_encoder_decoder:
        raise InputError(
            f"{model} is an encoder with a decoder, but members are encoders",
            "choose an encoder such as 'google-bert/bert-base-uncased'",
            code="unsupported-model",
        )
    if getattr(backbone, "pooler", None) is not None:
        backbone.pooler = None
    # Checkpoints may be stored in half precision; training needs the full one.
    encoder: nn.Module = backbone.float()
    return encoder
