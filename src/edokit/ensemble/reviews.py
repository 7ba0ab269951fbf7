"""Files of what an ensemble answers, and the items most in need of people, for Label Studio."""

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
"""Name of the labelling control."""


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
    """How far the members are apart; None where there are none."""
    urgency: float
    """Mean of three numbers in [0, 1]: entropy (ordinal: standard deviation), expected minority
    (ordinal: distance from the median) and spread, each as a share of its largest value; for
    multi-label data the mean over labels."""
    reason: str
    """Why, in a sentence: annotators are expected to disagree, or the members are far apart."""
    labels: int | None = None
    """How many labels the item has already; None where only new items are considered."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Items that have labels already.

    Attributes
    ----------
    counts : ndarray of int of shape (N,)
        How many labels each item has.
    strength : float
        How many labels the ensemble's answer counts for.
    """

    counts: Ints
    strength: float

    def factors(self) -> Floats:
        """How much less the next label tells about each item than about a new one [N]."""
        return np.asarray(((self.strength + 1.0) / (self.strength + self.counts + 1.0)) ** 2)


def review(
    pooled: Pooled,
    count: int,
    queue: Sequence[Review] = (),
    *,
    labelled: Labelled | None = None,
) -> list[Review]:
    """The items most in need of annotation, the most urgent first.

    Where items are handed to people (``for_people``), only these.

    People are needed where annotators are expected to disagree (entropy), where one label would
    hide a minority's view, and where the members are far apart (spread). An item that has labels
    already needs the next one less: the urgency of an item with n labels is multiplied by
    ((s + 1) / (s + n + 1))², the factor by which the n labels lower what one more label takes off
    the expected squared error of the item's soft label, where the ensemble's answer counts as s
    labels.

    Parameters
    ----------
    pooled : Pooled
        What ``EDOEnsemble.describe`` returns.
    count : int
        How many items; all where there are fewer.
    queue : sequence of Review, default=()
        Items of earlier shards, which compete with these.
    labelled : Labelled, optional
        How many labels these items have already; none by default.

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
    # That of two members, evenly weighted, who are certain of opposite answers.
    largest_spread = 1.0 if scale.span is None else scale.span / 2
    farness = pooled.spread / largest_spread
    measures = [*_uncertainties(pooled.probabilities, scale), farness]
    shares = np.clip(np.stack(measures, axis=1), 0.0, 1.0)
    urgency = shares.mean(axis=1)
    # What counts most is the same for new items and for those with labels.
    spread_counts_most = shares[:, -1] > urgency
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
        label = labels[row]
        reason = f"the members are far apart: spread {spread:.2f}"
        if not spread_counts_most[row]:
            reason = _expected_disagreement(pooled.classes, p, scale)
        if pooled.unfamiliar is not None and pooled.unfamiliar[row]:
            reason = "the text is unlike those that the ensemble learned from"
        n_labels = None
        if labelled is not None:
            n_labels = int(labelled.counts[row])
            if n_labels:
                reason = f"has {counted(n_labels, 'label')}, and {reason}"
        candidates.append(
            Review(
                item=str(pooled.items[row]),
                label=label,
                probabilities=dict(zip(pooled.classes, p.tolist(), strict=True)),
                entropy=float(entropies[row]),
                spread=spread,
                urgency=float(urgency[row]),
                reason=reason,
                labels=n_labels,
            )
        )
    # Sorting keeps equally urgent ones in the order of the items.
    return sorted(candidates, key=lambda candidate: -candidate.urgency)[: int(count)]


def _uncertainties(p: Floats, scale: Scale) -> tuple[Floats, Floats]:
    """How uncertain an answer is, and how many choose otherwise, as shares of the most [N]."""
    if scale.span is not None:
        place = np.array(scale.positions) / scale.span
        deviation = scale.deviations(p) / scale.span
        away = np.abs(place - place[medians(p)][:, None])
        return 2.0 * deviation, 2.0 * np.sum(p * away, axis=1)
    rows = scale.rows(p)
    classes = max(rows.shape[1], 2)
    nats = entropy_items(rows) / math.log(classes)
    minority = (1.0 - rows.max(axis=1)) / (1.0 - 1.0 / classes)
    return scale.per_item(nats, len(p)), scale.per_item(minority, len(p))


def _expected_disagreement(classes: Sequence[str], p: Floats, scale: Scale) -> str:
    """How many would not give the likeliest answer of a pool p [C], or the median of a scale.

    For multi-label data, this is about the label that people are expected to differ most about.
    """
    if scale.is_multi_label:
        c = int(np.abs(p - 0.5).argmin())
        share = min(p[c], 1 - p[c])
        action = "leave out" if p[c] > 0.5 else "choose"
    else:
        c = int(p.argmax() if scale.span is None else medians(p[None])[0])
        share = 1 - p[c]
        action = "not choose"
    return f"annotators are expected to disagree: about {share:.0%} would {action} {classes[c]!r}"


def label_studio_tasks(
    queue: Sequence[Review], texts: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Tasks to import, in the order of the queue, with the ensemble's label as a prediction.

    An export of the labelled tasks is read by `read_label_studio(…, columns={"item": "item"})`.
    """
    if texts is None:
        missing = []
    else:
        missing = [review.item for review in queue if review.item not in texts]
    if missing:
        raise InputError(
            f"of the items to review, {are(len(missing), len(queue), HAVE)} no text:"
            f" {examples(missing)}",
            "give the texts of all items, or none",
            code="missing-texts",
        )
    return [_task(review, None if texts is None else texts[review.item]) for review in queue]


