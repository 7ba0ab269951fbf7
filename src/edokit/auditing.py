"""Audit of a jury: is it several judges or one, and can it replace annotators?

Answers are compared as vectors whose squared distance says how much two of them disagree, from 0 to
1 (`Scale.vectors`), so that one formula serves classes, points of a scale and sets of labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import InputError, check_number, counted, examples, option
from edokit._io.markup import Table
from edokit._types import Bools, Codes, Floats, Ints
from edokit.annotations.core import Annotations
from edokit.annotator_effects import label_shares
from edokit.baselines.scores import short_ends
from edokit.baselines.slices import FEWEST_ITEMS, agreement_strata
from edokit.ensemble.fitted import CLEARLY
from edokit.fitdata.inputs import as_predictions
from edokit.metrics import METRIC, Interval, headline_metric, item_values
from edokit.metrics.formulas import decisions
from edokit.metrics.resampling import Resampling, intervals_and_tests, quantiles, resampled_means
from edokit.predictions.core import Predictions
from edokit.rows import sums
from edokit.runs import InputReader, merge_options

if TYPE_CHECKING:
    from edokit.ensemble.estimator import EDOEnsemble

# Squared distances that differ by rounding alone are ties.
_ROUNDING = 1e-9
# The share of annotators that a candidate must win against to pass.
_PASS_RATE = 0.5
# A member is free to drop if the loss grows by at most this share of it, interval included.
_FREE = 0.01
# A correlation of errors that hardly matters.
_UNCORRELATED = 0.05
UNIFORM, CONSTANT, ENSEMBLE = "uniform", "constant", "ensemble"
ALL = "all"
_SUBJECTS = {UNIFORM: "The plain average of the members", ENSEMBLE: "The ensemble"}


@dataclass(frozen=True)
class AuditOptions:
    """What is audited, and how surely.

    Parameters
    ----------
    replace : bool, default=False
        Also test whether members, their uniform mean and the ensemble can replace an
        annotator.
    epsilon : float, default=0.1
        What a person may be better by and still be replaced, as a probability: 0.2 for experts,
        0.15 for skilled annotators, 0.1 for crowd workers.
    min_items : int, default=30
        Items that an annotator shares with others, at least, to be compared with.
    samples : int, default=1000
        Bootstrap samples of the intervals over items.
    level : float, default=0.95
        Level of the intervals; 1 − level is the false discovery rate of the replacement test.
    random_state : int, default=0
        Seed of the bootstrap.

    Examples
    --------
    >>> from edokit.auditing import AuditOptions
    >>> AuditOptions(replace=True).epsilon
    0.1
    """

    replace: bool = False
    epsilon: float = 0.1
    min_items: int = 30
    samples: int = 1000
    level: float = 0.95
    random_state: int = 0

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, 1)
        check_number("min_items", self.min_items, 2, whole=True)
        check_number("samples", self.samples, 50, whole=True)
        check_number("level", self.level, 0.5, 0.9999)


@dataclass(frozen=True, eq=False)
class Audit:
    """What was found about a jury, as `edokit.audit` returns it.

    Attributes
    ----------
    items, annotators : int
        How many items and annotators the audit is about.
    metric : str
        The loss in which members are compared: ``ce``, on an ordinal scale ``rps``.
    level : float
        Level of the intervals.
    judges : Interval or None
        The effective number of independent judges: how many with independent errors would, as a
        uniform mean, have the error of these members'; from 1 to the number of members. Estimate
        and ends are None where copies have no error. None for a jury of one.
    correlation : float or None
        The mean correlation of the members' errors against the human distribution; the
        reciprocal is what ever more members of this kind would count as.
    correlations : dict of str to dict
        That of each two members, given that all count as the estimated number of judges; None
        where a member has no error beyond the noise of the labels.
    members : list of dict
        Of each ``member`` its ``loss``, the mean ``correlation`` of its errors with those of the
        others (``correlation_interval``: as the ends of ``judges`` imply), and what the uniform
        mean loses without it (``uniform``): ``difference``, ``interval`` and ``verdict`` ("free":
        worse by 1 % at most).
    strata : list of dict
        By division of votes (``stratum``: ``3:0``, ``2:1`` …) and for all items, the
        ``agreement`` with an annotator of the jury's answer, of another annotator (``human``) and
        of the best single answer (``best``), and ``above_human`` with its interval.
    replacement : list of dict
        With ``replace``, of each candidate the ``winning_rate``, ``advantage`` (the mean
        probability to be as good as or better than the annotator who is left out) with
        ``interval``, whether it ``passes``, and a row for each annotator.
    epsilon : float
        The margin of the replacement test.
    """

    items: int
    annotators: int
    metric: str
    level: float
    judges: Interval | None = None
    correlation: float | None = None
    correlations: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    members: Sequence[Mapping[str, Any]] = ()
    strata: Sequence[Mapping[str, Any]] = ()
    replacement: Sequence[Mapping[str, Any]] = ()
    epsilon: float = 0.1

    def __repr__(self) -> str:
        count = self.judges and self.judges.estimate
        judges = f", {count:.1f} judges" if count else ""
        return (
            f"Audit({counted(self.items, 'item')}, {counted(len(self.members), 'member')}{judges})"
        )

    @property
    def headline(self) -> list[str]:
        """The answers in sentences."""
        lines = []
        if self.judges is not None:
            lines += [self._about_judges(), self._about_members()]
        if self.replacement:
            lines += self._about_replacement()
        return lines

    def _about_judges(self) -> str:
        judges = self.judges or Interval(None, None, None)
        count = counted(len(self.members), "member")
        if judges.estimate is None or judges.low is None or judges.high is None:
            return (
                f"The mean of the {count} has no error beyond the noise of the annotators: these"
                " items can't show how many independent judges they are."
            )
        ends = f"{judges.low:.1f} to {judges.high:.1f}"
        quarter = (len(self.members) - 1) / 4
        if judges.low < 1 + quarter and judges.high > 1 + 3 * quarter:
            return (
                f"These items can't tell how many independent judges the {count} are: {ends} are"
                f" possible ({self.level:.0%} interval). Ask more annotators, or about more items."
            )
        correlation = self.correlation or 0.0
        errors = "Their errors are hardly correlated."
        if correlation > _UNCORRELATED:
            errors = (
                f"Their errors correlate by {correlation:.2f}: however many more of this kind"
                f" were asked, they would count as {1 / correlation:.1f}."
            )
        return (
            f"{count} count as {judges.estimate:.1f} independent judges ({self.level:.0%} interval"
            f" {ends}). {errors}"
        )

    def _about_members(self) -> str:
        missed = [row["member"] for row in self.members if row[UNIFORM]["verdict"] == "worse"]
        if not missed:
            return "No member is clearly missed if it goes alone."
        return f"Clearly missed if it goes: {examples(missed, 5)}."

    def _about_replacement(self) -> list[str]:
        candidates = {row["candidate"]: row for row in self.replacement}
        name = next(name for name in (ENSEMBLE, UNIFORM, *candidates) if name in candidates)
        row, constant = candidates[name], candidates[CONSTANT]
        verdict = "can" if row["passes"] else "can't be shown to be able to"
        rows = row["annotators"]
        lines = [
            f"{_SUBJECTS.get(name, name)} {verdict} replace an annotator: it wins against"
            f" {sum(r['wins'] for r in rows)} of {counted(len(rows), 'annotator')} (winning rate"
            f" {row['winning_rate']:.2f}, {_PASS_RATE:g} is asked for, ε {self.epsilon:g}); it is"
            f" as good as or better than the one left out with probability {row['advantage']:.2f}"
            " ({:.2f} to {:.2f}).".format(*row["interval"])
        ]
        if constant["passes"]:
            lines.append(
                "A constant answer passes, too: the labels are so uneven, or the annotators agree"
                " so little, that passing says little."
            )
        return lines

    def tables(self) -> list[Table]:
        """Return what a terminal and a page show.

        Returns
        -------
        list of Table
            Members, strata of agreement and candidates, as far as there are some.
        """
        tables = []
        if self.judges is not None:
            tables.append(self._member_table())
        if self.strata:
            tables.append(self._strata_table())
        if self.replacement:
            tables.append(self._candidate_table())
        return tables

    def _member_table(self) -> Table:
        short = METRIC[self.metric].short
        records = [
            {
                "member": row["member"],
                short: row["loss"],
                "corr.": _correlation(row),
                f"without it: Δ{short} {UNIFORM}": f"{short_ends(row[UNIFORM]['interval'], 4)}"
                f" {row[UNIFORM]['verdict']}",
            }
            for row in self.members
        ]
        note = (
            "corr.: of its errors with those of the others, without the noise of the labels, and as"
            f" the interval of the number of judges implies; ?: lost in it. Δ{short}: interval of"
            " what the uniform mean loses without it alone; free: 1% at most."
        )
        return Table.of("What each member adds", records, [note])

    def _strata_table(self) -> Table:
        records = [
            {
                "votes": row["stratum"],
                "items": row["items"],
                "jury": row["agreement"],
                "person": row["human"],
                "best": row["best"],
                "jury − person": row["interval"] and short_ends(row["interval"]),
            }
            for row in self.strata
        ]
        note = (
            "Agreement with an annotator of the item: of the jury's answer, of another person, of"
            " the best single answer. Where votes are known to be divided, a person agrees seldom,"
            " and so does everybody: compare within a row."
        )
        return Table.of("By agreement", records, [note], digits=3)

    def _candidate_table(self) -> Table:
        records = [
            {
                "candidate": row["candidate"],
                "winning rate": row["winning_rate"],
                "advantage": row["advantage"],
                f"{self.level:.0%}": "{:.3f}–{:.3f}".format(*row["interval"]),
                "passes": "yes" if row["passes"] else "no",
            }
            for row in self.replacement
        ]
        left_out = self.annotators - len(self.replacement[0]["annotators"])
        notes = [
            f"Winning rate: share of the annotators than whom it is better, or not worse by ε ="
            f" {self.epsilon:g}, at a false discovery rate of {1 - self.level:.0%}"
            " (Benjamini–Yekutieli)."
        ]
        if left_out:
            notes.append(f"{counted(left_out, 'annotator')} shared too few items with others.")
        return Table.of("Can it replace an annotator?", records, notes, digits=3)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as ``edo audit --json`` prints it.

        Returns
        -------
        dict
            The attributes, and ``headline``.
        """
        return {**asdict(self), "headline": self.headline}


