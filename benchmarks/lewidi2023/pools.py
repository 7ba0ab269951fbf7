"""The pools of the LeWiDi 2023 benchmark: which members, with which options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tasks import Data, Run, Task

from edokit.datasets.lewidi import read_lewidi
from edokit.members.groups import Group

Options = dict[str, Any]

MODEL = "sentence-transformers/all-mpnet-base-v2"
# Every epoch is trained and the best one on dev (by CE) is kept.
COMMON: Options = {
    "model": MODEL,
    "patience": 0,
    "eval_batch_size": 128,
    "max_length": 256,
}
HELPED: Options = {"adversarial": 1.0, "layer_decay": 0.9}
PLAIN: Options = {"adversarial": 0.0, "layer_decay": 1.0}
KNOWS: Options = {"annotators": True, "head_learning_rate": 1e-4}
DATASETS: dict[str, Options] = {
    "HS-Brexit": {"epochs": 14, "learning_rate": 4e-5, "batch_size": 16, **HELPED},
    "ConvAbuse": {
        "epochs": 6,
        "learning_rate": 4e-5,
        "batch_size": 16,
        "pooling": "mean+target",
        "speaker_tags": True,
        **HELPED,
    },
    "MD-Agreement": {"epochs": 4, "learning_rate": 2.5e-5, "batch_size": 32, **HELPED},
    "ArMIS": {"epochs": 12, "learning_rate": 4e-5, "batch_size": 16, **HELPED},
}
"""What differs between the datasets."""

# One annotator's items may be few: as many steps then need more epochs. At most ten annotators,
# as many as the largest ensemble has members.
PER_ANNOTATOR = {
    "HS-Brexit": (6, 14),
    "ConvAbuse": (8, 10),
    "MD-Agreement": (10, 14),
    "ArMIS": (3, 12),
}
"""Members and epochs of the pool per-annotator."""

DECODER_LEARNS = {"HS-Brexit": (8, 8e-5), "ConvAbuse": (5, 6e-5), "MD-Agreement": (3, 6e-5)}
"""Epochs and learning rate of the pool decoder."""


def groups_of(dataset: str) -> list[Group]:
    """All groups of a dataset."""
    people, epochs = PER_ANNOTATOR[dataset]

    def group(
        name: str,
        members: int,
        *,
        supervision: str = "random-select",
        draw: str = "epoch",
        **options: Any,
    ) -> Group:
        return Group(
            "transformer",
            members,
            name,
            supervision,
            draw,
            {**COMMON, **DATASETS[dataset], **options},
        )

    soft = {"supervision": "soft"}
    if dataset == "ArMIS":
        return _armis(group)
    passes, rate = DECODER_LEARNS[dataset]
    decoder = {"model": "gemma", "adversarial": 0.0, "epochs": passes}
    return [
        group("random-select", 20),
        group("per-annotator", people, supervision="per-annotator", epochs=epochs),
        group("soft-ce", 20, **soft),
        group("soft-md", 5, loss="md", **soft),
        group("mixed.soft-strong", 3, **soft, adversarial=2.0),
        group("mixed.soft-long", 3, **soft, epochs=round(1.5 * DATASETS[dataset]["epochs"])),
        group("mixed.annotator-heads", 4, annotators=True),
        group("mixed.first-token", 3, **soft, pooling="first"),
        group("mixed.plain-slow", 2, **PLAIN, learning_rate=1e-5),
        group("mixed.once", 2, draw="once"),
        group("mixed.majority", 2, supervision="majority"),
        # On a CPU, in seconds to minutes.
        Group("linear", 3, "mixed.linear"),
        Group("linear", 2, "mixed.linear-soft", "soft"),
        # Gemma 3 270M (gemma.py).
        group("decoder.soft", 5, **soft, **decoder, learning_rate=rate),
        group("decoder.slow", 4, **soft, **decoder, learning_rate=rate / 2),
        group("decoder.drawn", 3, **decoder, learning_rate=rate),
        group("decoder.last", 2, **soft, **decoder, learning_rate=rate / 2, pooling="last"),
        # They learn annotators.
        group("annotators.soft", 3, **soft, **KNOWS),
        group("annotators.drawn", 2, **KNOWS),
    ]


def _armis(group: Callable[..., Group]) -> list[Group]:
    """The groups of ArMIS, for which no Arabic encoder was available.

    They are CPU recipes, and MPNet (which spells Arabic letter by letter) where only a network can
    learn by the loss of a baseline. The pool random-select is trained by `edo train --cross-fit`
    (README).
    """
    soft = {"supervision": "soft"}
    forest = "sklearn.ensemble.ExtraTreesClassifier(n_estimators=500, min_samples_leaf=3)"
    return [
        Group("linear", 3, "per-annotator", "per-annotator"),
        group("soft-ce", 5, **soft),
        group("soft-md", 5, loss="md", **soft),
        group("mixed.annotator-heads", 3, annotators=True),
        Group("linear", 6, "mixed.linear"),
        Group("linear", 2, "mixed.linear-soft", "soft"),
        Group("sklearn", 3, "mixed.forest", options={"estimator": forest}),
    ]


DECODER: Options = {
    "model": "gemma",
    "epochs": 8,
    "patience": 0,
    "eval_batch_size": 128,
    "max_length": 128,
    "batch_size": 16,
    "layer_decay": 0.9,
    "learning_rate": 8e-5,
}
"""Of the members of ArMIS."""


def decoder_groups() -> list[Group]:
    """Members of Gemma 3 270M (gemma.py); learning rates were chosen by held-out folds."""

    def group(name: str, members: int, supervision: str = "soft", **options: Any) -> Group:
        decoder_options = {**DECODER, **options}
        return Group("transformer", members, f"gemma.{name}", supervision, "epoch", decoder_options)

    return [
        group("soft", 6),
        group("heads", 5, "random-select", annotators=True),
        group("both-ways", 5, model="gemma-bi"),
        group("drawn", 4, "random-select"),
        group("slow", 4, learning_rate=4e-5),
        group("last", 4, learning_rate=5e-5, pooling="last"),
        group("fast", 3, learning_rate=1.5e-4),
    ]


def knowing_groups() -> list[Group]:
    """Members for ArMIS that learn annotators: a decoder that has read Arabic, and TF-IDF."""
    common = {**DECODER, **KNOWS, "model": "gemma-bi"}

    def group(name: str, members: int, supervision: str, **options: Any) -> Group:
        pool_options = {**common, **options}
        return Group(
            "transformer", members, f"annotators.{name}", supervision, "epoch", pool_options
        )

    return [
        group("soft", 2, "soft"),
        group("drawn", 2, "random-select"),
        Group("knowing:KnowingLinear", 1, "annotators.linear", "soft"),
    ]


def read(lewidi: Path, dataset: str) -> Data:
    """A dataset; the conversations of ConvAbuse become (utterance, context)."""
    return Data(read_lewidi(lewidi / dataset, user_first=True))


TASK = Task(
    runs={
        **{dataset: Run(dataset, groups_of(dataset)) for dataset in DATASETS},
        # By a decoder, cross-fitted; armis_pool.py joins its members to others.
        "ArMIS-gemma": Run(
            "ArMIS", decoder_groups(), 5, manifest="cross-fitted/gemma-manifest.json"
        ),
        "ArMIS-annotators": Run("ArMIS", knowing_groups(), 5),
    },
    read=read,
    decoder_datasets=tuple(DATASETS),
)
