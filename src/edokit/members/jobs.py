"""One training job: it fits a member, or one fold of it, predicts, and saves both."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edokit._errors import EDOWarning, InputError, show_options
from edokit._io.atomic import whole_folder
from edokit._progress import Progress, no_progress
from edokit._types import Codes, Floats, Ints
from edokit.members.arrays import NamedArrays, write_arrays
from edokit.members.card import card_fields, write_card
from edokit.members.contexts import split_context
from edokit.members.layout import BY_ANNOTATOR, JOB_PREDICTIONS
from edokit.members.plan import TrainingJob, TrainingPlan
from edokit.members.recipe import Member, MemberData, predict_texts
from edokit.members.registry import find_recipe, make_member
from edokit.members.supervision import (
    ONCE,
    RANDOM_SELECT,
    SOFT,
    group_targets,
    majority_targets,
    random_select_targets,
    soft_targets,
)
from edokit.scales import Scale

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Attributes
    ----------
    job : TrainingJob
        The job.
    text : str
        The reason for a failure, with references to options (see `show_options`); else empty.
    notes : tuple of str
        The warnings that EDO gave; none of a failed job.
    """

    job: TrainingJob
    text: str = ""
    notes: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """The reason for a failure, with options as in Python; else empty."""
        return show_options(self.text)


def run_job(
    plan: TrainingPlan,
    job: TrainingJob,
    out: Path,
    device: str | None = None,
    progress: Progress = no_progress,
) -> Outcome:
    """Run a job into its folder under ``out``; a failure is an outcome, not an exception."""
    try:
        with whole_folder(out / job.folder) as folder:
            notes = fit_job(plan, job, folder, device, progress)
    except Exception as error:  # a failing model must not stop the other members
        if isinstance(error, InputError) and error.text:
            text = " ".join(error.text.split())
        else:
            reason = " ".join(str(error).split())
            text = f"{type(error).__name__}: {reason}".removesuffix(": ")
        return Outcome(job, text)
    return Outcome(job, notes=notes)


def fit_job(
    plan: TrainingPlan, job: TrainingJob, folder: Path, device: str | None, progress: Progress
) -> tuple[str, ...]:
    """Fit, predict and write the member into a folder; return EDO's warnings."""
    data = plan.data
    fit_data = member_data(plan, job)
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        member = make_member(job.recipe, len(data.classes), job.options, device)
        member.fit(fit_data, random_state=job.seed, progress=progress)
        arrays = predict_splits(member, plan, job)
    seconds = time.perf_counter() - started
    # Each message once; whether it is one of EDO's.
    is_ours: dict[str, bool] = {}
    for warning in caught:
        message = " ".join(str(warning.message).split())
        is_ours[message] = issubclass(warning.category, EDOWarning)
    if plan.options.keep_models:
        member.save(folder)
    write_arrays(folder / JOB_PREDICTIONS, **arrays)
    card = {
        **job.to_dict(),
        "fingerprint": plan.fingerprint(job),
        **card_fields(member, data.classes, data.scale),
        "items": len(fit_data.texts),
        "kept": plan.options.keep_models,
        "seconds": round(seconds, 3),
        "history": [dict(epoch) for epoch in member.history],
        "notes": list(is_ours),
    }
    write_card(card, folder)
    return tuple(message for message in is_ours if is_ours[message])


def predict_splits(member: Member, plan: TrainingPlan, job: TrainingJob) -> NamedArrays:
    """Predictions of a fitted member by split; by annotator too, if it knows annotators."""
    data = plan.data
    arrays: NamedArrays = {}
    for split, positions in plan.rows(job).predict.items():
        predicted = predict_texts(member, [data.texts[i] for i in positions])
        arrays[split] = _checked(predicted, data.scale)
        if member.known_annotators:
            pairs = plan.annotator_pairs(positions)
            texts = [data.texts[position] for position, _ in pairs]
            annotators = [[name] for _, name in pairs]
            predicted = predict_texts(member, texts, annotators)
            arrays[f"{split}{BY_ANNOTATOR}"] = _checked(predicted, data.scale)
    return arrays


def _checked(predicted: Floats, scale: Scale) -> Floats:
    """Probabilities [N, C] in the precision of their file; a model that diverged is an error."""
    invalid = ~scale.is_distribution(predicted)
    if invalid.any():
        n_texts = int(invalid.reshape(len(predicted), -1).any(axis=1).sum())
        raise InputError(
            f"the probabilities of {n_texts} of {len(predicted)} texts are not finite, not"
            " between 0 and 1 or do not sum to 1",
            "train with other options",
            code="invalid-probabilities",
        )
    return predicted.astype(np.float32)


def member_data(plan: TrainingPlan, job: TrainingJob) -> MemberData:
    """The data that a job trains on."""
    data = plan.data
    rows = plan.rows(job)
    train_rows = _train_rows(plan, job)
    annotations = data.annotations.take(train_rows)
    texts, context = split_context([data.texts[i] for i in train_rows])
    common = MemberData(
        texts=texts,
        targets=_targets(plan, job, annotations, data.hard_labels[train_rows]),
        context=context,
        annotations=annotations,
        scale=data.scale,
        classes=data.classes,
        corpus=data.texts,
    )
    if not len(rows.stop):
        return common
    dev_annotations = data.annotations.take(rows.stop)
    dev_texts, dev_context = split_context([data.texts[i] for i in rows.stop])
    return replace(
        common,
        dev_texts=dev_texts,
        dev_context=dev_context,
        dev_soft_labels=np.asarray(dev_annotations.soft_labels),
        dev_hard_labels=data.hard_labels[rows.stop],
        dev_annotations=dev_annotations,
    )


def _train_rows(plan: TrainingPlan, job: TrainingJob) -> Ints:
    """The positions of the items that a job trains on."""
    rows = plan.rows(job)
    train_rows = rows.train
    if find_recipe(job.recipe).capabilities.epochs:
        # The recipe stops early on these items, so it must not train on them.
        train_rows = np.setdiff1d(train_rows, rows.stop)
    annotators = plan.annotators_of(job)
    if annotators is not None:
        labelled_rows, _ = group_targets(plan.data.annotations, annotators)
        train_rows = train_rows[np.isin(train_rows, labelled_rows)]
        if not len(train_rows):
            who = f"annotator {job.annotator!r}"
            if job.level is not None:
                who = f"annotators with {job.attribute}={job.level}"
            raise InputError(
                f"{who} labelled none of the items to train on in this fold",
                "ask for fewer members or folds",
                code="too-few-items",
            )
    return train_rows


def _targets(
    plan: TrainingPlan, job: TrainingJob, annotations: Annotations, hard_labels: Codes
) -> Callable[[int], Floats]:
    """A function that returns the targets of an epoch."""
    if job.supervision == RANDOM_SELECT:
        if job.draw == ONCE:
            return lambda epoch: random_select_targets(annotations, job.seed)
        return lambda epoch: random_select_targets(annotations, job.seed, epoch)
    annotators = plan.annotators_of(job)
    if annotators is not None:
        _, targets = group_targets(annotations, annotators)
    elif job.supervision == SOFT:
        targets = soft_targets(annotations)
    else:
        targets = majority_targets(annotations, hard_labels)
    return lambda epoch: targets
