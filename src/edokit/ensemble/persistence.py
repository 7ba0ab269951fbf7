"""An ensemble as a folder: plain JSON and a card, nothing that executes on load."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from edokit._errors import InputError
from edokit._io import read_json, whole_file, write_json
from edokit._version import __version__
from edokit.ensemble.card import card
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.fitted import Fitted

FORMAT = 1
"""Raised when older versions could no longer read what is written."""
KIND = "edo-ensemble"
FILE = "ensemble.json"
_LIBRARIES = ("numpy", "scipy", "scikit-learn")


def save_ensemble(ensemble: EDOEnsemble, folder: str | Path) -> None:
    """Write ``ensemble.json`` and ``README.md``, the card, into a folder."""
    ensemble._check_fitted()
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"an ensemble is written into a folder, but {folder} is a file", "name a folder"
        )
    content = to_dict(ensemble)
    with whole_file(folder / "README.md") as temporary:
        temporary.write_text(card(content), encoding="utf-8")
    write_json(content, folder / FILE)


def load_ensemble(folder: str | Path) -> EDOEnsemble:
    """The fitted ensemble in a folder."""
    path = Path(folder) / FILE
    if not path.exists():
        inside = Path(folder) / "ensemble"
        raise InputError(
            f"an ensemble is a folder with {FILE}, but {folder} has none",
            f"give {inside}"
            if (inside / FILE).exists()
            else "make one with `edo fit` or EDOEnsemble.save",
        )
    return from_dict(read_json(path), str(path))


def to_dict(ensemble: EDOEnsemble) -> dict[str, Any]:
    """All of a fitted ensemble as ``ensemble.json`` holds it."""
    libraries = {name: version(name) for name in _LIBRARIES}
    return {
        "format": FORMAT,
        "kind": KIND,
        **ensemble.fitted_.to_dict(),
        "versions": {"edokit": __version__, **libraries},
    }


def from_dict(content: Any, where: str) -> EDOEnsemble:
    """The ensemble that ``to_dict`` described; anything else is refused."""
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise InputError(
            f"{where} must describe an EDO ensemble, but does not",
            "check that it is the right file",
        )
    written = content.get("format")
    if not isinstance(written, int) or written > FORMAT:
        raise InputError(
            f"{where} must have format {FORMAT} or older, but has {written!r}",
            "install a newer edokit (pip install --upgrade edokit)",
        )
    try:
        return EDOEnsemble.from_fitted(Fitted.from_dict(content))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"{where} must hold a whole ensemble, but is damaged: {type(error).__name__} {error}",
            "restore it, or fit again",
        ) from error
