"""`estimate`: the share of each class among many texts, from their answers and few labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from edokit._errors import local_path
from edokit.analysis.estimate.estimator import LabelledTexts, ShareEstimator
from edokit.analysis.estimate.inputs import (
    bundle_answers,
    find_fit_items,
    find_panel,
    find_slices,
    held_out_answers,
    labels_of_fit,
    match_labels,
    read_all_texts,
    read_labels,
)
from edokit.analysis.estimate.options import EstimateOptions
from edokit.analysis.estimate.result import Basis, Estimate, SampleGap
from edokit.analysis.estimate.statistics import largest_gap
from edokit.analysis.fit_items import fit_columns
from edokit.bundle import Bundle
from edokit.ensemble.views import PanelLike
from edokit.fitdata.reading import AnnotationsLike, ReadOptions, separate_settings
from edokit.members.texts import Texts


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
        Slices of the texts, and the level of the intervals.
    labels : Annotations, table, str or Path, default=None
        Labels of some of these texts, drawn at random, matched by item id. Without them, people are
        assumed to judge the texts as they judged those of the fit with the same answers. For a
        panel this needs a run with the data of its fit; a bundle alone gives shares without
        intervals.
    panel : Panel, mapping, sequence of str, str or Path, default=None
        The people whose judgement is estimated, instead of everybody's: a panel as for
        `Bundle.describe`, levels of attributes such as ``"race=Black"``, or the file of a panel.
        Only labels by these people count.
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
    user_columns = reading.columns or {}
    text_columns = fit_columns(folder, texts, user_columns)
    label_columns = fit_columns(folder, labels, user_columns)
    reading = replace(reading, columns=label_columns or None)
    all_texts = read_all_texts(texts, text_columns)
    slices = find_slices(texts, all_texts, options.by, text_columns)
    resolved_panel = find_panel(panel, bundle)
    annotations = None
    if labels is not None:  # refused before anything is predicted
        annotations = read_labels(labels, reading, all_texts, bundle)
    answers = bundle_answers(bundle, all_texts, resolved_panel)
    fit_items = find_fit_items(bundle, folder)
    was_in_fit = np.zeros(len(answers), dtype=bool)
    if fit_items is not None:
        answers, was_in_fit = held_out_answers(
            answers, all_texts, fit_items, bundle, resolved_panel
        )

    labelled: LabelledTexts | None
    basis: Basis
    fit_texts: int | None = None
    sample_gap: SampleGap | None = None
    if annotations is not None:
        labelled = match_labels(annotations, all_texts, answers, resolved_panel)
        basis = "labels"
        gap = largest_gap(labelled.answers, labelled.clusters, answers)
        if gap is not None:
            sample_gap = SampleGap(bundle.classes[gap.column], gap.sample, gap.population)
        if fit_items is not None and labelled.positions is not None:
            fit_texts = int(was_in_fit[labelled.positions].sum())
    else:
        labelled = labels_of_fit(bundle, fit_items, resolved_panel)
        basis = "answers" if labelled is None else "fit"
    estimator = ShareEstimator(
        answers, bundle.scale, bundle.classes, labelled, basis, options.level
    )
    everything = np.ones(len(answers), dtype=bool)
    panel_name = None
    if resolved_panel is not None:
        panel_name = str(resolved_panel)
    return Estimate(
        total=estimator.shares(everything),
        slices=tuple(estimator.shares(mask, options.by, value) for value, mask in slices.items()),
        classes=bundle.classes,
        scale=bundle.scale.kind,
        level=options.level,
        panel=panel_name,
        fit_texts=fit_texts,
        sample_gap=sample_gap,
    )
