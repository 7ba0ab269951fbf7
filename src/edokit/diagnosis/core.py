"""`diagnose`: what kind of disagreement there is, and what follows from it."""

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
from edokit.diagnosis.advice import Advice, Limit, advise, limits
from edokit.diagnosis.clusters import (
    Design,
    Grouping,
    Structure,
    cross_fitted,
    find_structure,
    stability,
)
from edokit.diagnosis.overview import (
    Declared,
    agreement,
    balance,
    coverage,
    declared_groups,
    describe_annotators,
    describe_groups,
    entropy,
    matrix,
)
from edokit.diagnosis.permutation import LEVEL, StructureTest, permutation_test
from edokit.diagnosis.variance import Part, Shares, decompose
from edokit.diagnosis.vectors import LabelVectors

PERMUTATIONS = 99
FEWEST_PERMUTATIONS = 39
PARTS = ("item", "annotator", "group_item", "rest")


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What kind of disagreement is in annotations, as `edokit.diagnose` returns it.

    Every figure is a plain value; what is unknown is None. ``print`` shows it in words.
    """

    items: int
    """Number of items."""
    annotators: int
    """Number of annotators."""
    annotations: int
    """Number of annotations."""
    classes: list[str]
    """Names of the classes."""
    coverage: dict[str, Any]
    """Labels per item and annotator, gaps, pairs of annotators with shared items."""
    balance: dict[str, Any]
    """Classes by share of labels and by hard label."""
    agreement: dict[str, Any]
    """Krippendorff's alpha, agreeing pairs, and the matrix of all pairs of annotators."""
    entropy: dict[str, Any]
    """Mean and histogram of the entropy of items."""
    per_annotator: list[dict[str, Any]]
    """Labels, base rates, agreement with the others and group of each annotator."""
    groups: dict[str, Any]
    """Declared or found groups: size, base rates, agreement within and between."""
    variance: dict[str, Any] | None
    """Shares of the variance: items, annotators, groups by items, rest."""
    test: dict[str, Any] | None
    """p-values of the permutation test; None without permutations."""
    advice: list[Advice]
    """What to try first, and why."""
    limits: list[Limit]
    """What these data can't show."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as ``edo diagnose --json`` prints it.

        Returns
        -------
        dict
            The attributes by name (``per_annotator`` as ``people``), advice and limits as text.
        """
        content = {
            "people" if name == "per_annotator" else name: value
            for name, value in vars(self).items()
        }
        return content | {
            "advice": [one.to_dict() for one in self.advice],
            "limits": [one.text for one in self.limits],
        }

    def lines(self) -> list[str]:
        """Return the diagnosis in words, line by line.

        Returns
        -------
        list of str
        """
        from edokit.diagnosis.render import lines

        return lines(self.to_dict())

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"Diagnosis({self.items} items, {self.annotators} annotators)"


