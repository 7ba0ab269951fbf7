"""Valid files of every kind, ways to damage them, and every reader that may be handed one."""

from __future__ import annotations

import copy
import json
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from edokit import Annotations, EDOEnsemble, Predictions
from edokit.datasets import read_annotations
from edokit.errors import EDOError, EDOWarning
from edokit.files import read_json, write_table
from edokit.members.arrays_file import read_arrays
from edokit.predictions import join_models, read_model_file, read_predictions, write_predictions
from edokit.predictions.parquet import long_table
from edokit.runs import RunRecord

Reader = Callable[[Path], Any]


def _label_studio() -> list[dict[str, Any]]:
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


def _argilla() -> list[dict[str, Any]]:
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


def _lewidi() -> dict[str, dict[str, Any]]:
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


def whole_files(folder: Path) -> dict[str, bytes]:
    """Valid files of every kind, by name."""
    rng = np.random.default_rng(0)
    items = [f"i{number}" for number in range(6)]
    people = Annotations.from_matrix(rng.integers(0, 2, (6, 3)).astype(str), items=items)
    shares = rng.dirichlet([1, 1], (6, 2)).astype(np.float32)
    made = Predictions.from_arrays(shares, layout="NKC", items=items, groups=["g", "h"])
    one = long_table(made).slice(0, 12).to_pydict()
    model = {name: values[::2] for name, values in one.items() if name not in ("member", "group")}
    for suffix in (".csv", ".tsv", ".jsonl", ".parquet"):
        write_table(people.to_table(), folder / f"people{suffix}")
        write_table(pa.table(model), folder / f"model{suffix}")
    for suffix in (".npz", ".parquet"):
        write_predictions(made, folder / f"made{suffix}")
    for name, content in (
        ("studio", _label_studio()),
        ("argilla", _argilla()),
        ("tone_train", _lewidi()),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content))
        if isinstance(content, list):
            lines = "".join(json.dumps(row) + "\n" for row in content)
            (folder / f"{name}.jsonl").write_text(lines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = EDOEnsemble("paper-fixed", ties="random", class_weights=False, epochs=2)
        fitted.fit(made, people).save(folder)
    RunRecord("fit", {}).save(folder)
    (folder / "README.md").unlink()
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def _export(kind: str) -> Reader:
    return lambda path: read_annotations(path, format=kind)


def _ensemble(path: Path) -> Any:
    loaded = EDOEnsemble.load(path.parent)
    loaded.summary()
    return loaded


READERS: dict[str, list[Reader]] = {
    "table": [
        read_annotations,
        read_model_file,
        lambda path: join_models([path], positive="1"),
    ],
    "export": [
        read_annotations,
        _export("label-studio"),
        _export("argilla"),
        _export("lewidi"),
    ],
    "predictions": [read_predictions, read_arrays],
    "ensemble": [_ensemble, read_json, lambda path: RunRecord.load(path.parent)],
}


def readers_of(name: str) -> list[Reader]:
    """Every reader that a file of this name may be given to."""
    if name in ("ensemble.json", "run.json"):
        kinds = ["ensemble"]
    elif name.endswith(".npz"):
        kinds = ["predictions"]
    elif name.endswith(".json"):
        kinds = ["export"]
    elif name.endswith(".parquet"):
        kinds = ["table", "export", "predictions"]
    else:
        kinds = ["table", "export"]
    return [reader for kind in kinds for reader in READERS[kind]]


def read_everywhere(path: Path) -> int:
    """How many readers accept the file; each must do so or refuse it in one line."""
    accepted = 0
    for read in readers_of(path.name):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", EDOWarning)
            said = ""
            try:
                read(path)
            except EDOError as error:
                said = str(error)
        assert len(said.splitlines()) <= 1, said
        accepted += not said
    return accepted


_SPICE = [
    *(b"{", b"}", b"[", b"]", b'"', b",", b":", b"\n", b"\r", b"\0", b"\t", b"\\", b"\xff", b" "),
    *(b"null", b"true", b"NaN", b"Infinity", b"-1", b"1e999", b"9" * 30, b"0.5", b'""', b"{}"),
    *(b"[]", b"\\ud800", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"PK\x03\x04", b"PAR1", b"2024-01-01"),
]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The file with a few random changes."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(changed) + 1)
        length = rng.choice((0, 1, 2, 8, 64))
        what = rng.randrange(6)
        if what == 0 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            changed[at : at + length] = b""
        elif what == 2:
            start = rng.randrange(len(changed) + 1)
            changed[at:at] = changed[start : start + length]
        elif what == 3:
            changed[at : at + length] = rng.choice(_SPICE)
        elif what == 4:
            changed[at:at] = rng.choice(_SPICE) * rng.choice((1, 1, 3, 300))
        elif rng.random() < 0.2:
            del changed[at:]
        else:
            changed[at : at + length] = rng.randbytes(length)
    return bytes(changed)


def revalued(content: bytes, rng: random.Random) -> bytes:
    """JSON (or JSON lines) of which some value became another."""
    try:
        lines = [json.loads(content)]
    except ValueError:
        lines = [json.loads(line) for line in content.splitlines()]
    odd = [
        None,
        True,
        -1,
        0,
        1e308,
        10**40,
        "",
        "x",
        "\ud800",
        [],
        {},
        [[]],
        {"a": []},
        float("nan"),
    ]
    for _ in range(rng.choice((1, 1, 2, 4))):
        _replace(rng.choice(lines), odd, rng)
    return "\n".join(json.dumps(line) for line in lines).encode()


def _replace(value: Any, odd: list[Any], rng: random.Random) -> None:
    while isinstance(value, dict | list) and value:
        key: Any = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        inner = value[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.25:
            if rng.random() < 0.15:
                del value[key]
            else:
                value[key] = copy.deepcopy(rng.choice(odd))
            return
        value = inner


def another(name: str, content: bytes, rng: random.Random) -> bytes:
    """Some damaged version of a file."""
    if name.endswith((".json", ".jsonl")) and rng.random() < 0.6:
        return revalued(content, rng)
    return rng.randbytes(rng.randrange(1, 200)) if rng.random() < 0.03 else damaged(content, rng)
