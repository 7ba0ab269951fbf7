"""Evenly split items move F1 with the order of classes, so it is shown with and without them."""

from __future__ import annotations

import numpy as np
import pytest

from edokit import Annotations, Predictions, compare, evaluate
from edokit.metrics import METRIC

LABELS = [["no", "no"], ["yes", "yes"], ["no", "yes"], ["no", "yes"]]
P = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6]])


@pytest.mark.filterwarnings("ignore:.*tied:edokit._errors.EDOWarning")
@pytest.mark.parametrize("classes", [["no", "yes"], ["yes", "no"]])
def test_f1_without_ties_does_not_depend_on_the_order_of_classes(classes: list[str]) -> None:
    annotations = Annotations.from_matrix(LABELS, classes=classes)
    p = P if classes[0] == "no" else P[:, ::-1]
    found = evaluate(p, annotations, samples=0)
    assert found.metrics["f1"] == (0.5 if classes[0] == "no" else 1.0)
    assert (found.ties, found.f1_without_ties) == (2, 1.0)
    assert found.to_dict()["f1_without_ties"] == 1.0


@pytest.mark.filterwarnings("ignore:.*tied:edokit._errors.EDOWarning")
def test_a_comparison_has_the_f1_of_every_method_without_ties() -> None:
    members = np.stack([P, P[::-1]], axis=1)
    samples: list[object] = []
    for items in ("abcd", "efgh"):
        naming = {"items": list(items), "classes": ["no", "yes"]}
        samples += [
            Predictions.from_arrays(members, layout="NKC", **naming),
            Annotations.from_matrix(LABELS, **naming),
        ]
    found = compare(*samples, methods=["best-single"], samples=0)
    facts = found.to_dict()
    assert facts["ties"] == 2
    assert facts["f1_without_ties"]["best-single"] == 1.0
    assert "2 test items are tied" in str(found.table().notes)


def test_micro_f1_is_called_accuracy_in_words() -> None:
    assert METRIC["f1"].title == "accuracy (micro-F1)"