def audit(
    predictions: Predictions | str | Path | Any,
    annotations: Annotations | str | Path,
    options: AuditOptions | None = None,
    *,
    ensemble: EDOEnsemble | str | Path | None = None,
    split: str | Sequence[str] | None = None,
    **settings: Any,
) -> Audit:
    """Audit a jury: whether it is several judges or one, and can replace annotators.

    Errors are measured against the distribution of the annotators' answers. The noise due to few
    annotators is estimated from how those of an item differ, and subtracted.

    Parameters
    ----------
    predictions : Predictions, array of shape (N, K, C), str or Path
        The members' answers.
    annotations : Annotations, str or Path
        Annotations of the same items, of which some have two annotators or more.
    options : AuditOptions, default=None
        What is audited, and how surely.
    ensemble : EDOEnsemble, str or Path, default=None
        One more candidate; it should not have been fitted on these items.
    split : str or sequence of str, default=None
        Only these splits of the annotations.
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
    options, reading = merge_options(AuditOptions, options, settings)
    files = InputReader(**reading)
    labelled = files.annotations("annotations", annotations, split)
    jury, labelled = match_jury(files.predictions("predictions", predictions), labelled)
    if not (labelled.annotations_per_item > 1).any():
        raise InputError(
            "no item has labels of two annotators, so there is nothing to compare a jury with",
            "have at least 50 items labelled by two annotators or more",
        )
    count = len(jury.members)
    if count < 2 and not options.replace:
        raise InputError(
            f"a jury of one ({jury.members[0]!r}) is one judge",
            f"give the predictions of several members (`edo predictions join`), or ask with"
            f" {option('replace')} whether it can replace an annotator",
        )
    answers = Answers(labelled)
    findings: dict[str, Any] = _audit_members(jury, answers, options) if count > 1 else {}
    if options.replace:
        findings["replacement"] = _replacement(jury, answers, ensemble, options)
    return Audit(
        items=len(labelled.items),
        annotators=len(labelled.annotators),
        metric=headline_metric(labelled.scale),
        level=options.level,
        strata=_strata(jury.uniform, answers, options),
        epsilon=options.epsilon,
        **findings,
    )


def match_jury(predictions: Any, labelled: Annotations) -> tuple[Predictions, Annotations]:
    """Members' answers to items and the annotations of them, in the same order and classes."""
    jury = as_predictions(predictions).annotated(labelled).on_scale(labelled.scale, "annotations")
    if {*labelled.classes} < {*jury.classes}:
        labelled = labelled.with_classes(jury.classes)
    return jury.order_classes(labelled.classes).panel_means().align(labelled.rows), labelled


