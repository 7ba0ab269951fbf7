"""The four datasets: annotations of train and dev, and the items of test, whose labels are held
out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from edokit._errors import InputError, one_of
from edokit._io import read_json
from edokit.annotations import Annotations
from edokit.members.texts import Texts


@dataclass(frozen=True)
class Dataset:
    """What a dataset asks, and of which texts."""

    name: str
    scale: str
    text: str
    """The field whose text is labelled."""
    context: str
    """The field that goes with it."""
    metric: str
    """The metric of task A, for which answers are made."""


DATASETS = {
    one.name: one
    for one in (
        Dataset("MP", "nominal", "reply", "post", "md"),
        Dataset("CSC", "ordinal:1,2,3,4,5,6", "response", "context", "w1"),
        Dataset("Paraphrase", "ordinal:-5,-4,-3,-2,-1,0,1,2,3,4,5", "Question2", "Question1", "w1"),
        Dataset(
            "VariErrNLI",
            "multi-label:contradiction,entailment,neutral",
            "statement",
            "context",
            "md",
        ),
    )
}


def find_data(given: Path | None) -> Path:
    """The folder with the four datasets: as given, else EDO_LEWIDI2025, else ./lewidi2025."""
    named = os.environ.get("EDO_LEWIDI2025")
    folder = given or Path(named or "lewidi2025")
    if not (folder / "MP").is_dir():
        raise InputError(
            f"{folder} does not hold the datasets of LeWiDi 2025 (MP, CSC, Paraphrase, VariErrNLI)",
            "get them with `edo data get lewidi2025`, and name their folder with --data DIR",
        )
    return folder


def read_labelled(folder: Path, dataset: str) -> Annotations:
    """The annotations of train and dev, with texts and contexts; items are ``<split>-<key>``."""
    one_of("the dataset", dataset, DATASETS)
    about = DATASETS[dataset]
    names = ("item", "annotator", "label", "text", "context", "split")
    rows: dict[str, list[str]] = {name: [] for name in names}
    for split in ("train", "dev"):
        for key, item in read_json(folder / dataset / f"{dataset}_{split}.json").items():
            for annotator, label in item["annotations"].items():
                text = item["text"]
                values = (annotator.strip(), str(label), text[about.text], text[about.context])
                for name, value in zip(names, (f"{split}-{key}", *values, split), strict=True):
                    rows[name].append(value)
    return Annotations.from_table(rows, scale=about.scale)


def read_test(folder: Path, dataset: str) -> Texts:
    """The texts of test and who labelled each; labels are not read, where there are any."""
    one_of("the dataset", dataset, DATASETS)
    about = DATASETS[dataset]
    found = read_json(folder / dataset / f"{dataset}_test.json")
    return Texts(
        tuple(f"test-{key}" for key in found),
        tuple((item["text"][about.text], item["text"][about.context]) for item in found.values()),
        # VariErrNLI repeats an annotator who chose two labels, which is not to be known.
        tuple(
            tuple(dict.fromkeys(name.strip() for name in item["annotators"].split(",")))
            for item in found.values()
        ),
    )
