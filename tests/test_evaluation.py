"""`edokit.evaluate`: probabilities in any form against annotations in any form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import edokit
from edokit import Annotations, metrics
from edokit._errors import InputError
from edokit._io.tables import write_table

LABELS = Annotations.from_matrix(
    [["no", "yes", "yes"], ["no", "no", "no"], ["yes", "yes", None]], items=["a", "b", "c"]
)
P = np.array([[0.4, 0.6], [0.9, 0.1], [0.2, 0.8]])
TABLE = {"item": ["c", "a", "b"], "p_yes": P[[2, 0, 1], 1], "p_no": P[[2, 0, 1], 0]}


def test_the_form_of_the_probabilities_does_not_matter(tmp_path: Path) -> None:
    frame = pd.DataFrame(TABLE)
    frame.to_csv(tmp_path / "p.csv", index=False)
    wanted = metrics.compute_metrics(P, LABELS.soft_labels, LABELS.hard_labels())
    forms: list[Any] = [P, P.tolist(), TABLE, frame, frame.set_index("item"), pa.table(TABLE)]
    for form in [*forms, tmp_path / "p.csv", str(tmp_path / "p.csv")]:
        assert edokit.evaluate(form, LABELS, samples=0).metrics == pytest.approx(wanted)


def test_annotations_may_be_a_file_or_a_table(tmp_path: Path) -> None:
    write_table(LABELS.to_table(), tmp_path / "labels.csv")
    wanted = edokit.evaluate(P, LABELS, samples=0).to_dict()
    for form in (tmp_path / "labels.csv", LABELS.to_table(), LABELS.to_table().to_pandas()):
        assert edokit.evaluate(P, form, samples=0).to_dict() == wanted


def test_intervals_floor_and_annotators_come_with_it() -> None:
    found = edokit.evaluate(P, LABELS, samples=50, level=0.9, random_state=3)
    q, y = LABELS.soft_labels, LABELS.hard_labels()
    assert found.intervals == metrics.bootstrap(P, q, y, samples=50, level=0.9, random_state=3)
    assert found.ce_floor == metrics.entropy(LABELS.soft_labels)
    assert [one["n"] for one in found.annotators] == [3, 3, 2]
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["intervals"]["ce"] == [found.intervals["ce"].low, found.intervals["ce"].high]
    assert {"items", "level", "ce_floor", "annotators", *metrics.METRICS} <= plain.keys()
    assert "intervals" not in edokit.evaluate(P, LABELS, samples=0).to_dict()


@pytest.mark.parametrize(
    ("probabilities", "options", "words"),
    [
        (P[:2], {}, r"\(2, 2\).* 3 items and 2 classes"),
        ({**TABLE, "item": ["c", "a", "x"]}, {}, "1 of 3 is missing: 'b'"),
        (P * 1.1, {}, "'a'"),
        (P, {"samples": 20}, "20 .* at least 50"),
    ],
)
def test_what_does_not_fit_is_refused(
    probabilities: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        edokit.evaluate(probabilities, LABELS, **options)


def test_sums_can_be_set_right() -> None:
    wanted = edokit.evaluate(P, LABELS, samples=0).metrics
    assert edokit.evaluate(P * 1.1, LABELS, samples=0, invalid="normalize").metrics == (
        pytest.approx(wanted)
    )
