"""The four datasets: annotations of train and dev, and the items of test, whose labels are held
out."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from edokit._errors import EDOWarning, InputError
from edokit.annotations.core import Annotations
from edokit.datasets.lewidi import read_lewidi, read_lewidi_items
from edokit.members.texts import Texts

DATASETS = {"MP": "md", "CSC": "w1", "Paraphrase": "w1", "VariErrNLI": "md"}
"""The datasets, and the metric of task A, for which answers are made."""


def find_data(given: Path | None) -> Path:
    """The given folder, else that of EDO_LEWIDI2025, else ./lewidi2025."""
    variable = os.environ.get("EDO_LEWIDI2025")
    folder = given or Path(variable or "lewidi2025")
    if not (folder / "MP").is_dir():
        raise InputError(
            f"{folder} does not hold the datasets of LeWiDi 2025 (MP, CSC, Paraphrase, VariErrNLI)",
            "get them with `edo data get lewidi2025`, and name their folder with --data DIR",
            code="wrong-folder",
        )
    return folder


def read_labelled(folder: Path, dataset: str) -> Annotations:
    """The annotations of train and dev."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", EDOWarning
        )  # blanks in ids, splits by file, held-out labels
        return read_lewidi(folder / dataset).split("train", "dev")


def read_test(folder: Path, dataset: str) -> Texts:
    """The texts of test and who labelled each; labels are not read, where there are any.

    VariErrNLI repeats an annotator who chose two labels; here everybody is named once.
    """
    test_items = read_lewidi_items(folder / dataset, split="test")
    assert test_items.texts is not None
    assert test_items.contexts is not None
    texts = zip(map(str, test_items.texts), map(str, test_items.contexts), strict=True)
    return Texts(tuple(map(str, test_items.items)), tuple(texts), tuple(test_items.annotators))
