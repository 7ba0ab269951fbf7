"""A small LeWiDi 2025: four datasets of mild texts, and predictions for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from edokit import Predictions, write_predictions
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
    for dataset, (first, second, scale) in FIELDS.items():
        classes = classes_of(dataset)
        rng = np.random.default_rng(len(dataset))
        (folder / dataset).mkdir(parents=True)
        for split, size in SIZES.items():
            items: dict[str, Any] = {}
            for i in range(size):
                people = [str(who) for who in rng.permutation(PEOPLE)[: 2 + i % 3]]
                labels = {who: str(rng.choice(classes)) for who in people}
                listed = list(people)
                if scale.startswith("multi") and i % 4 == 0:
                    labels[people[0]] = f"{classes[0]},{classes[2]}"
                    listed.insert(0, people[0])
                item = {
                    "text": {first: f"before {i} of {split}", second: f"text {i} of {split}"},
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
            found = json.loads(path.read_text(encoding="utf-8"))
            items = [f"{split}-{key}" for key in found]
            pairs = [
                (item, who)
                for item, one in zip(items, found.values(), strict=True)
                for who in dict.fromkeys(one["annotators"].split(","))
            ]
            for pool, members in (("anonymous", 3), ("annotators", 2)):
                names = [f"{pool}-{k}" for k in range(members)]
                how: dict[str, Any] = {
                    "members": names,
                    "classes": classes,
                    "scale": scale,
                    "layout": "NKC",
                }
                write_predictions(
                    Predictions.from_arrays(
                        _drawn(rng, (len(items), members), classes, scale), items=items, **how
                    ),
                    folder / dataset / pool / f"{split}.npz",
                )
                if pool == "annotators" and known:
                    write_predictions(
                        Predictions.from_arrays(
                            _drawn(rng, (len(pairs), members), classes, scale),
                            items=[item for item, _ in pairs],
                            annotators=[who for _, who in pairs],
                            **how,
                        ),
                        folder / dataset / pool / f"{split}-pairs.npz",
                    )
    return folder


def _drawn(rng: Any, shape: tuple[int, ...], classes: tuple[str, ...], scale: str) -> Any:
    if scale.startswith("multi"):
        return rng.random((*shape, len(classes)))
    return rng.dirichlet(np.ones(len(classes)), shape)
