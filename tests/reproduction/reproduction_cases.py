"""A small LeWiDi folder of invented texts, and predictions of invented members."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from edokit import Predictions, write_predictions
from reproduction.lewidi2023.study import Study

SIZES = {"train": 60, "dev": 40, "test": 50}
ANNOTATORS = 5


def small_lewidi(folder: Path, datasets: tuple[str, ...] = ("HS-Brexit",)) -> Path:
    """The files of these datasets: mild texts, five annotators who often disagree."""
    for number, dataset in enumerate(datasets):
        rng = np.random.default_rng(number)
        for split, count in SIZES.items():
            items = {}
            for key in range(1, count + 1):
                heat = rng.random()
                votes = (rng.random(ANNOTATORS) < heat).astype(int)
                words = rng.choice(["loud", "rain", "bus", "tea", "late", "goal"], 6)
                tone = "rude" if heat > 0.5 else "kind"
                items[str(key)] = {
                    "text": f"{' '.join(words)} {tone} {split}{key}",
                    "annotation task": "invented",
                    "number of annotations": ANNOTATORS,
                    "annotations": ",".join(map(str, votes)),
                    "annotators": ",".join(f"Ann{a}" for a in range(ANNOTATORS)),
                    "lang": "en",
                    "hard_label": str(int(votes.sum() * 2 > ANNOTATORS)),
                    "soft_label": {"1": votes.mean(), "0": 1 - votes.mean()},
                    "split": split,
                    "other_info": {},
                }
            path = folder / dataset / f"{dataset}_{split}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(items), encoding="utf-8")
    return folder


def small_pool(
    predictions: Path,
    data: Path,
    name: str,
    members: int,
    *,
    dataset: str = "HS-Brexit",
    noise: float = 0.8,
    seed: int = 0,
    cross_fitted: bool = False,
    insight: float | None = None,
) -> None:
    """Write predictions of members that know people's shares up to noise on their odds.

    With ``insight`` also for pairs: it is the amount by which the odds of an annotator are shifted
    towards their label.
    """
    from edokit.datasets.lewidi import read_lewidi

    rng = np.random.default_rng(seed)
    people = read_lewidi(data / dataset)
    parts = {"dev": people.split("dev"), "test": people.split("test")}
    if cross_fitted:
        parts = {"fit": people.split("train", "dev"), "test": people.split("test")}
    for split, part in parts.items():
        share = np.clip(part.soft_labels[:, 1], 0.1, 0.9)
        odds = np.log(share / (1 - share))[:, None] + noise * rng.normal(size=(len(share), members))
        p = 1 / (1 + np.exp(-odds))
        table = Predictions.from_arrays(
            np.stack([1 - p, p], axis=2),
            items=part.items,
            members=[f"{name}-{k + 1:02}" for k in range(members)],
            classes=["0", "1"],
            groups=[name] * members,
            layout="NKC",
        )
        folder = predictions / dataset / name
        folder.mkdir(parents=True, exist_ok=True)
        write_predictions(table, folder / f"{split}.npz")
        if insight is None:
            continue
        pairs = part.pairs()
        row_of = {item: row for row, item in enumerate(part.items)}
        pair_odds = odds[[row_of[item] for item in pairs.items]]
        pair_odds = pair_odds + insight * (2 * pairs.soft_labels[:, 1:] - 1)
        p = np.concatenate([1 / (1 + np.exp(-pair_odds)), p])
        pairs_and_items = Predictions.from_arrays(
            np.stack([1 - p, p], axis=2),
            items=[*pairs.items, *part.items],
            members=table.members,
            classes=table.classes,
            groups=table.groups,
            annotators=[*pairs.rows.annotator_names, *[""] * len(part.items)],
            layout="NKC",
        )
        write_predictions(pairs_and_items, folder / f"{split}-pairs.npz")


def small_study(folder: Path, seeds: int = 2, trials: int = 4) -> Study:
    """HS-Brexit with random-select and soft members; nothing else."""
    data = small_lewidi(folder / "data")
    predictions = folder / "predictions"
    small_pool(predictions, data, "random-select", 12)
    small_pool(predictions, data, "soft-ce", 3, noise=0.4, seed=1)
    return Study(data, predictions, seeds, trials=trials)
