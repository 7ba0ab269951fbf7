"""What to do about it: advice in words, with the numbers behind it."""

from __future__ import annotations

from typing import Any

import numpy as np

from edokit._errors import counted
from edokit.annotations import Annotations
from edokit.diagnosis.variance import Shares

ENOUGH = 200
"""Answers from which on one annotator can teach a member."""
ENOUGH_RARE = 20
"""Answers in the annotator's rarer class that this takes."""
UNEVEN = 3.0
"""Largest class to smallest from which on classes are called uneven."""
VERY_UNEVEN = 10.0
_FEWEST_TEACHERS = 3
_MOST = 0.8
"""Share of all answers that those who can teach must have given, and of the items that each of
them must have answered, for their members to speak for everyone about the same items."""
_STABLE = 0.5

Advice = dict[str, Any]


def advise(
    annotations: Annotations,
    balance: dict[str, Any],
    groups: dict[str, Any],
    variance: dict[str, Any] | None,
    test: dict[str, Any] | None,
) -> list[Advice]:
    """Supervision, sign, labels per annotator, classes, coverage: what to try first, and why."""
    only = [name for name, share in balance["shares"].items() if share > 0]
    if len(only) == 1:
        return [_no_disagreement(only[0]), *_coverage(annotations)]
    teachers = _teachers(annotations)
    structured = bool(test and test["structured"])
    found = _finding(variance, test)
    return [
        _structure(variance, test, groups),
        _supervision(annotations, teachers, structured, found),
        _diversity(structured, found),
        _labels(annotations, teachers),
        *_balance(balance),
        *_coverage(annotations),
    ]


def _no_disagreement(only: str) -> Advice:
    return _advice(
        "structure",
        None,
        f"There is no disagreement to learn from: all answers are {only!r}. Check that these are"
        " the right column and the right split.",
    )


def _teachers(annotations: Annotations) -> Any:
    """Who answered enough to teach a member of their own [A], true or false."""
    person, count = annotations.annotator_codes, len(annotations.annotators)
    answered = annotations.annotations_per_annotator
    if annotations.label_codes is None:
        return answered >= ENOUGH
    table = np.zeros((count, len(annotations.classes)))
    np.add.at(table, (person, annotations.label_codes), 1.0)
    # The second most frequent answer: with two classes, the rarer one.
    second = np.sort(table, axis=1)[:, -2] if table.shape[1] > 1 else np.zeros(count)
    return (answered >= ENOUGH) & (second >= ENOUGH_RARE)


def _finding(variance: dict[str, Any] | None, test: dict[str, Any] | None) -> str:
    """What was found, as a clause for the other advice."""
    if test is None or variance is None or test["p"] is None:
        return "whether the disagreement is structured can't be told from this data"
    at_least = variance["structured"]
    if test["structured"]:
        return (
            f"the disagreement is structured (p = {test['p']:.2g}), at least {at_least:.0%} of it"
            " lasting"
        )
    return f"no structure beyond chance was found (p = {test['p']:.2g})"


def _structure(
    variance: dict[str, Any] | None, test: dict[str, Any] | None, groups: dict[str, Any]
) -> Advice:
    if variance is None:
        return _advice("structure", None, "Structured or noise? It can't be told from this data.")
    if test is None or test["p"] is None:
        why = "nobody was shuffled" if test is None else "no item can be shuffled"
        return _advice("structure", None, f"Structured or noise? It was not tested: {why}.")
    parts, alone = [], False
    for key, words in (
        ("annotator", "people differ in how often they give each answer"),
        ("group_item", "some people go together more than chance would have it"),
        ("views", "and more than strictness alone would have it"),
    ):
        p = test[key]["p"]
        if p is not None:
            alone |= p <= 0.05
            parts.append(f"{words}: {'yes' if p <= 0.05 else 'not shown'} (p = {p:.2g})")
    if not test["structured"]:
        kind, verdict = "noise", "Nothing speaks against the disagreement being noise"
        if alone:
            verdict = "Taken together the tests do not tell the disagreement from noise"
    elif test["views"]["p"] is not None and test["views"]["p"] <= 0.05:
        kind, verdict = "views", "The disagreement is structured, people see different things"
    elif test["annotator"]["p"] is not None and test["annotator"]["p"] <= 0.05:
        kind, verdict = "strictness", "The disagreement is structured, people draw the line"
        verdict += " in different places"
    else:
        kind, verdict = "views", "The disagreement is structured, people go together in groups"
    text = f"{verdict}: {'; '.join(parts)}." if parts else f"{verdict}."
    if test["structured"]:
        text += (
            f" Of the disagreement {variance['structured']:.0%} is lasting, as far as these answers"
            " tell; the rest is noise or views of one person alone."
        )
    if groups["kind"] == "found" and (groups["stability"] or 0.0) < _STABLE:
        text += (
            " Who belongs to which group is uncertain: the halves of the items agree on it only"
            f" by {max(groups['stability'] or 0.0, 0.0):.2f} (1 is fully, 0 by chance)."
        )
    return _advice("structure", kind, text)


