"""Sentences and tables made of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from edokit._errors import counted, signed
from edokit._io.markup import Table
from edokit.analysis.evaluate.result import ANONYMOUS, Evaluation
from edokit.analysis.scores.result import CONSTANT, Score
from edokit.analysis.scores.text import SHARES, difference_interval, headline_sentences, slice_table
from edokit.metrics import METRIC

# Annotators that the table shows.
_MOST_ANNOTATORS = 10


def headline(evaluation: Evaluation) -> list[str]:
    """Sentences for answers that do not beat the constant answer, or the anonymous answers."""
    sentences = headline_sentences(
        evaluation.scores[0],
        evaluation.scores[-1],
        evaluation.items,
        subject=evaluation.subject,
        source=evaluation.constant.source,
    )
    if evaluation.pairs:
        sentences.extend(_annotator_sentences(evaluation))
    return sentences


def _annotator_sentences(evaluation: Evaluation) -> list[str]:
    """A sentence where answers for known annotators are not better than anonymous ones."""
    known_score = evaluation.pairs[0]
    metric = known_score.headline_metric
    # Without anonymous answers there is no test.
    test = known_score.against.get(metric)
    if test is None or test.high < 0:
        return []
    anonymous_score = evaluation.pairs[1]
    verdict = "worse" if test.low > 0 else "not clearly better"
    return [
        f"Answers for known annotators are {verdict} than anonymous ones:"
        f" {METRIC[metric].short} of their labels {known_score.headline_value:.4f} against"
        f" {anonymous_score.headline_value:.4f} (difference {signed(test.low)} to"
        f" {signed(test.high)})."
    ]


def metric_table(evaluation: Evaluation, subject: str) -> Table:
    """All metrics, with the best possible values and those of a constant answer."""
    records = []
    for name, value in evaluation.metrics.items():
        interval = None
        if name in evaluation.intervals:
            ends = evaluation.intervals[name]
            interval = _interval_cell((ends.low, ends.high))
        record = {
            "metric": f"{METRIC[name].title} {METRIC[name].arrow}",
            "value": value,
            f"{100 * evaluation.level:g}% interval": interval,
            "best possible": evaluation.best_possible[name],
            "constant": evaluation.constant_metrics[name],
        }
        records.append(record)
    notes = []
    if evaluation.scale.is_multi_label:
        notes.append("For multi-label data, micro-F1 is the share of correct labels.")
    return Table.from_records(f"{subject}: {counted(evaluation.items, 'item')}", records, notes)


def further_tables(evaluation: Evaluation, subject: str) -> list[Table]:
    """The answers beside a constant, the errors by annotator, and slices, where there are some."""
    tables = [_constant_table(evaluation, subject)]
    if evaluation.pairs:
        tables.append(_pair_table(evaluation))
        tables.append(_annotator_table(evaluation))
    if evaluation.slices:
        tables.append(slice_table(evaluation.slices, evaluation.level, subject))
    return tables


def _constant_table(evaluation: Evaluation, subject: str) -> Table:
    constant = f"{SHARES[evaluation.constant.source]}, and {evaluation.scale.majority_noun}"
    note = f"constant: {constant}."
    return _score_table("Beside a constant answer", evaluation.scores, CONSTANT, note, subject)


def _pair_table(evaluation: Evaluation) -> Table:
    labels = sum(row["n"] for row in evaluation.annotators)
    title = f"Annotators' own labels: {counted(labels, 'label')}"
    note = "Resampled by item: the labels of an item belong together."
    return _score_table(title, evaluation.pairs, ANONYMOUS, note, evaluation.pairs[0].name)


def _score_table(title: str, scores: Sequence[Score], rival: str, note: str, subject: str) -> Table:
    """Methods with their metrics, and how far each is from a rival in the headline metric.

    The first row is called ``subject``.
    """
    records = []
    for score in scores:
        tests = score.against
        if rival == CONSTANT:
            tests = score.against_constant
        name = subject if score is scores[0] else score.name
        record: dict[str, str | float] = {"": name}
        for metric, value in score.metrics.items():
            record[METRIC[metric].label] = value
        interval = difference_interval(tests.get(score.headline_metric))
        record[f"Δ{METRIC[score.headline_metric].short} vs {rival}"] = interval or "–"
        records.append(record)
    return Table.from_records(title, records, [note])


def _annotator_table(evaluation: Evaluation) -> Table:
    """The annotators with the highest CE."""
    ranked = sorted(evaluation.annotators, key=lambda row: -row["ce"])
    records = []
    for row in ranked[:_MOST_ANNOTATORS]:
        interval_cell = None
        interval = row.get("ce_interval")
        if interval is not None:
            interval_cell = _interval_cell(interval)
        record = {
            "annotator": row["annotator"],
            "labels": row["n"],
            "error": row["error"],
            "CE": row["ce"],
            f"{100 * evaluation.level:g}% interval": interval_cell,
            "anonymous CE": row.get("anonymous_ce"),
        }
        records.append(record)
    notes = []
    unlisted = len(ranked) - len(records)
    if unlisted > 0:
        notes.append(f"{counted(unlisted, 'annotator')} with a lower CE, listed in the JSON.")
    return Table.from_records("Error by annotator", records, notes)


def _interval_cell(ends: Sequence[float | None]) -> str:
    """``0.5800 … 0.8200``."""
    return " … ".join("–" if end is None else f"{end:.4f}" for end in ends)
