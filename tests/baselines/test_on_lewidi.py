"""EDO beside the baselines on real people: the LeWiDi answers and the committed predictions."""

from __future__ import annotations

from pathlib import Path

import pytest

from edokit.baselines import compare
from edokit.datasets import read_annotations
from edokit.predictions import read_predictions

COMMITTED = Path(__file__).resolve().parents[2] / "benchmarks" / "lewidi2023"
OURS = "edo"
METHODS = ("best-single", "top-5", "greedy", "linear-pool", "log-pool", "edo-paper", OURS)

pytestmark = [
    pytest.mark.lewidi,
    pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning"),
]


@pytest.mark.parametrize("pool", ["random-select", "mixed"])
@pytest.mark.parametrize("name", ["ArMIS", "ConvAbuse", "HS-Brexit", "MD-Agreement"])
def test_edo_has_the_lowest_ce_within_the_noise(name: str, pool: str, lewidi: Path) -> None:
    samples = [
        (
            read_predictions(COMMITTED / name / pool / f"{split}.npz"),
            read_annotations(lewidi / name, split=split),
        )
        for split in ("dev", "test")
    ]
    found = compare(*samples[0], *samples[1], methods=METHODS, samples=300)
    assert found[OURS].within_noise, found.table().markdown()
