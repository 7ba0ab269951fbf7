"""Write what PyEvALL computes as ICM-Soft: tests/metrics/icm_reference.json.

    pip install PyEvALL==0.2.11
    python tools/icm_reference.py

It pins old versions of numpy and pandas, so the tests do not depend on it (`pip install --no-deps`
installs it beside newer ones).
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
from pyevall.evaluation import PyEvALLEvaluation
from pyevall.metrics.metricfactory import MetricFactory
from pyevall.utils.utils import PyEvALLUtils

PAGE = Path(__file__).resolve().parents[1] / "tests/metrics/icm_reference.json"


def records(table: np.ndarray) -> list[dict[str, object]]:
    names = "abcdef"
    listed = []
    for number, row in enumerate(table.tolist()):
        value = dict(zip(names, row, strict=False))
        listed.append({"test_case": "edo", "id": str(number), "value": value})
    return listed


def icm_soft(p: np.ndarray, q: np.ndarray) -> float:
    """ICM-Soft of predictions p and soft labels q [N, C]."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, table in (("p", p), ("q", q)):
            path = Path(folder) / f"{name}.json"
            path.write_text(json.dumps(records(table)))
            paths.append(str(path))
        report = PyEvALLEvaluation().evaluate(
            *paths,
            [MetricFactory.ICMSoft.value],
            **{PyEvALLUtils.PARAM_REPORT: PyEvALLUtils.PARAM_OPTION_REPORT_EMBEDDED},
        )
        metric = report.report["metrics"]["ICMSoft"]
        return float(metric["results"]["test_cases"][0]["average"])


def main() -> None:
    tables = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        classes = int(rng.integers(2, 5))
        items = int(rng.integers(5, 40))
        is_multi_label = seed % 3 == 2
        if is_multi_label:
            q = rng.integers(0, 6, size=(items, classes)) / 5
            p = rng.random((items, classes)).round(4)
        else:
            shares = rng.dirichlet(np.ones(classes), size=items)
            q = np.array([rng.multinomial(5, row) for row in shares]) / 5
            p = rng.dirichlet(np.ones(classes), size=items)
        table = {"multi_label": is_multi_label, "p": p.tolist(), "q": q.tolist()}
        tables.append({**table, "icm_soft": icm_soft(p, q)})
    PAGE.write_text(json.dumps(tables) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
