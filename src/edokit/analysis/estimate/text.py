"""Sentences and tables made of an estimate of shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edokit._errors import are, counted
from edokit._io.markup import Cell, Table
from edokit.analysis.estimate.result import Estimate, Expected, SampleGap, Share, Shares
from edokit.analysis.estimate.statistics import FEWEST_LABELS

_RANDOM_SAMPLE = "This assumes that the labelled texts are a random sample of all texts."
_UNKNOWN_FIT = (
    "This also assumes that the ensemble did not learn from the labelled texts; the data of the fit"
    " are not available to check it."
)
_LIKE_THE_FIT = (
    "These texts are unlabelled: the estimate assumes that people judge them as they judged the"
    " texts of the fit with the same answers. To check this, label a random sample of them."
)
_ANSWERS_ALONE = (
    "These texts are unlabelled, and the data of the fit are not available: the shares are means of"
    " the answers, and their error is unknown."
)


def notes(estimate: Estimate) -> list[str]:
    """What the shares assume, and what speaks against it."""
    total = estimate.total
    if total.basis == "answers":
        lines = [_ANSWERS_ALONE]
    elif total.basis == "fit":
        lines = [_LIKE_THE_FIT]
    else:
        lines = [_RANDOM_SAMPLE]
        if estimate.sample_gap is not None:
            lines.append(_sample_note(estimate.sample_gap))
        if estimate.fit_texts is None:
            lines.append(_UNKNOWN_FIT)
        elif estimate.fit_texts > 0:
            lines.append(_fit_texts_note(estimate.fit_texts, total.labelled))
    sparse_slices = [part for part in estimate.slices if part.basis != total.basis]
    if sparse_slices:
        lines.append(_few_labels_note(sparse_slices))
    return lines


def _few_labels_note(slices: Sequence[Shares]) -> str:
    """A note on slices with too few labels of their own."""
    values = ", ".join(str(part.value) for part in slices)
    return (
        f"{slices[0].column} {values}: fewer than {FEWEST_LABELS} labelled texts each, so these"
        " assume that people judge them as they judge other texts with the same answers."
    )


def _fit_texts_note(count: int, total: int) -> str:
    """A note on labelled texts that the ensemble learned from."""
    return (
        f"{are(count, total, ('was', 'were'), 'labelled text')} in the fit; for them the"
        " held-out answers are used, as for new texts."
    )


def _sample_note(gap: SampleGap) -> str:
    """A note on labelled texts whose answers are unlike those to all texts."""
    return (
        "The labelled texts do not look like a random sample: their mean answer for"
        f" {gap.name!r} is {gap.labelled:.1%}, that of all texts {gap.everything:.1%}. Draw the"
        " texts to label at random, or the shares may be off by more than their intervals say."
    )


def headline(estimate: Estimate) -> list[str]:
    """The shares in sentences, the largest or highest first."""
    total = estimate.total
    people = estimate.panel or "People"
    texts = counted(total.texts, "text")
    lines = []
    if total.expected is not None:
        point = _range(total.expected, total.expected["expected"], "{:.2f}")
        lines.append(f"{people} would give {texts} {point} on average.")
    else:
        name, share = _headline_share(estimate)
        percent = _range(share, share["share"], "{:.1%}")
        lines.append(f"{people} would label {percent} of {texts} {name!r}.")
    if total.labels_worth is not None:
        lines.append(_worth_sentence(total.labels_worth, total.labelled))
    return [*lines, *estimate.notes]


def _headline_share(estimate: Estimate) -> tuple[str, Share]:
    """The share that a sentence is about: of two classes the second, else the largest."""
    shares = estimate.shares
    if len(shares) == 2 and estimate.scale == "nominal":
        name = estimate.classes[1]
    else:
        name = max(shares, key=lambda label: shares[label]["share"])
    return name, shares[name]


def _worth_sentence(labels_worth: float, labelled: int) -> str:
    """How much the answers add to the labels."""
    labels = counted(labelled, "labelled text")
    if labels_worth < 1.05:
        return f"The answers add hardly anything: {labels} alone are about as certain."
    return f"The answers make the {labels} worth {labels_worth:.1f} times as many."


def _range(ends: Mapping[str, object], value: float, form: str) -> str:
    """``12.3% (10.1% to 14.9%)``."""
    low = ends["low"]
    high = ends["high"]
    if low is None:
        return form.format(value)
    return f"{form.format(value)} ({form.format(low)} to {form.format(high)})"


def tables(estimate: Estimate) -> list[Table]:
    """The shares among all texts, and those of each slice."""
    title = f"Shares of {counted(estimate.total.texts, 'text')}"
    if estimate.panel is not None:
        title += f", in the eyes of {estimate.panel}"
    result_tables = [Table.from_records(title, _records(estimate, estimate.total, {}))]
    if estimate.slices:
        records = []
        for part in estimate.slices:
            value = "(none)" if part.value is None else part.value
            place: dict[str, Cell] = {
                str(part.column): value,
                "texts": part.texts,
                "labelled": part.labelled,
            }
            records.extend(_records(estimate, part, place))
        result_tables.append(Table.from_records(f"By {estimate.slices[0].column}", records))
    return result_tables


def _records(estimate: Estimate, part: Shares, place: Mapping[str, Cell]) -> list[dict[str, Cell]]:
    """A row per class, and one for the mean point."""
    interval = f"{100 * estimate.level:g}% interval"
    records: list[dict[str, Cell]] = []
    for name in part.shares:
        share = part.shares[name]
        record = {
            **place,
            "class": name,
            "share": f"{share['share']:.1%}",
            interval: _interval_cell(share, "{:.1%}"),
        }
        records.append(record)
    if part.expected is not None:
        records.append(
            {
                **place,
                "class": "mean point",
                "share": f"{part.expected['expected']:.2f}",
                interval: _interval_cell(part.expected, "{:.2f}"),
            }
        )
    return records


def _interval_cell(ends: Share | Expected, form: str) -> str:
    if ends["low"] is None or ends["high"] is None:
        return "–"
    return f"{form.format(ends['low'])} … {form.format(ends['high'])}"