def _task(review: Review, text: str | None) -> dict[str, object]:
    # Beside item and text no field is text: an export must not take one for the item's text.
    data: dict[str, object] = (
        {"item": review.item} if text is None else {"item": review.item, "text": text}
    )
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
    else:
        labels = review.label
    # Of a set, the score is that of the label that is least certain.
    shares = [p if name in labels else 1.0 - p for name, p in review.probabilities.items()]
    sets = isinstance(review.label, list)
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
        "score": min(shares) if sets else review.probabilities[labels[0]],
        "result": [result],
    }
    return {"data": data, "predictions": [prediction]}


def labelling_config(classes: Sequence[str], texts: bool, sets: bool = False) -> str:
    """The labelling interface of a Label Studio project for these tasks."""
    if sets:
        choice = 'choice="multiple"'
    else:
        choice = 'choice="single" required="true"'
    choices = "\n".join(f"    <Choice value={xml_attribute(name)}/>" for name in classes)
    value = "$text" if texts else "$item"
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
    """Write tasks for Label Studio, and beside them (``.xml``) the labelling interface.

    Parameters
    ----------
    queue : sequence of Review
        What ``review`` returned.
    classes : sequence of str
        Classes to choose from.
    path : str or Path
        File for the tasks; ends in ``.json``.
    texts : mapping of str to str, default=None
        Text of each item; without it annotators see the item's id.

    Returns
    -------
    Path
        File with the labelling interface.

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
    config = path.with_suffix(".xml")
    sets = any(isinstance(review.label, list) for review in queue)
    with whole_file(config) as temporary:
        temporary.write_text(labelling_config(classes, texts is not None, sets), encoding="utf-8")
    return config


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
        The members' predictions, or where they are: a file, or a folder of shards. Or what the
        ensemble made of them already, as `Pooled` in parts.
    out : str or Path
        The table (.csv, .tsv, .parquet or .jsonl): item, ``p_<class>`` columns, entropy, spread
        and label; see `Pooled.to_table`. Where items are handed to people, also their text.
    review : int, optional
        Also write this many items that most need annotators, as tasks for Label Studio beside `out`
        (``<out>-review.json``). Of answers of which some are handed to people, these are written,
        all of them by default.
    texts : mapping of str to str, optional
        Text of each item to review.
    sort : str, optional
        The column that rows are sorted by: numbers from high to low, names in alphabetical order.
        All rows are in memory then.
    raw : bool, default=False
        In a CSV, write ids and labels that a spreadsheet would run as formulas without the quote
        that is put before them otherwise.
    answer_for : {"ce", "md", "w1", "f1"}, optional
        Write answers for this metric in the ``p_<class>`` columns, and its name in ``answer_for``.
    panel : Panel, optional
        Write what this panel would answer, a row per item, from predictions for pairs of an item
        and an annotator.
    queue : sequence of Review, optional
        Labelled items that compete with these for the review.
    labelled_items : collection of str, default=()
        All labelled items, which must not be among the new ones.

    Returns
    -------
    dict
        ``out``, ``items`` (and ``pairs`` of an item and an annotator, where predictions are of
        these), mean ``entropy`` and ``spread``; how many items are ``unfamiliar``, where that is
        known, and how many are for ``people``, where some are handed over; ``answer_for`` with
        the metric and its step where answers were asked for, and ``review`` with ``out``,
        ``config`` and ``items`` where a review was.

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
            else:
                pooled = ensemble.describe(part, answer_for=answer_for, only_knowing=True)
                yield pooled if panel is None else pooled.panel(panel)

    summary = _Summary(review, queue, labelled_items)

    def tables() -> Iterator[pa.Table]:
        for pooled in pooled_parts():
            summary.add(pooled)
            table = pooled.to_table()
            if pooled.for_people is not None and texts is not None:
                shown = [texts.get(str(item), "") for item in pooled.items]
                table = table.append_column("text", pa.array(shown, pa.string()))
            yield table
        if summary.writes_tasks:
            # Texts that are missing are noticed before anything is in its place.
            label_studio_tasks(summary.queue, texts)

    rows = write_tables(sorted_tables(tables(), sort), out, raw=raw)
    result: dict[str, Any] = {"out": str(out), **summary.to_dict(rows)}
    if answer_for is not None:
        result["answer_for"] = {"metric": answer_for, **asdict(ensemble.answers_[answer_for])}
    if not summary.writes_tasks:
        return result
    if texts is None and summary.queue:
        warn(
            "annotators who review will see ids of items alone; give"
            f" {option('annotations')} or {option('texts')}"
        )
    config = write_review(summary.queue, summary.classes, tasks, texts)
    review_files: dict[str, Any] = {
        "out": str(tasks),
        "config": str(config),
        "items": len(summary.queue),
    }
    if summary.competes:
        review_files["again"] = sum(1 for entry in summary.queue if entry.labels)
    return {**result, "review": review_files}


def sorted_tables(tables: Iterable[pa.Table], column: str | None) -> Iterator[pa.Table]:
    """The rows of all tables, sorted by a column; None keeps their order.

    Numbers are sorted in descending order, so that a queue begins with the largest value; names in
    alphabetical order.
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
    """What `predict_to_file` reports of pooled items, part by part."""

    def __init__(
        self, review: int | None, queue: Sequence[Review] | None, labelled_items: Collection[str]
    ) -> None:
        self.review = review
        self.competes = queue is not None
        self.labelled_items = frozenset(labelled_items)
        self.queue: list[Review] = list(queue or ())
        self.classes: tuple[str, ...] = ()
        self.entropy = self.spread = 0.0
        self.items: set[str] = set()  # of pairs
        self.pairs = 0
        self.unfamiliar: int | None = None
        self.for_people: int | None = None

    @property
    def writes_tasks(self) -> bool:
        """Whether tasks for people are written."""
        return self.review is not None or self.for_people is not None

    def add(self, pooled: Pooled) -> None:
        """Count further items."""
        self.entropy += float(pooled.entropy.sum())
        self.spread += float(pooled.spread.sum())
        self.classes = pooled.classes
        if pooled.unfamiliar is not None:
            unfamiliar_rows = pooled.rows.item_codes[pooled.unfamiliar]
            self.unfamiliar = (self.unfamiliar or 0) + len(np.unique(unfamiliar_rows))
        if pooled.rows.people:
            if self.review is not None or pooled.for_people is not None:
                raise InputError(
                    "a review picks items, but these predictions are of pairs of an item and an"
                    " annotator",
                    f"name the {option('panel')} whose view counts, or leave {option('review')}"
                    " out",
                    code="pairs-for-items",
                )
            self.items.update(map(str, pooled.rows.items))
            self.pairs += int(pooled.rows.is_named.sum())
        count = self.review
        if pooled.for_people is not None:
            self.for_people = (self.for_people or 0) + int(pooled.for_people.sum())
            if count is None:
                count = len(self.queue) + len(pooled.items)
        if count is not None:
            labelled = None
            if self.competes:
                self._refuse_labelled(pooled)
                labelled = Labelled(np.zeros(len(pooled.items), dtype=np.int64), 1.0)
            self.queue = review(pooled, count, self.queue, labelled=labelled)

    def _refuse_labelled(self, pooled: Pooled) -> None:
        twice = [item for item in pooled.items if item in self.labelled_items]
        if twice:
            raise InputError(
                f"{are(len(twice), len(pooled.items), noun='item')} among those of the fit, which"
                f" {option('again')} ranks with their labels: {examples(twice)}",
                f"leave them out of the new items, or leave {option('again')} out",
                code="repeated-item",
            )

    def to_dict(self, rows: int) -> dict[str, Any]:
        """Numbers of items and of pairs, and means over rows."""
        pairs = {"pairs": self.pairs} if self.items else {}
        means = {"entropy": self.entropy / rows, "spread": self.spread / rows}
        counts: dict[str, object] = {"items": len(self.items) or rows, **pairs, **means}
        if self.unfamiliar is not None:
            counts["unfamiliar"] = self.unfamiliar
        if self.for_people is not None:
            counts["people"] = self.for_people
        return counts


def _in_parts(predictions: Any) -> Iterable[Any]:
    """The shards of a file or a folder; predictions in memory are a single shard."""
    if isinstance(predictions, str | Path):
        return read_shards(predictions)
    return [predictions] if isinstance(predictions, Predictions) else predictions


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
        The members' predictions for pairs of an item and an annotator, or where they are.
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
    parts = [
        ensemble.describe(part, answer_for=answer_for, only_knowing=True)
        for part in _in_parts(predictions)
    ]
    return Pooled.concatenate(parts).compare(one, other)
