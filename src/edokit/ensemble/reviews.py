"""Files of an ensemble's answers, and the items that most need people, for Label Studio."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from edokit._errors import (
    HAVE,
    InputError,
    are,
    check_number,
    counted,
    examples,
    one_of,
    option,
    warn,
)
from edokit._io.atomic import whole_file
from edokit._io.documents import write_json
from edokit._io.markup import xml_attribute, xml_text
from edokit._io.tables import write_tables
from edokit._package import __version__
from edokit._types import Floats, Ints
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.pooled import Pooled
from edokit.metrics import entropy_items
from edokit.metrics.formulas import medians
from edokit.panels import Panel, PanelComparison
from edokit.predictions.core import Predictions
from edokit.predictions.shards import Shards, read_shards
from edokit.runs.folder import refuse_input
from edokit.scales import Scale

CONTROL = "label"
"""The name of the labelling control in Label Studio."""


@dataclass(frozen=True)
class Review:
    """An item that people should look at."""

    item: str
    label: str | list[str]
    """The likeliest class; for multi-label data, the labels above one half."""
    probabilities: Mapping[str, float]
    """Pooled probability of each class, or label."""
    entropy: float
    spread: float | None
    """How far the members are apart; None without members."""
    urgency: float
    """How urgent a review is: the mean of entropy, expected minority and spread.

    Each is a share of its largest value. On an ordinal scale, the standard deviation replaces the
    entropy, and the expected distance from the median the minority. For multi-label data they are
    means over labels. Items with labels have a lower urgency; see `review`."""
    reason: str
    """The reason for the review, such as that annotators are expected to disagree."""
    labels: int | None = None
    """Number of labels that the item has already; None if only new items are considered."""


@dataclass(frozen=True, eq=False)
class ExistingLabels:
    """How many labels items have already, and how many the ensemble's answer is worth.

    Attributes
    ----------
    counts : ndarray of int of shape (N,)
        Number of labels of each item.
    strength : float
        Number of labels that the ensemble's answer is worth.
    """

    counts: Ints
    strength: float

    def factors(self) -> Floats:
        """The factor of each item's urgency [N]; 1 for an item without labels."""
        return np.asarray(((self.strength + 1.0) / (self.strength + self.counts + 1.0)) ** 2)


def review(
    pooled: Pooled,
    count: int,
    queue: Sequence[Review] = (),
    *,
    labelled: ExistingLabels | None = None,
) -> list[Review]:
    """The items that most need annotators, the most urgent first.

    If a decision hands items to people (``for_people``), only these are considered.

    Annotators are needed if they are expected to disagree (entropy), if one label would hide a
    minority's view, and if the members are far apart (spread). An item that has labels needs the
    next one less. Its urgency is multiplied by ((s + 1) / (s + n + 1))², with n labels and an
    answer of the ensemble that is worth s labels: by this factor, one more label reduces the
    expected squared error of the soft label less than for an item without labels.

    Parameters
    ----------
    pooled : Pooled
        What ``EDOEnsemble.describe`` returns.
    count : int
        Number of items; all of them if there are fewer.
    queue : sequence of Review, default=()
        Items of earlier shards, which compete with these.
    labelled : ExistingLabels, optional
        The labels that these items have already; by default they have none.

    Returns
    -------
    list of Review

    Examples
    --------
    >>> import numpy as np
    >>> from edokit import EDOEnsemble
    >>> from edokit.ensemble.reviews import review
    >>> yes = np.array([[0.1, 0.2], [0.4, 0.7], [0.9, 0.8]])
    >>> P = np.stack([1 - yes, yes], axis=2)  # [items, members, classes]
    >>> ensemble = EDOEnsemble().fit(P, np.array([[0, 0, 0], [0, 1, 1], [1, 1, 1]]))
    >>> [(entry.item, entry.reason) for entry in review(ensemble.describe(P), 1)]
    [('1', "annotators are expected to disagree: about 46% would not choose '1'")]
    """
    check_number("review", count, 1, whole=True, hint="ask for 50")
    scale = pooled.scale
    entropies = pooled.entropy
    # The spread of two members with equal weights that are certain of opposite answers.
    largest_spread = 1.0
    if scale.span is not None:
        largest_spread = scale.span / 2
    uncertainty, minority = _uncertainties(pooled.probabilities, scale)
    measures = np.stack([uncertainty, minority, pooled.spread / largest_spread], axis=1)
    shares = np.clip(measures, 0.0, 1.0)
    urgency = shares.mean(axis=1)
    is_due_to_spread = shares[:, 2] > urgency
    if labelled is not None:
        urgency = urgency * labelled.factors()
    candidates = list(queue)
    most_urgent = np.argsort(-urgency, kind="stable")
    if pooled.for_people is not None:
        most_urgent = most_urgent[pooled.for_people[most_urgent]]
    labels = scale.chosen(scale.hard(pooled.probabilities), pooled.classes)
    for row in most_urgent[:count]:
        p = pooled.probabilities[row]
        spread = float(pooled.spread[row])
        if pooled.unfamiliar is not None and pooled.unfamiliar[row]:
            reason = "the text is unlike those that the ensemble learned from"
        elif is_due_to_spread[row]:
            reason = f"the members are far apart: spread {spread:.2f}"
        else:
            reason = _expected_disagreement(pooled.classes, p, scale)
        n_labels = None
        if labelled is not None:
            n_labels = int(labelled.counts[row])
            if n_labels:
                reason = f"has {counted(n_labels, 'label')}, and {reason}"
        candidates.append(
            Review(
                item=str(pooled.items[row]),
                label=labels[row],
                probabilities=dict(zip(pooled.classes, p.tolist(), strict=True)),
                entropy=float(entropies[row]),
                spread=spread,
                urgency=float(urgency[row]),
                reason=reason,
                labels=n_labels,
            )
        )
    # Sorting is stable: equally urgent items stay in their order.
    return sorted(candidates, key=lambda candidate: -candidate.urgency)[: int(count)]


