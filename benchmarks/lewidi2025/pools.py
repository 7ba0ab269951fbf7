"""The pools of the LeWiDi 2025 benchmark: which members, with which options.

``anonymous`` members know texts alone, ``annotators`` members also who labels (and predict for
nobody in particular, too). ``small`` are of recipes that train on a CPU.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tasks import Data, Run, Task

from edokit.members import Group
from reproduction.lewidi2025.data import DATASETS, read_labelled, read_test

Options = dict[str, Any]

MPNET = "sentence-transformers/all-mpnet-base-v2"
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
GEMMA = "gemma-bi"  # ../lewidi/gemma.py
# Every epoch is trained and the best one on dev (by CE, of ordinal scales by RPS) is kept.
COMMON: Options = {
    "model": MPNET,
    "learning_rate": 4e-5,
    "head_learning_rate": 1e-4,
    "layer_decay": 0.9,
    "adversarial": 1.0,
    "patience": 0,
    "eval_batch_size": 256,
    "max_length": 128,
}
OWN: dict[str, Options] = {
    "MP": {"epochs": 4, "batch_size": 32, "max_length": 160},
    "CSC": {"epochs": 5, "batch_size": 32, "max_length": 160},
    "Paraphrase": {"epochs": 20, "batch_size": 16},
    "VariErrNLI": {"epochs": 15, "batch_size": 16},
}
"""What differs between the datasets."""
# A decoder was trained to read forwards: the post, then the reply.
DECODER: Options = {"model": GEMMA, "context_first": True, "adversarial": 0.0, "epochs": 2}


def groups_of(dataset: str) -> list[Group]:
    """All groups that a GPU trains, the longest trainings first."""

    def group(name: str, members: int, supervision: str = "soft", **options: Any) -> Group:
        chosen = {**COMMON, **OWN[dataset], **options}
        return Group("transformer", members, name, supervision, "epoch", chosen)

    knows = {"annotators": True}
    if dataset == "MP":
        slow, fast = ({**DECODER, "learning_rate": rate} for rate in (3e-5, 5e-5))
        return [
            group("annotators.encoder", 4, **knows),
            group("annotators.forward", 4, **fast, **knows),
            group("annotators.forward-slow", 2, **slow, **knows),
            group("annotators.forward-long", 2, **{**slow, "epochs": 3}, **knows),
        ]
    groups = [
        group("annotators.encoder", 4, **knows),
        group("anonymous.encoder", 2),
        group("anonymous.encoder-drawn", 2, "random-select"),
    ]
    if dataset == "VariErrNLI":
        return [
            *groups,
            group("annotators.target", 2, **knows, pooling="mean+target"),
            group("anonymous.target", 2, pooling="mean+target"),
        ]
    if dataset == "CSC":
        groups += [
            group("annotators.mean", 3, **knows),
            group("annotators.mean-rps", 3, **knows, loss="ce+rps"),
            group("annotators.mean-target", 2, **knows, pooling="mean+target"),
        ]
    return [
        *groups,
        group("annotators.encoder-rps", 2, **knows, loss="ce+rps"),
        group("anonymous.encoder-rps", 2, loss="ce+rps"),
    ]


def small_groups() -> list[Group]:
    """What two CPU cores train in minutes."""
    model = {"model": MINILM}
    knows = {"annotators": True}
    return [
        Group("linear", 2, "small.linear"),
        Group("linear", 1, "small.linear-annotators", "soft", options=knows),
        Group("encoder", 2, "small.encoder", options=model),
        Group("encoder", 1, "small.encoder-annotators", "soft", options={**model, **knows}),
    ]


def read(lewidi: Path, dataset: str) -> Data:
    """Train and dev with labels, test without."""
    return Data(read_labelled(lewidi, dataset), unlabelled={"test": read_test(lewidi, dataset)})


TASK = Task(
    runs={
        **{name: Run(name, groups_of(name)) for name in DATASETS},
        **{f"{name}-small": Run(name, small_groups()) for name in DATASETS},
    },
    read=read,
    decoder_datasets=("MP",),
)
