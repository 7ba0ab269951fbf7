"""Sections for decisions: how often it is right, what goes to people, and whose view it is."""

from __future__ import annotations

from dataclasses import dataclass

from edokit._errors import EDOError, listed
from edokit.analysis.scores.result import CONSTANT, UNIFORM, Gain, Score
from edokit.analysis.scores.text import RIVALS, gain_interval, standing_phrase
from edokit.ensemble.escalation import Escalation, shares_sentence
from edokit.metrics import METRIC
from edokit.report.answers import noun_of
from edokit.report.data import ReportData
from edokit.report.formatting import clean, count, level_percent, percent
from edokit.report.results import Headline, MethodRow, find_headline, method_rows

ESCALATION_LIMIT = "5%"
"""The share of the answers that may be overruled."""
NAMES_IN_SENTENCES = {"edo": "this ensemble", "best-single": "the best single member", **RIVALS}


@dataclass(frozen=True)
class CorrectnessRow:
    """How often one way of answering is right.

    Attributes
    ----------
    name : str
    is_ensemble : bool
    shares : tuple of str
        In percent: one for each of the view's columns.
    intervals : tuple of str
        Below each share; empty where it is not known.
    comparison : str
        How much better the ensemble matches the annotators; empty where it is not known.
    """

    name: str
    is_ensemble: bool
    shares: tuple[str, ...]
    intervals: tuple[str, ...]
    comparison: str


@dataclass(frozen=True)
class CorrectnessView:
    """How often the ensemble is right, and against what."""

    sentence: str
    columns: tuple[str, ...]
    rows: tuple[CorrectnessRow, ...]
    metric: str


@dataclass(frozen=True)
class HandoverView:
    """What goes to people, by a promise on the rest.

    Attributes
    ----------
    headline : str
        ``82 % answered, 18 % for people``, or that no threshold can promise it.
    sentence : str
    answered : float or None
        The share that is answered; None where it is not known.
    """

    headline: str
    sentence: str
    answered: float | None


def correctness_view(data: ReportData) -> CorrectnessView | None:
    """How often labels are those of most annotators; None without annotations."""
    result = find_headline(data.comparison, data.evaluation, tested_only=False)
    if result is None or "f1" not in result.edo.metrics:
        return None
    metrics = {"f1": "right"}
    if "exact_match" in result.edo.metrics:
        metrics = {"f1": "labels right", "exact_match": "whole sets right"}
    methods = method_rows(_compared_scores(result))
    rows = tuple(_correctness_row(row, tuple(metrics), result) for row in methods)
    sentence = _correctness_sentence(data, result, is_set="exact_match" in metrics)
    return CorrectnessView(sentence, tuple(metrics.values()), rows, METRIC[result.metric].short)


def _correctness_sentence(data: ReportData, result: Headline, *, is_set: bool) -> str:
    """How often it is right, and how often the same answer for every text is."""
    noun = "item"
    if data.evaluation is not None:
        noun = noun_of(data.evaluation).removesuffix("s")
    if result.held_out:
        noun = f"held-out {noun}"
    test = result.edo.against.get(result.metric)
    items = f"the {noun}s"
    if test is not None:
        items = count(test.n, noun)
    elif data.evaluation is not None and data.comparison is None:
        items = count(len(data.evaluation.pooled.items), noun)
    share = percent(result.edo.metrics["f1"])
    sentence = f"Its label is the choice of most annotators for {share} of {items}"
    if is_set:
        sentence = f"Most annotators agree with {share} of its labels, chosen or not, of {items}"
    if result.ties:
        tied_items = count(result.ties, "evenly split item")
        labels = "the label that the rule for ties gives"
        if is_set:
            tied_items = count(
                result.ties, "item with an evenly split label", "items with an evenly split label"
            )
            labels = "the labels that the rule for ties gives"
        sentence += f" (for {tied_items}: {labels})"
    interval = _interval(result.edo, "f1")
    if interval:
        sentence += f" ({level_percent(result.level)} interval: {interval})"
    if result.constant is not None and "f1" in result.constant.metrics:
        constant_share = percent(result.constant.metrics["f1"])
        sentence += f"; {RIVALS[CONSTANT]} is right for {constant_share}"
    return f"{sentence}."


