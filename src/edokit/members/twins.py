"""Members that say the same, so that an ensemble of them is no more than one of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from edokit._errors import EDOWarning
from edokit.members.pool import Group
from edokit.members.supervision import Supervision

if TYPE_CHECKING:
    from edokit.predictions import Predictions

_SAME = 1e-6
_SHARED = (Supervision.SOFT.value, Supervision.MAJORITY.value)
"""Whose targets are the same for every member."""


def tell_of_twins(pool: Sequence[Group], predictions: Mapping[str, Predictions]) -> None:
    """Say which groups hold several members with the same answers, and what to do about it."""
    alike = [group for group in pool if all(_are_twins(group, p) for p in predictions.values())]
    if not alike:
        return
    named = "; ".join(f"{group.name}, {group.members} members" for group in alike)
    shared = [group.supervision for group in alike if group.supervision in _SHARED]
    why = " (they learn the same targets, and nothing in them is left to chance)" if shared else ""
    hint = "train them with --supervision random-select, or " if shared else ""
    warnings.warn(
        f"all members of a group give the same answers{why}: {named}; {hint}ask for one, and add"
        " groups that differ in recipe or options",
        EDOWarning,
        stacklevel=3,
    )


def _are_twins(group: Group, answers: Predictions) -> bool:
    own = [k for k, name in enumerate(answers.groups or ()) if name == group.name]
    if len(own) < 2:
        return False
    said = np.asarray(answers.probabilities)[:, own]
    return bool((np.abs(said - said[:, :1]) <= _SAME).all())
