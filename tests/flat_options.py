"""Ensembles by the names of their options on the command line."""

from __future__ import annotations

from collections.abc import Mapping

from edokit import EDOEnsemble
from edokit.cli.fit import FitFlags


def flat_ensemble(options: Mapping[str, object]) -> EDOEnsemble:
    """Return the ensemble with these flags of `edo fit`, and ``scale``."""
    flags = dict(options)
    scale = flags.pop("scale", None)
    return FitFlags(**flags).ensemble(scale)