def _compared_scores(result: Headline) -> list[Score]:
    """The ensemble, the same answer for every text, one model, and the average."""
    scores = [result.edo, result.constant, result.one_model, result.uniform]
    return [score for score in scores if score is not None]


def _correctness_row(row: MethodRow, metrics: tuple[str, ...], result: Headline) -> CorrectnessRow:
    """How often one way of answering is right, and how it compares with the ensemble."""
    score = row.score
    comparison = ""
    gain = _gain(score, result)
    if gain is not None and not row.is_ours:
        comparison = f"{standing_phrase(gain.standing)} ({gain_interval(gain)})"
    name = " = ".join(NAMES_IN_SENTENCES.get(name, name) for name in row.names)
    return CorrectnessRow(
        name=name[0].upper() + name[1:],
        is_ensemble=row.is_ours,
        shares=tuple(percent(score.metrics.get(metric)) for metric in metrics),
        intervals=tuple(_interval(score, metric) for metric in metrics),
        comparison=comparison,
    )


def _gain(score: Score, result: Headline) -> Gain | None:
    """The gain of the ensemble over another answer, which the headline is made of, too."""
    if score.name in result.rival_gains:
        return result.rival_gains[score.name]
    if score.name == UNIFORM:
        return result.gains.get(result.metric)
    test = result.edo.against_constant.get(result.metric)
    if score.name == CONSTANT and test is not None:
        return Gain.from_test(result.metric, test, score)
    return None


def _interval(score: Score, metric: str) -> str:
    """``82 to 86 %``."""
    ends = score.intervals.get(metric)
    if ends is None or None in ends:
        return ""
    low, high = ends
    return f"{100 * low:.0f} to {percent(high)}"


def handover_view(data: ReportData) -> HandoverView | None:
    """What would go to people if at most 5 % of the answers may be overruled."""
    if data.ensemble is None:
        return None
    try:
        escalation = data.ensemble.escalation(ESCALATION_LIMIT)
    except EDOError:
        return HandoverView(
            "Nothing can be promised about its answers",
            "The ensemble keeps no cross-fitted answers to items, from which a promise is made."
            " Fit it again, on items.",
            None,
        )
    if escalation.threshold is None:
        headline = "No threshold can promise it: everything is for people"
    else:
        headline = shares_sentence(1 - escalation.answered)
    return HandoverView(headline, _capitalized(escalation), escalation.answered)


def _capitalized(escalation: Escalation) -> str:
    """The promise as a sentence."""
    text = str(escalation)
    return f"{text[0].upper()}{text[1:]}."


def whose_view_sentences(data: ReportData) -> list[str]:
    """Whom the answers follow; and where groups of people were not compared, how to do that."""
    evaluation = data.evaluation
    if evaluation is None or evaluation.annotations is None:
        return []
    annotations = evaluation.annotations
    lines: list[str] = []
    # The page may show other items than those of the fit, with other annotators.
    annotators = 0
    if data.ensemble is not None:
        annotators = int((data.ensemble.data_ or {}).get("annotators", 0))
    if annotators > 1:
        lines.append(
            f"Its answers follow the {count(annotators, 'annotator')} of its fit together: each"
            " annotation of an item counts the same."
        )
    if data.groups is not None:
        return lines
    names = [f"“{clean(name, 40)}”" for name in annotations.people.names]
    if names:
        lines.append(
            f"Whether groups of them answer differently by {listed(names, 'or')} was not tested:"
            " `edo run --by` and `edo diagnose --by` do that."
        )
    else:
        lines.append(
            "Nothing is known of the annotators themselves, such as their country or age, so it"
            " is open whether groups of them answer differently."
        )
    return lines
