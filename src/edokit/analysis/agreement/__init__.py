"""`agreement`: coefficients of how much annotators agree beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edokit._errors import InputError, check_number, one_of, option
from edokit._types import Floats, Ints
from edokit.analysis.agreement.coefficients import (
    WEIGHT_KINDS,
    CoefficientEstimate,
    LabelPairs,
    PairKappas,
    WeightKind,
    class_weights,
    cohen_kappas,
    fleiss_kappa,
    gwet_ac,
    interval_or_unknown,
    item_agreement,
    krippendorff_alpha,
    mean_estimate,
    mean_kappa,
    observed_agreement,
)
from edokit.analysis.agreement.result import UNKNOWN, Agreement, AnnotatorKappa
from edokit.analysis.human_labels import HumanLabels
from edokit.annotations.core import Annotations
from edokit.datasets.item_groups import item_clusters
from edokit.metrics import Interval
from edokit.rows import sums
from edokit.scales import Scale

MOST_PAIRS = 10_000_000
"""With more pairs of labels, Cohen's kappa is left out: they would not fit into memory."""


def agreement(
    annotations: Annotations | str | Path,
    *,
    weights: WeightKind | None = None,
    min_shared: int = 10,
    level: float = 0.95,
) -> Agreement:
    """Measure how much annotators agree beyond chance.

    The coefficients are Cohen's and Fleiss' kappa, Gwet's AC1 and AC2 and Krippendorff's alpha,
    with intervals over items; near-duplicate texts and items of a group are kept together. Any
    annotation may be missing. The first label of each annotator for an item counts. For multi-label
    data, coefficients are means over the labels.

    Parameters
    ----------
    annotations : Annotations, str or Path
        Who labelled which item how; a path is read with `edokit.read_annotations`.
    weights : {"nominal", "linear", "quadratic"}, optional
        How much two different classes agree: not at all, or by their distance on an ordinal scale.
        By default quadratic on an ordinal scale, else nominal.
    min_shared : int, default=10
        Cohen's kappa is computed for pairs of annotators with at least this many items in common.
    level : float, default=0.95
        Level of the intervals.

    Returns
    -------
    Agreement

    Raises
    ------
    InputError
        If the annotations are empty, or the weights need an ordinal scale.

    Examples
    --------
    >>> from edokit import Annotations, agreement
    >>> labels = [["a", "a", "a"], ["b", "b", None], ["a", "b", "a"], ["b", "b", "b"]] * 5
    >>> result = agreement(Annotations.from_matrix(labels))
    >>> round(result.fleiss_kappa.estimate, 2), round(result.gwet_ac1.estimate, 2)
    (0.66, 0.68)
    >>> result.per_item[:3].round(2)
    array([1.  , 1.  , 0.33])
    """
    check_number("level", level, 0, 0.9999, above=True)
    check_number("min_shared", min_shared, 1, whole=True)
    if isinstance(annotations, str | Path):
        from edokit.datasets.read import read_annotations

        annotations = read_annotations(annotations)
    if not isinstance(annotations, Annotations) or not len(annotations):
        raise InputError(
            f"{option('annotations')} is empty",
            "pass Annotations, or the path of a file with at least one annotation",
            code="no-annotations",
        )
    kind = _weight_kind(weights, annotations.scale)
    labels = HumanLabels(annotations)
    per_item = np.full(len(annotations.rows), np.nan)
    if not labels.are_hard:
        reason = "the labels are probabilities; coefficients of agreement are for classes"
        return _undefined(kind, level, per_item, reason)
    if not labels.has_several.any():
        return _undefined(kind, level, per_item, "no item has labels of two annotators")
    clusters = item_clusters(annotations)
    tables = _count_tables(labels)
    class_agreement = _class_agreement(kind, labels.scale, tables[0].shape[1])
    by_table = [item_agreement(table, class_agreement) for table in tables]
    alphas = [krippendorff_alpha(table, class_agreement) for table in tables]
    alpha = interval_or_unknown(_mean(alphas), level, clusters)
    observed = [observed_agreement(table, class_agreement) for table in tables]
    fleiss = [fleiss_kappa(table, class_agreement) for table in tables]
    gwet = [gwet_ac(table, class_agreement) for table in tables]
    gwet_ac1, gwet_ac2 = _gwet_by_name(interval_or_unknown(_mean(gwet), level, clusters), kind)
    kappa, pairs, per_annotator, cohen_reason = _cohen(
        labels, class_agreement, min_shared, level, clusters
    )
    undefined_reason = None
    if alpha.estimate is None:
        undefined_reason = "all labels are the same, so agreement beyond chance is undefined"
        cohen_reason = undefined_reason
    return Agreement(
        weights=kind,
        level=level,
        observed=interval_or_unknown(_mean(observed), level, clusters),
        krippendorff_alpha=alpha,
        fleiss_kappa=interval_or_unknown(_mean(fleiss), level, clusters),
        cohen_kappa=kappa,
        gwet_ac1=gwet_ac1,
        gwet_ac2=gwet_ac2,
        pairs=pairs,
        per_annotator=per_annotator,
        per_item=np.mean(by_table, axis=0),
        alpha_by_label=_by_label(labels.scale, alphas),
        reason=undefined_reason,
        cohen_reason=cohen_reason,
    )


