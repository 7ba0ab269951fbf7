"""EDO beside the baselines on real people: held-out fifths of the LeWiDi development sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edokit import read_annotations, read_predictions
from edokit.analysis.compare.method import make_method
from edokit.metrics import ce_items

COMMITTED = Path(__file__).resolve().parents[3] / "benchmarks" / "lewidi2023"
METHODS = ("uniform", "best-single", "top-5", "greedy", "linear-pool", "log-pool", "edo")
NOISE = 2.6
"""Standard errors: none of the comparisons of this file is beyond them by chance."""

pytestmark = [
    pytest.mark.lewidi,
    pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning"),
]


@pytest.mark.parametrize("pool", ["random-select", "mixed"])
@pytest.mark.parametrize("name", ["ArMIS", "ConvAbuse", "HS-Brexit", "MD-Agreement"])
def test_edo_has_the_lowest_held_out_ce_within_the_noise(
    name: str, pool: str, lewidi: Path
) -> None:
    dev = read_annotations(lewidi / name, split="dev")
    members = read_predictions(COMMITTED / name / pool / "dev.npz").align(dev.items)
    fold = np.random.default_rng(0).permutation(len(members)) % 5
    losses = {method: np.zeros(len(members)) for method in METHODS}
    for held_out in range(5):
        learn = np.flatnonzero(fold != held_out)
        judge = np.flatnonzero(fold == held_out)
        for method, loss in losses.items():
            fitted = make_method(method).fit(members.take(learn), dev.take(learn))
            p = fitted.predict_proba(members.take(judge))
            loss[judge] = ce_items(np.asarray(p), np.asarray(dev.soft_labels)[judge])
    for method, loss in losses.items():
        above = losses["edo"] - loss
        assert above.mean() <= NOISE * above.std() / len(above) ** 0.5 + 1e-12, method
