"""Reading and writing of fitted ensembles as ``ensemble.json``, which executes nothing on load."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import numpy as np

from edokit._errors import InputError
from edokit._io.atomic import whole_file
from edokit._io.documents import Count, Document, read_json, to_model, write_json
from edokit._names import as_name
from edokit._package import result_versions
from edokit.ensemble.card import card
from edokit.ensemble.fitted import Fitted, on_simplex
from edokit.objective.settings import Pool
from edokit.runs.record import begin_run

FORMAT = 1
"""The number of the file format; a new one is needed when older versions can't read new files."""
FILE = "ensemble.json"
_HINT = "restore it, or fit again"
Content = TypeVar("Content")


class _FileHeader(Document):
    """What the start of every JSON file of this package says about it."""

    kind: str
    format: Count


def _contradiction(fitted: Fitted) -> str | None:
    """Return which fields of an ensemble contradict each other; None if the file can be trusted."""
    members = len(fitted.members)
    if len(fitted.groups or fitted.members) != members:
        return "groups must have one entry per member"
    if not on_simplex(fitted.weights, members):
        return "weights must have one entry per member, be not negative and sum to 1"
    units, unit_weights = fitted.unit_weights
    if not on_simplex(unit_weights, len(units)):
        return "group_weights must have one entry per group, be not negative and sum to 1"
    if fitted.labels is not None and tuple(map(as_name, fitted.labels)) != fitted.classes:
        return "labels must map one-to-one to classes"
    if fitted.member_ce.shape != (members,):
        return "member_ce must have one entry per member"
    if not _is_constant_of_classes(fitted):
        return "constant must have one share per class, and one of the classes as its label"
    try:
        Pool(fitted.pool)
        _ = fitted.regularization
        fitted.summary()
    except (LookupError, TypeError, ValueError) as error:
        return f"settings are incomplete: {error}"
    return None


def _is_constant_of_classes(fitted: Fitted) -> bool:
    """Return whether the constant answer has a share per class, and one of the classes as label."""
    n_classes = len(fitted.classes)
    if len(fitted.constant.shares) != n_classes:
        return False
    if np.shape(fitted.constant.label) != fitted.scale.hard_label_shape(n_classes):
        return False
    n_codes = len(fitted.scale.row_classes(fitted.classes))
    return bool(np.max(fitted.constant.label) < n_codes)


def read_saved(path: Path, kind: str, model: type[Content]) -> Content:
    """Return the content of a JSON file of this kind as a model, or raise one `InputError`."""
    content = read_json(path)
    title = f"an EDO {kind}"
    header = to_model(
        content, _FileHeader, path, title=title, hint="check that it is the right file"
    )
    if header.kind != f"edo-{kind}":
        raise InputError(
            f"{path} does not describe {title}",
            "check that it is the right file",
            code="wrong-content",
        )
    if header.format > FORMAT:
        raise InputError(
            f"{path} has format {header.format}; this version reads format {FORMAT} or older",
            "install a newer edokit (pip install --upgrade edokit)",
            code="other-version",
        )
    return to_model(content, model, path, title=title, hint=_HINT)


def read_fitted(folder: str | Path) -> Fitted:
    """Read the ensemble that `write_fitted` wrote into this folder, and check it."""
    path = Path(folder) / FILE
    if not path.exists():
        state = "does not exist"
        if Path(folder).exists():
            state = "has none"
        hint = "make one with `edo fit` or EDOEnsemble.save"
        subfolder = Path(folder) / "ensemble"
        if (subfolder / FILE).exists():
            hint = f"give {subfolder}"
        raise InputError(
            f"an ensemble is a folder with {FILE}, but {folder} {state}", hint, code="wrong-folder"
        )
    fitted = read_saved(path, "ensemble", Fitted)
    contradiction = _contradiction(fitted)
    if contradiction is not None:
        raise InputError(f"{path} is damaged: {contradiction}", _HINT, code="damaged-file")
    return fitted


def write_fitted(fitted: Fitted, folder: str | Path) -> None:
    """Write ``ensemble.json`` and the card, ``README.md``."""
    folder = Path(folder)
    header = {"format": FORMAT, "kind": "edo-ensemble"}
    content = {**header, **fitted.to_dict(), "versions": result_versions()}
    begin_run(folder)
    # Written before the card: a folder with this file is known as EDO's if the process is killed.
    write_json(content, folder / FILE)
    with whole_file(folder / "README.md") as temporary:
        temporary.write_text(card(fitted), encoding="utf-8")
