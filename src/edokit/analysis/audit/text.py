"""Sentences and tables made of an audit."""

from __future__ import annotations

from collections.abc import Sequence

from edokit._errors import counted, examples
from edokit._io.markup import Table
from edokit.analysis.audit.result import (
    ALL,
    CONSTANT,
    ENSEMBLE,
    PASS_RATE,
    UNIFORM,
    Audit,
    ConfusionRow,
    MemberRow,
)
from edokit.analysis.audit.statistics import equal_correlation, most_judges
from edokit.analysis.scores.text import short_ends
from edokit.metrics import METRIC, Interval

# Confusion tables of more classes are in the JSON alone.
_MOST_COLUMNS = 8
# A correlation of errors that hardly matters.
_UNCORRELATED = 0.05
_SUBJECTS = {UNIFORM: "The plain average of the members", ENSEMBLE: "The ensemble"}


def headline(audit: Audit) -> list[str]:
    """How many judges the jury counts as, which members matter, and whom it can replace."""
    lines = []
    if audit.judges is not None:
        lines.append(_judges_sentence(audit, audit.judges))
        lines.append(_members_sentence(audit))
    if audit.replacement:
        lines.append(_replacement_sentence(audit))
        if any(row["passes"] for row in audit.replacement if row["candidate"] == CONSTANT):
            lines.append(
                "A constant answer passes, too: the labels are so uneven, or the annotators agree"
                " so little, that passing says little."
            )
    return lines


def can_tell(judges: Interval, members: int) -> bool:
    """Whether the interval of the number of judges says more than that it is between 1 and K.

    It does not if it begins in the first quarter of this range and ends in the last.
    """
    assert judges.low is not None
    assert judges.high is not None
    quarter = (members - 1) / 4
    return judges.low >= 1 + quarter or judges.high <= 1 + 3 * quarter


def _judges_sentence(audit: Audit, judges: Interval) -> str:
    count = counted(len(audit.members), "member")
    if judges.estimate is None:
        return (
            f"The error of the mean of the {count} does not exceed the noise of the annotators: the"
            " number of independent judges can't be estimated from these items."
        )
    ends = f"{judges.low:.1f} to {judges.high:.1f}"
    if not can_tell(judges, len(audit.members)):
        return (
            f"These items can't tell how many independent judges the {count} are: {ends} are"
            f" possible ({100 * audit.level:g}% interval)."
            " Ask more annotators, or about more items."
        )
    return (
        f"{count} count as {judges.estimate:.1f} independent judges"
        f" ({100 * audit.level:g}% interval {ends}). {_correlation_sentence(audit, judges)}"
    )


def _correlation_sentence(audit: Audit, judges: Interval) -> str:
    """How much the errors of the members correlate, and what more members would add."""
    assert judges.low is not None
    assert judges.high is not None
    members = len(audit.members)
    if audit.correlation is None:
        return "How much the errors of two members correlate can't be estimated."
    if equal_correlation(judges.low, members) <= _UNCORRELATED:
        return "The errors of the members are hardly correlated."
    sentence = f"The errors of two members correlate by {audit.correlation:.2f} on average."
    if audit.judges_limit is not None:
        lowest = most_judges(judges.low, members)
        highest = most_judges(judges.high, members)
        ends = f"{lowest:.1f} or more"
        if highest is not None:
            ends = f"{lowest:.1f} to {highest:.1f}"
        sentence += (
            f" However many more of this kind were asked, they would count as"
            f" {audit.judges_limit:.1f} ({ends})."
        )
    return sentence


def _members_sentence(audit: Audit) -> str:
    """Which members the uniform mean is clearly worse without."""
    missed = [row["member"] for row in audit.members if row["uniform"]["verdict"] == "worse"]
    if not missed:
        return "Leaving out any one member does not make the average clearly worse."
    return f"The average is clearly worse without {examples(missed, 5)}."


def _replacement_sentence(audit: Audit) -> str:
    """Whether the ensemble, else the uniform mean, else the only member can replace a person."""
    candidates = {row["candidate"]: row for row in audit.replacement}
    if ENSEMBLE in candidates:
        name = ENSEMBLE
    elif UNIFORM in candidates:
        name = UNIFORM
    else:
        members = [candidate for candidate in candidates if candidate != CONSTANT]
        name = members[0]
    row = candidates[name]
    verdict = "is not shown to be able to"
    if row["passes"]:
        verdict = "can"
    beaten = sum(annotator["wins"] for annotator in row["annotators"])
    low, high = row["interval"]
    sentence = (
        f"{_SUBJECTS.get(name, name)} {verdict} replace an annotator: it wins against"
        f" {beaten} of {counted(len(row['annotators']), 'annotator')} (winning rate"
        f" {row['winning_rate']:.2f}; {PASS_RATE:g} is required, ε is {audit.epsilon:g}). The"
        f" probability that it is as good as the one left out, or better, is"
        f" {row['advantage']:.2f} ({low:.2f} to {high:.2f})."
    )
    if not row["passes"] and name != ENSEMBLE:
        sentence += _agreement_sentence(audit)
    return sentence


