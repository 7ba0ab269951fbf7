"""The result of checking labels: single labels, the least likely first."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from edokit._io.tables import write_table
from edokit._types import Bools, Floats, Ints
from edokit.analysis.human_labels import HumanLabels
from edokit.analysis.labels import text
from edokit.analysis.labels.statistics import LabelProbabilities, label_probabilities
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
        Of this label, given the text (where an ensemble answered it), the other annotators' labels
        and the habit of this annotator. For multi-label data, that of the least likely choice.
    by_text : float or None
        Probability of the label according to the ensemble, which had not seen it.
    by_others : float or None
        Share of the other annotators of the item who gave it.
    others : int
        How many they are.
    by_anybody : float
        Probability that anybody gives the label: without the habit of this annotator.
    suggestion : str or list of str
        What this annotator would most likely answer.
    reason : str
        Why it is likely or not, in a sentence.
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


class LabelCheck:
    """Single labels by how unlikely they are, as `edokit.check_labels` returns them.

    Attributes
    ----------
    n_labels : int
        Number of labels that were checked.
    repeated : int
        Further labels of an annotator for the same item, which were not checked.
    has_text : bool
        Whether an ensemble answered the items.
    strength : float
        How many labels the ensemble's answer (without one, the shares of all labels) counts for.
    order : ndarray of int of shape (n_labels,)
        Positions of the labels, the least likely first.
    probabilities : ndarray of shape (n_labels,)
        Of the labels, in the order of the annotations.
    """

    def __init__(self, labels: HumanLabels, predicted: LabelProbabilities) -> None:
        self._labels = labels
        self._predicted = predicted
        self.n_labels: int = len(labels.item_codes)
        self.repeated: int = int(labels.annotations.repeated.sum())
        self.has_text: bool = predicted.from_text is not None
        self.strength: float = predicted.strength
        self.probabilities: Floats = self._probability_of_labels(predicted.personal)
        self.order: Ints = np.argsort(self.probabilities, kind="stable")

    def __len__(self) -> int:
        return self.n_labels

    def __repr__(self) -> str:
        return f"LabelCheck({self.n_labels} labels)"

    def __str__(self) -> str:
        return "\n".join(text.lines(self.first(10), self.n_labels, self.has_text))

    def _probability_of_labels(self, predicted: Floats) -> Floats:
        return label_probabilities(self._labels.shares, predicted, self._labels.scale)

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
        labels = self._labels
        annotations = labels.annotations
        predicted = self._predicted
        classes = annotations.classes
        shares = labels.shares[positions]
        personal = predicted.personal[positions]
        given_labels = labels.scale.chosen(labels.scale.hard(shares), classes)
        suggested = labels.scale.chosen(labels.scale.hard(personal), classes)
        by_anybody = label_probabilities(shares, predicted.anonymous[positions], labels.scale)
        by_others = label_probabilities(shares, predicted.from_others[positions], labels.scale)
        by_text = np.full(len(positions), np.nan)
        if predicted.from_text is not None:
            by_text = label_probabilities(shares, predicted.from_text[positions], labels.scale)
        described = []
        for row, position in enumerate(positions):
            annotator = str(annotations.annotators[labels.annotator_codes[position]])
            label = CheckedLabel(
                item=str(annotations.items[labels.item_codes[position]]),
                annotator=annotator,
                label=given_labels[row],
                probability=float(self.probabilities[position]),
                by_text=_number(by_text[row]),
                by_others=_number(by_others[row]),
                others=int(predicted.n_others[position]),
                by_anybody=float(by_anybody[row]),
                suggestion=suggested[row],
                reason="",
            )
            unlikely = None
            if labels.scale.is_multi_label:
                unlikely = self._least_likely_choice(int(position))
            described.append(_with_reason(label, unlikely))
        return described

    def _least_likely_choice(self, position: int) -> tuple[str, bool]:
        """For multi-label data, the label whose being chosen (or not) is least likely."""
        labels = self._labels
        is_chosen: Bools = labels.shares[position] > 0.5
        predicted = self._predicted.personal[position]
        number = int(np.where(is_chosen, predicted, 1.0 - predicted).argmin())
        return str(labels.annotations.classes[number]), bool(is_chosen[number])

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
        texts = self._labels.annotations.whole_texts
        if texts is not None:
            item_codes = self._labels.item_codes[self.order]
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
        by_item: dict[str, list[CheckedLabel]] = {}
        first_position: dict[str, int] = {}
        for position, label in zip(self.order[:count], self.first(count), strict=True):
            by_item.setdefault(label.item, []).append(label)
            first_position.setdefault(label.item, int(position))
        reviews = []
        for item, item_labels in by_item.items():
            predicted = self._predicted.anonymous[[first_position[item]]]
            classes = self._labels.annotations.classes
            scale = self._labels.scale
            entropy = scale.per_item(entropy_items(scale.rows(predicted)), 1)
            reviews.append(
                Review(
                    item=item,
                    label=scale.chosen(scale.hard(predicted), classes)[0],
                    probabilities=dict(zip(classes, predicted[0].tolist(), strict=True)),
                    entropy=float(entropy[0]),
                    spread=None,
                    urgency=1.0 - item_labels[0].probability,
                    reason="; ".join(text.of_whom(label) for label in item_labels),
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
        annotations = self._labels.annotations
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


def _number(value: float) -> float | None:
    if np.isnan(value):
        return None
    return float(value)


def _cell(value: object) -> object:
    """A value of a table; a list of labels as JSON."""
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return value


def _with_reason(label: CheckedLabel, unlikely_choice: tuple[str, bool] | None) -> CheckedLabel:
    return replace(label, reason=text.reason(label, unlikely_choice))