class Answers:
    """The annotators' answers as vectors, and how those of an item differ."""

    def __init__(self, labelled: Annotations) -> None:
        self.labelled, self.scale = labelled, labelled.scale
        self.classes = len(labelled.classes)
        is_first = ~labelled.repeated
        self.shares = label_shares(labelled, self.classes)[is_first]
        self.item_codes: Ints = labelled.item_codes[is_first].astype(np.int64)
        self.annotator_codes = labelled.annotator_codes[is_first]
        self.counts = np.bincount(self.item_codes, minlength=len(labelled.items))

    def vectors(self, shares: Floats, *, absolute: bool = True) -> Floats:
        """Answers [..., C] as vectors [..., D]."""
        return shares @ self.scale.vectors(self.classes, absolute=absolute)

    def single(self, p: Floats) -> Floats:
        """The single answer of each distribution, as certain shares [N, C]."""
        codes: Codes = decisions(p, self.scale)
        return self.scale.indicators(codes, self.classes).astype(np.float64)

    def by_item(self, values: Floats) -> Floats:
        """The mean of the annotations' values [M, ...] over those of each item [N, ...]."""
        totals = sums(values, self.item_codes, len(self.counts))
        return np.asarray(totals / self.counts.reshape(-1, *[1] * (totals.ndim - 1)))

    @cached_property
    def spread(self) -> Floats:
        """The variance between the annotators of each item [N]; NaN where there is one."""
        vectors = self.vectors(self.shares)
        squares = np.square(vectors - self.by_item(vectors)[self.item_codes]).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.by_item(squares) * self.counts / (self.counts - 1)

    @property
    def overlap(self) -> Bools:
        """Whether each item has two annotators or more [N]."""
        return np.asarray(self.counts > 1)

    def disagreement(self, p: Floats) -> Floats:
        """How far an item's single answer is from its annotators' answers, on average [N]."""
        single = self.vectors(self.single(p))[self.item_codes]
        return self.by_item(np.square(single - self.vectors(self.shares)).sum(axis=1))

    def losses(self, p: Floats) -> Floats:
        """The loss of predictions for each annotation [M, C], averaged by item [N]."""
        loss = item_values(self.scale)[headline_metric(self.scale)]
        return self.by_item(loss(p, self.shares, self.scale.hard(self.shares)))