def _agreement_sentence(audit: Audit) -> str:
    """Why a jury that agrees with people more than a person does may still not replace one."""
    for row in audit.strata:
        if row["stratum"] == ALL and row["interval"] is not None and row["interval"][0] > 0:
            return (
                f" On average over items it agrees with an annotator more often than another"
                f" annotator does ({row['agreement']:.2f} against {row['human']:.2f}); but to"
                " replace people, it must not be worse than most annotators one by one."
            )
    return ""


def tables(audit: Audit) -> list[Table]:
    """Members, strata, judges beside annotators and candidates, as far as there are some."""
    result_tables = []
    if audit.judges is not None:
        result_tables.append(_member_table(audit))
    if audit.strata:
        result_tables.append(_strata_table(audit))
    if audit.judges_and_people:
        result_tables.append(_judge_table(audit))
        first_judge = audit.judges_and_people[0]["judge"]
        rows = [row for row in audit.confusion if row["judge"] == first_judge]
        if len(rows[0]["answers"]) <= _MOST_COLUMNS:
            result_tables.append(_confusion_table(first_judge, rows))
    if audit.replacement:
        result_tables.append(_candidate_table(audit))
    return result_tables


def _member_table(audit: Audit) -> Table:
    short = METRIC[audit.metric].short
    records = []
    for row in audit.members:
        dropped = row["uniform"]
        record = {
            "member": row["member"],
            short: row["loss"],
            "corr.": _correlation_cell(row),
            f"without it: Δ{short} {UNIFORM}": (
                f"{short_ends(dropped['interval'], 4)} {dropped['verdict']}"
            ),
        }
        records.append(record)
    note = (
        "corr.: mean correlation of its errors with those of the others, without the noise of the"
        " labels (in brackets, as the interval of the number of judges implies; ?: hidden by this"
        f" noise). Δ{short}: interval of how much the uniform mean's {short} grows without it;"
        " free: by 1% at most."
    )
    return Table.from_records("What each member adds", records, [note])


def _correlation_cell(row: MemberRow) -> str:
    """``0.72 (0.10–0.95)``, with ``?`` where the noise of the labels hides it."""
    texts = []
    for value in (row["correlation"], *row["correlation_interval"]):
        texts.append("?" if value is None else f"{value:.2f}")
    estimate, low, high = texts
    return f"{estimate} ({low}–{high})"


def _strata_table(audit: Audit) -> Table:
    records = []
    for row in audit.strata:
        interval = None
        if row["interval"] is not None:
            interval = short_ends(row["interval"])
        record = {
            "votes": row["stratum"],
            "items": row["items"],
            "jury": row["agreement"],
            "person": row["human"],
            "best": row["best"],
            "jury − person": interval,
        }
        records.append(record)
    note = (
        "Agreement with an annotator of the item: of the jury's answer, of another person, of"
        " the best single answer. Where votes are divided, nobody agrees often: compare within a"
        " row."
    )
    return Table.from_records("By agreement", records, [note], digits=3)


def _judge_table(audit: Audit) -> Table:
    records = []
    for row in audit.judges_and_people:
        record = {
            "judge": row["judge"],
            "agrees": row["agreement"].estimate,
            "Cohen's κ": row["cohen_kappa"].estimate,
            f"{100 * audit.level:g}%": _ends(row["cohen_kappa"]),
        }
        records.append(record)
    notes = ["Single answers of each judge beside all labels of annotators."]
    if audit.people is not None and audit.people.estimate is not None:
        ends = _ends(audit.people) or "no interval"
        notes.append(f"Two annotators: κ {audit.people.estimate:.3f} ({ends}) on average.")
    return Table.from_records("Judges beside annotators", records, notes, digits=3)


def _ends(interval: Interval) -> str | None:
    if interval.low is None or interval.high is None:
        return None
    return f"{interval.low:.3f}–{interval.high:.3f}"


def _confusion_table(judge: str, rows: Sequence[ConfusionRow]) -> Table:
    records = []
    for row in rows:
        record: dict[str, str | int | None] = {"label": row["question"], "annotator": row["human"]}
        for answer, count in row["answers"].items():
            record[f"judge: {answer}"] = count
        records.append(record)
    return Table.from_records(f"Labels by the answer of {judge}", records)


def _candidate_table(audit: Audit) -> Table:
    records = []
    for row in audit.replacement:
        low, high = row["interval"]
        record = {
            "candidate": row["candidate"],
            "winning rate": row["winning_rate"],
            "advantage": row["advantage"],
            f"{100 * audit.level:g}%": f"{low:.3f}–{high:.3f}",
            "passes": "yes" if row["passes"] else "no",
        }
        records.append(record)
    notes = [
        f"Winning rate: share of annotators that it beats, or is not worse than by ε ="
        f" {audit.epsilon:g}, at a false discovery rate of {100 * (1 - audit.level):g}%"
        " (Benjamini–Yekutieli)."
    ]
    left_out = audit.annotators - len(audit.replacement[0]["annotators"])
    if left_out:
        notes.append(f"{counted(left_out, 'annotator')} shared too few items with others.")
    return Table.from_records("Can it replace an annotator?", records, notes, digits=3)
