"""The pools of the LeWiDi 2025 benchmark: which members, with which options.

``anonymous`` members know texts alone, ``annotators`` members also who labels (and predict for
nobody in particular, too). ``small`` are of recipes that train on a CPU. ``intermediate`` members
have read inference or similarity first, ``large`` ones are low-rank adapters of a larger model;
on the two small datasets both are cross-fitted on train and dev.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tasks import Data, Run, Task

from edokit.datasets.read import read_annotations
from edokit.members import Group
from reproduction.lewidi2025.data import DATASETS, read_labelled, read_test

Options = dict[str, Any]
FOLDS = 5
SMALL_DATASETS = ("Paraphrase", "VariErrNLI")
"""Their 50 dev items choose badly: members are cross-fitted on train and dev."""

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
        pool_options = {**COMMON, **OWN[dataset], **options}
        return Group("transformer", members, name, supervision, "epoch", pool_options)

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


# Where train.py leaves members of these two runs, seen from the folder that it is started in.
INFERENCE = "runs/inference/members/inference"
SIMILARITY = "runs/similarity/members/similarity"
PAIRS: Options = {
    **COMMON,
    "learning_rate": 3e-5,
    "batch_size": 32,
    "epochs": 2,
    "adversarial": 0.0,
}


def pair_groups(dataset: str) -> list[Group]:
    """Two encoders that read sentence pairs (pairs.py): inference, and similarity after it."""

    def group(name: str, members: int, model: str) -> Group:
        options = {**PAIRS, "model": model}
        return Group("transformer", members, name, "soft", "epoch", options)

    if dataset == "inference":
        return [group("inference", 2, MPNET)]
    return [group(f"similarity{k}", 1, f"{INFERENCE}-0{k}") for k in (1, 2)]


def intermediate_groups(dataset: str) -> list[Group]:
    """Members that know annotators, of encoders that have read sentence pairs."""
    knows = {**COMMON, **OWN[dataset], "annotators": True}

    def group(name: str, members: int, model: str, **options: Any) -> Group:
        pool_options = {**knows, **options, "model": model}
        return Group("transformer", members, f"intermediate.{name}", "soft", "epoch", pool_options)

    inference = [f"{INFERENCE}-0{k}" for k in (1, 2)]
    similarity = [f"{SIMILARITY}{k}-01" for k in (1, 2)]
    if dataset == "VariErrNLI":
        return [
            group("inference1", 2, inference[0]),
            group("inference2", 2, inference[1]),
            group("similarity1", 1, similarity[0]),
            group("similarity2", 1, similarity[1]),
        ]
    return [
        group("similarity1", 2, similarity[0]),
        group("similarity2", 2, similarity[1]),
        group("similarity1-rps", 1, similarity[0], loss="ce+rps"),
        group("similarity2-rps", 1, similarity[1], loss="ce+rps"),
    ]


QWEN = "qwen"  # ../lewidi/qwen.py
LARGE: Options = {
    "model": QWEN,
    "adapter_rank": 16,
    "learning_rate": 1e-4,
    "head_learning_rate": 2e-4,
    "context_first": True,
    "patience": 0,
    "eval_batch_size": 128,
    "max_length": 192,
}
INSTRUCTIONS = {
    "MP": "A post and a reply to it. Is the reply ironic?",
    "CSC": "A situation and a response to it. How sarcastic is the response, from 1 to 6?",
    "Paraphrase": "Two questions. Do they ask the same, from -5 to 5?",
    "VariErrNLI": "A text and a statement. Is the statement true, undetermined or false?",
}
LARGE_OWN: dict[str, Options] = {
    "MP": {"epochs": 2, "batch_size": 32},
    "CSC": {"epochs": 3, "batch_size": 32},
    "Paraphrase": {"epochs": 10, "batch_size": 16},
    "VariErrNLI": {"epochs": 8, "batch_size": 16},
}


def large_groups(dataset: str) -> list[Group]:
    """Adapters of an instruction-tuned decoder; the head reads its last token, or all."""
    knows = {**LARGE, **LARGE_OWN[dataset], "annotators": True}
    knows["instruction"] = INSTRUCTIONS[dataset]
    return [
        Group("transformer", 1, f"large.{name}", "soft", "epoch", {**knows, "pooling": name})
        for name in ("last", "mean")
    ]


def small_groups() -> list[Group]:
    """What two CPU cores train in minutes."""
    model = {"model": MINILM}
    return [
        Group("linear", 2, "small.linear"),
        Group("knowing:KnowingLinear", 1, "small.linear-annotators", "soft"),
        Group("encoder", 2, "small.encoder", options=model),
        Group("knowing:KnowingEncoder", 1, "small.encoder-annotators", "soft", options=model),
    ]


def read(lewidi: Path, dataset: str) -> Data:
    """Train and dev with labels, test without; of sentence pairs all with labels."""
    if dataset not in DATASETS:
        return Data(read_annotations(lewidi / f"{dataset}.csv"))
    return Data(read_labelled(lewidi, dataset), unlabelled={"test": read_test(lewidi, dataset)})


TASK = Task(
    runs={
        **{name: Run(name, groups_of(name)) for name in DATASETS},
        **{f"{name}-small": Run(name, small_groups()) for name in DATASETS},
        **{
            name: Run(name, pair_groups(name), keep_models=True)
            for name in ("inference", "similarity")
        },
        **{
            f"{name}-intermediate": Run(name, intermediate_groups(name), FOLDS)
            for name in SMALL_DATASETS
        },
        **{
            f"{name}-large": Run(
                name, large_groups(name), FOLDS if name in SMALL_DATASETS else None
            )
            for name in DATASETS
        },
        **{f"{name}-small-folds": Run(name, small_groups(), FOLDS) for name in SMALL_DATASETS},
    },
    read=read,
    decoder_datasets=("MP",),
)
