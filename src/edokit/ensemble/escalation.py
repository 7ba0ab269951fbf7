"""Which items to answer and which to hand to people, with a promise about those that are answered.

An item is answered if the ensemble is confident enough. The threshold is chosen on cross-fitted
answers to the items of the fit, by learn-then-test (Angelopoulos et al.): for each of several
thresholds, the hypothesis that too many of the answers above it would be overruled is tested, and
the fallback procedure keeps the probability that any true hypothesis is rejected below 5 %. Among
the thresholds whose hypothesis is rejected, the threshold that answers most items is used.

Losses of single items are tested by the binomial distribution. Losses of groups of items, or
between 0 and 1, are tested by betting (Waudby-Smith & Ramdas), which is as exact and assumes
nothing about how the items of a group depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from edokit._errors import InputError, counted, one_of, option
from edokit._types import Floats, Ints
from edokit.ensemble.held_out import HeldOut
from edokit.scales import Scale

if TYPE_CHECKING:
    from edokit.ensemble.pooled import Pooled

Against = Literal["majority", "annotator"]
"""Whose label may overrule an answer: that of most annotators, or of one drawn at random."""
CONFIDENCE = 0.95
"""How sure promises are."""
_STEPS = 50
"""Thresholds that are tried: those that answer 2 %, 4 %, … of the items."""
_STARTS = (5, 12, 25, 38, 50)
"""The steps that share the 5 % between them; a rejection passes its part on to the next step."""
_LIMITS = (0.1, 0.2, 0.3, 0.4)
"""Higher limits to suggest when nothing can be promised at the requested one."""
_BETS = 2.0 ** -np.arange(12)
"""Bets, as shares of the largest one."""
_HALF = 0.5 + 1e-9
"""More than this is a majority, rounding aside."""


def parse_share(value: float | str, name: str = "escalate") -> float:
    """Return a number, or a text such as ``5%``, as a share between 0 and 1.

    Examples
    --------
    >>> parse_share("5%"), parse_share(0.01)
    (0.05, 0.01)
    """
    text = str(value).strip()
    percent = text.endswith("%")
    try:
        share = float(text.removesuffix("%"))
    except ValueError:
        share = float("nan")
    if percent:
        share /= 100
    if not 0 < share < 1:
        raise InputError(
            f"{option(name, value)} is not a share above 0 % and below 100 %",
            f"say how many answers may be overruled, as in {option(name, '5%')}",
            code="invalid-number",
        )
    return share


@dataclass(frozen=True)
class Escalation:
    """A threshold of confidence, and what is promised about the answers above it.

    Attributes
    ----------
    limit : float
        Of the items that are answered at most this share would be overruled.
    against : {"majority", "annotator"}
        By most annotators of the item, or by one drawn at random.
    threshold : float or None
        Items with a higher confidence are answered; None if no threshold can promise it.
    answered : float
        The share of the items of the fit that is answered.
    overruled : float or None
        The share of these that was overruled; None if none is answered.
    items : int
        Number of items that the threshold was chosen on.
    groups : int or None
        Number of groups that they are in, where groups are named.
    """

    limit: float
    against: Against
    threshold: float | None
    answered: float
    overruled: float | None
    items: int
    groups: int | None = None
    alternative: tuple[float, float] | None = None
    """Where no threshold can promise the limit: the smallest of a few larger limits with one, and
    the share of the items of the fit that it answers. Each of these holds for itself alone."""

    @classmethod
    def fit(
        cls,
        held_out: HeldOut,
        scale: Scale,
        limit: float,
        against: Against = "majority",
    ) -> Escalation:
        """Choose the threshold.

        Parameters
        ----------
        held_out : HeldOut
            Cross-fitted answers and soft labels.
        scale : Scale
            The answer scale.
        limit : float
            The share of answers that may be overruled.
        against : {"majority", "annotator"}, default="majority"
            Who overrules.
        """
        one_of("against", against, get_args(Against))
        if scale.is_multi_label and against == "annotator":
            raise InputError(
                f"{option('against', against)} is not defined for multi-label data: shares of"
                " labels do not say which sets the annotators chose",
                f"promise against {option('against', 'majority')}",
                code="inapplicable-option",
            )
        confidences = confidence(held_out.answers, scale, against)
        losses = overruled_shares(held_out.answers, held_out.shares, scale, against)
        n_items = len(held_out)
        by_confidence = np.argsort(-confidences, kind="stable")
        descending = confidences[by_confidence]
        n_candidates = n_items * np.arange(1, _STEPS + 1) // _STEPS
        # Those above the confidence of the first item that is not answered; all at the last step.
        thresholds = np.append(descending[n_candidates[:-1]], -1.0)
        counts = np.searchsorted(-descending, -thresholds, side="left")
        groups = held_out.groups
        if groups is not None:
            groups = groups[by_confidence]
        p_values = _p_values(losses[by_confidence], counts, limit, groups)
        accepted = _fallback(p_values)
        n_groups = None
        if held_out.groups is not None:
            n_groups = len(np.unique(held_out.groups))
        if accepted is None:
            alternative = None
            larger_limits = [larger for larger in _LIMITS if larger > limit]
            for larger in larger_limits:
                step = _fallback(_p_values(losses[by_confidence], counts, larger, groups))
                if step is not None:
                    share = float((confidences > thresholds[step]).mean())
                    alternative = (larger, share)
                    break
            return cls(limit, against, None, 0.0, None, n_items, n_groups, alternative)
        is_answered = confidences > thresholds[accepted]
        return cls(
            limit=limit,
            against=against,
            threshold=float(thresholds[accepted]),
            answered=float(is_answered.mean()),
            overruled=float(losses[is_answered].mean()),
            items=n_items,
            groups=n_groups,
        )

    def decide(self, pooled: Pooled) -> Pooled:
        """Return answers with the items that are handed to people.

        Parameters
        ----------
        pooled : Pooled
            Anonymous answers; those that are handed to people already stay so.
        """
        from edokit.ensemble.pooled import check_no_people_class

        check_no_people_class(pooled.classes)
        for_people = np.ones(len(pooled.items), dtype=bool)
        if self.threshold is not None:
            confidences = confidence(pooled.probabilities, pooled.scale, self.against)
            for_people = confidences <= self.threshold
        if pooled.for_people is not None:
            for_people = for_people | pooled.for_people
        return replace(pooled, for_people=for_people)

    @property
    def promise(self) -> str:
        """What is promised, in words."""
        judge = "a majority of annotators"
        if self.against == "annotator":
            judge = "an annotator drawn at random"
        return f"at most {percent(self.limit)} of the answers would be overruled by {judge}"

    def __str__(self) -> str:
        """What is promised, and how many items of the fit are answered; or that nothing can be."""
        sure = f"with {percent(CONFIDENCE)} confidence"
        if self.threshold is None:
            basis = counted(self.items, "item")
            if self.groups is not None:
                basis += f" in {counted(self.groups, 'group')}"
            return (
                f"no threshold can promise, {sure}, that {self.promise}: the answers to the"
                f" {basis} of the fit are too few or too often overruled; everything is for people"
                f"{self._suggestion}"
            )
        return (
            f"{sure}, {self.promise}; at this limit, {100 * self.answered:.0f} % of the training"
            " items would be answered automatically"
        )

    @property
    def _suggestion(self) -> str:
        """Which larger limit could be promised."""
        if self.alternative is None:
            return ""
        limit, answered = self.alternative
        return (
            f"; at {percent(limit)} it would answer {100 * answered:.0f} % of the training items (a"
            " limit that is chosen after a look at several promises less)"
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON, with the confidence of the promise."""
        return {**asdict(self), "confidence": CONFIDENCE}


