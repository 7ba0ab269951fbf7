"""Sentences and tables made of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edokit._errors import counted, listed, signed
from edokit._io.markup import Table
from edokit.analysis.scores.result import CONSTANT, UNIFORM, Gain, Score, Slice, Standing
from edokit.metrics import METRIC, PairedTest

RIVALS = {
    UNIFORM: "a plain average of the same models",
    "soft": "one model trained on the shares of answers",
    "greedy": "greedy selection",
    CONSTANT: "the same answer for every text",
}
"""The methods that the result of a run compares EDO with, in words."""

# What the constant answer is, by its source.
SHARES = {
    "train": "the shares of the training items",
    "fit": "the shares of the items of the fit",
    "items": "the shares of these very items",
}


def headline_sentences(
    score: Score, constant: Score, items: int, *, subject: str, source: str
) -> list[str]:
    """Sentences for the headline: one label for all items, or no better than the constant.

    Better means that the interval of the difference excludes 0; without intervals, the estimates
    decide. The list is empty where the method is better in the headline metric and in F1.
    """
    sentences: list[str] = []
    metrics = [score.headline_metric, "f1"]
    if score.only_label is not None:
        sentence = f"{subject} labels all {items} items {score.only_label!r}"
        if score.only_label == constant.only_label:
            sentence += f", as the constant answer does: the F1 of both is {score.f1:.4f}."
            metrics.remove("f1")
        else:
            sentence += f", which has an F1 of {score.f1:.4f}."
        sentences.append(sentence)
    for metric in metrics:
        verdict = _constant_verdict(score, constant, metric)
        if verdict is None:
            continue
        numbers = f"{score.metrics[metric]:.4f} against {constant.metrics[metric]:.4f}"
        test = score.against_constant.get(metric)
        if test is not None:
            numbers += f"; difference {signed(test.low)} to {signed(test.high)}"
        sentences.append(
            f"{subject} is {verdict} than a constant answer ({SHARES[source]}) in"
            f" {METRIC[metric].short} ({numbers})."
        )
    return sentences


def _constant_verdict(score: Score, constant: Score, metric: str) -> str | None:
    """``worse``, ``not better`` or ``not clearly better`` than the constant; None if better."""
    sign = -1 if METRIC[metric].higher else 1
    loss = sign * (score.metrics[metric] - constant.metrics[metric])
    low = loss
    high = loss
    test = score.against_constant.get(metric)
    if test is not None:
        low, high = sorted((sign * test.low, sign * test.high))
    if high < 0:
        return None
    if low > 0:
        return "worse"
    if loss >= 0:
        return "not better"
    return "not clearly better"


def result_sentence(gains: Mapping[str, Gain]) -> str:
    """The result for somebody who has to decide, from the gains over `RIVALS`.

    It says what the intervals say: clearly better or worse where they exclude 0. Where the same
    answer for every text is not clearly beaten, that is the result.

    Examples
    --------
    >>> from edokit.analysis.scores.result import Gain
    >>> result_sentence({"uniform": Gain(0.04, 0.02, 0.06), "constant": Gain(0.03, -0.01, 0.07)})
    'Not clearly better than the same answer for every text (+3 %, −1 to +7 %).'
    """
    constant = gains.get(CONSTANT)
    if constant is not None and constant.standing != "better":
        return _capitalized(_clause(constant.standing, {CONSTANT: constant})) + "."
    by_standing: dict[Standing, dict[str, Gain]] = {"better": {}, "worse": {}, "unclear": {}}
    for name, gain in gains.items():
        if name != CONSTANT:
            by_standing[gain.standing][name] = gain
    if constant is not None and not by_standing["better"]:
        by_standing["better"] = {CONSTANT: constant}
    clauses = [_clause(standing, group) for standing, group in by_standing.items() if group]
    if by_standing["better"]:
        clauses[0] = f"matches your annotators {clauses[0]}"
    return _capitalized("; ".join(clauses)) + "."


def hard_label_sentence(score: Score, constant: Score, ties: int) -> str:
    """How often the likeliest label is the hard label: the micro-F1 where items have one label.

    ``ties`` is the number of evenly split items, of which no label is the choice of most.
    """
    tie_note = ""
    if ties:
        tie_note = (
            f" (for {counted(ties, 'evenly split item')}: the label that the rule for ties gives)"
        )
    return (
        "The ensemble's label is the choice of most annotators for"
        f" {100 * score.f1:.0f} % of held-out items{tie_note}; the same answer always:"
        f" {100 * constant.f1:.0f} %."
    )


def _clause(standing: Standing, gains: Mapping[str, Gain]) -> str:
    """``not clearly better than greedy selection (+1 %, −1 to +3 %)``."""
    rivals = [f"{RIVALS[name]} ({gain_interval(gain)})" for name, gain in gains.items()]
    joint = "and"
    if standing == "unclear":
        joint = "or"
    return f"{standing_phrase(standing)} than {listed(rivals, joint)}"


def standing_phrase(standing: Standing) -> str:
    """Return what an interval says: clearly better, clearly worse, or not clearly better."""
    if standing == "unclear":
        return "not clearly better"
    return f"clearly {standing}"


def gain_interval(gain: Gain) -> str:
    """Return a gain with its interval: ``+3 %, −1 to +7 %``."""
    return f"{_points(gain.share)} %, {_points(gain.low)} to {_points(gain.high)} %"


def _points(share: float) -> str:
    """``+4``; below one percent, ``+0.4``; zero without a sign."""
    size = abs(100 * share)
    if size >= 0.95:
        text = f"{size:.0f}"
    else:
        text = f"{size:.1g}"
    if size == 0:
        return text
    if share > 0:
        return f"+{text}"
    return f"\u2212{text}"


def _capitalized(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def short_ends(ends: Sequence[float], digits: int = 3) -> str:
    """Signed numbers without the zero before the decimal point: ``−.154…−.107``."""
    texts: list[str] = []
    for end in ends:
        text = signed(end, digits)
        sign = text[0]
        texts.append(sign + text[1:].removeprefix("0"))
    return "…".join(texts)


def difference_interval(test: PairedTest | None) -> str | None:
    """The interval of a difference as ``−.154…−.107``."""
    if test is None:
        return None
    return short_ends((test.low, test.high))


def slice_table(slices: Sequence[Slice], level: float, subject: str) -> Table:
    """A row per slice: F1, and the headline metric of the first method and of its rivals."""
    metric = slices[0].scores[0].headline_metric
    records = []
    for part in slices:
        score = part.scores[0]
        interval = None
        if metric in score.intervals:
            low, high = score.intervals[metric]
            interval = f"{_without_zero(low)}–{_without_zero(high)}"
        record = {
            "slice": part.name,
            "items": part.items,
            METRIC["f1"].label: score.f1,
            METRIC[metric].label: score.metrics[metric],
            f"{100 * level:g}%": interval,
        }
        for rival in (UNIFORM, CONSTANT):
            rival_score = part.score(rival)
            record[rival] = None
            if rival_score is not None:
                record[rival] = rival_score.metrics[metric]
        record["lowest"] = part.floor
        records.append(record)
    name = METRIC[metric].short
    note = (
        f"F1 and {name} of {subject}; beside it the {name} of the uniform mean, of the constant"
        " answer, and the lowest possible on these items."
    )
    return Table.from_records("Slices", records, [note])


def _without_zero(value: float) -> str:
    """``.154``."""
    return f"{value:.3f}".removeprefix("0")