def _uncertainties(p: Floats, scale: Scale) -> tuple[Floats, Floats]:
    """The uncertainty of answers, and the expected minority, as shares of their maxima [N].

    They are entropy and probability of other classes; on an ordinal scale the standard deviation
    and the expected distance from the median.
    """
    if scale.span is not None:
        positions = np.array(scale.positions) / scale.span
        deviations = scale.deviations(p) / scale.span
        distances = np.abs(positions - positions[medians(p)][:, None])
        # Both are at most one half of the span, if the probability is divided between its ends.
        return 2.0 * deviations, 2.0 * np.sum(p * distances, axis=1)
    rows = scale.rows(p)
    n_classes = max(rows.shape[1], 2)
    entropies = entropy_items(rows) / math.log(n_classes)
    minorities = (1.0 - rows.max(axis=1)) / (1.0 - 1.0 / n_classes)
    return scale.per_item(entropies, len(p)), scale.per_item(minorities, len(p))


def _expected_disagreement(classes: Sequence[str], p: Floats, scale: Scale) -> str:
    """The share of annotators who are expected to give another answer than the pool p [C].

    The answer is the likeliest class, or on an ordinal scale the median. For multi-label data, the
    share is that of the label with the most disagreement.
    """
    if scale.is_multi_label:
        c = int(np.abs(p - 0.5).argmin())
        share = min(p[c], 1 - p[c])
        action = "leave out" if p[c] > 0.5 else "choose"
    else:
        c = int(p.argmax())
        if scale.span is not None:
            c = int(medians(p[None])[0])
        share = 1 - p[c]
        action = "not choose"
    return f"annotators are expected to disagree: about {share:.0%} would {action} {classes[c]!r}"


