"""Versions, and what is imported when it is first used: names of a package, HTML of results."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"
_RESULT_LIBRARIES = ("numpy", "scipy", "scikit-learn", "optuna")
# Packages that members use, by the name that is imported, with that of the distribution.
_MEMBER_LIBRARIES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "torch": "torch",
    "transformers": "transformers",
    "sentence_transformers": "sentence-transformers",
}


def result_versions() -> dict[str, str]:
    """The versions of EDO and of the libraries that results may depend on."""
    libraries = {name: _version(name) for name in _RESULT_LIBRARIES}
    return {"edokit": __version__, **libraries}


@cache
def checkout_commit() -> str:
    """The commit of the checkout that EDO runs from, with "-dirty" after changes; else empty."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists() or not (root / "src" / "edokit").is_dir():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40"]
    command += ["--exclude", "*"]  # no tags: the commit even if a tag names it
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip()


def member_versions() -> dict[str, str]:
    """The versions of Python, EDO and all installed packages that members may use.

    A package counts even if it is not imported: a resumed training run imports only what the
    remaining members need.
    """
    from importlib.metadata import PackageNotFoundError

    versions = {"python": platform.python_version(), "edokit": __version__}
    for name, distribution in _MEMBER_LIBRARIES.items():
        with suppress(PackageNotFoundError):
            versions[name] = _version(distribution)
    return versions


@cache
def _version(distribution: str) -> str:
    from importlib.metadata import version

    return version(distribution)


def lazy_names(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package: these names, by module, are imported when first used."""
    module_by_name = {}
    for module, names in modules.items():
        module_by_name.update(dict.fromkeys(names, module))

    def import_name(name: str) -> Any:
        if name in module_by_name:
            return getattr(import_module(f"{package}.{module_by_name[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return import_name


def notebook_html(function: str, result: object) -> str:
    """A result as notebooks show it, by this function of `edokit.report.notebook`.

    Packages below `report` can't import it; a notebook asks for the HTML when it shows a result.
    """
    html: str = getattr(import_module("edokit.report.notebook"), function)(result)
    return html
