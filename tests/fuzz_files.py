"""Valid files of every kind that EDO reads."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from edokit import Annotations, EDOEnsemble, Predictions
from edokit._io import write_json
from edokit._io.tables import write_table
from edokit.members.groups import parse_groups
from edokit.members.jobs import plan_jobs
from edokit.members.training_data import TrainingData
from edokit.predictions import write_predictions
from edokit.predictions.files import long_table
from edokit.runs import Input, RunRecord

POOL = """
[[group]]
name = "few"
recipe = "linear"
members = 3
supervision = "random-select"
options = { strength = 2.0 }

[[group]]
recipe = "encoder"
"""
OTHERS = {
    "search.json": "trials.parquet",
    "trials.parquet": "search.json",
    "plan.json": "course.json",
    "course.json": "plan.json",
}
"""The file that must stand beside another for it to be read."""


def label_studio() -> list[dict[str, Any]]:
    result = {"from_name": "tone", "to_name": "text", "type": "choices"}
    return [
        {
            "id": number,
            "data": {"text": f"Post number {number}.", "split": "train"},
            "annotations": [
                {
                    "id": 10 * number + person,
                    "completed_by": person if number else {"id": person, "email": "a@b.example"},
                    "was_cancelled": False,
                    "ground_truth": False,
                    "result": [result | {"value": {"choices": [choice]}}],
                }
                for person, choice in ((1, "calm"), (2, "heated"))
            ],
        }
        for number in range(3)
    ]


def argilla() -> list[dict[str, Any]]:
    return [
        {
            "id": f"r{number}",
            "fields": {"text": f"Post {number}."},
            "metadata": {"split": "dev"},
            "responses": {
                "tone": [
                    {"user_id": user, "value": value, "status": "submitted"}
                    for user, value in (("ann", "calm"), ("bea", "heated"))
                ]
            },
        }
        for number in range(3)
    ]


def lewidi() -> dict[str, dict[str, Any]]:
    return {
        str(number): {
            "text": f"Post {number}.",
            "annotation task": "tone",
            "number of annotations": 2,
            "annotations": "0,1",
            "annotators": "Ann1,Ann2",
            "lang": "en",
            "hard_label": str(number % 2),
            "soft_label": {"0": 0.5, "1": 0.5},
            "split": "train",
            "other_info": {},
        }
        for number in range(1, 4)
    }


def _trials() -> list[dict[str, Any]]:
    return [
        {
            "number": number,
            "generation": 0,
            "diversity": sign,
            "temperature": 0.5 + number,
            "f1": 0.5 + number / 10,
            "ce": 0.6 - number / 10,
            "md": 0.3,
            "size": 2,
            "weights": "[0.5, 0.5]",
            "on_front": number == 2,
            "chosen": number == 2,
            "state": "complete",
        }
        for number, sign in enumerate(("preserve", "promote", "preserve"))
    ]


def _search() -> dict[str, Any]:
    found = {"diversity": "preserve", "parameter": "temperature", "metric": "ce"}
    return {
        "trials": 3,
        "chosen": {
            "trial": 2,
            "rule": "lowest-ce",
            "estimates": {"optimistic": {"ce": 0.4}, "cross-fitted": {"ce": 0.45}},
            "weights": {"0": 0.5, "1": 0.5},
        },
        "space": {"temperature": [0.1, 2.0]},
        "correlations": [found | {"rho": 0.4, "p_value": 0.01, "trials": 3, "significant": True}],
    }


def _manifest() -> dict[str, Any]:
    return {
        "format": 1,
        "data": {"source": "people.csv", "classes": ["0", "1"], "items": {"train": 6}},
        "seed": 0,
        "members": [
            {"name": f"few-{number}", "group": "few", "recipe": "linear", "seconds": 0.5}
            for number in range(2)
        ],
    }


def _member() -> dict[str, Any]:
    return {"recipe": "linear", "kept": True, "fingerprint": "abc", "items": 6, "seconds": 0.5}


def _few(people: Annotations) -> Annotations:
    texts = np.array([f"Post {item}." for item in people.items], dtype=object)
    splits = np.array(["train", "dev"] * 3, dtype=object)
    return Annotations(**{**vars(people), "texts": texts, "splits": splits})


def whole_files(folder: Path) -> dict[str, bytes]:
    """Write valid files of every kind; their content by name."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    items = [f"i{number}" for number in range(6)]
    people = Annotations.from_matrix(rng.integers(0, 2, (6, 3)).astype(str), items=items)
    shares = rng.dirichlet([1, 1], (6, 2)).astype(np.float32)
    made = Predictions.from_arrays(shares, layout="NKC", items=items, groups=["g", "h"])
    one = long_table(made).slice(0, 12).to_pydict()
    model = {name: values[::2] for name, values in one.items() if name not in ("member", "group")}
    texts = pa.table({"item": items, "text": [f"Post {item}." for item in items]})
    for suffix in (".csv", ".tsv", ".jsonl", ".parquet"):
        write_table(people.to_table(), folder / f"people{suffix}")
        write_table(pa.table(model), folder / f"model{suffix}")
    for suffix in (".npz", ".parquet"):
        write_predictions(made, folder / f"made{suffix}")
    write_table(texts, folder / "texts.csv")
    (folder / "texts.txt").write_text("One post.\nAnother post.\n", encoding="utf-8")
    (folder / "pool.toml").write_text(POOL, encoding="utf-8")
    for name, content in (
        ("studio", label_studio()),
        ("argilla", argilla()),
        ("tone_train", lewidi()),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content))
        if isinstance(content, list):
            lines = "".join(json.dumps(row) + "\n" for row in content)
            (folder / f"{name}.jsonl").write_text(lines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = EDOEnsemble("paper-fixed", ties="random", class_weights=False, epochs=2)
        fitted.fit(made, people).save(folder)
        course = TrainingData.from_annotations(_few(people))
    (folder / "README.md").unlink()
    inputs = {"annotations": Input("people.csv", None, {"duplicates": "all", "splits": None})}
    RunRecord("fit", {**inputs, "predictions": Input("made.npz", "0" * 64)}).save(folder)
    write_table(pa.Table.from_pylist(_trials()), folder / "trials.parquet")
    for name, document in (
        ("search.json", _search()),
        ("manifest.json", _manifest()),
        ("member.json", _member()),
    ):
        write_json(document, folder / name)
    plan_jobs(parse_groups("linear:1"), course).save(folder)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
