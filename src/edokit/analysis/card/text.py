"""The sentences and tables of a card, all made of its result objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edokit._errors import counted
from edokit._io.markup import Cell, Table
from edokit.analysis.agreement.text import coefficient_table
from edokit.analysis.card.result import CardSection
from edokit.analysis.diagnose.groups.result import GroupComparison, LevelComparison, value_of
from edokit.analysis.diagnose.groups.text import LIMITS, method_sentence, shown_class
from edokit.analysis.plan.text import soft_label_table
from edokit.metrics import METRIC

if TYPE_CHECKING:
    from edokit.analysis.card.result import DisagreementCard
    from edokit.analysis.plan.result import Plan

VARIANCE_TITLES = {
    "item": "items",
    "annotator": "annotators (strictness)",
    "group_item": "groups of annotators by items",
    "rest": "rest: noise, views of single annotators",
}
FEW_LABELS = 3
"""With fewer labels, the entropy of a soft label is much too low on average."""
SMALL_ERROR = 0.1
"""Expected L1 distance up to which a soft label is called close to that of everybody: the share of
a class is wrong by 5 percentage points. On an ordinal scale, a twentieth of its length."""


def sections(card: DisagreementCard) -> list[CardSection]:
    """Who labelled, agreement, structure, groups, the best possible score, annotators needed."""
    return [
        _who_labelled(card),
        _agreement(card),
        _structure(card),
        _groups(card),
        _best_score(card),
        _annotators_needed(card),
    ]


def _who_labelled(card: DisagreementCard) -> CardSection:
    diagnosis = card.diagnosis
    per_item = diagnosis.coverage["per_item"]
    per_annotator = diagnosis.coverage["per_annotator"]
    sentences = [
        f"{counted(diagnosis.annotators, 'annotator')} gave"
        f" {counted(diagnosis.annotations, 'label')} to {counted(diagnosis.items, 'item')}:"
        f" {_range(per_item)} per item, {_range(per_annotator)} per annotator.",
        f"The answer scale is {diagnosis.scale}.",
    ]
    shares = []
    for name, share in diagnosis.balance["shares"].items():
        shares.append(f"{name} {share:.0%}")
    sentences.append(f"Labels: {', '.join(shares)}.")
    if diagnosis.coverage["single"]:
        sentences.append(f"{counted(diagnosis.coverage['single'], 'item')} with a single label.")
    if not card.levels:
        sentences.append("Nothing is known of the annotators but their ids.")
        return CardSection("Who labelled", sentences)
    records: list[dict[str, Cell]] = []
    for attribute, levels in card.levels.items():
        for level, people in levels.items():
            records.append({"attribute": attribute, "level": level, "people": people})
    return CardSection("Who labelled", sentences, [Table.from_records("Annotators", records)])


def _range(figures: dict[str, float]) -> str:
    if figures["min"] == figures["max"]:
        return f"{figures['min']:g}"
    return f"{figures['min']:g} to {figures['max']:g} (median {figures['median']:g})"


def _agreement(card: DisagreementCard) -> CardSection:
    agreement = card.diagnosis.agreement
    if agreement["pairwise"] is None:
        return CardSection("Agreement", [f"Unknown: {agreement['reason']}."])
    sentences = []
    if agreement["distance"] is None:
        sentences.append(
            f"Two labels of an item agree in {agreement['pairwise']:.1%} of the cases"
            f" ({agreement['by_chance']:.1%} by chance)."
        )
    else:
        distance = agreement["distance"]
        sentences.append(
            f"Two labels of an item are {distance['pairwise']:.2f} apart"
            f" ({distance['by_chance']:.2f} by chance)."
        )
    unanimous = f"{card.diagnosis.entropy['unanimous']:.0%} of the items are unanimous"
    if card.diagnosis.coverage["single"]:
        unanimous += ", counting those with a single label"
    sentences.append(f"{unanimous}.")
    table = coefficient_table(agreement, agreement["weights"], level=0.95)
    if not table.rows:
        sentences.append(f"Coefficients of agreement are undefined: {agreement['reason']}.")
        return CardSection("Agreement", sentences)
    return CardSection("Agreement", sentences, [table])


def _structure(card: DisagreementCard) -> CardSection:
    diagnosis = card.diagnosis
    sentences = [advice.text for advice in diagnosis.advice if advice.topic == "structure"]
    variance = diagnosis.variance
    if variance is None or "total" not in variance:
        return CardSection("Structure or noise", sentences)
    records = []
    for name, title in VARIANCE_TITLES.items():
        part = variance[name]
        record: dict[str, Cell] = {"part": title, "share": "unknown", "low": None, "high": None}
        if part is not None:
            for key in ("share", "low", "high"):
                record[key] = f"{part[key]:.1%}"
        records.append(record)
    table = Table.from_records("Variance of the labels", records, ["95 % intervals over items."])
    return CardSection("Structure or noise", sentences, [table])


def _groups(card: DisagreementCard) -> CardSection:
    groups = card.diagnosis.groups
    title = "Which groups differ"
    if groups is None or not groups.levels:
        return CardSection(title, ["No attributes of the annotators were compared."])
    differing = [level.name for level in groups.levels if level.differs == "yes"]
    undecided = [level.name for level in groups.levels if level.differs == "can't tell"]
    is_tested = any(level.differs is not None for level in groups.levels)
    sentences = []
    if not is_tested:
        sentences.append("No level was tested; intervals say how large a difference may be.")
    elif differing:
        sentences.append(f"A difference to the others is shown for {', '.join(differing)}.")
    else:
        sentences.append(
            "No difference is shown; intervals say how large one could have been missed."
        )
    if undecided:
        sentences.append(
            f"The permutations do not decide it for {', '.join(undecided)}: p is too close to 5 %."
        )
    sentences.append(LIMITS)
    records = [_level_record(card, level) for level in groups.levels]
    table = Table.from_records("Groups", records, [_method(groups)], digits=3)
    return CardSection(title, sentences, [table])


def _method(groups: GroupComparison) -> str:
    sentence = method_sentence(groups)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _level_record(card: DisagreementCard, level: LevelComparison) -> dict[str, Cell]:
    groups = card.diagnosis.groups
    assert groups is not None
    record: dict[str, Cell] = {"level": level.name, "people": level.people}
    if level.mean is None:
        return record
    answer = shown_class(groups, level)
    record["answer"] = answer or "mean point"
    for key in ("mean", "difference", "low", "high"):
        record[key] = value_of(getattr(level, key), answer)
    record["p (corrected)"] = level.p_adjusted
    record["differs"] = level.differs
    return record


def _best_score(card: DisagreementCard) -> CardSection:
    records: list[dict[str, Cell]] = []
    for name, value in card.best_possible.items():
        records.append({"metric": METRIC[name].short, "best possible": value})
    sentences = [
        "No model can score better against these soft labels than the soft labels themselves:"
        " where annotators disagree, cross-entropy has a floor above 0."
    ]
    if card.diagnosis.coverage["per_item"]["min"] < FEW_LABELS:
        sentences.append(
            f"Soft labels of fewer than {FEW_LABELS} annotators hide disagreement, so the floor"
            " shown is too low."
        )
    table = Table.from_records("Best possible values", records)
    return CardSection("The best score any model could reach", sentences, [table])


def _annotators_needed(card: DisagreementCard) -> CardSection:
    title = "Annotators needed"
    plan = card.plan
    if plan is None:
        reason = "Unknown: too few items have labels of two annotators."
        return CardSection(title, [reason])
    return CardSection(title, [_needed_sentence(card, plan)], [soft_label_table(plan)])


def _needed_sentence(card: DisagreementCard, plan: Plan) -> str:
    """How many annotators bring the soft label close to that of everybody."""
    span = card.diagnosis.answer_scale.span
    metric = "md"
    limit = f"{SMALL_ERROR:g}"
    largest_error = SMALL_ERROR
    if span is not None:
        metric = "w1"
        largest_error = SMALL_ERROR / 2 * span
        limit = f"{largest_error:g} (a twentieth of the scale)"
    short = METRIC[metric].short
    for row in plan.curve:
        error, low, high = row["soft_label"][metric]
        if error <= largest_error:
            sentence = (
                f"{row['annotators']} is the smallest planned number of annotators per item whose"
                f" soft label has an expected {short} of at most {limit}: it is {error:.3f}"
                f" ({100 * plan.level:g}% interval {low:.3f} to {high:.3f})."
            )
            if high > largest_error:
                sentence += " By the interval, it may take more annotators."
            return sentence
    last_row = plan.curve[-1]
    error, low, high = last_row["soft_label"][metric]
    return (
        f"With {counted(last_row['annotators'], 'annotator')} per item, the expected {short} of a"
        f" soft label is still {error:.3f} ({100 * plan.level:g}% interval {low:.3f} to"
        f" {high:.3f}), above {limit}."
    )
