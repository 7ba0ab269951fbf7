"""The official scores: on made-up answers, and the reference rows of LeWiDi 2025 on dev."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edokit import InputError
from edokit.metrics.scorers import lewidi2023, lewidi2025_a, lewidi2025_b

# Labels, scale, and the reference points of dev: the training set's mean answer (task A), each
# annotator's most frequent answer (task B; for sets no label at all).
DATASETS: dict[str, tuple[list[str], Any, float, float]] = {
    "MP": (["0", "1"], "nominal", 0.5235, 0.3174),
    "CSC": ([str(k) for k in range(1, 7)], "ordinal", 1.1230, 0.2285),
    "Paraphrase": ([str(k) for k in range(-5, 6)], "ordinal", 2.7471, 0.3373),
    "VariErrNLI": (["contradiction", "entailment", "neutral"], "multi-label", 0.6529, 0.3456),
}


def published(folder: Path, dataset: str, split: str) -> list[dict[str, Any]]:
    text = (folder / dataset / f"{dataset}_{split}.json").read_text(encoding="utf-8")
    return list(json.loads(text).values())


def coded(item: dict[str, Any], labels: list[str]) -> list[tuple[str, np.ndarray]]:
    """Annotator and labels of each annotation."""
    return [
        (who.strip(), np.isin(labels, str(given).removesuffix(".0").split(",")))
        for who, given in item["annotations"].items()
    ]


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_reference_rows_of_lewidi_2025_come_out(dataset: str, lewidi2025: Path) -> None:
    labels, scale, task_a, task_b = DATASETS[dataset]
    train, dev = (
        [coded(item, labels) for item in published(lewidi2025, dataset, split)]
        for split in ("train", "dev")
    )
    soft = [
        np.array([np.mean([chosen for _, chosen in item], axis=0) for item in part])
        for part in (train, dev)
    ]
    constant = np.tile(soft[0].mean(axis=0), (len(dev), 1))
    assert lewidi2025_a(constant, soft[1], scale) == pytest.approx(task_a, abs=5e-5)

    usual: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for item in train:
        for who, chosen in item:
            usual[who][int(chosen.argmax())] += 1
    rows = [(n, who, chosen) for n, item in enumerate(dev) for who, chosen in item]
    items = [n for n, *_ in rows]
    if scale == "multi-label":
        given = np.array([chosen for *_, chosen in rows])
        found = lewidi2025_b(items, np.zeros_like(given), given, scale)
    else:
        codes = [int(chosen.argmax()) for *_, chosen in rows]
        predicted = [usual[who].most_common(1)[0][0] for _, who, _ in rows]
        found = lewidi2025_b(items, predicted, codes, scale, len(labels))
    assert found == pytest.approx(task_b, abs=5e-5)


def test_scores_of_2023_are_f1_and_ce() -> None:
    found = lewidi2023([[0.8, 0.2], [0.4, 0.6]], [[1, 0], [0.5, 0.5]], [0, 0])
    assert found == {"f1": 0.5, "ce": pytest.approx(0.4684, abs=1e-4)}


def test_items_count_the_same_whatever_their_annotators() -> None:
    assert lewidi2025_b([7, 7, 7, 3], [1, 1, 1, 1], [0, 0, 0, 1], "nominal") == 0.5
    sets = [[True, False, False], [True, True, False]]
    assert lewidi2025_b([0, 1], sets, np.zeros((2, 3), bool), "multi-label") == pytest.approx(0.5)


def test_what_a_score_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="number of points"):
        lewidi2025_b([0], [1], [2], "ordinal")
    with pytest.raises(InputError, match="2 annotations have predicted answers"):
        lewidi2025_b([0, 1], [1], [2], "nominal")
    with pytest.raises(InputError, match="scale"):
        lewidi2025_a([[1, 0]], [[1, 0]], "cardinal")  # type: ignore[arg-type]
