"""What kind of disagreement is this? Everything together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

import numpy as np

from edokit._errors import InputError
from edokit._types import Ints
from edokit.annotations import Annotations
from edokit.diagnosis.advice import advise, limits
from edokit.diagnosis.clusters import Design, Grouping, Look, cross_fitted, look, stability
from edokit.diagnosis.overview import (
    Declared,
    agreement,
    balance,
    coverage,
    declared_groups,
    describe_groups,
    entropy,
    matrix,
    people,
)
from edokit.diagnosis.permutation import LEVEL, StructureTest, permutation_test
from edokit.diagnosis.variance import Part, Shares, decompose
from edokit.diagnosis.vectors import Answers

PERMUTATIONS = 99
FEWEST_PERMUTATIONS = 39
PARTS = ("item", "annotator", "group_item", "rest")
Step = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What is in the annotations, where their variance comes from, and what to do about it."""

    content: dict[str, Any]
    """Everything as plain data: ``coverage``, ``balance``, ``agreement``, ``entropy``, ``people``,
    ``groups``, ``variance``, ``test``, ``advice``, ``limits``."""

    def to_dict(self) -> dict[str, Any]:
        """The content; what is not known is None."""
        return self.content

    def lines(self) -> list[str]:
        """The content in words."""
        from edokit.diagnosis.render import lines

        return lines(self.content)

    def __getitem__(self, key: str) -> Any:
        return self.content[key]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        items, people = self.content["items"], self.content["annotators"]
        return f"Diagnosis({items} items, {people} annotators)"


def diagnose(
    annotations: Annotations,
    *,
    groups: Declared | None = None,
    permutations: int = PERMUTATIONS,
    random_state: int = 0,
    step: Step = lambda done, total: None,
) -> Diagnosis:
    """Coverage, agreement, and whether the disagreement is structured or noise, with advice.

    ``groups``: an attribute of the annotators, a mapping from annotators to groups, or a list of
    groups; left out, groups are looked for in the data. ``permutations``: how often answers are
    shuffled for the test (39 or more); 0 for no test.
    """
    _check("permutations", permutations)
    _check("random_state", random_state)
    if 0 < permutations < FEWEST_PERMUTATIONS:
        raise InputError(
            f"permutations must be 0 (no test) or {FEWEST_PERMUTATIONS} and more, since with fewer"
            f" no p-value reaches 5 %, but got {permutations}",
            f"use permutations={PERMUTATIONS}",
        )
    if not len(annotations):
        raise InputError("there must be answers to diagnose, but there are none", "give some")
    answers = Answers.of(annotations)
    declared, names = (None, []) if groups is None else declared_groups(annotations, groups)
    why_not = _nothing_to_see(annotations, answers)
    shares: Shares | None = None
    test: StructureTest | None = None
    seen: Look | None = None
    groupings: list[Grouping] = []
    alone: list[str] = []
    if why_not is None:
        design = Design.of(answers, declared, len(names))
        seen = look(answers, design)
        if declared is None:
            groupings = cross_fitted(answers, random_state)
        else:
            groupings, alone = _declared(answers, declared, names)
        shares = decompose(answers, design, groupings, random_state)
        if permutations and (answers.scatter > 1e-12).any():
            test = permutation_test(answers, design, seen, permutations, random_state, step)
    group, described = _groups(annotations, answers, declared, names, groups, seen, test, groupings)
    everyone = people(annotations)
    for person, code in zip(everyone, group, strict=True):
        person["group"] = described["groups"][code]["name"] if code >= 0 else None
    unplaced = int(((group < 0) & (answers.per_person > 0)).sum())
    counted = balance(annotations)
    variance = _variance(shares, why_not, declared is not None)
    tested = _test(test)
    content = {
        "items": len(annotations.items),
        "annotators": len(annotations.annotators),
        "annotations": len(annotations),
        "classes": list(annotations.classes),
        "coverage": coverage(annotations),
        "balance": counted,
        "agreement": {**agreement(annotations), "matrix": matrix(annotations, group)},
        "entropy": entropy(annotations),
        "people": everyone,
        "groups": described,
        "variance": variance,
        "test": tested,
        "advice": advise(annotations, counted, described, variance if shares else None, tested),
        "limits": limits(
            annotations, shares, alone, unplaced if described["kind"] != "none" else 0
        ),
    }
    return Diagnosis(content)


