"""The optional part that fine-tunes: torch and Hugging Face transformers."""

from __future__ import annotations

from importlib import import_module

from edokit._errors import MissingExtraError

PACKAGES = ("torch", "transformers", "accelerate", "safetensors")


def need_transformers() -> None:
    """Refuse, naming the extra, where fine-tuning's packages are not installed."""
    for name in PACKAGES:
        try:
            import_module(name)
        except ImportError as error:
            raise MissingExtraError(
                f"fine-tuning needs the package {name}, but it can't be imported: {error}",
                'install it with: pip install "edokit[transformers]"',
            ) from error
