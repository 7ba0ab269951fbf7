"""A small LeWiDi 2025: four datasets of mild texts, and predictions for them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from edokit import Predictions, write_predictions
from edokit._types import Floats
from edokit.scales import DeclaredScale

FIELDS = {
    "MP": ("post", "reply", "nominal"),
    "CSC": ("context", "response", "ordinal:1,2,3,4,5,6"),
    "Paraphrase": ("Question1", "Question2", "ordinal:-5,-4,-3,-2,-1,0,1,2,3,4,5"),
    "VariErrNLI": ("context", "statement", "multi-label:contradiction,entailment,neutral"),
}
SIZES = {"train": 12, "dev": 20, "test": 6}
PEOPLE = ("Ann1", "Ann2", "Ann3", "Ann4")


def classes_of(dataset: str) -> tuple[str, ...]:
    return DeclaredScale(FIELDS[dataset][2]).classes or ("0", "1")


def write_data(folder: Path, *, test_labels: bool = False) -> Path:
    """The files as published; the labels of test only if asked for."""
    for dataset, (context_field, text_field, scale) in FIELDS.items():
        classes = classes_of(dataset)
        rng = np.random.default_rng(len(dataset))
        (folder / dataset).mkdir(parents=True)
        for split, size in SIZES.items():
            items: dict[str, dict[str, object]] = {}
            for i in range(size):
                people = [str(name) for name in rng.permutation(PEOPLE)[: 2 + i % 3]]
                labels = {name: str(rng.choice(classes)) for name in people}
                listed = list(people)
                if scale.startswith("multi") and i % 4 == 0:
                    labels[people[0]] = f"{classes[0]},{classes[2]}"
                    listed.insert(0, people[0])
                item: dict[str, object] = {
                    "text": {
                        context_field: f"before {i} of {split}",
                        text_field: f"text {i} of {split}",
                    },
                    "annotators": ",".join(listed),
                    "split": split,
                    "lang": "en",
                    "other_info": {},
                }
                if split != "test" or test_labels:
                    item["annotations"] = labels
                items[str(100 + i)] = item
            path = folder / dataset / f"{dataset}_{split}.json"
            path.write_text(json.dumps(items), encoding="utf-8")
    return folder


def write_pools(data: Path, folder: Path, *, known: bool = True) -> Path:
    """Two pools per dataset; the members of one also predict pairs."""
    for dataset, (*_, scale) in FIELDS.items():
        rng = np.random.default_rng(7)
        classes = classes_of(dataset)
        for split in ("dev", "test"):
            path = data / dataset / f"{dataset}_{split}.json"
            content = json.loads(path.read_text(encoding="utf-8"))
            items = [f"{split}-{key}" for key in content]
            pair_items = []
            pair_annotators = []
            for key, item in content.items():
                for name in dict.fromkeys(item["annotators"].split(",")):
                    pair_items.append(f"{split}-{key}")
                    pair_annotators.append(name)
            for pool, members in (("anonymous", 3), ("annotators", 2)):
                names = [f"{pool}-{k}" for k in range(members)]
                predictions = Predictions.from_arrays(
                    _drawn(rng, (len(items), members), classes, scale),
                    items=items,
                    members=names,
                    classes=classes,
                    scale=scale,
                    layout="NKC",
                )
                write_predictions(predictions, folder / dataset / pool / f"{split}.npz")
                if pool == "annotators" and known:
                    pairs = Predictions.from_arrays(
                        _drawn(rng, (len(pair_items), members), classes, scale),
                        items=pair_items,
                        annotators=pair_annotators,
                        members=names,
                        classes=classes,
                        scale=scale,
                        layout="NKC",
                    )
                    write_predictions(pairs, folder / dataset / pool / f"{split}-pairs.npz")
    return folder


def _drawn(
    rng: np.random.Generator, shape: tuple[int, ...], classes: tuple[str, ...], scale: str
) -> Floats:
    """Random probabilities; for sets, of each label."""
    if scale.startswith("multi"):
        return rng.random((*shape, len(classes)))
    return rng.dirichlet(np.ones(len(classes)), shape)