def _weight_kind(weights: WeightKind | None, scale: Scale) -> WeightKind:
    """The weights asked for, or those of the scale."""
    if weights is None:
        return "nominal" if scale.positions is None else "quadratic"
    one_of("weights", weights, WEIGHT_KINDS)
    if weights != "nominal" and scale.positions is None:
        raise InputError(
            f"{option('weights', weights)} needs classes with an order; these are {scale.kind}",
            f"declare the scale with {option('scale', 'ordinal')}, or use"
            f" {option('weights', 'nominal')}",
            code="unordered-scale",
        )
    return weights


def _gwet_by_name(
    coefficient: Interval, kind: WeightKind
) -> tuple[Interval | None, Interval | None]:
    """Gwet's coefficient as AC1, which has nominal weights, or as AC2; the other one is None."""
    if kind == "nominal":
        return coefficient, None
    return None, coefficient


def _undefined(kind: WeightKind, level: float, per_item: Floats, reason: str) -> Agreement:
    """Agreement of annotations for which no coefficient is defined."""
    gwet_ac1, gwet_ac2 = _gwet_by_name(UNKNOWN, kind)
    return Agreement(
        weights=kind,
        level=level,
        observed=UNKNOWN,
        krippendorff_alpha=UNKNOWN,
        fleiss_kappa=UNKNOWN,
        cohen_kappa=UNKNOWN,
        gwet_ac1=gwet_ac1,
        gwet_ac2=gwet_ac2,
        pairs=0,
        per_annotator=[],
        per_item=per_item,
        alpha_by_label=[],
        reason=reason,
        cohen_reason=reason,
    )


def _by_label(scale: Scale, alphas: Sequence[CoefficientEstimate | None]) -> list[float | None]:
    """Alpha of each label of multi-label data; empty for other scales."""
    if not scale.is_multi_label:
        return []
    return [None if alpha is None else alpha.value for alpha in alphas]


def _mean(estimates: Sequence[CoefficientEstimate | None]) -> CoefficientEstimate | None:
    """The mean of the estimates that are defined; None if none is."""
    return mean_estimate([estimate for estimate in estimates if estimate is not None])


def _count_tables(labels: HumanLabels) -> list[Floats]:
    """How many annotators gave each item each class [N, C]; for multi-label data, by label."""
    items = len(labels.counts)
    tables: list[Floats] = []
    for table in labels.scale.tables(labels.shares):
        tables.append(sums(table, labels.item_codes, items))
    return tables


def agreement_weights(scale: Scale, classes: int) -> Floats:
    """How much two classes agree with the default weights [C, C].

    For multi-label data, the two classes are "not chosen" and "chosen".
    """
    return _class_agreement(_weight_kind(None, scale), scale, classes)


def _class_agreement(kind: WeightKind, scale: Scale, classes: int) -> Floats:
    """How much two classes agree, from 0 to 1 [C, C]."""
    positions = np.arange(classes, dtype=np.float64)
    if scale.positions is not None:
        positions = np.array(scale.positions, dtype=np.float64)
    return class_weights(kind, positions)


def _cohen(
    labels: HumanLabels,
    class_agreement: Floats,
    min_shared: int,
    level: float,
    clusters: Ints | None,
) -> tuple[Interval, int, list[AnnotatorKappa], str | None]:
    """Cohen's kappa averaged over pairs of annotators.

    Returns the mean, the number of pairs, the mean of each annotator with the others, and, where
    it is undefined, the reason.
    """
    if float((labels.counts * (labels.counts - 1.0)).sum()) / 2 > MOST_PAIRS:
        reason = f"there are more than {MOST_PAIRS:,} pairs of labels, too many for Cohen's kappa"
        return UNKNOWN, 0, [], reason
    label_pairs = LabelPairs.from_labels(labels.item_codes, labels.annotator_codes, min_shared)
    if not len(label_pairs.shared):
        reason = f"no two annotators share {min_shared} items, as Cohen's kappa requires"
        return UNKNOWN, 0, [], reason
    by_table: list[PairKappas] = []
    for table in labels.scale.tables(labels.shares):
        codes = table.argmax(axis=1)
        first_codes = codes[label_pairs.first_labels]
        second_codes = codes[label_pairs.second_labels]
        by_table.append(
            cohen_kappas(
                first_codes,
                second_codes,
                label_pairs.annotator_pair,
                len(label_pairs.shared),
                class_agreement,
            )
        )
    item_codes = labels.item_codes[label_pairs.first_labels]

    def mean_of(annotator_pairs: Ints) -> Interval:
        estimates: list[CoefficientEstimate | None] = []
        for kappas in by_table:
            estimates.append(
                mean_kappa(kappas, label_pairs, annotator_pairs, item_codes, len(labels.counts))
            )
        return interval_or_unknown(_mean(estimates), level, clusters)

    per_annotator: list[AnnotatorKappa] = []
    for a, annotator_pairs in label_pairs.by_annotator().items():
        per_annotator.append(
            {
                "annotator": str(labels.annotations.annotators[a]),
                "others": len(annotator_pairs),
                "cohen_kappa": mean_of(annotator_pairs),
            }
        )
    everybody = mean_of(np.arange(len(label_pairs.shared)))
    return everybody, len(label_pairs.shared), per_annotator, None