def label_studio_tasks(
    queue: Sequence[Review], texts: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Tasks for Label Studio in the order of the queue, with the ensemble's label as a prediction.

    An export of the labelled tasks is read by `read_label_studio(…, columns={"item": "item"})`.
    """
    if texts is None:
        return [_task(review, None) for review in queue]
    missing = [review.item for review in queue if review.item not in texts]
    if missing:
        raise InputError(
            f"of the items to review, {are(len(missing), len(queue), HAVE)} no text:"
            f" {examples(missing)}",
            "give the texts of all items, or none",
            code="missing-texts",
        )
    return [_task(review, texts[review.item]) for review in queue]


def _task(review: Review, text: str | None) -> dict[str, object]:
    """The task of an item, with its text if there is one."""
    data: dict[str, object] = {"item": review.item}
    if text is not None:
        data["text"] = text
    # None of the other fields is a string, which readers of an export could take for the text.
    data |= {
        "probabilities": dict(review.probabilities),
        "entropy": review.entropy,
        "urgency": review.urgency,
        "reasons": [review.reason],
    }
    if review.spread is not None:
        data["spread"] = review.spread
    if review.labels is not None:
        data["labels"] = review.labels
    if isinstance(review.label, str):
        labels = [review.label]
        score = review.probabilities[review.label]
    else:
        labels = review.label
        # The score of several labels is the certainty of the least certain one.
        certainties = []
        for name, p in review.probabilities.items():
            certainties.append(p if name in labels else 1.0 - p)
        score = min(certainties)
    result = {
        "id": CONTROL,
        "from_name": CONTROL,
        "to_name": "text",
        "type": "choices",
        "value": {"choices": [xml_text(name) for name in labels]},
        "meta": {"text": [f"{name} {p:.4f}" for name, p in review.probabilities.items()]},
    }
    prediction = {
        "model_version": f"edokit {__version__}",
        "score": score,
        "result": [result],
    }
    return {"data": data, "predictions": [prediction]}


def labelling_config(classes: Sequence[str], has_texts: bool, is_multi_label: bool = False) -> str:
    """The labelling interface of a Label Studio project for these tasks, as XML."""
    choice = 'choice="single" required="true"'
    if is_multi_label:
        choice = 'choice="multiple"'
    choices = "\n".join(f"    <Choice value={xml_attribute(name)}/>" for name in classes)
    value = "$item"
    if has_texts:
        value = "$text"
    return (
        "<View>\n"
        f'  <Text name="text" value="{value}"/>\n'
        f'  <Choices name="{CONTROL}" toName="text" {choice}>\n'
        f"{choices}\n"
        "  </Choices>\n"
        "</View>\n"
    )


def write_review(
    queue: Sequence[Review],
    classes: Sequence[str],
    path: str | Path,
    texts: Mapping[str, str] | None = None,
) -> Path:
    """Write tasks for Label Studio, and the labelling interface to an ``.xml`` file beside them.

    Parameters
    ----------
    queue : sequence of Review
        What ``review`` returned.
    classes : sequence of str
        Classes to choose from.
    path : str or Path
        The file of the tasks, whose name ends in ``.json``.
    texts : mapping of str to str, default=None
        Text of each item; without texts, annotators see only the item's id.

    Returns
    -------
    Path
        The file of the labelling interface.

    Raises
    ------
    InputError
        If an item lacks a text, or the path does not end in ``.json``.
    """
    path = Path(path)
    if path.suffix.lower() != ".json":
        raise InputError(
            f"{path}: tasks for Label Studio are written as .json",
            "end the name in .json",
            code="unknown-ending",
        )
    write_json(label_studio_tasks(queue, texts), path)
    config_file = path.with_suffix(".xml")
    is_multi_label = any(isinstance(review.label, list) for review in queue)
    config = labelling_config(classes, texts is not None, is_multi_label)
    with whole_file(config_file) as temporary:
        temporary.write_text(config, encoding="utf-8")
    return config_file


# --- Files of answers -----------------------------------------------------------------------------


def predict_to_file(
    ensemble: EDOEnsemble,
    predictions: Predictions | Shards | Iterable[Pooled] | str | Path,
    out: str | Path,
    *,
    review: int | None = None,
    texts: Mapping[str, str] | None = None,
    sort: str | None = None,
    raw: bool = False,
    answer_for: str | None = None,
    panel: Panel | None = None,
    queue: Sequence[Review] | None = None,
    labelled_items: Collection[str] = (),
) -> dict[str, Any]:
    """Write the pooled probabilities of all items; shards are read one by one.

    Parameters
    ----------
    ensemble : EDOEnsemble
        A fitted ensemble.
    predictions : Predictions, Shards, str or Path
        The members' predictions, or the path of a file or a folder of shards. Also answers that the
        ensemble has pooled already, as `Pooled` in parts.
    out : str or Path
        The table (.csv, .tsv, .parquet or .jsonl): item, ``p_<class>`` columns, entropy, spread
        and label; see `Pooled.to_table`. If items are handed to people, also the text.
    review : int, optional
        Number of items that most need annotators, to be written as tasks for Label Studio beside
        `out` (``<out>-review.json``). If a decision hands items to people, only these are written,
        by default all of them.
    texts : mapping of str to str, optional
        Text of each item to review.
    sort : str, optional
        Sort rows by this column: numbers from high to low, names in alphabetical order. All rows
        are in memory then.
    raw : bool, default=False
        In a CSV, ids and labels that a spreadsheet would run as formulas get a quote in front. With
        ``raw`` they are written unchanged.
    answer_for : {"ce", "md", "w1", "f1"}, optional
        Write answers for this metric in the ``p_<class>`` columns, and its name in ``answer_for``.
    panel : Panel, optional
        Write the answers of this panel, a row per item, from predictions for pairs of an item and
        an annotator.
    queue : sequence of Review, optional
        Labelled items that compete with these for the review.
    labelled_items : collection of str, default=()
        All labelled items, which must not be among the new ones.

    Returns
    -------
    dict
        ``out``; the number of ``items``, and of ``pairs`` if rows are pairs of an item and an
        annotator; mean ``entropy`` and ``spread``; the number of ``unfamiliar`` items if that is
        known, and of items for ``people`` if a decision was made; ``answer_for`` with the metric
        and its step if ``answer_for`` is given; ``review`` with ``out``, ``config`` and ``items``
        if a review is written.

    Raises
    ------
    InputError
        If members are missing or a file can't be read or written; nothing is written then.
    """
    out = Path(out)
    tasks = out.with_name(f"{out.stem}-review.json")
    if isinstance(predictions, str | Path):
        refuse_input(out, Path(predictions))
        if review is not None:
            refuse_input(tasks, Path(predictions))

    def pooled_parts() -> Iterator[Pooled]:
        for part in _in_parts(predictions):
            if isinstance(part, Pooled):
                yield part
                continue
            pooled = ensemble.describe(part, answer_for=answer_for, only_knowing=True)
            if panel is not None:
                pooled = pooled.panel(panel)
            yield pooled

    summary = _Summary(review, queue, labelled_items)

    def tables() -> Iterator[pa.Table]:
        for pooled in pooled_parts():
            summary.add(pooled)
            table = pooled.to_table()
            if pooled.for_people is not None and texts is not None:
                item_texts = [texts.get(str(item), "") for item in pooled.items]
                table = table.append_column("text", pa.array(item_texts, pa.string()))
            yield table
        if summary.writes_tasks:
            # Missing texts are refused here, before the file of answers is in its place.
            label_studio_tasks(summary.queue, texts)

    rows = write_tables(sorted_tables(tables(), sort), out, raw=raw)
    result: dict[str, Any] = {"out": str(out), **summary.to_dict(rows)}
    if answer_for is not None:
        result["answer_for"] = {"metric": answer_for, **asdict(ensemble.answers_[answer_for])}
    if not summary.writes_tasks:
        return result
    if texts is None and summary.queue:
        warn(
            "annotators who review will see only the ids of items; give"
            f" {option('annotations')} or {option('texts')}"
        )
    config = write_review(summary.queue, summary.classes, tasks, texts)
    review_files: dict[str, Any] = {
        "out": str(tasks),
        "config": str(config),
        "items": len(summary.queue),
    }
    if summary.has_labelled_items:
        review_files["again"] = sum(1 for entry in summary.queue if entry.labels)
    return {**result, "review": review_files}


def sorted_tables(tables: Iterable[pa.Table], column: str | None) -> Iterator[pa.Table]:
    """Yield tables with the same rows, sorted by a column; None keeps their order.

    Numbers are sorted from high to low, as queues need it; names in alphabetical order.
    """
    if column is None:
        yield from tables
        return
    rows = pa.concat_tables(list(tables))
    one_of("sort", column, rows.column_names)
    direction = "descending"
    if pa.types.is_string(rows.schema.field(column).type):
        direction = "ascending"
    yield rows.sort_by([(column, direction)])


class _Summary:
    """Totals that `predict_to_file` reports, added up part by part, and the queue of the review."""

    def __init__(
        self, review: int | None, queue: Sequence[Review] | None, labelled_items: Collection[str]
    ) -> None:
        self.review = review
        self.has_labelled_items = queue is not None
        """Whether labelled items compete with new ones for the review."""
        self.labelled_items = frozenset(labelled_items)
        self.queue: list[Review] = list(queue or ())
        self.classes: tuple[str, ...] = ()
        self.entropy = 0.0
        self.spread = 0.0
        self.items_of_pairs: set[str] = set()
        self.n_pairs = 0
        self.n_unfamiliar: int | None = None
        self.n_for_people: int | None = None

    @property
    def writes_tasks(self) -> bool:
        """Whether tasks for people are written."""
        return self.review is not None or self.n_for_people is not None

    def add(self, pooled: Pooled) -> None:
        """Add the answers for further items."""
        self.entropy += float(pooled.entropy.sum())
        self.spread += float(pooled.spread.sum())
        self.classes = pooled.classes
        if pooled.unfamiliar is not None:
            unfamiliar_items = np.unique(pooled.rows.item_codes[pooled.unfamiliar])
            self.n_unfamiliar = (self.n_unfamiliar or 0) + len(unfamiliar_items)
        if pooled.rows.people:
            if self.review is not None or pooled.for_people is not None:
                raise InputError(
                    "a review picks items, but these predictions are of pairs of an item and an"
                    " annotator",
                    f"name the {option('panel')} whose view counts, or leave {option('review')}"
                    " out",
                    code="pairs-for-items",
                )
            self.items_of_pairs.update(map(str, pooled.rows.items))
            self.n_pairs += int(pooled.rows.is_named.sum())
        count = self.review
        if pooled.for_people is not None:
            self.n_for_people = (self.n_for_people or 0) + int(pooled.for_people.sum())
            if count is None:
                count = len(self.queue) + len(pooled.items)
        if count is not None:
            labelled = None
            if self.has_labelled_items:
                self._refuse_labelled(pooled)
                # The review shows 0 labels for these items beside the numbers of labelled ones.
                labelled = ExistingLabels(np.zeros(len(pooled.items), dtype=np.int64), strength=1.0)
            self.queue = review(pooled, count, self.queue, labelled=labelled)

    def _refuse_labelled(self, pooled: Pooled) -> None:
        """Refuse new items that are among the labelled ones."""
        repeated = [item for item in pooled.items if item in self.labelled_items]
        if repeated:
            subject = are(len(repeated), len(pooled.items), noun="item")
            raise InputError(
                f"{subject} among those of the fit, which"
                f" {option('again')} ranks with their labels: {examples(repeated)}",
                f"leave them out of the new items, or leave {option('again')} out",
                code="repeated-item",
            )

    def to_dict(self, rows: int) -> dict[str, Any]:
        """Numbers of items and of pairs, and means over this number of rows."""
        totals: dict[str, object] = {"items": rows}
        if self.items_of_pairs:
            totals["items"] = len(self.items_of_pairs)
            totals["pairs"] = self.n_pairs
        totals["entropy"] = self.entropy / rows
        totals["spread"] = self.spread / rows
        if self.n_unfamiliar is not None:
            totals["unfamiliar"] = self.n_unfamiliar
        if self.n_for_people is not None:
            totals["people"] = self.n_for_people
        return totals


def _in_parts(
    predictions: Predictions | Iterable[Predictions | Pooled] | str | Path,
) -> Iterable[Predictions | Pooled]:
    """The shards of a file or a folder; predictions in memory are a single part."""
    if isinstance(predictions, str | Path):
        return read_shards(predictions)
    if isinstance(predictions, Predictions):
        return [predictions]
    return predictions


def compare_panels(
    ensemble: EDOEnsemble,
    predictions: Predictions | Iterable[Predictions] | str | Path,
    one: Panel,
    other: Panel,
    *,
    answer_for: str | None = None,
) -> PanelComparison:
    """Compare what two panels would answer; shards are read one by one.

    Parameters
    ----------
    ensemble : EDOEnsemble
        A fitted ensemble.
    predictions : Predictions, Shards, str or Path
        The members' predictions for pairs of an item and an annotator, or their path.
    one, other : Panel
    answer_for : {"ce", "md", "w1", "f1"}, optional
        Compare answers for this metric instead of the pool.

    Returns
    -------
    PanelComparison

    Raises
    ------
    InputError
        If answers of a panel's annotators are missing, or the panels answered different items.
    """
    parts = []
    for part in _in_parts(predictions):
        if not isinstance(part, Pooled):
            part = ensemble.describe(part, answer_for=answer_for, only_knowing=True)
        parts.append(part)
    return Pooled.concatenate(parts).compare(one, other)