def diagnose(
    annotations: Annotations,
    *,
    groups: Declared | None = None,
    permutations: int = PERMUTATIONS,
    random_state: int = 0,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> Diagnosis:
    """Diagnose the disagreement in annotations: structured or noise, and what follows.

    Parameters
    ----------
    annotations : Annotations
        Who labelled which item how.
    groups : str, mapping or sequence, optional
        Groups of the annotators: the name of an attribute, a mapping from annotator to group, or
        one group per annotator. By default groups are searched for in the labels.
    permutations : int, default=99
        Permutations of the test for structure, at least 39; 0 for no test.
    random_state : int, default=0
        Seed of permutations, halves and blocks of items.
    step : callable, optional
        Called with the permutations done and their total, for a progress bar.

    Returns
    -------
    Diagnosis

    Raises
    ------
    InputError
        If there are no annotations, the groups do not fit the annotators, or there are too few
        permutations for a p-value of 5 %.

    Examples
    --------
    >>> import edokit
    >>> annotations = edokit.simulate("two-camps", random_state=0, items=(200, 1, 1)).annotations
    >>> found = edokit.diagnose(annotations, permutations=39)
    >>> found
    Diagnosis(202 items, 6 annotators)
    >>> found.test["structured"], [one.choice for one in found.advice][:2]
    (True, ['views', 'random-select'])
    """
    _check("permutations", permutations)
    _check("random_state", random_state)
    if 0 < permutations < FEWEST_PERMUTATIONS:
        raise InputError(
            f"with permutations={permutations} no p-value reaches 5 %; it takes at least"
            f" {FEWEST_PERMUTATIONS}, or 0 for no test",
            f"use permutations={PERMUTATIONS}",
            parameters=("permutations",),
        )
    if not len(annotations):
        raise InputError("there are no annotations to diagnose", "give some")
    vectors = LabelVectors.of(annotations)
    declared, names = (None, []) if groups is None else declared_groups(annotations, groups)
    why_not = _without_variance(annotations, vectors)
    shares: Shares | None = None
    test: StructureTest | None = None
    structure: Structure | None = None
    groupings: list[Grouping] = []
    single: list[str] = []
    if why_not is None:
        design = Design.of(vectors, declared, len(names))
        structure = find_structure(vectors, design)
        if declared is None:
            groupings = cross_fitted(vectors, random_state)
        else:
            groupings, single = _declared_groupings(vectors, declared, names)
        shares = decompose(vectors, design, groupings, random_state)
        if permutations and (vectors.scatter > 1e-12).any():
            test = permutation_test(vectors, design, structure, permutations, random_state, step)
    attribute = groups if isinstance(groups, str) else None
    if declared is None:
        group, names, found = _found_groups(annotations, vectors, structure, test, groupings)
    else:
        group, found = declared, _groups("declared", attribute=attribute)
    if found["kind"] != "none":
        found["unassigned"] = int((group < 0).sum())
        found["groups"] = describe_groups(annotations, vectors, group, names)
    per_annotator = describe_annotators(annotations)
    for row, code in zip(per_annotator, group, strict=True):
        row["group"] = found["groups"][code]["name"] if code >= 0 else None
    unassigned = int(((group < 0) & (vectors.per_annotator > 0)).sum())
    counts = balance(annotations)
    variance = _variance_values(shares, why_not, declared is not None)
    tested = None if test is None else _test_values(test)
    return Diagnosis(
        items=len(annotations.items),
        annotators=len(annotations.annotators),
        annotations=len(annotations),
        classes=list(annotations.classes),
        coverage=coverage(annotations),
        balance=counts,
        agreement={**agreement(annotations), "matrix": matrix(annotations, group)},
        entropy=entropy(annotations),
        per_annotator=per_annotator,
        groups=found,
        variance=variance,
        test=tested,
        advice=advise(annotations, counts, found, variance if shares else None, tested),
        limits=limits(annotations, shares, single, unassigned if found["kind"] != "none" else 0),
    )


def _check(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InputError(
            f"{name} is {value!r}, not a whole number of at least 0",
            f"use {name}=0",
            parameters=(name,),
        )


def _without_variance(annotations: Annotations, vectors: LabelVectors) -> str | None:
    """Why nothing is known about the structure of disagreement, if so."""
    used = annotations.counts.sum(axis=0)
    if not (vectors.per_item >= 2).any():
        return "no item has labels of two annotators, so disagreement can't be seen"
    if (used > 0).sum() < 2:
        return f"all labels are {annotations.classes[int(used.argmax())]!r}, so nothing varies"
    return None


def _declared_groupings(
    vectors: LabelVectors, declared: Ints, names: list[str]
) -> tuple[list[Grouping], list[str]]:
    """Declared groups of two annotators or more, and the names of those of one."""
    active = np.where(vectors.per_annotator > 0, declared, -1)
    size = np.bincount(active[active >= 0], minlength=len(names))
    kept = np.flatnonzero(size >= 2)
    number = np.full(len(names) + 1, -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    single = [name for name, count in zip(names, size, strict=True) if count == 1]
    if len(kept) < 2:
        return [], single
    everything = np.ones(vectors.items, dtype=bool)
    return [Grouping(number[active], len(kept), everything, False)], single


def _found_groups(
    annotations: Annotations,
    vectors: LabelVectors,
    structure: Structure | None,
    test: StructureTest | None,
    groupings: list[Grouping],
) -> tuple[Ints, list[str], dict[str, Any]]:
    """The found group of each annotator [A], their names, and the record of the groups."""
    nobody = np.full(len(annotations.annotators), -1, dtype=np.int64)
    if structure is None or structure.groups.count < 2:
        reason = "too few annotators labelled enough contested items to look for groups"
        return nobody, [], _groups("none", reason=reason)
    if test is not None and not test.p_group_item <= LEVEL:
        reason = (
            "the groups that can be found are no clearer than in permuted labels"
            f" (p = {test.p_group_item:.2g})"
        )
        return nobody, [], _groups("none", reason=reason)
    # A is the group with the most labels.
    codes, count = structure.groups.group, structure.groups.count
    labels = np.bincount(np.maximum(codes, 0), weights=vectors.per_annotator * (codes >= 0.0))
    rank = np.append(np.argsort(np.argsort(-labels, kind="stable"), kind="stable"), -1)
    record = _groups("found", stability=stability(groupings))
    return rank[codes], list(ascii_uppercase[:count]), record


def _groups(kind: str, **known: Any) -> dict[str, Any]:
    record = {"kind": kind, "attribute": None, "reason": None, "stability": None}
    return {**record, "unassigned": 0, "groups": [], **known}


def _variance_values(
    shares: Shares | None, why_not: str | None, declared: bool
) -> dict[str, Any] | None:
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
    """A share with its interval, both within [0, 1]; None where it is unknown."""
    if math.isnan(part.share):
        return None
    bounded = [min(max(value, 0.0), 1.0) for value in (part.share, part.low, part.high)]
    return {**dict(zip(("share", "low", "high"), bounded, strict=True)), "hidden": part.hidden}


def _test_values(test: StructureTest) -> dict[str, Any]:
    def tested(statistic: float, p: float, null: Any) -> dict[str, Any]:
        values = [_known(value) for value in null.tolist()]
        return {"statistic": _known(statistic), "p": _known(p), "null": values}

    return {
        "permutations": test.permutations,
        "seed": test.random_state,
        "annotator": tested(test.bias_variance, test.p_annotator, test.null_bias),
        "group_item": tested(test.score, test.p_group_item, test.null_scores),
        "views": tested(test.score, test.p_views, test.null_strict_scores),
        "p": _known(test.p),
        "structured": test.structured,
    }


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