def _audit_members(jury: Predictions, answers: Answers, options: AuditOptions) -> dict[str, Any]:
    """The effective number of judges, and what each member adds."""
    P = np.asarray(jury.probabilities, dtype=np.float64)[answers.overlap]
    q = answers.by_item(answers.shares)[answers.overlap]
    errors = answers.vectors(P) - answers.vectors(q)[:, None]
    noise = (answers.spread / answers.counts)[answers.overlap]
    mean_error = errors.mean(axis=1)
    # How far members are from their mean, and its squared error without the noise of the labels.
    apart = np.square(errors - mean_error[:, None]).sum(axis=2).mean(axis=1)
    pooled = np.square(mean_error).sum(axis=1) - noise
    size = len(jury.members)
    judges = _effective_number(apart, pooled, size, options)
    products = np.einsum("nkd,nld->kl", errors, errors) / len(errors)

    def correlations(count: float | None) -> Floats:
        """Those of each two members [K, K], if all count as so many judges."""
        rest = (
            pooled.mean() if count is None or count - 1 < _ROUNDING else apart.mean() / (count - 1)
        )
        covariance = products - np.square(mean_error).sum(axis=1).mean() + rest
        with np.errstate(invalid="ignore", divide="ignore"):
            deviations = np.sqrt(np.where(np.diag(covariance) > 0, np.diag(covariance), np.nan))
            return np.asarray(np.clip(covariance / np.outer(deviations, deviations), -1, 1))

    matrix, *ends = map(correlations, (judges.estimate, judges.high, judges.low))
    return {
        "judges": judges,
        "correlation": judges.estimate and (size / judges.estimate - 1) / (size - 1),
        "correlations": {
            name: dict(zip(jury.members, map(_defined, row), strict=True))
            for name, row in zip(jury.members, matrix, strict=True)
        },
        "members": _members(jury, answers, [matrix, *ends]),
    }


