"""Pooled answers: one distribution per item, or per pair of an item and an annotator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from edokit._errors import InputError, option
from edokit._names import factorized
from edokit._types import Floats, Strings
from edokit.metrics import entropy_items
from edokit.metrics._arrays import medians
from edokit.panels import Panel, PanelAnswer, PanelComparison
from edokit.scales import NOMINAL, Scale


@dataclass(frozen=True, eq=False)
class Pooled:
    """One distribution per item, with its entropy and the spread of the members around it.

    Of sets, a probability per label.
    """

    items: Strings
    """Item ids [N]."""
    classes: tuple[str, ...]
    """Class names [C]."""
    probabilities: Floats
    """The pool [N, C]."""
    spread: Floats
    """Weighted mean distance of the members to their linear pool [N], 0 if they agree: L1, of sets
    its mean over labels, on an ordinal scale Wasserstein-1 in its units."""
    scale: Scale = NOMINAL
    """The answer scale."""
    answer_for: str | None = None
    """Metric that ``answers`` are for, where they were asked for."""
    answers: Floats | None = None
    """Answers for this metric [N, C], made from the pool."""
    annotators: Strings | None = None
    """Whose label each row predicts, where rows are pairs of an item and an annotator; empty for
    the anonymous answer of an item."""
    votes: tuple[Floats, Floats] | None = None
    """Ends of the interval of each share of a panel's votes [N, C], where a panel answers."""

    @classmethod
    def concatenate(cls, parts: Sequence[Pooled]) -> Pooled:
        """Further items after the first, as those of several shards."""
        columns = ("items", "probabilities", "spread", "answers", "annotators")
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in columns
            if getattr(parts[0], name) is not None
        }
        if parts[0].votes is not None:
            low, high = zip(*(part.votes for part in parts if part.votes), strict=True)
            joined["votes"] = (np.concatenate(low), np.concatenate(high))
        return replace(parts[0], **joined)

    @property
    def answer(self) -> Floats:
        """The answers for the metric that was asked for, else the pool [N, C]."""
        return self.probabilities if self.answers is None else self.answers

    def mean_over_annotators(self) -> Pooled:
        """Return one row per item: the mean over its annotators, else its anonymous answer."""
        is_named = self._annotators_of_rows() != ""
        codes, items = factorized(self.items)
        # The anonymous answer counts where there is no other.
        share = np.where(np.bincount(codes, is_named)[codes] > 0, is_named, 1.0)
        share /= np.bincount(codes, share)[codes]

        def mean(values: Floats) -> Floats:
            total = np.zeros((len(items), *values.shape[1:]))
            np.add.at(total, codes, values * share.reshape(-1, *[1] * (values.ndim - 1)))
            return total

        return replace(
            self,
            items=np.asarray(items),
            probabilities=mean(self.probabilities),
            spread=mean(self.spread),
            answers=None if self.answers is None else mean(self.answers),
            annotators=None,
        )

    def panel(self, panel: Panel, *, level: float = 0.9) -> Pooled:
        """Return what a panel would answer, one row per item, from rows for its annotators.

        Parameters
        ----------
        panel : Panel
        level : float, default=0.9
            Level of the intervals of the panel's votes.

        Returns
        -------
        Pooled
            With ``votes``, the ends of these intervals (one person has one vote, and no share of
            votes); the spread is the panel's mean.
        """
        rows = self.items, self._annotators_of_rows()
        answer, pooled = (
            panel.answer(*rows, p, level=level) for p in (self.answer, self.probabilities)
        )
        spread = panel.answer(*rows, self.spread[:, None]).probabilities[:, 0]
        return replace(
            self,
            items=answer.items,
            probabilities=pooled.probabilities,
            spread=spread,
            answers=None if self.answers is None else answer.probabilities,
            annotators=None,
            votes=(answer.low, answer.high) if panel.size or len(panel.annotators) > 1 else None,
        )

    def compare(self, one: Panel, other: Panel, *, level: float = 0.9) -> PanelComparison:
        """Return what two panels would answer side by side, from rows for their annotators.

        Parameters
        ----------
        one, other : Panel
        level : float, default=0.9
            Level of the intervals of the panels' votes.

        Returns
        -------
        PanelComparison
            With the anonymous answers, where the rows hold them.
        """
        annotators = self._annotators_of_rows()

        def answer(panel: Panel) -> PanelAnswer:
            return panel.answer(self.items, annotators, self.answer, level=level)

        anonymous = answer(Panel(("",), name="anonymous")) if (annotators == "").any() else None
        answers = answer(one), answer(other)
        return PanelComparison(*answers, self.classes, self.scale, anonymous, level)

    def _annotators_of_rows(self) -> Strings:
        if self.annotators is None:
            raise InputError(
                f"a {option('panel')} needs answers for its annotators, but these are of items",
                "score the items for annotators: `edo score --annotators`",
            )
        return self.annotators

    @property
    def entropy(self) -> Floats:
        """Of each distribution of the pool, in nats [N]; of sets, the mean over labels."""
        rows = entropy_items(self.scale.rows(self.probabilities))
        return np.asarray(self.scale.per_item(rows, len(self.items)))

    @property
    def labels(self) -> Strings:
        """The likeliest class of each item [N]; the first of equals. Of sets, the labels above one
        half as a JSON list."""
        return self.scale.names(self.scale.hard(self.probabilities), self.classes)

    @property
    def medians(self) -> Strings | None:
        """The median of each item [N]: the answer with the least expected distance on an ordinal
        scale; None of other scales."""
        if self.scale.positions is None:
            return None
        names = np.array(self.classes, dtype=object)
        return np.asarray(names[medians(self.probabilities)])

    def to_table(self) -> pa.Table:
        """One row per item: ``item, p_<class> …, entropy, spread, label``.

        On an ordinal scale also ``median``; the scale is in ``answer_scale``, unless it is nominal.
        Where answers are for a metric, ``p_<class>`` are these, and ``answer_for`` names it; all
        other columns describe the pool. Pairs also have ``annotator``; of a panel, ``low_<class>``
        and ``high_<class>`` are the ends of the interval of its votes.
        """
        from edokit.annotations.long_table import SCALE

        columns: dict[str, Any] = {"item": self.items}
        if self.annotators is not None:
            columns["annotator"] = self.annotators
        columns |= {f"p_{name}": self.answer[:, c] for c, name in enumerate(self.classes)}
        for end, shares in zip(("low", "high"), self.votes or (), strict=False):
            columns |= {f"{end}_{name}": shares[:, c] for c, name in enumerate(self.classes)}
        columns |= {"entropy": self.entropy, "spread": self.spread, "label": self.labels}
        if self.scale.positions is not None:
            columns["median"] = self.medians
        if self.answer_for is not None:
            columns["answer_for"] = [self.answer_for] * len(self.items)
        if self.scale != NOMINAL:
            columns[SCALE] = [self.scale.to_text(self.classes)] * len(self.items)
        return pa.table(columns)
