"""What to be careful about, as far as the numbers show it."""

from __future__ import annotations

import numpy as np

from edokit.ensemble import EDOEnsemble
from edokit.report.data import ROLES, Collected
from edokit.report.evaluation import Judged
from edokit.report.formatting import clean, count, listed, number, percent
from edokit.report.gained import standings
from edokit.report.items import filters

FEW_ITEMS = 200
FEW_ANNOTATORS = 3
RARE = 0.1
MISCALIBRATED = 0.05
ALIKE = 0.05


def cautions(found: Collected) -> list[str]:
    """Sentences, the gravest first; the last one holds for every ensemble."""
    said: list[str] = []
    changed = [ROLES.get(role, role).lower() for role, s in found.inputs.items() if s == "changed"]
    if changed:
        said.append(
            f"The {listed(changed)} changed since the run; what is shown here comes from the files"
            " as they are now."
        )
    if found.judged is not None:
        said += _about_items(found.judged)
    if found.ensemble is not None:
        said += _about_ensemble(found.ensemble)
    said.append(
        "An ensemble repeats the views of the annotators it learned from, biases included. It"
        " shows where people disagree; it does not replace them."
    )
    return said


def _about_items(judged: Judged) -> list[str]:
    said = []
    if judged.held_out is False:
        said.append(
            "The weights were learned from the very items shown here, so every figure is"
            " optimistic; judge on items that were held out (`edo compare`, or --predictions and"
            " --annotations of a test split)."
        )
    if judged.held_out is None and judged.people is not None:
        said.append(
            "Whether the ensemble learned from the items shown here is not recorded; if it did,"
            " every figure is optimistic."
        )
    if judged.people is None or judged.hard is None:
        return said
    items = len(judged.hard)
    if items < FEW_ITEMS:
        said.append(f"With {count(items, 'item')} the intervals are wide.")
    found = standings(judged)
    if not found["better"] and not found["worse"] and len(judged.predictions.members) > 1:
        said.append(
            "On these items learned weights can’t be told from the plain mean, which is simpler."
        )
    if float(judged.distances.max()) < ALIKE and len(judged.predictions.members) > 1:
        said.append(
            f"The members answer nearly alike (at most {number(float(judged.distances.max()), 3)}"
            " apart), so weights matter little."
        )
    ece = judged.metrics.get("ece")
    if ece is not None and ece > MISCALIBRATED:
        said.append(
            f"Probabilities are {number(ece, 3)} off people’s shares on average (ECE);"
            " `edo fit --recalibrate temperature` may help."
        )
    said += _about_people(judged)
    named = {group.key: int(group.mask.sum()) for group in filters(judged)}
    if named["sure"]:
        said.append(
            f"In {count(named['sure'], 'item')} ({percent(named['sure'] / items, 1)}) people"
            " disagree and the ensemble is sure."
        )
    if named["minority"]:
        said.append(
            f"In {count(named['minority'], 'item')} ({percent(named['minority'] / items, 1)}) a"
            " minority of at least a fifth gets less than half of its share."
        )
    return said


def _about_people(judged: Judged) -> list[str]:
    assert judged.people is not None
    assert judged.hard is not None
    said = []
    per_item = float(np.median(judged.people.annotations_per_item))
    if per_item < FEW_ANNOTATORS and judged.people.label_codes is not None:
        said.append(
            f"Half of the items have at most {count(int(per_item), 'annotation')}: shares of so"
            " few people are coarse."
        )
    held = np.bincount(judged.hard, minlength=len(judged.pooled.classes)) / len(judged.hard)
    present = np.flatnonzero(held > 0)
    if len(present) == 1:
        said.append(
            f"Every item has the same hard label, “{clean(judged.pooled.classes[present[0]], 40)}”:"
            " F1 says nothing here."
        )
    elif held[present].min() < RARE:
        rare = present[int(held[present].argmin())]
        said.append(
            f"The class “{clean(judged.pooled.classes[rare], 40)}” is the hard label of"
            f" {percent(float(held[rare]), 1)} of the items only; errors on it hardly show in the"
            " averages."
        )
    return said


def _about_ensemble(ensemble: EDOEnsemble) -> list[str]:
    said = []
    if len(ensemble.members_) == 1:
        said.append("There is a single member, so there was nothing to weigh.")
    certificate = ensemble.certificate_
    if certificate is not None and not certificate.global_optimum:
        said.append(f"The weights may not be the best there are: {certificate.reason}.")
    return said
