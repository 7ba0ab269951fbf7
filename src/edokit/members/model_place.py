"""Pretrained models by folder or hub id, and one sentence for whatever keeps one from loading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from edokit._errors import EDOError, InputError, MissingExtraError

_FILES = ("config.json", "modules.json")
_HINT = "name a folder with config.json, weights and tokenizer, or a hub id such as 'org/model'"


def need_models(what: str) -> None:
    """Refuse, naming the extra, where the packages that run models are not installed."""
    for package in ("torch", "transformers"):
        try:
            import_module(package)
        except ImportError as error:
            raise MissingExtraError(
                f"{what} needs the package {package}, but it can't be imported: {error}",
                'install it with: pip install "edokit[transformers]"',
            ) from error


def folder_or_id(model: str) -> str:
    """The folder or hub id; a path that holds no model is refused."""
    path = Path(model).expanduser()
    if path.is_dir() and not any((path / name).is_file() for name in _FILES):
        found = f"holds neither {' nor '.join(_FILES)}"
    elif path.is_file():
        found = "is a file"
    elif not path.is_dir() and (
        path.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1
    ):
        found = "does not exist"
    else:
        return str(path) if path.is_dir() else model
    raise InputError(f"a model must be a folder or a hub id, but {model} {found}", _HINT)


@contextmanager
def loading(model: str) -> Iterator[None]:
    """Whatever goes wrong inside, said in one sentence."""
    try:
        yield
    except EDOError:
        raise
    except Exception as error:  # each architecture fails in its own way
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputError(f"model {model!r} must be loadable, but: {reason}", _HINT) from error
