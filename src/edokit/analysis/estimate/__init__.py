"""`estimate`: the share of each class among many texts, from their answers and few labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from edokit._errors import local_path
from edokit._types import Floats
from edokit.analysis.estimate import text
from edokit.analysis.estimate.inputs import (
    bundle_answers,
    find_fit_items,
    find_panel,
    find_parts,
    held_out_answers,
    labels_of_fit,
    match_labels,
    read_all,
    read_labels,
)
from edokit.analysis.estimate.options import EstimateOptions
from edokit.analysis.estimate.parts import LabelledTexts, ShareEstimator
from edokit.analysis.estimate.result import Basis, Estimate
from edokit.analysis.estimate.statistics import FEWEST_LABELS
from edokit.analysis.fit_items import fit_columns
from edokit.bundle import Bundle
from edokit.ensemble.views import PanelLike
from edokit.fitdata.reading import AnnotationsLike, ReadOptions, separate_settings
from edokit.members.texts import Texts
from edokit.metrics.sample_mean import sample_mean

_NOT_RANDOM = 3.9
"""Standard errors by which the mean answer to labelled texts may differ from that to all."""
_SMALLEST_GAP = 0.02
"""A difference of mean answers that is not worth a note."""


def estimate(
    bundle: Bundle | str | Path,
    texts: str | Path | Texts | Sequence[object],
    options: EstimateOptions | None = None,
    *,
    labels: AnnotationsLike | None = None,
    panel: PanelLike | str | Path | None = None,
    split: str | Sequence[str] | None = None,
    **settings: object,
) -> Estimate:
    """Estimate the share of each class among many texts, from their answers and few labels.

    Prediction-powered inference: the labels correct the answers, and the answers make the labels
    count for more. The interval is never wider than that of the labels alone.

    Parameters
    ----------
    bundle : Bundle, str or Path
        What answers: a bundle, or the folder of one or of a run.
    texts : str, Path or sequence of str
        All texts; a file is read as by ``edo predict --texts``.
    options : EstimateOptions, default=None
        Parts of the texts, and the level of the intervals.
    labels : Annotations, table, str or Path, default=None
        Labels of some of these texts, drawn at random, matched by item id. Without them, people are
        assumed to judge the texts as they judged those of the fit with the same answers. For a
        panel this needs a run with the data of its fit; a bundle alone gives shares without
        intervals.
    panel : Panel, mapping, sequence of str, str or Path, default=None
        In whose eyes: a panel as for `Bundle.describe`, levels of attributes as one types them
        (``"race=Black"``), or the file of a panel. Only labels by its people count.
    split : str or sequence of str, default=None
        Only these splits of the labels.
    **settings
        Single fields of `EstimateOptions`, such as ``by="country"``, and further arguments of
        `read_annotations` for labels that are a file; ``columns`` also apply to the texts.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        If labelled items are not among the texts, or are too few.

    Examples
    --------
    >>> result = edokit.estimate("run", "all.csv", labels="some.csv")  # doctest: +SKIP
    >>> result.shares["offensive"]  # doctest: +SKIP
    {'share': 0.126, 'low': 0.108, 'high': 0.147}
    """
    changes, arguments = separate_settings(settings, EstimateOptions)
    options = replace(options or EstimateOptions(), **changes)
    folder = None
    if not isinstance(bundle, Bundle):
        folder = local_path(bundle)
        bundle = Bundle.load(folder)
    reading = ReadOptions.from_arguments(arguments, split=split)
    given_columns = reading.columns or {}
    columns = fit_columns(folder, texts, given_columns)
    label_columns = fit_columns(folder, labels, given_columns)
    reading = replace(reading, columns=label_columns or None)
    all_texts = read_all(texts, columns)
    parts = find_parts(texts, all_texts, options.by, columns)
    people = find_panel(panel, bundle)
    checked_labels = None
    if labels is not None:  # refused before anything is predicted
        checked_labels = read_labels(labels, reading, all_texts, bundle)
    answers = bundle_answers(bundle, all_texts, people)
    fit_items = find_fit_items(bundle, folder)
    is_of_fit = np.zeros(len(answers), dtype=bool)
    if fit_items is not None:
        answers, is_of_fit = held_out_answers(answers, all_texts, fit_items, bundle, people)
    basis: Basis = "labels"
    labelled: LabelledTexts | None
    if checked_labels is not None:
        labelled = match_labels(checked_labels, all_texts, answers, people)
        notes = [text.RANDOM_SAMPLE, *_sample_notes(labelled, answers, bundle)]
        if fit_items is None:
            notes.append(text.UNKNOWN_FIT)
        elif labelled.positions is not None and is_of_fit[labelled.positions].any():
            known = int(is_of_fit[labelled.positions].sum())
            notes.append(text.fit_texts_note(known, len(labelled.positions)))
    else:
        labelled = labels_of_fit(bundle, fit_items, people)
        basis = "fit" if labelled is not None else "answers"
        notes = [text.LIKE_THE_FIT if labelled is not None else text.ANSWERS_ALONE]
    estimator = ShareEstimator(
        answers, bundle.scale, bundle.classes, labelled, basis, options.level
    )
    slices = [estimator.shares(mask, options.by, value) for value, mask in parts.items()]
    sparse_slices = [str(part.value) for part in slices if part.basis != basis]
    if sparse_slices:
        notes.append(text.few_labels_note(str(options.by), sparse_slices, FEWEST_LABELS))
    panel_name = None
    if people is not None:
        panel_name = str(people)
    return Estimate(
        total=estimator.shares(np.ones(len(answers), dtype=bool)),
        slices=tuple(slices),
        classes=bundle.classes,
        scale=bundle.scale.kind,
        level=options.level,
        panel=panel_name,
        notes=tuple(notes),
    )


def _sample_notes(labelled: LabelledTexts, answers: Floats, bundle: Bundle) -> list[str]:
    """A note if the answers to labelled texts are unlike those to all, which chance rarely does."""
    worst = ""
    largest = _NOT_RANDOM
    for c, name in enumerate(bundle.classes):
        sample = sample_mean(labelled.answers[:, c], labelled.clusters)
        everything = float(answers[:, c].mean())
        deviation = abs(sample.mean - everything) / max(sample.variance, 1e-18) ** 0.5
        if deviation > largest and abs(sample.mean - everything) > _SMALLEST_GAP:
            largest = deviation
            worst = text.sample_note(name, sample.mean, everything)
    return [worst] if worst else []
