"""The predictions of finished jobs, side by side in one table per split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._types import Floats
from edokit.members.arrays import read_arrays
from edokit.members.layout import BY_ANNOTATOR, JOB_PREDICTIONS
from edokit.members.plan import TrainingJob, TrainingPlan
from edokit.members.resume import Cards
from edokit.members.supervision import PER_ANNOTATOR, SOFT
from edokit.members.training_data import FIT

if TYPE_CHECKING:
    from edokit.predictions.core import Predictions

# Details that add up over the folds of a member. So does the cost of a text, which is sent to the
# model of each fold.
_SUMMED = ("requests", "answers", "failures", "tokens_in", "tokens_out", "cost", "total_cost")


@dataclass(frozen=True, eq=False)
class RowPredictions:
    """Probabilities [N, C] of a member, and what each row is about.

    Attributes
    ----------
    positions : list of int
        The item of each row, as its position in the data.
    annotators : list of str or None
        The annotator of each row, in predictions by annotator; empty for the anonymous answer.
    probabilities : ndarray of shape (N, C)
    """

    positions: list[int]
    annotators: list[str] | None
    probabilities: Floats


def collect_predictions(
    plan: TrainingPlan, out: Path, cards: Cards, failed: Sequence[str] = ()
) -> dict[str, Predictions]:
    """Predictions of all members but the failed ones, by split.

    With folds, ``fit`` has the out-of-fold predictions, and other splits the mean over the folds.
    Names that end in ``-pairs`` are of members that know annotators: a row for each item and
    annotator, and an anonymous one for each item.
    """
    from edokit.predictions.core import Predictions

    jobs_of: dict[str, list[TrainingJob]] = {}
    for job in plan.jobs:
        if job.member not in failed:
            jobs_of.setdefault(job.member, []).append(job)
    by_split: dict[str, dict[str, RowPredictions]] = {}
    info = {}
    for member, jobs in jobs_of.items():
        for split, predicted in _member_predictions(plan, jobs, out).items():
            by_split.setdefault(split, {})[member] = predicted
        details = fold_details([cards[job.path].get("details") or {} for job in jobs])
        # Details of a member that later steps read, such as its supervision.
        info[member] = details | soft_supervision(jobs[0].supervision)
        # With this note, `edo fit` holds to the limit of such members, too (K ≤ min A_i).
        if jobs[0].supervision == PER_ANNOTATOR and not plan.options.ignore_annotator_limit:
            info[member]["supervision"] = PER_ANNOTATOR
    tables = {}
    for split, predictions in by_split.items():
        rows = next(iter(predictions.values()))
        probabilities = [predicted.probabilities for predicted in predictions.values()]
        tables[split] = Predictions.from_arrays(
            np.stack(probabilities, axis=1),
            items=[plan.data.items[position] for position in rows.positions],
            members=list(predictions),
            classes=plan.data.classes,
            groups=[jobs_of[member][0].group for member in predictions],
            annotators=rows.annotators,
            layout="NKC",
            scale=plan.data.scale,
            member_info={member: info[member] for member in predictions if info[member]},
        )
    return tables


def _member_predictions(
    plan: TrainingPlan, jobs: Sequence[TrainingJob], out: Path
) -> dict[str, RowPredictions]:
    """The predictions of a member by split: the rows of all folds, or the mean over folds."""
    folds = [_job_predictions(plan, job, out / job.folder) for job in jobs]
    predictions = {}
    for split in folds[0]:
        if not all(split in fold for fold in folds):
            continue
        parts = [fold[split] for fold in folds]
        if plan.folds is not None and split.removesuffix(BY_ANNOTATOR) == FIT:
            predictions[split] = _join_folds(parts)
        else:
            mean = np.mean([part.probabilities for part in parts], axis=0)
            predictions[split] = replace(parts[0], probabilities=mean)
    return predictions


def _join_folds(parts: Sequence[RowPredictions]) -> RowPredictions:
    """The rows of all folds in the order of the items."""
    positions = list(chain.from_iterable(part.positions for part in parts))
    order = np.argsort(positions, kind="stable")
    annotators = None
    if parts[0].annotators is not None:
        names = list(chain.from_iterable(part.annotators or [] for part in parts))
        annotators = [names[row] for row in order]
    probabilities = np.concatenate([part.probabilities for part in parts])
    return RowPredictions([positions[row] for row in order], annotators, probabilities[order])


def _job_predictions(
    plan: TrainingPlan, job: TrainingJob, folder: Path
) -> dict[str, RowPredictions]:
    """The predictions of a finished job by split."""
    splits = plan.rows(job).predict
    names = [*splits, *(f"{split}{BY_ANNOTATOR}" for split in splits)]
    arrays = read_arrays(folder / JOB_PREDICTIONS, names)
    predictions = {}
    for split, rows in splits.items():
        positions = rows.tolist()
        anonymous = arrays[split]
        predictions[split] = RowPredictions(positions, None, anonymous)
        by_annotator = f"{split}{BY_ANNOTATOR}"
        if by_annotator in arrays:
            pairs = plan.annotator_pairs(rows)
            # An anonymous row for each item follows the rows of the pairs.
            predictions[by_annotator] = RowPredictions(
                [position for position, _ in pairs] + positions,
                [annotator for _, annotator in pairs] + [""] * len(positions),
                np.concatenate([arrays[by_annotator], anonymous]),
            )
    return predictions


def soft_supervision(supervision: str | None) -> dict[str, str]:
    """The note in ``member_info`` that a member learned soft labels, which `compare` reads."""
    if supervision != SOFT:
        return {}
    return {"supervision": SOFT}


def fold_details(folds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The details that a member's folds share; counts and costs are sums over folds."""
    values_of: dict[str, list[Any]] = {}
    for details in folds:
        for key, value in details.items():
            if isinstance(value, str | int | float):
                values_of.setdefault(key, []).append(value)
    combined: dict[str, Any] = {}
    for key, values in values_of.items():
        if key in _SUMMED:
            combined[key] = sum(values)
        elif all(value == values[0] for value in values):
            combined[key] = values[0]
    return combined
