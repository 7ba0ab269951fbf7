"""`Pooled`: an ensemble's answers, one distribution per item or per pair with an annotator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edokit._errors import InputError
from edokit._types import Bools, Floats, Strings
from edokit.annotations.long_table import SCALE
from edokit.item_array import with_ids
from edokit.metrics import entropy_items
from edokit.metrics.formulas import medians
from edokit.panels import Panel, PanelComparison
from edokit.predictions.core import Predictions
from edokit.rows import NOBODY, Rows
from edokit.scales import NOMINAL, Scale

PEOPLE = "people"
"""The decision to hand an item to people."""
_ROW_ARRAYS = (
    "probabilities",
    "spread",
    "answers",
    "low",
    "high",
    "familiarity",
    "unfamiliar",
    "unreadable",
    "for_people",
)
"""The fields of `Pooled` that have an entry per row; `Pooled.concatenate` joins them."""


def check_no_people_class(classes: Sequence[str]) -> None:
    """Refuse a class named ``people``: decisions have this name for items handed to people."""
    if PEOPLE in classes:
        raise InputError(
            f"a class is called {PEOPLE!r}, as are the decisions that are left to people",
            "rename the class",
            code="reserved-name",
        )


@dataclass(frozen=True, eq=False)
class Pooled:
    """One distribution per item, with its entropy and the spread of the members around it.

    For multi-label data, a probability per label.
    """

    rows: Rows
    """The items, or pairs of an item and an annotator. An empty annotator marks the anonymous
    answer."""
    classes: tuple[str, ...]
    """Class names [C]."""
    probabilities: Floats
    """The pool [N, C]."""
    spread: Floats
    """Weighted mean distance of the members to their linear pool [N]; 0 if they agree.

    The distance is L1, for multi-label data its mean over labels, and on an ordinal scale
    Wasserstein-1 in units of the scale."""
    scale: Scale = NOMINAL
    """The answer scale."""
    answer_for: str | None = None
    """The metric that ``answers`` are for; None without answers for a metric."""
    answers: Floats | None = None
    """Answers for this metric [N, C], made from the pool."""
    low: Floats | None = None
    high: Floats | None = None
    """Ends of the intervals of the shares of a panel's votes [N, C]; None if no panel answers."""
    familiarity: Floats | None = None
    """Rank of each text among the held-out texts of the fit [N], from 0 to 1; None if unknown."""
    unfamiliar: Bools | None = None
    """Which texts have a low rank, or can't be read [N]; None if unknown."""
    unreadable: Bools | None = None
    """Which texts get the constant answer, since they can't be read [N]; None if unknown."""
    is_panel: bool = False
    """Whether a panel answers; it then gives no label for texts that can't be read."""
    for_people: Bools | None = None
    """Which items are handed to people [N]; None if no decision was made."""

    @classmethod
    def concatenate(cls, parts: Sequence[Pooled]) -> Pooled:
        """Return the rows of several parts, such as shards, one after another."""
        arrays: dict[str, Any] = {}
        for name in _ROW_ARRAYS:
            if getattr(parts[0], name) is not None:
                arrays[name] = np.concatenate([getattr(part, name) for part in parts])
        return replace(parts[0], rows=Rows.concatenate([part.rows for part in parts]), **arrays)

    @property
    def items(self) -> Strings:
        """The item of each row [N]."""
        return self.rows.item_names

    @property
    def annotators(self) -> Strings | None:
        """The annotator whose label each row predicts [N]; None if rows are items."""
        return self.rows.annotator_names

    def as_predictions(self, name: str = "edo") -> Predictions:
        """The pool as predictions of one member."""
        p = self.probabilities[:, None]
        return Predictions(p, self.rows, (name,), self.classes, scale=self.scale)

    @property
    def answer(self) -> Floats:
        """The answers for a metric if there are any, else the pool [N, C]."""
        if self.answers is None:
            return self.probabilities
        return self.answers

    @property
    def with_ids(self) -> Floats:
        """`answer` as an `ItemArray` with the ids of the items; as a bare array without ids."""
        return with_ids(self.answer, self.rows, self.classes)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Floats:
        """The answer as an array, so that metrics take what `describe` returns."""
        return np.array(self.answer, dtype=dtype, copy=bool(copy) or None)

    def mean_over_annotators(self) -> Pooled:
        """Return one row per item: the mean over its annotators, or else its anonymous answer."""
        rows = self.rows
        has_annotators = rows.mean(rows.is_named)[rows.item_codes] > 0
        weights = np.where(has_annotators, rows.is_named, 1.0)
        answers = None
        if self.answers is not None:
            answers = rows.mean(self.answers, weights)
        return replace(
            self,
            rows=rows.by_item(),
            probabilities=rows.mean(self.probabilities, weights),
            spread=rows.mean(self.spread, weights),
            answers=answers,
            **self._text_fields(rows.by_item()),
        )

    def panel(self, panel: Panel) -> Pooled:
        """Return what a panel would answer, one row per item, from rows for its annotators.

        Parameters
        ----------
        panel : Panel

        Returns
        -------
        Pooled
            With ``low`` and ``high``, the ends of the intervals of the shares of votes, unless the
            panel is one person. The spread is the mean over the panel.
        """
        answer = panel.answer(self.rows, self.answer)
        answers = None
        if self.answers is not None:
            answers = answer.probabilities
        low = None
        high = None
        if panel.size or len(panel.annotators) > 1:
            low = answer.low
            high = answer.high
        return replace(
            self,
            rows=answer.rows,
            probabilities=panel.mean(self.rows, self.probabilities),
            spread=panel.mean(self.rows, self.spread),
            answers=answers,
            low=low,
            high=high,
            is_panel=True,
            **self._text_fields(answer.rows),
        )

    def _text_fields(self, items: Rows) -> dict[str, Any]:
        """Return what is known about the texts of these items, by name of the field.

        A flag is set for an item if it is set in any of the item's rows.
        """
        code_of = {str(name): code for code, name in enumerate(self.rows.items)}
        codes = [code_of[str(name)] for name in items.items]
        text_fields: dict[str, Any] = {}
        if self.familiarity is not None:
            first_rows = np.unique(self.rows.item_codes, return_index=True)[1]
            text_fields["familiarity"] = self.familiarity[first_rows][codes]
        for name in ("unfamiliar", "unreadable", "for_people"):
            flags = getattr(self, name)
            if flags is not None:
                text_fields[name] = self.rows.mean(flags)[codes] > 0
        return text_fields

    def compare(self, one: Panel, other: Panel) -> PanelComparison:
        """Compare what two panels would answer, from rows for their annotators.

        Parameters
        ----------
        one, other : Panel

        Returns
        -------
        PanelComparison
            With the anonymous answers, if there are rows for them.
        """
        anonymous = None
        if not self.rows.is_named.all():
            anonymous = Panel((NOBODY,), name="anonymous").answer(self.rows, self.answer)
        return PanelComparison(
            one.answer(self.rows, self.answer),
            other.answer(self.rows, self.answer),
            self.classes,
            self.scale,
            anonymous,
        )

    @property
    def entropy(self) -> Floats:
        """Entropy of the pool in nats [N]; for multi-label data, the mean over labels."""
        rows = entropy_items(self.scale.rows(self.probabilities))
        return np.asarray(self.scale.per_item(rows, len(self.items)))

    @property
    def labels(self) -> Strings:
        """The likeliest class of each item [N], on a tie the first.

        For multi-label data, the labels above one half, as a JSON list.
        """
        return self.scale.names(self.scale.hard(self.probabilities), self.classes)

    @property
    def _has_no_label(self) -> Bools:
        """Whether a row lacks a label [N], as a panel's answer for a text that can't be read."""
        if not self.is_panel or self.unreadable is None:
            return np.zeros(len(self.probabilities), dtype=bool)
        return self.unreadable

    @property
    def decisions(self) -> Strings | None:
        """The label of each item, or ``people`` [N]; None if no decision was made."""
        if self.for_people is None:
            return None
        return np.where(self.for_people, PEOPLE, self.labels)

    @property
    def medians(self) -> Strings | None:
        """The median of each item [N] on an ordinal scale; None for other scales.

        It is the point with the lowest expected distance from an annotator's.
        """
        if self.scale.positions is None:
            return None
        names = np.array(self.classes, dtype=object)
        return np.asarray(names[medians(self.probabilities)])

    @property
    def expected(self) -> Floats | None:
        """The expected point of each item [N] on an ordinal scale; None for other scales."""
        if self.scale.positions is None:
            return None
        return self.scale.expected(self.probabilities)

    @property
    def at_least(self) -> Floats | None:
        """The probability of each point or a higher one [N, C] on an ordinal scale; else None."""
        if self.scale.positions is None:
            return None
        return self.scale.at_least(self.probabilities)

    def to_table(self) -> pa.Table:
        """Return a table with a row per item: ``item, p_<class> …, entropy, spread, label``.

        Pairs also have ``annotator``. On an ordinal scale there are ``median``, ``expected`` (the
        expected point) and ``at_least_<point>`` (the probability of this point or a higher one);
        ``answer_scale`` has the scale, unless it is nominal. ``familiarity``, ``unfamiliar`` and
        ``decision`` are there if they are known. For a panel, ``low_<class>`` and ``high_<class>``
        are the ends of the intervals of its shares of votes.

        If there are answers for a metric, ``p_<class>`` are these, and ``answer_for`` names the
        metric; all other columns describe the pool.
        """
        columns: dict[str, Any] = dict(self.rows.columns())
        for prefix, shares in (("p", self.answer), ("low", self.low), ("high", self.high)):
            if shares is not None:
                for c, name in enumerate(self.classes):
                    # A row without an interval has empty cells.
                    columns[f"{prefix}_{name}"] = pa.array(shares[:, c], from_pandas=True)
        columns |= {"entropy": self.entropy, "spread": self.spread}
        columns["label"] = pa.array(self.labels, mask=self._has_no_label, type=pa.string())
        at_least = self.at_least
        if at_least is not None:
            columns["median"] = self.medians
            columns["expected"] = self.expected
            for c, name in enumerate(self.classes):
                columns[f"at_least_{name}"] = at_least[:, c]
        if self.familiarity is not None:
            columns["familiarity"] = self.familiarity
            columns["unfamiliar"] = self.unfamiliar
        if self.for_people is not None:
            columns["decision"] = self.decisions
        if self.answer_for is not None:
            columns["answer_for"] = [self.answer_for] * len(self.items)
        if self.scale != NOMINAL:
            columns[SCALE] = [self.scale.to_text(self.classes)] * len(self.items)
        return pa.table(columns)

    def to_records(self) -> list[dict[str, Any]]:
        """Return a dictionary per row, ready for JSON: what a server answers for each text.

        It has ``probabilities`` (the answers for a metric if there are any), ``entropy``,
        ``spread`` and ``label``; on an ordinal scale also ``median``, ``expected`` and
        ``at_least``; for a panel, ``low`` and ``high``; and, if they are known, ``familiarity``,
        ``unfamiliar`` and ``decision``. A panel's ``label`` is None for texts that can't be read.
        """
        columns: dict[str, list[Any]] = {
            "probabilities": self._by_class(self.answer),
            "entropy": self.entropy.tolist(),
            "spread": self.spread.tolist(),
            "label": self.scale.chosen(self.scale.hard(self.probabilities), self.classes),
        }
        for row in np.flatnonzero(self._has_no_label):
            columns["label"][row] = None
        if self.medians is not None:
            columns["median"] = self.medians.tolist()
        if self.expected is not None:
            columns["expected"] = self.expected.tolist()
        for name, shares in (("at_least", self.at_least), ("low", self.low), ("high", self.high)):
            if shares is not None:
                columns[name] = self._by_class(shares)
        if self.familiarity is not None and self.unfamiliar is not None:
            columns["familiarity"] = self.familiarity.tolist()
            columns["unfamiliar"] = self.unfamiliar.tolist()
        if self.for_people is not None:
            columns["decision"] = [
                PEOPLE if is_for_people else label
                for label, is_for_people in zip(columns["label"], self.for_people, strict=True)
            ]
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, cells, strict=True)) for cells in rows]

    def _by_class(self, shares: Floats) -> list[dict[str, float]]:
        """Return each row of numbers [N, C] as a dictionary by class name."""
        return [dict(zip(self.classes, row, strict=True)) for row in shares.tolist()]