def _effective_number(apart: Floats, pooled: Floats, size: int, options: AuditOptions) -> Interval:
    """How many independent judges members count as: 1 + apart / pooled, at most ``size``.

    The noise of the labels may hide the error of the members' mean. The estimate is the median over
    those resamples that leave enough of it for errors that do not correlate negatively.
    """
    if apart.max() < _ROUNDING:  # copies
        return Interval(*[1.0 if pooled.mean() > 0 else None] * 3)
    rng = np.random.default_rng(options.random_state)
    apart_means, pooled_means = resampled_means([apart, pooled], options.samples, rng, None)
    counts = 1 + apart_means / np.maximum(pooled_means, apart_means / (size - 1))
    low, high = quantiles(counts, options.level)
    is_below = pooled_means > apart_means / (size - 1)
    estimate = np.median(counts[is_below]) if is_below.any() else high
    return Interval(float(np.clip(estimate, low, high)), low, high)


def _members(
    jury: Predictions, answers: Answers, matrices: Sequence[Floats]
) -> list[dict[str, Any]]:
    """What each member adds to the uniform mean; lowest loss first."""
    P, size = np.asarray(jury.probabilities, dtype=np.float64), len(jury.members)
    mean_losses = answers.losses(jury.uniform[answers.item_codes])
    rows = []
    for k, name in enumerate(jury.members):
        without = (size * jury.uniform - P[:, k]) / (size - 1)
        losses = answers.losses(without[answers.item_codes])
        correlations, *ends = (np.delete(matrix[k], k) for matrix in matrices)
        row = {
            "member": name,
            "loss": float(answers.losses(P[answers.item_codes, k]).mean()),
            "correlation": None
            if np.isnan(correlations).all()
            else float(np.nanmean(correlations)),
            "correlation_interval": [_defined(end.mean()) for end in ends],
            UNIFORM: _dropped(losses, mean_losses),
        }
        rows.append(row)
    return sorted(rows, key=lambda row: row["loss"])


def _dropped(losses: Floats, all_losses: Floats) -> dict[str, Any]:
    """What a pool loses without a member, from losses by item [N] without it and with it."""
    gaps = losses - all_losses
    difference = float(gaps.mean())
    within = CLEARLY * float(gaps.std() / np.sqrt(max(len(gaps) - 1, 1)))
    low, high = difference - within, difference + within
    verdict = "worse" if low > 0 else "unclear"
    if high <= _FREE * (float(losses.mean()) - difference):
        verdict = "better" if high < -_ROUNDING else "free"
    return {"difference": difference, "interval": (low, high), "verdict": verdict}


def _strata(p: Floats, answers: Answers, options: AuditOptions) -> list[dict[str, Any]]:
    """Agreement of the jury beside that of people, by division of votes."""
    overlap, q = answers.overlap, answers.by_item(answers.shares)
    person = 1 - 2 * answers.spread  # two annotators differ by twice the variance
    agreement, best = 1 - answers.disagreement(p), 1 - answers.disagreement(q)
    strata = agreement_strata(answers.labelled) | {ALL: np.ones(len(q), dtype=bool)}
    rows = []
    for name, mask in strata.items():
        members = mask & overlap
        count = int(members.sum())
        if not count:
            continue
        gap = (agreement - person)[members]
        ends = None
        if count >= FEWEST_ITEMS:
            resampling = Resampling(options.samples, options.level, options.random_state)
            ends = intervals_and_tests({"gap": gap}, (), resampling)[0]["gap"]
        rows.append(
            {
                "stratum": name,
                "items": count,
                "agreement": float(agreement[members].mean()),
                "human": float(person[members].mean()),
                "best": float(best[members].mean()),
                "above_human": float(gap.mean()),
                "interval": ends,
            }
        )
    return rows


def _replacement(
    jury: Predictions, answers: Answers, ensemble: Any, options: AuditOptions
) -> list[dict[str, Any]]:
    """The alternative annotator test (Calderon et al. 2025) of every candidate, best first."""
    candidates = {UNIFORM: jury.uniform} if len(jury.members) > 1 else {}
    if ensemble is not None:
        from edokit.ensemble.estimator import EDOEnsemble

        if isinstance(ensemble, str | Path):
            ensemble = EDOEnsemble.load(ensemble)
        pooled = ensemble.describe(jury).as_predictions()
        candidates[ENSEMBLE] = pooled.order_classes(jury.classes).align(jury.rows).uniform
    P = np.asarray(jury.probabilities, dtype=np.float64)
    candidates |= {name: P[:, k] for k, name in enumerate(jury.members)}
    shares = answers.shares.mean(axis=0)
    candidates[CONSTANT] = np.tile(shares, (len(jury), 1))
    test = _AlternativeAnnotators(answers, options)
    rows = [test.of(name, p) for name, p in candidates.items()]
    return sorted(rows, key=lambda row: -row["advantage"])


