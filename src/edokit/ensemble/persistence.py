"""An ensemble as a folder: plain JSON and a card, nothing that executes on load."""

from __future__ import annotations

import math
from dataclasses import asdict
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import InputError
from edokit._io import read_json, whole_file, write_json
from edokit._version import __version__
from edokit.ensemble.card import card
from edokit.ensemble.estimator import EDOEnsemble
from edokit.solvers import Certificate, Trajectory

FORMAT = 1
"""Raised when older versions could no longer read what is written."""
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
    """All of a fitted ensemble as plain values."""
    trajectory = ensemble.trajectory_
    content: dict[str, Any] = _plain(
        {
            "format": FORMAT,
            "kind": "edo-ensemble",
            "members": ensemble.members_,
            "groups": ensemble.groups_,
            "pool": str(ensemble.settings_["pool"]),
            "weights": ensemble.weights_,
            "group_weights": ensemble.group_weights_,
            "size": ensemble.size_,
            "classes": ensemble.classes_,
            "temperature": ensemble.temperature_,
            "settings": ensemble.settings_,
            "parameters": ensemble.get_params(),
            "objective": ensemble.objective_,
            "certificate": None if ensemble.certificate_ is None else asdict(ensemble.certificate_),
            "trajectory": None if trajectory is None else asdict(trajectory),
            "metrics": ensemble.metrics_,
            "member_ce": ensemble.member_ce_,
            "items": ensemble.n_items_,
            "data": ensemble.data_,
            "explanation": ensemble.explain(),
            "versions": {
                "edokit": __version__,
                **{name: version(name) for name in _LIBRARIES},
            },
        }
    )
    return content


def from_dict(content: Any, where: str) -> EDOEnsemble:
    """The ensemble that ``to_dict`` described; anything else is refused."""
    if not isinstance(content, dict) or content.get("kind") != "edo-ensemble":
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
        return _rebuilt(content)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"{where} must hold a whole ensemble, but is damaged: {type(error).__name__} {error}",
            "restore it, or fit again",
        ) from error


def _rebuilt(content: dict[str, Any]) -> EDOEnsemble:
    known = EDOEnsemble().get_params()
    ensemble = EDOEnsemble(
        **{name: value for name, value in content["parameters"].items() if name in known}
    )
    weights = np.array(content["weights"], dtype=np.float64)
    members = tuple(_text(name) for name in content["members"])
    if weights.shape != (len(members),) or not _simplex(weights):
        raise ValueError("weights must be one per member, not negative and sum to 1")
    ensemble.weights_ = weights
    ensemble.members_ = members
    ensemble.size_ = int(content["size"])
    classes = [_text(name) for name in content["classes"]]
    if len(classes) < 2 or len(set(classes)) < len(classes):
        raise ValueError("there must be two classes or more, each of another name")
    ensemble.classes_ = np.array(classes, dtype=object)
    groups, group_weights = content["groups"], content["group_weights"]
    ensemble.groups_ = None if groups is None else tuple(_text(name) for name in groups)
    ensemble.group_weights_ = (
        None if group_weights is None else np.array(group_weights, dtype=float)
    )
    ensemble.temperature_ = float(content["temperature"])
    if not 0 < ensemble.temperature_ < math.inf:
        raise ValueError("temperature must be above 0 and finite")
    ensemble.settings_ = dict(content["settings"])
    ensemble.settings_["pool"] = _text(content["pool"])
    ensemble.objective_ = dict(content["objective"])
    ensemble.metrics_ = dict(content["metrics"])
    ensemble.member_ce_ = np.array(content["member_ce"], dtype=np.float64)
    ensemble.n_items_ = int(content["items"])
    ensemble.data_ = dict(content.get("data") or {})
    certificate, trajectory = content["certificate"], content["trajectory"]
    ensemble.certificate_ = None if certificate is None else Certificate(**certificate)
    ensemble.trajectory_ = (
        None
        if trajectory is None
        else Trajectory(**{name: np.array(column) for name, column in trajectory.items()})
    )
    ensemble._reasons = [_text(line) for line in content["explanation"]]
    _check_parts(ensemble)
    return ensemble


def _check_parts(ensemble: EDOEnsemble) -> None:
    """Refuse parts that do not fit together; anyone may have written the file."""
    members, groups = len(ensemble.members_), ensemble.groups_
    units = members if groups is None else len(set(groups))
    held = ensemble.group_weights_
    if groups is not None and len(groups) != members:
        raise ValueError("groups must be one per member")
    if held is not None and (held.shape != (units,) or not np.isfinite(held).all()):
        raise ValueError("group weights must be one per group")
    if ensemble.member_ce_.ndim != 1 or len(ensemble.member_ce_) not in (members, units):
        raise ValueError("cross-entropies must be one per member")
    for name, value in (*ensemble.objective_.items(), *ensemble.metrics_.items()):
        if value is not None and not isinstance(value, int | float):
            raise TypeError(f"{name} must be a number")
    certificate, trajectory = ensemble.certificate_, ensemble.trajectory_
    if certificate is not None:
        _text(certificate.reason)
        if certificate.gap is not None:
            float(certificate.gap)
    if trajectory is not None:
        columns = list(vars(trajectory).values())
        if not all(column.ndim and column.dtype.kind in "fiO" for column in columns):
            raise TypeError("the trajectory must hold numbers")
        if len({len(column) for column in columns}) > 1:
            raise ValueError("all of the trajectory must be equally long")


def _simplex(weights: Any) -> bool:
    return bool((weights >= 0).all() and abs(weights.sum() - 1.0) < 1e-6)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a name must be text, but got {value!r}")
    return value


def _plain(value: Any) -> Any:
    """Numbers, text, lists and dictionaries only; what is not finite becomes None."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
