"""From an ensemble to files of its answers: `edo predict`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from edokit._errors import InputError, option, warn
from edokit._io.tables import write_tables
from edokit._outputs import refuse_input
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.pooled import Pooled
from edokit.ensemble.reviews import Review, add_urgent, check_path, label_studio_tasks, write_review
from edokit.panels import Panel, PanelComparison
from edokit.predictions import Predictions, Shards, read_shards


def predict_to_file(
    ensemble: EDOEnsemble,
    predictions: Predictions | Shards | Iterable[Pooled] | str | Path,
    out: str | Path,
    *,
    review: int | None = None,
    review_out: str | Path | None = None,
    texts: Callable[[], Mapping[str, str] | None] | Mapping[str, str] | None = None,
    quote_formulas: bool = False,
    answer_for: str | None = None,
    panel: Panel | None = None,
    level: float = 0.9,
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
        and label; see `Pooled.to_table`.
    review : int, optional
        Also write so many items that most need annotators, as tasks for Label Studio.
    review_out : str or Path, optional
        The file of these tasks (.json); by default beside `out`.
    texts : mapping of str to str or callable, optional
        Text of each item to review, or a function that reads them.
    quote_formulas : bool, default=False
        In a CSV for a spreadsheet, put a quote before ids and labels that it would run as formulas.
    answer_for : {"ce", "md", "w1", "f1"}, optional
        Write answers for this metric in the ``p_<class>`` columns, and its name in ``answer_for``.
    panel : Panel, optional
        Write what this panel would answer, a row per item, from predictions for pairs of an item
        and an annotator.
    level : float, default=0.9
        Level of the intervals of the panel's votes.

    Returns
    -------
    dict
        ``out``, ``items`` (and ``pairs`` of an item and an annotator, where predictions are of
        these), mean ``entropy`` and ``spread``; ``answer_for`` with the metric and its
        step where answers were asked for, and ``review`` with ``out``, ``config`` and ``items``
        where a review was.

    Raises
    ------
    InputError
        If members are missing or a file can't be read or written; nothing is written then.
    """
    out = Path(out)
    tasks = Path(review_out) if review_out else out.with_name(f"{out.stem}-review.json")
    if review is not None:
        check_path(tasks)
    if isinstance(predictions, str | Path):
        for path in (out, tasks) if review is not None else (out,):
            refuse_input(path, Path(predictions))

    def pooled_parts() -> Iterator[Pooled]:
        for part in _in_parts(predictions):
            if isinstance(part, Pooled):
                yield part
            else:
                pooled = ensemble.describe(part, answer_for=answer_for)
                yield pooled if panel is None else pooled.panel(panel, level=level)

    summary = _Summary(review)
    item_texts: Mapping[str, str] | None = None

    def tables() -> Iterator[pa.Table]:
        nonlocal item_texts
        for pooled in pooled_parts():
            summary.add(pooled)
            yield pooled.to_table()
        if review is not None:
            # Texts that are missing are noticed before anything is in its place.
            item_texts = texts() if callable(texts) else texts
            label_studio_tasks(summary.queue, item_texts)

    rows = write_tables(tables(), out, quote_formulas=quote_formulas)
    result: dict[str, Any] = {"out": str(out), **summary.to_dict(rows)}
    if answer_for is not None:
        result["answer_for"] = {"metric": answer_for, **asdict(ensemble.answers_[answer_for])}
    if review is None:
        return result
    if item_texts is None:
        warn(
            "annotators who review will see ids of items alone; give"
            f" {option('annotations')} or {option('texts')}"
        )
    config = write_review(summary.queue, summary.classes, tasks, item_texts)
    review_files = {"out": str(tasks), "config": str(config), "items": len(summary.queue)}
    return {**result, "review": review_files}


class _Summary:
    """What `predict_to_file` reports of pooled items, part by part."""

    def __init__(self, review: int | None) -> None:
        self.review = review
        self.queue: list[Review] = []
        self.classes: tuple[str, ...] = ()
        self.entropy = self.spread = 0.0
        self.items: set[str] = set()  # of pairs
        self.pairs = 0

    def add(self, pooled: Pooled) -> None:
        """Count further items."""
        self.entropy += float(pooled.entropy.sum())
        self.spread += float(pooled.spread.sum())
        self.classes = pooled.classes
        if pooled.rows.people:
            if self.review is not None:
                raise InputError(
                    "a review picks items, but these predictions are of pairs of an item and an"
                    " annotator",
                    f"name the {option('panel')} whose view counts, or leave {option('review')}"
                    " out",
                )
            self.items.update(map(str, pooled.rows.items))
            self.pairs += int(pooled.rows.is_named.sum())
        if self.review is not None:
            self.queue = add_urgent(self.queue, pooled, self.review)

    def to_dict(self, rows: int) -> dict[str, Any]:
        """Numbers of items and of pairs, and means over rows."""
        pairs = {"pairs": self.pairs} if self.items else {}
        means = {"entropy": self.entropy / rows, "spread": self.spread / rows}
        return {"items": len(self.items) or rows, **pairs, **means}


def _in_parts(predictions: Any) -> Iterable[Any]:
    """Predictions of a file or a folder, shard by shard; others as they are."""
    if isinstance(predictions, str | Path):
        return read_shards(predictions)
    return [predictions] if isinstance(predictions, Predictions) else predictions


def compare_panels(
    ensemble: EDOEnsemble,
    predictions: Predictions | Iterable[Predictions] | str | Path,
    one: Panel,
    other: Panel,
    *,
    level: float = 0.9,
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
    level : float, default=0.9
        Level of the intervals of the panels' votes.
    answer_for : {"ce", "md", "w1", "f1"}, optional
        Compare answers for this metric instead of the pool.

    Returns
    -------
    PanelComparison

    Raises
    ------
    InputError
        If a panel's annotators have no answers, or the panels answered different items.
    """
    parts = [ensemble.describe(part, answer_for=answer_for) for part in _in_parts(predictions)]
    return Pooled.concatenate(parts).compare(one, other, level=level)