def shares_sentence(for_people: float) -> str:
    """How many items are answered, and how many are for people.

    Examples
    --------
    >>> shares_sentence(0.18)
    '82 % answered, 18 % for people'
    """
    return f"{1 - for_people:.0%} answered, {for_people:.0%} for people".replace("%", " %")


def percent(share: float) -> str:
    """A share in percent, such as ``5 %``."""
    return f"{100 * share:.3g} %"


def confidence(answers: Floats, scale: Scale, against: Against) -> Floats:
    """Return the ensemble's own probability that its label is not overruled [N].

    It orders items, and is not taken at its word: the threshold is chosen on labels.
    """
    if against == "annotator":
        return 1.0 - _dissent(answers, answers, scale)
    return 1.0 - _opposition(answers, answers, scale)


def overruled_shares(answers: Floats, shares: Floats, scale: Scale, against: Against) -> Floats:
    """Return how far each answer is overruled [N], from its label and what the annotators said.

    Against an annotator this is the share that gave another label; against a majority it is 1 or 0:
    more than half gave another label (on an ordinal scale, a higher one or a lower one; for
    multi-label data, more than half differ about some label).
    """
    if against == "annotator":
        return _dissent(answers, shares, scale)
    return (_opposition(answers, shares, scale) > _HALF).astype(np.float64)


