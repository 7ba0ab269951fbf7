"""`audit`: is a jury several judges or one, and can it replace annotators?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edokit._errors import InputError, option
from edokit._types import Bools, Floats, Ints
from edokit.analysis.agreement import agreement
from edokit.analysis.audit.confusion import confusion_rows, judge_rows
from edokit.analysis.audit.options import AuditOptions
from edokit.analysis.audit.replacement import AlternativeAnnotatorTest
from edokit.analysis.audit.result import (
    ALL,
    CONSTANT,
    ENSEMBLE,
    PASS_RATE,
    UNIFORM,
    AnnotatorRow,
    Audit,
    CandidateRow,
    ConfusionRow,
    JudgeRow,
    MemberRow,
    StratumRow,
    Verdict,
)
from edokit.analysis.audit.statistics import (
    ROUNDING,
    DroppedMember,
    JuryErrors,
    agreements,
    dropped_members,
    effective_judges,
    mean_correlation,
    most_judges,
)
from edokit.analysis.human_labels import HumanLabels, match_jury
from edokit.analysis.scores.slices import FEWEST_ITEMS, agreement_strata
from edokit.datasets.item_groups import item_clusters
from edokit.fitdata.inputs import load_annotations, load_predictions
from edokit.fitdata.reading import (
    AnnotationsLike,
    PredictionsLike,
    ReadOptions,
    separate_settings,
)
from edokit.item_array import Order
from edokit.metrics import Interval, headline_metric
from edokit.metrics.mean_intervals import UnitDeviations, difference_ends
from edokit.metrics.resampling import Resampling
from edokit.predictions.core import Predictions

if TYPE_CHECKING:
    from edokit.ensemble.estimator import EDOEnsemble

# A member is free to drop if the loss of the uniform mean grows by at most this share without it:
# the upper end of the interval counts.
_FREE_GROWTH = 0.01


def audit(
    predictions: PredictionsLike,
    annotations: AnnotationsLike,
    options: AuditOptions | None = None,
    *,
    ensemble: EDOEnsemble | str | Path | None = None,
    split: str | Sequence[str] | None = None,
    order: Order | None = None,
    **settings: object,
) -> Audit:
    """Audit a jury: whether it is several judges or one, and can replace annotators.

    Errors are measured against the distribution of the annotators' answers. The noise due to few
    annotators is estimated from how those of an item differ, and subtracted.

    Parameters
    ----------
    predictions : Predictions, array of shape (N, K, C), str or Path
        The members' answers.
    annotations : Annotations, table, str or Path
        Annotations of the same items, of which some have two annotators or more.
    options : AuditOptions, default=None
        Tests and confidence intervals of the audit.
    ensemble : EDOEnsemble, str or Path, default=None
        One more candidate; it should not have been fitted on these items.
    split : str or sequence of str, default=None
        Only these splits of the annotations.
    order : {"annotations"}, default=None
        If only the predictions or only the annotations have item ids, they are refused, unless this
        declares that the rows of both are in the same order.
    **settings
        Single fields of `AuditOptions`, such as ``replace=True``, and further arguments of
        `read_annotations` for annotations that are files.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        If no item has two annotators, there is one member and no ``replace``, no annotator shares
        enough items, or items and classes do not match.

    Examples
    --------
    >>> import edokit
    >>> simulation = edokit.simulate("two-camps", random_state=0, items=(1, 80, 1))
    >>> people = simulation.annotations.split("dev")
    >>> truth = simulation.truth[simulation.rows("dev")]
    >>> jury = {"plain": 0.4 * truth + 0.3, "copy": 0.4 * truth + 0.3}
    >>> names = {"items": people.items, "classes": people.classes}
    >>> predictions = edokit.Predictions.from_arrays(jury, **names)
    >>> audit = edokit.audit(predictions, people)
    >>> round(audit.judges.estimate, 2), round(audit.correlations["plain"]["copy"], 2)
    (1.0, 1.0)
    """
    changes, arguments = separate_settings(settings, AuditOptions)
    options = replace(options or AuditOptions(), **changes)
    reading = ReadOptions.from_arguments(arguments, split=split, order=order)
    labelled = load_annotations(annotations, reading).annotations
    jury, labelled = match_jury(load_predictions(predictions, reading, labelled), labelled)
    for name in (UNIFORM, ENSEMBLE, CONSTANT):
        if name in jury.members:
            raise InputError(
                f"a member is called {name!r}, as is one of the answers that it is compared with",
                "rename the member",
                code="reserved-name",
            )
    labels = HumanLabels(labelled)
    if not labels.has_several.any():
        raise InputError(
            "no item has labels of two annotators, so there is nothing to compare a jury with",
            "have at least 50 items labelled by two annotators or more",
            code="too-few-labels",
        )
    if len(jury.members) < 2 and not options.replace:
        raise InputError(
            f"a jury of one ({jury.members[0]!r}) is one judge",
            f"give the predictions of several members (`edo predictions join`), or ask with"
            f" {option('replace')} whether it can replace an annotator",
            code="too-few-members",
        )
    clusters = item_clusters(labelled)
    judges = None
    judges_limit = None
    correlation = None
    correlations: dict[str, dict[str, float | None]] = {}
    members: list[MemberRow] = []
    if len(jury.members) > 1:
        P = np.asarray(jury.probabilities, dtype=np.float64)
        errors = JuryErrors.from_predictions(P, labels)
        selected_clusters = _select_clusters(clusters, labels.has_several)
        resampling = Resampling(
            options.samples, options.level, options.random_state, selected_clusters
        )
        judges = effective_judges(errors, resampling)
        if judges.estimate is not None:
            judges_limit = most_judges(judges.estimate, len(jury.members))
        matrix = errors.correlations(judges.estimate)
        correlation = mean_correlation(matrix)
        for name, row in zip(jury.members, matrix, strict=True):
            correlations[name] = dict(zip(jury.members, map(_none_if_nan, row), strict=True))
        dropped = dropped_members(P, jury.uniform, labels, options.level, clusters)
        members = _member_rows(jury.members, dropped, errors, judges)
    people = None
    judges_and_people: list[JudgeRow] = []
    confusion: list[ConfusionRow] = []
    if labels.are_hard:
        answering = _judges(jury)
        people = agreement(labelled, level=options.level).cohen_kappa
        judges_and_people = judge_rows(answering, labels, options.level, clusters)
        confusion = confusion_rows(answering, labels)
    replacement: list[CandidateRow] = []
    if options.replace:
        replacement = _candidate_rows(jury, labels, ensemble, options, clusters)
    return Audit(
        items=len(labelled.items),
        annotators=len(labelled.annotators),
        metric=headline_metric(labelled.scale),
        level=options.level,
        judges=judges,
        judges_limit=judges_limit,
        correlation=correlation,
        correlations=correlations,
        members=members,
        strata=_strata_rows(jury.uniform, labels, options, clusters),
        judges_and_people=judges_and_people,
        people=people,
        confusion=confusion,
        replacement=replacement,
        epsilon=options.epsilon,
    )


def _select_clusters(clusters: Ints | None, items: Bools) -> Ints | None:
    """The clusters of the items where the mask [N] is true, numbered from 0."""
    if clusters is None:
        return None
    return np.unique(clusters[items], return_inverse=True)[1]


def _member_rows(
    names: Sequence[str],
    losses_without: Sequence[DroppedMember],
    errors: JuryErrors,
    judges: Interval,
) -> list[MemberRow]:
    """What each member adds to the uniform mean; lowest loss first."""
    matrix = errors.correlations(judges.estimate)
    # The more judges, the lower their correlations: the ends change places.
    low_matrix = errors.correlations(judges.high)
    high_matrix = errors.correlations(judges.low)
    rows: list[MemberRow] = []
    for k, dropped in enumerate(losses_without):
        correlations = np.delete(matrix[k], k)
        correlation = None
        if not np.isnan(correlations).all():
            correlation = float(np.nanmean(correlations))
        low = np.delete(low_matrix[k], k).mean()
        high = np.delete(high_matrix[k], k).mean()
        rows.append(
            {
                "member": names[k],
                "loss": dropped.loss,
                "correlation": correlation,
                "correlation_interval": [_none_if_nan(low), _none_if_nan(high)],
                "uniform": {
                    "difference": dropped.difference,
                    "interval": (dropped.low, dropped.high),
                    "verdict": _verdict(dropped),
                },
            }
        )
    return sorted(rows, key=lambda row: row["loss"])


def _verdict(dropped: DroppedMember) -> Verdict:
    """Whether the uniform mean is worse or better without a member, or hardly changes (free)."""
    if dropped.high <= _FREE_GROWTH * dropped.pool_loss:
        return "better" if dropped.high < -ROUNDING else "free"
    return "worse" if dropped.low > 0 else "unclear"


def _strata_rows(
    p: Floats, labels: HumanLabels, options: AuditOptions, clusters: Ints | None
) -> list[StratumRow]:
    """Agreement of a jury's answers [N, C] beside that of people, by how votes are divided."""
    agreement = agreements(p, labels)
    strata = agreement_strata(labels.annotations)
    strata[ALL] = np.ones(len(p), dtype=bool)
    rows: list[StratumRow] = []
    for name, mask in strata.items():
        in_stratum = mask & labels.has_several
        count = int(in_stratum.sum())
        if not count:
            continue
        interval = None
        if count >= FEWEST_ITEMS:
            stratum_clusters = _select_clusters(clusters, in_stratum)
            jury = UnitDeviations.from_values(agreement.jury[in_stratum], stratum_clusters)
            person = UnitDeviations.from_values(agreement.person[in_stratum], stratum_clusters)
            interval = difference_ends(jury, person, options.level)
        rows.append(
            {
                "stratum": name,
                "items": count,
                "agreement": float(agreement.jury[in_stratum].mean()),
                "human": float(agreement.person[in_stratum].mean()),
                "best": float(agreement.best[in_stratum].mean()),
                "above_human": float((agreement.jury - agreement.person)[in_stratum].mean()),
                "interval": interval,
            }
        )
    return rows


