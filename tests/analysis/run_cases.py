"""A folder as `edo run` writes it, with two quick members."""

from __future__ import annotations

import warnings
from pathlib import Path

import edokit
from edokit import Annotations, Bundle, EDOEnsemble, EDOWarning
from edokit.members import parse_groups


def quick_run(annotations: Annotations, folder: Path, ensemble: EDOEnsemble | None = None) -> Path:
    """Train two members in folds of train and dev, and write their ensemble and bundle."""
    folder.mkdir()
    learned = annotations.split("train", "dev")
    edokit.write_annotations(learned, folder / "labels.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EDOWarning)
        edokit.train_members(
            learned, parse_groups("linear:2"), out=folder / "members", cross_fit=3, jobs=1
        )
        edokit.fit(
            folder / "members" / "predictions" / "fit.npz",
            folder / "labels.csv",
            out=folder / "ensemble",
            ensemble=ensemble or EDOEnsemble(),
        )
        Bundle.create(folder / "ensemble", folder / "members", folder / "bundle")
    return folder