class _AlternativeAnnotators:
    """Who is closer to the other annotators of an item: a candidate, or the one left out?"""

    def __init__(self, answers: Answers, options: AuditOptions) -> None:
        self.answers, self.options = answers, options
        shared = np.flatnonzero(answers.overlap[answers.item_codes])
        self.items, people = answers.item_codes[shared], answers.annotator_codes[shared]
        counts = np.bincount(people, minlength=len(answers.labelled.annotators))
        self.people = np.flatnonzero(counts >= options.min_items)
        if not len(self.people):
            name = answers.labelled.annotators[counts.argmax()]
            raise InputError(
                f"no annotator shares {options.min_items} items with others; {name!r} shares most,"
                f" {counts.max()}",
                f"annotate more items together, or lower {option('min_items')} (a test on fewer"
                " than 30 items is rough)",
            )
        compared = np.isin(people, self.people)
        self.shared, self.items = shared[compared], self.items[compared]
        self.codes = np.searchsorted(self.people, people[compared])
        self.counts = counts[self.people]
        vectors = answers.vectors(answers.shares, absolute=False)
        squares = np.square(vectors).sum(axis=1)
        peers = (answers.counts[self.items] - 1)[:, None]
        totals = sums(np.column_stack([vectors, squares]), answers.item_codes, len(answers.counts))
        means = (totals[self.items] - np.column_stack([vectors, squares])[self.shared]) / peers
        self.mean, self.square = means[:, :-1], means[:, -1]
        self.human = self.distance(vectors[self.shared])

    def distance(self, vectors: Floats) -> Floats:
        """Mean squared distance of answers [R, D] to those of the others [R]."""
        products = np.einsum("rd,rd->r", vectors, self.mean)
        return np.asarray(np.square(vectors).sum(axis=1) - 2 * products + self.square)

    def of(self, name: str, p: Floats) -> dict[str, Any]:
        """The test of one candidate with these probabilities [N, C]."""
        from scipy.stats import false_discovery_control

        single = self.answers.vectors(self.answers.single(p), absolute=False)
        candidate = self.distance(single[self.items])
        as_good = (candidate <= self.human + _ROUNDING).astype(np.float64)
        human_as_good = (self.human <= candidate + _ROUNDING).astype(np.float64)
        advantage, human = self.means(as_good), self.means(human_as_good)
        p_values = false_discovery_control(self.p_values(human_as_good - as_good), method="by")
        wins = p_values <= 1 - self.options.level
        # The influence of each item on the mean over annotators.
        weights = (as_good - advantage[self.codes]) / (self.counts[self.codes] * len(self.people))
        within = CLEARLY * float(np.sqrt(np.square(np.bincount(self.items, weights)).sum()))
        mean, names = float(advantage.mean()), self.answers.labelled.annotators[self.people]
        columns = (names, self.counts, advantage, human, p_values, wins)
        keys = ("annotator", "items", "advantage", "human_advantage", "p", "wins")
        return {
            "candidate": name,
            "winning_rate": float(wins.mean()),
            "advantage": mean,
            "interval": (max(mean - within, 0.0), min(mean + within, 1.0)),
            "passes": bool(wins.mean() >= _PASS_RATE),
            "annotators": [
                dict(zip(keys, row, strict=True))
                for row in zip(*(column.tolist() for column in columns), strict=True)
            ],
        }

    def means(self, values: Floats) -> Floats:
        """The mean over the items of each annotator [A]."""
        return np.asarray(np.bincount(self.codes, values) / self.counts)

    def p_values(self, gaps: Floats) -> Floats:
        """One-sided paired t-tests of the hypothesis that people are better by ε or more [A]."""
        from scipy.special import stdtr  # Student's t

        means = self.means(gaps)
        variances = self.means(np.square(gaps - means[self.codes])) * self.counts
        errors = np.sqrt(variances / (self.counts - 1) / self.counts)
        # Where nothing varies, the sign decides.
        t = (means - self.options.epsilon) / np.maximum(errors, _ROUNDING)
        return np.asarray(stdtr(self.counts - 1, t))


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _correlation(row: Mapping[str, Any]) -> str:
    """``0.72 (0.10–0.95)``, with ``?`` where it is lost in the noise of the labels."""
    values = (row["correlation"], *row["correlation_interval"])
    return "{} ({}–{})".format(*("?" if value is None else f"{value:.2f}" for value in values))
