"""Small data and invented trials for the tests of the search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edokit import Annotations, Predictions, SearchSpace, write_predictions
from edokit._io.tables import write_table
from edokit._types import Floats, Ints
from edokit.analysis.search.result import SearchTrial
from edokit.fitdata.data import FitData

QUICK = SearchSpace.paper(epochs=1, batch_size=16, learning_rate=(1e-2, 1e-1))
"""The paper's space with one epoch of long steps."""


def arrays(
    items: int = 60, members: int = 5, classes: int = 2, seed: int = 0
) -> tuple[Floats, Floats, Ints]:
    """Predictions from nearly the truth to nearly noise [N, K, C], soft and hard labels."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(classes), size=items)
    logits = np.log(truth + 0.01)[:, None] + rng.normal(
        0, np.linspace(0.3, 2.0, members)[:, None], size=(items, members, classes)
    )
    P = np.exp(logits)
    P /= P.sum(axis=-1, keepdims=True)
    q = rng.multinomial(5, truth) / 5
    return P, q, q.argmax(axis=1)


def written(folder: Path) -> dict[str, Path | str]:
    """Write predictions and annotations of dev and test; the arguments of `search` for dev."""
    rng = np.random.default_rng(0)
    for name, seed in (("dev", 0), ("test", 1)):
        P, q, _ = arrays(items=50, seed=seed)
        items = [f"{name}-{i}" for i in range(50)]
        labels = (rng.random((50, 5)) < q[:, 1:]).astype(int)
        write_table(Annotations.from_matrix(labels, items=items).to_table(), folder / f"{name}.csv")
        predictions = Predictions.from_arrays(P, items=items, layout="NKC")
        write_predictions(predictions, folder / f"{name}.npz")
    return {
        "predictions": folder / "dev.npz",
        "annotations": str(folder / "dev.csv"),
    }


def data(**shape: int) -> FitData:
    """The arrays as the search takes them."""
    P, q, y = arrays(**shape)
    members = [f"m{k}" for k in range(P.shape[1])]
    return FitData.from_arrays(P, q, y, members=members)


def trial(
    f1: float, ce: float, md: float, *, number: int = 0, ce_se: float = 0.0, **other: Any
) -> SearchTrial:
    """A trial with these estimates."""
    space = SearchSpace.paper()
    searched = {
        "lambda_f1": 0.5,
        "lambda_ce": 0.5,
        "lambda_div": 0.5,
        "diversity": "preserve",
        "lambda_reg": 1e-3,
        "ce": "mean",
        "learning_rate": 1e-4,
        "temperature": 0.5,
        "temperature_decay": 0.1,
        **other.pop("searched", {}),
    }
    estimates = {"f1": f1, "ce": ce, "md": md, "ce_se": ce_se}
    return SearchTrial(
        number=number,
        generation=number // 10,
        slot=number % 10,
        searched=searched,
        configuration=space.fit_config(searched, items=60),
        judge="cross-fitted",
        estimates={"optimistic": estimates, "cross-fitted": estimates},
        **{"size": 3, "weights": (0.5, 0.3, 0.2), **other},
    )


def essence(trials: Sequence[SearchTrial]) -> list[tuple[object, ...]]:
    """Everything of trials but their numbers."""
    return [(t.generation, t.slot, dict(t.searched), t.estimates, t.weights) for t in trials]
