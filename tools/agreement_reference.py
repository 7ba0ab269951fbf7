"""Write what other packages say of ten tables: tests/analysis/agreement/reference.json.

    pip install agreement==0.1.2 irrCAC==0.4.4 krippendorff==0.9.0 statsmodels==0.15.0 scikit-learn
    python tools/agreement_reference.py

irrCAC asks for one old version of scipy, so that none of them is a dependency of the tests
(`pip install --no-deps` takes it with a newer one). The tests read the file; every coefficient has
two sources that share no code.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd
from agreement.metrics import gwets_gamma, krippendorffs_alpha, scotts_pi
from agreement.utils.kernels import identity_kernel, linear_kernel, quadratic_kernel
from irrCAC.raw import CAC
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa

PAGE = Path(__file__).resolve().parents[1] / "tests/analysis/agreement/reference.json"
TABLES = 10
KERNELS = {"nominal": identity_kernel, "linear": linear_kernel, "quadratic": quadratic_kernel}
IRRCAC_WEIGHTS = {"nominal": "identity", "linear": "linear", "quadratic": "quadratic"}
STATSMODELS_WEIGHTS = {"nominal": None, "linear": "linear", "quadratic": "quadratic"}
SKLEARN_WEIGHTS = {"nominal": None, "linear": "linear", "quadratic": "quadratic"}
KRIPPENDORFF_LEVELS = {"nominal": "nominal", "quadratic": "interval"}


def make_table(seed: int) -> np.ndarray:
    """Labels [N, A] from 0 to C - 1, NaN for a gap; every item has two labels or more."""
    rng = np.random.default_rng(seed)
    items = int(rng.integers(12, 60))
    annotators = int(rng.integers(2, 6))
    classes = int(rng.integers(2, 6))
    skew = rng.dirichlet(np.full(classes, 0.7))
    truth = rng.choice(classes, size=(items, 1), p=skew)
    chance = rng.choice(classes, size=(items, annotators), p=skew)
    labels = np.where(rng.random((items, annotators)) < 0.5, truth, chance).astype(float)
    labels[:classes] = np.arange(classes)[:, None]  # every class occurs
    if seed % 2:
        gaps = rng.random(labels.shape) < 0.25
        gaps[:, :2] = False
        labels[gaps] = np.nan
    return labels


def counts_of(labels: np.ndarray) -> np.ndarray:
    classes = int(np.nanmax(labels)) + 1
    return np.stack([(labels == code).sum(axis=1) for code in range(classes)], axis=1)


def mean_over_pairs(labels: np.ndarray, kappa: Callable[[np.ndarray, np.ndarray], float]) -> float:
    """The mean of a function of the labels of two annotators on the items that both labelled."""
    values = []
    for a, b in combinations(range(labels.shape[1]), 2):
        has_both = ~np.isnan(labels[:, a]) & ~np.isnan(labels[:, b])
        values.append(kappa(labels[has_both, a].astype(int), labels[has_both, b].astype(int)))
    return float(np.mean(values))


def references(labels: np.ndarray, weights: str) -> dict[str, dict[str, float]]:
    """Each coefficient by source."""
    counts = counts_of(labels)
    classes = counts.shape[1]

    def by_sklearn(a: np.ndarray, b: np.ndarray) -> float:
        return cohen_kappa_score(
            a, b, labels=list(range(classes)), weights=SKLEARN_WEIGHTS[weights]
        )

    def by_statsmodels(a: np.ndarray, b: np.ndarray) -> float:
        table = np.zeros((classes, classes))
        np.add.at(table, (a, b), 1)
        return cohens_kappa(table, wt=STATSMODELS_WEIGHTS[weights], return_results=False)

    raw = CAC(
        pd.DataFrame(labels),
        weights=IRRCAC_WEIGHTS[weights],
        categories=[float(code) for code in range(classes)],  # else it counts gaps as a class
        digits=12,
    )
    kernel = KERNELS[weights]
    reference = {
        "krippendorff_alpha": {
            "irrCAC": raw.krippendorff()["est"]["coefficient_value"],
            "agreement": krippendorffs_alpha(counts, kernel),
        },
        "fleiss_kappa": {
            "irrCAC": raw.fleiss()["est"]["coefficient_value"],
            "agreement": scotts_pi(counts, kernel),
        },
        "gwet_ac": {
            "irrCAC": raw.gwet()["est"]["coefficient_value"],
            "agreement": gwets_gamma(counts, kernel),
        },
        "cohen_kappa": {
            "scikit-learn": mean_over_pairs(labels, by_sklearn),
            "statsmodels": mean_over_pairs(labels, by_statsmodels),
        },
    }
    if weights in KRIPPENDORFF_LEVELS:
        reference["krippendorff_alpha"]["krippendorff"] = krippendorff.alpha(
            reliability_data=labels.T, level_of_measurement=KRIPPENDORFF_LEVELS[weights]
        )
    if weights == "nominal" and not np.isnan(labels).any():
        reference["fleiss_kappa"]["statsmodels"] = fleiss_kappa(counts, method="fleiss")
    floats = {}
    for name, sources in reference.items():
        floats[name] = {source: float(value) for source, value in sources.items()}
    return floats


def code_or_none(label: float) -> int | None:
    """A class code; None where there is no label."""
    if np.isnan(label):
        return None
    return int(label)


def main() -> None:
    tables = []
    for seed in range(TABLES):
        labels = make_table(seed)
        table = {"labels": [list(map(code_or_none, row)) for row in labels]}
        for kind in KERNELS:
            table[kind] = references(labels, kind)
        tables.append(table)
    PAGE.write_text(json.dumps(tables) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
