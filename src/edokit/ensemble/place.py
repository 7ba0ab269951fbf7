"""An ensemble takes the place of one that is the same, and of no other unless told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edokit._errors import InputError, examples
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.persistence import FILE, load_ensemble, to_dict
from edokit.runs import check_place

_HINT = "choose another --out, or replace it with --overwrite"


def check_settings(folder: Path, asked: EDOEnsemble, *, overwrite: bool = False) -> None:
    """Before anything is read: refuse a folder of something else, or of other settings."""
    check_place(folder, "fit")
    there = None if overwrite else _there(folder)
    if there is None:
        return
    ours, theirs = asked.get_params(), there.get_params()
    other = [name for name, value in ours.items() if theirs[name] != value]
    if other:
        raise InputError(
            f"{folder} must be empty or hold this very ensemble, but its ensemble was fitted with"
            f" other settings: {examples(other)}",
            _HINT,
        )


def check_members(
    folder: Path, members: Sequence[str], items: int, *, overwrite: bool = False
) -> None:
    """Before anything is learned: refuse an ensemble of other members or items."""
    there = None if overwrite else _there(folder)
    if there is not None and (list(there.members_), there.n_items_) != (list(members), items):
        raise _other_data(folder)


def check_same(folder: Path, fitted: EDOEnsemble, *, overwrite: bool = False) -> None:
    """Before it is saved: refuse to replace an ensemble that was learned from other data."""
    there = None if overwrite else _there(folder)
    if there is not None and not _alike(there, fitted):
        raise _other_data(folder)


def _there(folder: Path) -> EDOEnsemble | None:
    if not (folder / FILE).exists():
        return None
    try:
        return load_ensemble(folder)
    except InputError as error:
        raise InputError(error.message, _HINT) from error


def _alike(one: EDOEnsemble, other: EDOEnsemble) -> bool:
    """Whether the same was learned, but for rounding, by whichever version."""
    names = ("members", "classes", "items", "data")
    told = [{name: to_dict(each)[name] for name in names} for each in (one, other)]
    return told[0] == told[1] and all(
        np.allclose(getattr(one, name), getattr(other, name), rtol=0, atol=1e-6)
        for name in ("weights_", "member_ce_")
    )


def _other_data(folder: Path) -> InputError:
    return InputError(
        f"{folder} must be empty or hold this very ensemble, but its ensemble was learned from"
        " other data",
        _HINT,
    )