def _dissent(answers: Floats, shares: Floats, scale: Scale) -> Floats:
    """The share of annotators with another label than the likeliest one [N]."""
    labels = scale.hard(answers)
    return np.asarray(1.0 - shares[np.arange(len(labels)), labels])


def _opposition(answers: Floats, shares: Floats, scale: Scale) -> Floats:
    """The largest share of annotators who agree that the label is wrong, and in which way [N]."""
    labels = scale.hard(answers)
    if scale.is_multi_label:
        return np.asarray(np.abs(shares - labels).max(axis=1))
    if scale.positions is None:
        return _dissent(answers, shares, scale)
    rows = np.arange(len(labels))
    up_to = np.cumsum(shares, axis=1)[rows, labels]
    lower = up_to - shares[rows, labels]
    return np.asarray(np.maximum(lower, 1.0 - up_to))


def _p_values(losses: Floats, counts: Ints, limit: float, groups: Ints | None) -> Floats:
    """The p-value, for each count, of the hypothesis that more than ``limit`` are overruled.

    ``losses`` and ``groups`` are in the order of decreasing confidence; of each count, these first
    ones are answered.
    """
    is_binary = bool(np.isin(losses, (0.0, 1.0)).all())
    if groups is None and is_binary:
        from scipy.special import bdtr

        overruled = np.append(0.0, np.cumsum(losses))[counts]
        return np.asarray(bdtr(overruled, counts, limit))
    if groups is None:
        return _betting_p_values(losses - limit, counts, 1.0 - limit)
    # No group is taken to be larger than the largest one of the fit.
    largest = (1.0 - limit) * float(np.bincount(groups).max())
    p_values = []
    for count in counts:
        sums = np.bincount(groups[:count], losses[:count] - limit)
        excess = np.asarray(sums, dtype=np.float64)
        p_values.append(_betting_p_values(excess, np.array([len(excess)]), largest)[0])
    return np.array(p_values)


def _betting_p_values(excess: Floats, counts: Ints, largest: float) -> Floats:
    """The p-value, for each count, of the hypothesis that values have a mean above 0.

    Under the hypothesis, the expected wealth of someone who bets on values below 0, never more than
    they have, is at most 1 (Waudby-Smith & Ramdas, 2024); so is the mean over several bets. Values
    are at most ``largest``; of each count, the first ones are looked at.
    """
    with np.errstate(divide="ignore"):
        gains = np.log1p(-np.outer(_BETS / largest, excess))
    log_wealth = np.cumsum(np.pad(gains, ((0, 0), (1, 0))), axis=1)[:, counts]
    mean_log_wealth = np.logaddexp.reduce(log_wealth, axis=0) - np.log(len(_BETS))
    return np.asarray(np.exp(-np.maximum(mean_log_wealth, 0.0)))


def _fallback(p_values: Iterable[float]) -> int | None:
    """The last step whose hypothesis the fallback procedure rejects (Wiens, 2003).

    Every start has a part of the 5 %; a step that is rejected passes on what it had.
    """
    part = (1.0 - CONFIDENCE) / len(_STARTS)
    passed_step = None
    level = 0.0
    for step, p_value in enumerate(p_values, start=1):
        if step in _STARTS:
            level += part
        if level > 0 and p_value <= level:
            passed_step = step - 1
        else:
            level = 0.0
    return passed_step