def _supervision(annotations: Annotations, teachers: Any, structured: bool, found: str) -> Advice:
    count = int(teachers.sum())
    share = float(annotations.annotations_per_annotator[teachers].sum() / len(annotations))
    known = (
        f"{count} of {len(annotations.annotators)} annotators gave {ENOUGH} answers or more, at"
        f" least {ENOUGH_RARE} of them not their usual one"
        if annotations.label_codes is not None
        else f"{count} of {len(annotations.annotators)} annotators gave {ENOUGH} answers or more"
    )
    complete = float(np.median(annotations.coverage[teachers])) if count else 0.0
    if structured and count >= _FEWEST_TEACHERS and share >= _MOST and complete >= _MOST:
        return _advice(
            "supervision",
            "per-annotator",
            f"Try per-annotator members first: {found}, and {known} ({share:.0%} of all answers,"
            f" to {complete:.0%} of the items): each can teach a member of their own. Compare with"
            " random-select.",
        )
    why = found
    if structured and (count < _FEWEST_TEACHERS or share < _MOST):
        why = f"{found}, but only {known} ({share:.0%} of all answers)"
    elif structured:
        why = (
            f"{found}, and {known}, but each of them answered only {complete:.0%} of the items, so"
            " that members would have seen different ones"
        )
    return _advice(
        "supervision",
        "random-select",
        f"Use random-select: {why}. One answer drawn per item teaches every member the shares of"
        " all people, however little each of them said.",
    )


def _diversity(structured: bool, found: str) -> Advice:
    if structured:
        return _advice(
            "diversity",
            "preserve",
            f"Try preserve first: {found}, so members that differ may stand for people who do."
            " Expect small differences: look at their intervals before keeping the term.",
        )
    return _advice(
        "diversity",
        "preserve",
        f"Leave the diversity term out (lambda_div 0) or try preserve first: {found}, so there is"
        " little to preserve, but suppress tends to keep a single member and gains nothing.",
    )


def _labels(annotations: Annotations, teachers: Any) -> Advice:
    per = annotations.annotations_per_annotator
    busy = per[per > 0]
    few = int((busy < ENOUGH).sum())
    if teachers.all():
        text = (
            f"There are enough answers per annotator: {int(busy.min())} or more from each of"
            f" {len(busy)}."
        )
        return _advice("labels", "enough", text)
    return _advice(
        "labels",
        "few",
        f"{few} of {len(busy)} annotators gave fewer than {ENOUGH} answers (median"
        f" {np.median(busy):g}); {int(teachers.sum())} gave enough to be modelled one by one"
        f" ({ENOUGH} or more, {ENOUGH_RARE} of them not their usual answer).",
    )


def _balance(balance: dict[str, Any]) -> list[Advice]:
    empty = [name for name, count in balance["hard"].items() if not count]
    result = []
    if empty:
        named = ", ".join(repr(name) for name in empty)
        result.append(
            _advice(
                "balance",
                "empty",
                f"No item has the hard label {named}: class weights are not possible, and F1 says"
                " nothing about it.",
            )
        )
    ratio = balance["ratio"]
    if ratio is not None and ratio >= UNEVEN:
        strong = "very " if ratio >= VERY_UNEVEN else ""
        rare = min(balance["hard"], key=lambda name: balance["hard"][name])
        result.append(
            _advice(
                "balance",
                "uneven",
                f"Classes are {strong}uneven, {ratio:.1f} : 1; {rare!r} is the hard label of"
                f" {balance['hard'][rare]} items. Split by class, look at macro-F1 beside"
                " micro-F1, and leave class weights off where test is as uneven: they cost"
                " cross-entropy there.",
            )
        )
    return result


def _coverage(annotations: Annotations) -> list[Advice]:
    per_item = annotations.annotations_per_item
    single = int((per_item == 1).sum())
    result = []
    if single:
        result.append(
            _advice(
                "coverage",
                "single",
                f"{single} of {len(per_item)} items have one answer: their soft label is 0 or 1"
                " whatever people think. More answers per item show disagreement.",
            )
        )
    if per_item.max() >= 2 and (per_item >= 3).mean() < 0.5:
        result.append(
            _advice(
                "coverage",
                "thin",
                f"Only {(per_item >= 3).mean():.0%} of the items have three answers or more; the"
                " others say nothing about who goes with whom.",
            )
        )
    return result


def _advice(topic: str, choice: str | None, text: str) -> Advice:
    return {"topic": topic, "choice": choice, "text": text}


_WORTH_SAYING = 0.01


def limits(
    annotations: Annotations,
    shares: Shares | None,
    alone: list[str],
    unplaced: int,
) -> list[str]:
    """Sentences; ``alone`` are declared groups of one person, ``unplaced`` people in no group."""
    said = []
    people = int((annotations.annotations_per_annotator > 0).sum())
    if annotations.repeated.any():
        said.append(
            f"{counted(int(annotations.repeated.sum()), 'further answer')} of someone to the same"
            " item: only the first one counts for structure."
        )
    if shares is None:
        return said
    said.append(
        "With one answer per annotator and item, a view of one person alone can't be told from"
        " noise; asking the same people again about some items would tell them apart."
    )
    if people < 4:
        said.append(
            f"With {people} annotators there are no two groups of two: how much variance belongs"
            " to groups by items can't be known."
        )
    if max(shares.item.hidden, shares.group_item.hidden) >= _WORTH_SAYING and people >= 2:
        more = f"up to {shares.item.hidden:.1%} of the variance more"
        said.append(
            f"These are {people} annotators: if what is left is views of their own, {more} belongs"
            " to items"
            + (
                f" and up to {shares.group_item.hidden:.1%} more to groups by items."
                if shares.group_item.share == shares.group_item.share
                else "."
            )
        )
    if alone:
        named = ", ".join(repr(name) for name in alone[:3])
        said.append(
            f"{len(alone)} declared groups are one person each ({named}"
            f"{', …' if len(alone) > 3 else ''}): their view can't be told from noise."
        )
    if unplaced:
        said.append(
            f"{unplaced} of {people} annotators answered too few contested items, or have no"
            " group: they are in none."
        )
    short = int((annotations.annotations_per_item == 2).sum())
    if short:
        said.append(
            f"{short} items have two answers: they count for the variance, but say nothing about"
            " who goes with whom."
        )
    return said
