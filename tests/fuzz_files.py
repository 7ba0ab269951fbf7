"""Valid files of every kind that EDO reads."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from edokit import (
    Annotations,
    Bundle,
    EDOClassifier,
    EDOEnsemble,
    Predictions,
    compare,
    read_predictions,
    search,
    simulate,
    train_members,
    write_annotations,
    write_predictions,
)
from edokit._io.documents import read_json, write_json
from edokit._io.tables import write_table
from edokit.members import Group
from edokit.predictions.files import long_table
from edokit.runs.inputs import Input
from edokit.runs.record import RunRecord

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
}
"""By file, the other one that must be in its folder for it to be read."""


def label_studio() -> list[dict[str, object]]:
    """Tasks of a Label Studio export."""
    tasks: list[dict[str, object]] = []
    for number in range(3):
        annotations = []
        for person, choice in ((1, "calm"), (2, "heated")):
            completed_by: object = person
            if number == 0:
                completed_by = {"id": person, "email": "a@b.example"}
            result = {
                "from_name": "tone",
                "to_name": "text",
                "type": "choices",
                "value": {"choices": [choice]},
            }
            annotations.append(
                {
                    "id": 10 * number + person,
                    "completed_by": completed_by,
                    "was_cancelled": False,
                    "ground_truth": False,
                    "result": [result],
                }
            )
        data = {"text": f"Post number {number}.", "split": "train"}
        tasks.append({"id": number, "data": data, "annotations": annotations})
    return tasks


def argilla() -> list[dict[str, object]]:
    """Records of an Argilla export."""
    return [
        {
            "id": f"r{number}",
            "text": f"Post {number}.",
            "metadata.split": "dev",
            "tone.responses": ["calm", "heated"],
            "tone.responses.users": ["ann", "bea"],
            "tone.responses.status": ["submitted", "submitted"],
        }
        for number in range(3)
    ]


def lewidi() -> dict[str, dict[str, object]]:
    """Items of a LeWiDi 2023 file."""
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


def lewidi2025() -> dict[str, dict[str, object]]:
    """Items of a LeWiDi 2025 file."""
    return {
        str(number): {
            "text": {"context": f"Post {number}.", "statement": "It is late."},
            "annotators": "Ann1,Ann2,Ann2",
            "number of annotations": 3,
            "annotations": {"Ann1": "neutral", "Ann2": "contradiction,neutral"},
            "soft_label": {"contradiction": {"0": 0.5, "1": 0.5}, "neutral": {"0": 0, "1": 1}},
            "split": "train",
            "lang": "en",
            "other_info": {"source": "here"},
        }
        for number in range(1, 4)
    }


def _trials() -> list[dict[str, object]]:
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


def _search() -> dict[str, object]:
    correlation = {
        "diversity": "preserve",
        "parameter": "temperature",
        "metric": "ce",
        "rho": 0.4,
        "p_value": 0.01,
        "trials": 3,
        "significant": True,
    }
    return {
        "trials": 3,
        "chosen": {
            "trial": 2,
            "rule": "lowest-ce",
            "estimates": {"optimistic": {"ce": 0.4}, "cross-fitted": {"ce": 0.45}},
            "weights": {"0": 0.5, "1": 0.5},
        },
        "space": {"temperature": [0.1, 2.0]},
        "correlations": [correlation],
    }


def _manifest() -> dict[str, object]:
    return {
        "format": 1,
        "data": {"source": "people.csv", "classes": ["0", "1"], "scale": "nominal", "pairs": False},
        "seed": 0,
        "members": [
            {"name": f"few-{number}", "group": "few", "recipe": "linear", "seconds": 0.5}
            for number in range(2)
        ],
    }


def _member() -> dict[str, object]:
    return {
        "format": 1,
        "recipe": "linear",
        "group": "few",
        "supervision": "soft",
        "draw": "once",
        "fingerprint": "abc",
        "options": {},
        "classes": ["no", "yes"],
        "scale": "nominal",
        "items": 6,
        "kept": True,
        "sha256": {},
        "seconds": 0.5,
    }


def _few(people: Annotations) -> Annotations:
    texts = np.array([f"Post {item}." for item in people.items], dtype=object)
    splits = np.array(["train", "dev"] * 3, dtype=object)
    return replace(people, texts=texts, splits=splits)


def whole_files(folder: Path) -> dict[str, bytes]:
    """Write valid files of every kind; their content by name."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    items = [f"i{number}" for number in range(6)]
    people = Annotations.from_matrix(rng.integers(0, 2, (6, 3)).astype(str), items=items)
    shares = rng.dirichlet([1, 1], (6, 2)).astype(np.float32)
    predictions = Predictions.from_arrays(
        shares,
        layout="NKC",
        items=items,
        groups=["g", "h"],
        member_info={"0": {"model": "small", "persona": "a nurse", "cost": 0.001, "requests": 6}},
    )
    columns = long_table(predictions).slice(0, 12).to_pydict()
    del columns["member"]
    del columns["group"]
    model = {name: values[::2] for name, values in columns.items()}
    texts = pa.table({"item": items, "text": [f"Post {item}." for item in items]})
    for suffix in (".csv", ".tsv", ".jsonl", ".parquet"):
        write_table(people.to_table(), folder / f"people{suffix}")
        write_table(pa.table(model), folder / f"model{suffix}")
    answers = {
        "item": [items[k // 4] for k in range(24)],
        "model": ["small", "small", "large", "large"] * 6,
        "prompt": ["plain"] * 24,
        "answer": ["no", "yes", "no", "Yes."] * 6,
    }
    for suffix in (".csv", ".jsonl", ".parquet"):
        write_table(pa.table(answers), folder / f"asked{suffix}")
    for suffix in (".npz", ".parquet"):
        write_predictions(predictions, folder / f"made{suffix}")
    write_table(texts, folder / "texts.csv")
    (folder / "texts.txt").write_text("One post.\nAnother post.\n", encoding="utf-8")
    (folder / "pool.toml").write_text(POOL, encoding="utf-8")
    for name, content in (
        ("studio", label_studio()),
        ("argilla", argilla()),
        ("tone_train", lewidi()),
        ("nli_train", lewidi2025()),
        ("nli_annotators_meta", {"Ann1": {"Age": "26"}, "2": {"Age": 30.0}}),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content))
    lines = "".join(json.dumps(record) + "\n" for record in argilla())
    (folder / "argilla.jsonl").write_text(lines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = EDOEnsemble("paper-fixed", ties="random")
        fitted.set_params(objective__class_weights=False, solver__epochs=2)
        fitted.fit(predictions, people).save(folder, overwrite=True)
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
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


GROUPS = [
    Group("linear", 1),
    Group("sklearn", 1, options={"estimator": "sklearn.naive_bayes.ComplementNB()"}),
]


@cache
def few_people() -> Annotations:
    """Annotations of few items with texts."""
    return simulate("two-camps", random_state=0, items=(24, 12, 12)).annotations


def whole_folders(folder: Path, *, runs: bool = True, networks: bool = False) -> dict[str, bytes]:
    """Write valid folders of every kind beside `whole_files`; the content of each file by its path.

    With ``runs`` also a search with a comparison, with ``networks`` a fine-tuned member, which
    needs torch.
    """
    rng = np.random.default_rng(1)
    people = few_people()
    dev = people.split("dev")
    shares = rng.dirichlet([1, 1], (len(dev.items), 4)).astype(np.float32)
    predictions = Predictions.from_arrays(
        shares, layout="NKC", items=dev.items, classes=dev.classes, groups=["g", "g", "h", "h"]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = EDOEnsemble(pool="log", groups=True, recalibrate="temperature")
        log.fit(predictions, dev).save(folder / "log")
        EDOEnsemble(solver="exact").fit(predictions, dev).save(folder / "exact")
        X = rng.normal(size=(30, 2))
        base = [("a", LogisticRegression()), ("t", DecisionTreeClassifier(max_depth=3))]
        EDOClassifier(base).fit(X, rng.integers(0, 2, (30, 3))).save(folder / "model")
        train_members(people, GROUPS, out=folder / "trained")
        if runs:
            _run(people, predictions, folder / "run")
        if networks:
            _network(people, folder / "fine-tuned")
    for card in folder.rglob("member.json"):
        content = read_json(card)
        digests = content["sha256"]
        # Without its digests, as in folders of earlier versions, a damaged member reaches readers.
        content["sha256"] = {
            name: digest for name, digest in digests.items() if name == "predictions.npz"
        }
        write_json(content, card)
    trained = read_predictions(folder / "trained" / "predictions" / "dev.npz")
    pool = EDOEnsemble.from_weights([0.5, 0.5], trained, dev.align(trained.items))
    Bundle.create(pool, folder / "trained", folder / "bundle")
    contents = {}
    for path in sorted(folder.glob("*/**/*")):
        if path.is_file() and _is_read(path, folder):
            contents[path.relative_to(folder).as_posix()] = path.read_bytes()
    return contents


def _is_read(path: Path, folder: Path) -> bool:
    """Whether damage of a file can reach a reader."""
    if path.parent in (folder / "run", folder / "run-inputs"):
        return True
    top = path.relative_to(folder).parts[0]
    if top == "tiny-model":
        return False
    if top == "bundle" and path.name != "bundle.json":  # the others are refused by their digests
        return False
    return path.suffix in (".json", ".npz", ".skops", ".log", ".parquet", ".safetensors")


def _run(people: Annotations, predictions: Predictions, folder: Path) -> None:
    """Write a search and a comparison."""
    dev = people.split("dev")
    test = people.split("test")
    inputs = folder.with_name("run-inputs")  # an output folder must not contain inputs
    dev_predictions = inputs / "dev.npz"
    dev_annotations = inputs / "dev.csv"
    write_predictions(predictions, dev_predictions)
    write_annotations(dev, dev_annotations)
    search(
        dev_predictions,
        dev_annotations,
        out=folder,
        trials=4,
        solver="exact",
        folds=2,
        population=2,
    )
    test_predictions = Predictions.from_arrays(
        predictions.probabilities,
        layout="NKC",
        items=test.items,
        classes=predictions.classes,
        groups=predictions.groups,
    )
    comparison = compare(
        dev_predictions,
        dev_annotations,
        test_predictions,
        test,
        samples=20,
        methods=["uniform", "greedy"],
    )
    write_json(comparison.to_dict(), folder / "compare" / "methods.json")


def _network(people: Annotations, out: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parent / "members"))
    from tiny_transformer import tiny_model

    options = {"model": tiny_model(out.parent / "tiny-model"), "epochs": 1, "max_length": 8}
    train_members(people, [Group("transformer", 1, options=options)], out=out, device="cpu")
