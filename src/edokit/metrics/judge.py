"""Named probabilities against people's answers: everything `edo evaluate` tells."""

from __future__ import annotations

from typing import Any

from edokit.annotations import Annotations, Ties
from edokit.metrics.compute import compute_metrics
from edokit.metrics.intervals import bootstrap
from edokit.metrics.scores import annotator_errors, entropy
from edokit.predictions import ModelFile, Predictions


def judge(
    model: ModelFile,
    annotations: Annotations,
    *,
    ties: Ties = "first",
    samples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """All metrics by name, with ``intervals`` [low, high], the best possible CE (``ce_floor``)
    and the error on each annotator's own labels (``annotators``)."""
    named = Predictions(model.probabilities[:, None], model.items, ("model",), model.classes)
    named = named.align(annotations.items).order_classes(annotations.classes)
    p, q = named.probabilities[:, 0], annotations.soft_labels
    y = annotations.hard_labels(ties=ties, random_state=seed)
    result: dict[str, Any] = {
        "items": len(q),
        **compute_metrics(p, q, y),
        "ce_floor": entropy(q),
        "level": level,
    }
    if samples:
        found = bootstrap(p, q, y, samples=samples, level=level, random_state=seed)
        result["intervals"] = {name: [i.low, i.high] for name, i in found.items()}
    errors = annotator_errors(
        p,
        annotations.item_codes,
        annotations.annotator_codes,
        annotations.labels,
    )
    result["annotators"] = [
        {
            "annotator": str(annotations.annotators[a]),
            "n": int(n),
            "ce": float(ce),
            "error": float(e),
        }
        for a, n, ce, e in zip(errors.annotator, errors.n, errors.ce, errors.error, strict=True)
    ]
    return result
