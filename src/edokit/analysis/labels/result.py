"""The result of checking labels: single labels, the least likely first."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from edokit._io.tables import write_table
from edokit._types import Floats, Ints
from edokit.analysis.human_labels import HumanLabels
from edokit.analysis.labels import text
from edokit.analysis.labels.statistics import LabelProbabilities, choice_probabilities
from edokit.ensemble.reviews import Review, write_review
from edokit.metrics import entropy_items

Label = str | list[str]
"""A class, or for multi-label data the labels that were chosen."""


@dataclass(frozen=True)
class CheckedLabel:
    """A single label, and how likely it is.

    Attributes
    ----------
    item, annotator : str
    label : str or list of str
        What the annotator answered; for multi-label data, the labels that were chosen.
    probability : float
        Probability of this label, given the text (where an ensemble answered it), the other
        annotators' labels and how this annotator differs from others. For multi-label data, each
        label was chosen or left out; this is the probability of the least likely of these
        choices, and the next values are about the same choice.
    by_text : float or None
        Probability of the label according to the ensemble, which had not seen it.
    by_others : float or None
        Share of the other annotators of the item who gave the same label.
    others : int
        Number of other annotators of the item.
    by_anybody : float
        Probability that an annotator of whom nothing is known gives the label.
    suggestion : str or list of str
        What this annotator would most likely answer.
    reason : str
        Why the label is likely or unlikely, in a sentence.
    """

    item: str
    annotator: str
    label: Label
    probability: float
    by_text: float | None
    by_others: float | None
    others: int
    by_anybody: float
    suggestion: Label
    reason: str


@dataclass(frozen=True, eq=False)
class LabelCheck:
    """Single labels by how unlikely they are, as `edokit.check_labels` returns them.

    Attributes
    ----------
    labels : HumanLabels
        The labels that were checked, the first of each annotator for each item.
    predicted : LabelProbabilities
        What was predicted for each of them.
    """

    labels: HumanLabels
    predicted: LabelProbabilities

    @property
    def n_labels(self) -> int:
        """Number of labels that were checked."""
        return len(self.labels.item_codes)

    @property
    def repeated(self) -> int:
        """Number of further labels of an annotator for the same item, which were not checked."""
        return int(self.labels.annotations.repeated.sum())

    @property
    def has_text(self) -> bool:
        """Whether an ensemble answered the items."""
        return self.predicted.from_text is not None

    @property
    def strength(self) -> float:
        """How many labels the ensemble's answer (else the shares of all labels) counts as."""
        return self.predicted.strength

    @cached_property
    def choices(self) -> Ints:
        """The least likely choice of each label [n_labels]: 0, or the number of a label."""
        return np.asarray(self._choice_probabilities(self.predicted.personal).argmin(axis=1))

    @cached_property
    def probabilities(self) -> Floats:
        """The probability of each label [n_labels], in the order of the annotations."""
        return self._of_choices(self.predicted.personal)

    @cached_property
    def order(self) -> Ints:
        """Positions of the labels [n_labels], the least likely first."""
        return np.argsort(self.probabilities, kind="stable")

    def _choice_probabilities(self, predicted: Floats) -> Floats:
        return choice_probabilities(self.labels.shares, predicted, self.labels.scale)

    def _of_choices(self, predicted: Floats) -> Floats:
        """The predicted probability [n_labels] of the least likely choice of each label."""
        probabilities = self._choice_probabilities(predicted)
        return np.asarray(probabilities[np.arange(self.n_labels), self.choices])

    def __len__(self) -> int:
        return self.n_labels

    def __repr__(self) -> str:
        return f"LabelCheck({self.n_labels} labels)"

    def __str__(self) -> str:
        return "\n".join(text.lines(self.first(10), self.n_labels, self.has_text))

    def first(self, count: int) -> list[CheckedLabel]:
        """Return the least likely labels.

        Parameters
        ----------
        count : int
            How many; all where there are fewer.

        Returns
        -------
        list of CheckedLabel
        """
        return self._describe(self.order[:count])

    def _describe(self, positions: Ints) -> list[CheckedLabel]:
        """The labels at these positions, with what is known of each."""
        labels = self.labels
        annotations = labels.annotations
        classes = annotations.classes
        given_labels = labels.scale.chosen(labels.scale.hard(labels.shares[positions]), classes)
        personal = self.predicted.personal[positions]
        suggested = labels.scale.chosen(labels.scale.hard(personal), classes)
        by_anybody = self._of_choices(self.predicted.anonymous)
        by_others = self._of_choices(self.predicted.from_others)
        by_text = np.full(self.n_labels, np.nan)
        if self.predicted.from_text is not None:
            by_text = self._of_choices(self.predicted.from_text)
        described = []
        for row, position in enumerate(positions):
            label = CheckedLabel(
                item=str(annotations.items[labels.item_codes[position]]),
                annotator=str(annotations.annotators[labels.annotator_codes[position]]),
                label=given_labels[row],
                probability=float(self.probabilities[position]),
                by_text=_none_if_nan(by_text[position]),
                by_others=_none_if_nan(by_others[position]),
                others=int(self.predicted.n_others[position]),
                by_anybody=float(by_anybody[position]),
                suggestion=suggested[row],
                reason="",
            )
            reason = text.reason(label, self._unlikely_choice(int(position)))
            described.append(replace(label, reason=reason))
        return described

    def _unlikely_choice(self, position: int) -> tuple[str, bool] | None:
        """For multi-label data, the label of the least likely choice, and whether it was chosen."""
        names = self.labels.scale.row_labels(self.labels.annotations.classes)
        if not names:
            return None
        number = self.choices[position]
        return names[number], bool(self.labels.shares[position, number] > 0.5)

    def to_table(self) -> pa.Table:
        """Return a row for each label, the least likely first.

        Returns
        -------
        pyarrow.Table
            Columns are those of `CheckedLabel`, after ``item`` the ``text`` where there are texts.
            The labels of multi-label data are JSON lists.
        """
        described = self._describe(self.order)
        columns: dict[str, list[object]] = {"item": [label.item for label in described]}
        texts = self.labels.annotations.whole_texts
        if texts is not None:
            item_codes = self.labels.item_codes[self.order]
            columns["text"] = [str(texts[code]) for code in item_codes]
        for name in list(CheckedLabel.__dataclass_fields__)[1:]:
            columns[name] = [_cell(getattr(label, name)) for label in described]
        types = {"probability": pa.float64(), "by_text": pa.float64(), "by_others": pa.float64()}
        arrays = {name: pa.array(cells, types.get(name)) for name, cells in columns.items()}
        return pa.table(arrays)

    def review(self, count: int) -> list[Review]:
        """Return the items of the least likely labels, for people to look at.

        Parameters
        ----------
        count : int
            How many labels; those of one item are in one task.

        Returns
        -------
        list of Review
        """
        scale = self.labels.scale
        classes = self.labels.annotations.classes
        labels_by_item: dict[str, list[CheckedLabel]] = {}
        position_by_item: dict[str, int] = {}  # of the item's least likely label
        for position, label in zip(self.order[:count], self.first(count), strict=True):
            labels_by_item.setdefault(label.item, []).append(label)
            position_by_item.setdefault(label.item, int(position))
        reviews = []
        for item, item_labels in labels_by_item.items():
            predicted = self.predicted.anonymous[[position_by_item[item]]]
            entropy = scale.per_item(entropy_items(scale.rows(predicted)), 1)
            reviews.append(
                Review(
                    item=item,
                    label=scale.chosen(scale.hard(predicted), classes)[0],
                    probabilities=dict(zip(classes, predicted[0].tolist(), strict=True)),
                    entropy=float(entropy[0]),
                    spread=None,
                    urgency=1.0 - item_labels[0].probability,
                    reason="; ".join(text.label_sentence(label) for label in item_labels),
                )
            )
        return reviews

    def write(
        self, out: str | Path, *, review: int | None = 50, raw: bool = False
    ) -> dict[str, object]:
        """Write all labels as a table, and the first ones as tasks for Label Studio.

        Parameters
        ----------
        out : str or Path
            The table (.csv, .tsv, .parquet or .jsonl).
        review : int or None, default=50
            How many labels are written as tasks, into ``<out>-review.json`` with the interface
            beside it; None for none.
        raw : bool, default=False
            In a CSV, write text that a spreadsheet would run as a formula without a quote.

        Returns
        -------
        dict
            ``out``, ``labels``, ``repeated``, ``ensemble``, ``strength``, the ten least likely
            labels as ``first``, and ``review`` with ``out``, ``config``, ``labels`` and ``items``.
        """
        out = Path(out)
        write_table(self.to_table(), out, raw=raw)
        result: dict[str, object] = {"out": str(out), **self.to_dict()}
        if review is None:
            return result
        queue = self.review(review)
        annotations = self.labels.annotations
        texts = None
        if annotations.whole_texts is not None:
            texts = dict(zip(map(str, annotations.items), annotations.whole_texts, strict=True))
        tasks = out.with_name(f"{out.stem}-review.json")
        config = write_review(queue, annotations.classes, tasks, texts)
        result["review"] = {
            "out": str(tasks),
            "config": str(config),
            "labels": min(review, self.n_labels),
            "items": len(queue),
        }
        return result

    def to_dict(self) -> dict[str, object]:
        """Return the counts and the ten least likely labels as plain values.

        Returns
        -------
        dict
        """
        return {
            "labels": self.n_labels,
            "repeated": self.repeated,
            "ensemble": self.has_text,
            "strength": self.strength,
            "first": [asdict(label) for label in self.first(10)],
        }


def _none_if_nan(value: float) -> float | None:
    if np.isnan(value):
        return None
    return float(value)


def _cell(value: object) -> object:
    """The cell of a value in a table; a list of labels is written as JSON."""
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return value