def _judges(jury: Predictions) -> dict[str, Floats]:
    """Probabilities [N, C] of the members, after those of their uniform mean if there are two."""
    P = np.asarray(jury.probabilities, dtype=np.float64)
    judges: dict[str, Floats] = {}
    if len(jury.members) > 1:
        judges[UNIFORM] = jury.uniform
    for k, name in enumerate(jury.members):
        judges[name] = P[:, k]
    return judges


def _candidate_rows(
    jury: Predictions,
    labels: HumanLabels,
    ensemble: EDOEnsemble | str | Path | None,
    options: AuditOptions,
    clusters: Ints | None,
) -> list[CandidateRow]:
    """The alternative annotator test of every candidate; highest advantage first."""
    test = AlternativeAnnotatorTest(
        labels, options.epsilon, options.min_items, options.level, clusters
    )
    names = labels.annotations.annotators[test.annotators]
    rows: list[CandidateRow] = []
    for candidate, p in _candidates(jury, labels, ensemble).items():
        tested = test.test(p)
        annotators: list[AnnotatorRow] = []
        for a, name in enumerate(names.tolist()):
            annotators.append(
                {
                    "annotator": name,
                    "items": int(test.counts[a]),
                    "advantage": float(tested.advantages[a]),
                    "human_advantage": float(tested.human_advantages[a]),
                    "p": float(tested.p_values[a]),
                    "wins": bool(tested.wins[a]),
                }
            )
        rows.append(
            {
                "candidate": candidate,
                "winning_rate": tested.winning_rate,
                "advantage": tested.advantage,
                "interval": (tested.low, tested.high),
                "passes": tested.winning_rate >= PASS_RATE,
                "annotators": annotators,
            }
        )
    return sorted(rows, key=lambda row: -row["advantage"])


def _candidates(
    jury: Predictions, labels: HumanLabels, ensemble: EDOEnsemble | str | Path | None
) -> dict[str, Floats]:
    """Probabilities [N, C] of each candidate: pools, members, and a constant answer."""
    members = _judges(jury)
    candidates: dict[str, Floats] = {}
    if UNIFORM in members:
        candidates[UNIFORM] = members.pop(UNIFORM)
    if ensemble is not None:
        from edokit.ensemble.estimator import EDOEnsemble

        if isinstance(ensemble, str | Path):
            ensemble = EDOEnsemble.load(ensemble)
        pooled = ensemble.describe(jury).as_predictions()
        candidates[ENSEMBLE] = pooled.order_classes(jury.classes).align(jury.rows).uniform
    candidates |= members
    candidates[CONSTANT] = np.tile(labels.shares.mean(axis=0), (len(jury), 1))
    return candidates


def _none_if_nan(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
