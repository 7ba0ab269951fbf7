"""Which items to answer and which to hand to people, with a promise about the answered items.

An item is answered if the ensemble is confident enough. The threshold is chosen on cross-fitted
answers for the items of the fit, by learn-then-test (Angelopoulos et al.): for each of several
thresholds, the hypothesis that too many of the answers above it would be overruled is tested, and
the fallback procedure keeps the probability that any true hypothesis is rejected below 5 %. Among
the thresholds whose hypothesis is rejected, the threshold that answers most items is used.

If each item's answer is either overruled or not, and items are not grouped, the tests are binomial.
Otherwise they are tests by betting (Waudby-Smith & Ramdas), which are valid as well and assume
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
"""Who may overrule an answer: most of the annotators, or one annotator drawn at random."""
CONFIDENCE = 0.95
"""The confidence of all promises."""
_STEPS = 50
"""Thresholds that are tried: those that answer 2 %, 4 %, … of the items."""
_STARTS = (5, 12, 25, 38, 50)
"""The steps among which the 5 % are divided; a rejection passes its part on to the next step."""
_LIMITS = (0.1, 0.2, 0.3, 0.4)
"""Larger limits, one of which is suggested if nothing can be promised at the requested limit."""
_BETS = 2.0 ** -np.arange(12)
"""Sizes of bets, as shares of the largest possible bet."""
_MAJORITY = 0.5 + 1e-9
"""A share above this is a majority; the small number allows for rounding."""


def parse_share(value: float | str) -> float:
    """Return a number, or a text such as ``5%``, as a share between 0 and 1.

    Examples
    --------
    >>> parse_share("5%"), parse_share(0.01)
    (0.05, 0.01)
    """
    text = str(value).strip()
    is_percentage = text.endswith("%")
    try:
        share = float(text.removesuffix("%"))
    except ValueError:
        share = float("nan")
    if is_percentage:
        share /= 100
    if not 0 < share < 1:
        raise InputError(
            f"{option('escalate', value)} is not a share above 0 % and below 100 %",
            f"say how many answers may be overruled, as in {option('escalate', '5%')}",
            code="invalid-number",
        )
    return share


@dataclass(frozen=True)
class Escalation:
    """A threshold of confidence, and what is promised about the answers above it.

    Attributes
    ----------
    limit : float
        The largest share of the answers that may be overruled.
    against : {"majority", "annotator"}
        Who overrules: most annotators of the item, or one drawn at random.
    threshold : float or None
        Items with a higher confidence are answered; None if no threshold keeps to the limit.
    answered : float
        The share of the items of the fit that would be answered.
    overruled : float or None
        The share of these answers that the annotators would overrule; None if none is answered.
    items : int
        Number of items that the threshold was chosen on.
    groups : int or None
        Number of groups of these items; None if items are not grouped.
    alternative : tuple of float or None
        If no threshold keeps to the limit, the smallest of a few larger limits that a threshold
        keeps to, and the share of the items of the fit that it would answer. The promise holds for
        each of these limits alone.
    """

    limit: float
    against: Against
    threshold: float | None
    answered: float
    overruled: float | None
    items: int
    groups: int | None = None
    alternative: tuple[float, float] | None = None

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
        sorted_confidences = confidences[by_confidence]
        sorted_losses = losses[by_confidence]
        sorted_groups = None
        n_groups = None
        if held_out.groups is not None:
            sorted_groups = held_out.groups[by_confidence]
            n_groups = len(np.unique(held_out.groups))
        # The threshold of a step is the confidence of the first item that it leaves out; the last
        # step answers all items. Items with equal confidences are answered or left out together.
        steps = n_items * np.arange(1, _STEPS + 1) // _STEPS
        thresholds = np.append(sorted_confidences[steps[:-1]], -1.0)
        n_answered = np.searchsorted(-sorted_confidences, -thresholds, side="left")
        step = _last_rejected(_p_values(sorted_losses, n_answered, limit, sorted_groups))
        if step is None:
            alternative = None
            for larger_limit in _LIMITS:
                if larger_limit <= limit:
                    continue
                step = _last_rejected(
                    _p_values(sorted_losses, n_answered, larger_limit, sorted_groups)
                )
                if step is not None:
                    share = float((confidences > thresholds[step]).mean())
                    alternative = (larger_limit, share)
                    break
            return cls(
                limit=limit,
                against=against,
                threshold=None,
                answered=0.0,
                overruled=None,
                items=n_items,
                groups=n_groups,
                alternative=alternative,
            )
        is_answered = confidences > thresholds[step]
        return cls(
            limit=limit,
            against=against,
            threshold=float(thresholds[step]),
            answered=float(is_answered.mean()),
            overruled=float(losses[is_answered].mean()),
            items=n_items,
            groups=n_groups,
        )

    def decide(self, pooled: Pooled) -> Pooled:
        """Return answers with ``for_people``: which items are handed to people.

        Parameters
        ----------
        pooled : Pooled
            Anonymous answers. Items that are handed to people already remain so.
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
        """The promise, in words."""
        judge = "a majority of annotators"
        if self.against == "annotator":
            judge = "an annotator drawn at random"
        return f"at most {percent(self.limit)} of the answers would be overruled by {judge}"

    def __str__(self) -> str:
        """The promise and the share of answered items, or that nothing can be promised."""
        confidence_phrase = f"with {percent(CONFIDENCE)} confidence"
        if self.threshold is None:
            items = counted(self.items, "item")
            if self.groups is not None:
                items += f" in {counted(self.groups, 'group')}"
            return (
                f"no threshold can promise, {confidence_phrase}, that {self.promise}: the answers"
                f" to the {items} of the fit are too few or too often overruled; everything is for"
                f" people{self._suggestion}"
            )
        share = f"{100 * self.answered:.0f} %"
        return (
            f"{confidence_phrase}, {self.promise}; at this limit, {share} of the items of the fit"
            " would be answered automatically"
        )

    @property
    def _suggestion(self) -> str:
        """The end of the sentence that nothing can be promised: a larger limit, if there is one."""
        if self.alternative is None:
            return ""
        limit, answered = self.alternative
        share = f"{100 * answered:.0f} %"
        return (
            f"; at {percent(limit)} it would answer {share} of the items of the fit (the promise is"
            " weaker if the limit is chosen after looking at several)"
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
    """Return the probability that the label is not overruled, according to the ensemble [N].

    It is used only to rank items: the threshold is chosen on annotators' labels.
    """
    if against == "annotator":
        return 1.0 - _dissent(answers, answers, scale)
    return 1.0 - scale.opposed_shares(scale.hard(answers), answers)


def overruled_shares(answers: Floats, shares: Floats, scale: Scale, against: Against) -> Floats:
    """Return the share of overruling annotators, or whether most overrule [N], for each answer.

    For ``against="annotator"`` it is the share of annotators who gave another label. For
    ``"majority"`` it is 1 if more than half overrule the label, else 0. On an ordinal scale these
    must all have given a higher label, or all a lower one; for multi-label data they must differ
    from the answer about the same label.
    """
    if against == "annotator":
        return _dissent(answers, shares, scale)
    opposed = scale.opposed_shares(scale.hard(answers), shares)
    return (opposed > _MAJORITY).astype(np.float64)


def _dissent(answers: Floats, shares: Floats, scale: Scale) -> Floats:
    """The share of annotators who gave another label than the likeliest one [N]."""
    labels = scale.hard(answers)
    return np.asarray(1.0 - shares[np.arange(len(labels)), labels])


def _p_values(losses: Floats, counts: Ints, limit: float, groups: Ints | None) -> Floats:
    """For each count n, the p-value of "more than ``limit`` of the first n answers are overruled".

    ``losses`` and ``groups`` are in the order of decreasing confidence.
    """
    is_binary = bool(np.isin(losses, (0.0, 1.0)).all())
    if groups is None and is_binary:
        from scipy.special import bdtr

        overruled = np.append(0.0, np.cumsum(losses))[counts]
        return np.asarray(bdtr(overruled, counts, limit))
    if groups is None:
        return _betting_p_values(losses - limit, counts, 1.0 - limit)
    # The bound of a group's sum assumes that no group is larger than the largest one of the fit.
    largest = (1.0 - limit) * float(np.bincount(groups).max())
    p_values = []
    for count in counts:
        sums = np.bincount(groups[:count], losses[:count] - limit)
        excess = np.asarray(sums, dtype=np.float64)
        p_values.append(_betting_p_values(excess, np.array([len(excess)]), largest)[0])
    return np.array(p_values)


def _betting_p_values(excess: Floats, counts: Ints, largest: float) -> Floats:
    """For each count n, the p-value of "the mean of values like the first n is above 0".

    Under this hypothesis, a gambler who starts with a wealth of 1, bets on values below 0 and never
    risks more than the wealth has an expected wealth of at most 1 (Waudby-Smith & Ramdas, 2024).
    The same holds for the mean over several sizes of bets. Values are at most ``largest``.
    """
    with np.errstate(divide="ignore"):
        gains = np.log1p(-np.outer(_BETS / largest, excess))
    log_wealth = np.cumsum(np.pad(gains, ((0, 0), (1, 0))), axis=1)[:, counts]
    mean_log_wealth = np.logaddexp.reduce(log_wealth, axis=0) - np.log(len(_BETS))
    return np.asarray(np.exp(-np.maximum(mean_log_wealth, 0.0)))


def _last_rejected(p_values: Iterable[float]) -> int | None:
    """The position of the last hypothesis that the fallback procedure rejects (Wiens, 2003).

    Each start has an equal part of the 5 % as its level. A hypothesis that is rejected passes its
    level on to the next one.
    """
    level_of_start = (1.0 - CONFIDENCE) / len(_STARTS)
    last_rejected = None
    level = 0.0
    for step, p_value in enumerate(p_values, start=1):
        if step in _STARTS:
            level += level_of_start
        if level > 0 and p_value <= level:
            last_rejected = step - 1
        else:
            level = 0.0
    return last_rejected