def _check(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InputError(f"{name} must be a whole number >= 0, but got {value!r}", f"use {name}=0")


def _nothing_to_see(annotations: Annotations, answers: Answers) -> str | None:
    """Why nothing can be said about the structure of disagreement, if so."""
    used = annotations.counts.sum(axis=0)
    if not (answers.per_item >= 2).any():
        return "no item was answered by two annotators, so disagreement can't be seen"
    if (used > 0).sum() < 2:
        return f"all answers are {annotations.classes[int(used.argmax())]!r}, so nothing varies"
    return None


def _declared(
    answers: Answers, declared: Ints, names: list[str]
) -> tuple[list[Grouping], list[str]]:
    """Declared groups of two people or more, and the names of those of one."""
    active = np.where(answers.per_person > 0, declared, -1)
    size = np.bincount(active[active >= 0], minlength=len(names))
    kept = np.flatnonzero(size >= 2)
    number = np.full(len(names) + 1, -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    everything = np.ones(answers.items, dtype=bool)
    alone = [name for name, count in zip(names, size, strict=True) if count == 1]
    if len(kept) < 2:
        return [], alone
    return [Grouping(number[active], len(kept), everything, False)], alone


def _groups(
    annotations: Annotations,
    answers: Answers,
    declared: Ints | None,
    names: list[str],
    given: Declared | None,
    seen: Look | None,
    test: StructureTest | None,
    groupings: list[Grouping],
) -> tuple[Ints, dict[str, Any]]:
    """The group of each annotator [A] that is reported, and the groups themselves."""
    nobody = np.full(len(annotations.annotators), -1, dtype=np.int64)
    result: dict[str, Any] = {
        "kind": "none",
        "attribute": given if isinstance(given, str) else None,
        "reason": None,
        "stability": None,
        "unassigned": 0,
        "groups": [],
    }
    group = declared
    if declared is not None:
        result["kind"] = "declared"
        names = list(names)
    elif seen is None or seen.groups.count < 2:
        result["reason"] = "too few annotators answered enough contested items to look for groups"
    elif test is not None and not test.p_group_item <= LEVEL:
        result["reason"] = (
            "the groups that can be found stand apart no more than in shuffled answers"
            f" (p = {test.p_group_item:.2g})"
        )
    else:
        result["kind"] = "found"
        result["stability"] = stability(groupings)
        # A is the group with the most answers.
        codes = seen.groups.group
        amount = np.bincount(np.maximum(codes, 0), weights=answers.per_person * (codes >= 0.0))
        rank = np.append(np.argsort(np.argsort(-amount, kind="stable"), kind="stable"), -1)
        group, names = rank[codes], list(ascii_uppercase[: seen.groups.count])
    if group is None:
        return nobody, result
    result["unassigned"] = int((group < 0).sum())
    result["groups"] = describe_groups(annotations, answers, group, names)
    return group, result


def _variance(shares: Shares | None, why_not: str | None, declared: bool) -> dict[str, Any] | None:
    if shares is None:
        return {"reason": why_not} if why_not else None
    unknown = None
    if math.isnan(shares.group_item.share):
        unknown = (
            "fewer than two of the declared groups have two annotators who share items"
            if declared
            else "there are too few annotators, or too few contested items, for groups of two"
        )
    parts = {name: _part(getattr(shares, name)) for name in PARTS}
    # Shares that chance put below 0 are 0, and the others still sum to 1.
    total = sum(part["share"] for part in parts.values() if part)
    for part in parts.values():
        if part:
            part["share"] /= total
    return {
        "total": shares.total,
        "disagreement": min(max(shares.disagreement, 0.0), 1.0),
        **parts,
        "structured": min(shares.structured, 1.0),
        "reason": unknown,
    }


def _part(part: Part) -> dict[str, float] | None:
    """A share with its interval, both within [0, 1]; None where it is not known."""
    if math.isnan(part.share):
        return None
    bounded = [min(max(value, 0.0), 1.0) for value in (part.share, part.low, part.high)]
    return {**dict(zip(("share", "low", "high"), bounded, strict=True)), "hidden": part.hidden}


def _test(test: StructureTest | None) -> dict[str, Any] | None:
    if test is None:
        return None
    return {
        "permutations": test.permutations,
        "seed": test.seed,
        "annotator": _tested(test.leaning, test.p_annotator, test.leanings),
        "group_item": _tested(test.score, test.p_group_item, test.scores),
        "views": _tested(test.score, test.p_views, test.strict_scores),
        "p": _known(test.p),
        "structured": test.structured,
    }


def _tested(statistic: float, p: float, null: Any) -> dict[str, Any]:
    return {
        "statistic": _known(statistic),
        "p": _known(p),
        "null": [_known(value) for value in null.tolist()],
    }


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
