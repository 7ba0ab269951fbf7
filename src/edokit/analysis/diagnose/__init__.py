"""`diagnose`: what kind of disagreement there is, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import numpy as np

from edokit._errors import InputError, check_number, check_seed, option
from edokit._progress import Progress, no_progress
from edokit._types import Ints
from edokit.analysis.agreement import agreement
from edokit.analysis.diagnose import overview
from edokit.analysis.diagnose.advice import advise
from edokit.analysis.diagnose.careless import find_careless
from edokit.analysis.diagnose.clusters import (
    Clusters,
    Design,
    cross_fitted,
    find_structure,
    stability,
)
from edokit.analysis.diagnose.groups import compare_groups
from edokit.analysis.diagnose.overview import declared_groups
from edokit.analysis.diagnose.permutation import permutation_test
from edokit.analysis.diagnose.result import Diagnosis
from edokit.analysis.diagnose.variance import Part, decompose
from edokit.analysis.diagnose.vectors import LabelVectors
from edokit.annotations.core import Annotations

PERMUTATIONS = 1999
FEWEST_PERMUTATIONS = 39
# Halves and blocks of items are always the same, so that what is found does not move with the seed.
_HALVES = 0


def diagnose(
    annotations: Annotations | str | Path,
    *,
    groups: str | None = None,
    by: Sequence[str] | str | None = None,
    permutations: int | None = None,
    random_state: int = 0,
    progress: Progress = no_progress,
) -> Diagnosis:
    """Diagnose the disagreement in annotations: structured or noise, and what follows.

    Parameters
    ----------
    annotations : Annotations, str or Path
        Who labelled which item how; a path is read with `edokit.read_annotations`, but of the
        folder of `run` or `fit` the annotations of its fit are read.
    groups : str, optional
        The attribute of the annotators that says which group they belong to. By default groups are
        searched for in the labels.
    by : str or sequence of str, optional
        Attributes of the annotators, such as ``["gender", "age"]``: do people with different levels
        answer differently on the same items?
    permutations : int, optional
        Permutations at most, at least 39; 0 for no test. By default up to 1,999 of the labels
        within items and up to 99,999 of the people: they stop when a verdict is clear, and where it
        is not, one can't tell. With fewer than 199 the verdict may change with the seed.
    random_state : int, default=0
        Seed of the permutations.
    progress : callable, default=no_progress
        Called with the permutations done, their total, and what is being done.

    Returns
    -------
    Diagnosis

    Raises
    ------
    InputError
        If the annotations are empty, an attribute does not exist or can't be used, or the
        permutations are too few for a p-value of 5 %.

    Examples
    --------
    >>> import edokit
    >>> annotations = edokit.simulate("two-camps", random_state=0, items=(200, 1, 1)).annotations
    >>> diagnosis = edokit.diagnose(annotations, permutations=39)
    >>> diagnosis
    Diagnosis(202 items, 6 annotators)
    >>> diagnosis.test["structured"], [advice.choice for advice in diagnosis.advice][:2]
    (True, ['views', 'soft'])
    """
    check_seed(random_state)
    if permutations is not None and permutations != 0:
        hint = f"fewer reach no p-value of 5 %; {option('permutations', 0)} tests nothing"
        check_number("permutations", permutations, FEWEST_PERMUTATIONS, whole=True, hint=hint)
    if isinstance(annotations, str | Path):
        annotations = read_source(Path(annotations))
    if not isinstance(annotations, Annotations) or not len(annotations):
        raise InputError(
            f"{option('annotations')} is empty",
            "pass Annotations, or the path of a file with at least one annotation",
            code="no-annotations",
        )
    attributes = [by] if isinstance(by, str) else list(by or ())
    for name in attributes:
        annotations.people.attribute(name)  # refused before anything is computed
    structure_permutations = PERMUTATIONS if permutations is None else permutations
    vectors = LabelVectors.from_annotations(annotations)
    declared, names = (None, []) if groups is None else declared_groups(annotations, groups)
    analysis = _analyse(
        annotations, vectors, declared, len(names), structure_permutations, random_state, progress
    )
    if declared is None:
        group, names, findings = _found_groups(vectors, analysis)
    else:
        group, findings = declared, {"kind": "declared", "attribute": groups}
    results: dict[str, Any] = {
        "coverage": overview.coverage(annotations),
        "balance": overview.balance(annotations),
        "clusters": _describe_groups(annotations, group, names, findings),
        "test": analysis.test,
        "careless": analysis.careless,
    }
    coefficients = agreement(annotations)
    variance = analysis.variance
    estimated = variance if variance and "total" in variance else None
    compared = None
    if attributes:
        compared = compare_groups(
            annotations,
            attributes,
            permutations=permutations,
            random_state=random_state,
            progress=progress,
        )
    people = annotations.people
    people_text = ""
    if people.attributes or people.left_out:
        people_text = people.describe()
    advice, limits, commands = advise(annotations, results | {"variance": estimated})
    return Diagnosis(
        items=len(annotations.items),
        annotators=len(annotations.annotators),
        annotations=len(annotations),
        classes=list(annotations.classes),
        scale=annotations.scale.to_text(annotations.classes),
        agreement=overview.agreement(annotations, coefficients),
        entropy=overview.entropy(annotations),
        per_annotator=overview.describe_annotators(annotations, group, names, coefficients),
        variance=variance,
        **results,
        advice=advice,
        limits=limits,
        commands=commands,
        splits=list(annotations.split_names),
        groups=compared,
        people=people_text,
    )


def read_source(path: Path) -> Annotations:
    """Return the annotations in a file, or those of the fit in a folder."""
    from edokit.analysis.fit_items import is_fit_folder, read_fit_labels  # slow to import
    from edokit.datasets.read import read_annotations

    if is_fit_folder(path):
        return read_fit_labels(path).annotations
    return read_annotations(path)


def _describe_groups(
    annotations: Annotations, group: Ints, names: list[str], findings: dict[str, Any]
) -> dict[str, Any]:
    """The groups one by one, and what is known about how they were found."""
    active = group[annotations.annotations_per_annotator > 0]
    sizes = np.bincount(active[active >= 0], minlength=len(names))
    unknown = {"kind": "none", "attribute": None, "reason": None, "stability": None}
    return {
        **(unknown | findings),
        "unassigned": int((active < 0).sum()) if names else 0,
        "single": [name for name, size in zip(names, sizes, strict=True) if size == 1],
        "groups": overview.describe_groups(annotations, group, names) if names else [],
    }


@dataclass
class _Analysis:
    """Structure of the disagreement; empty where nothing varies."""

    variance: dict[str, Any] | None = None
    test: dict[str, Any] | None = None
    clusters: Clusters | None = None
    careless: dict[str, Any] | None = None
    groupings: list[Clusters] = field(default_factory=list)


def _analyse(
    annotations: Annotations,
    vectors: LabelVectors,
    declared: Ints | None,
    count: int,
    permutations: int,
    random_state: int,
    progress: Progress,
) -> _Analysis:
    """Components of the variance, the permutation test, groups and careless annotators."""
    if not (vectors.per_item >= 2).any():
        reason = "no item has labels of two annotators, so disagreement can't be seen"
        return _Analysis({"reason": reason})
    if (label := overview.only_answer(annotations)) is not None:
        return _Analysis({"reason": f"all labels are {label}, so nothing varies"})
    analysis = _Analysis()
    design = Design.from_vectors(vectors, declared, count)
    structure = find_structure(vectors, design)
    analysis.clusters = structure.groups
    if declared is None:
        analysis.groupings = cross_fitted(vectors, _HALVES)
    else:
        analysis.groupings = _declared_groupings(vectors, declared, count)
    shares = decompose(vectors, design, analysis.groupings, _HALVES)
    if shares is not None:
        analysis.variance = _variance_values(*shares, declared is not None)
    if permutations and (vectors.scatter > 1e-12).any():
        analysis.test = permutation_test(
            vectors, design, structure, permutations, random_state, progress
        )
    analysis.careless = _careless(annotations, vectors, design, analysis.test, permutations)
    return analysis


def _careless(
    annotations: Annotations,
    vectors: LabelVectors,
    design: Design,
    test: dict[str, Any] | None,
    permutations: int,
) -> dict[str, Any] | None:
    """Careless annotators, and whether the structure that was found goes back to them.

    If so, ``test`` no longer calls the labels structured.
    """
    structured = test is not None and test["structured"]
    # That the structure vanishes without them is further evidence, so less is asked for before.
    careless, rate = find_careless(annotations, false_alarms=1.0 if structured else 0.1)
    if not careless.any():
        return None
    p = None
    if test is not None and structured:
        careful = vectors.without(careless)
        design = Design.from_vectors(careful, design.declared, design.count)
        structure = find_structure(careful, design)
        repeated = permutation_test(careful, design, structure, permutations, test["seed"])
        p = repeated["p"]
        test["structured"] = p is None or repeated["structured"]
        if p is not None:
            test["verdict"] = repeated["verdict"]
    # The most random first: advice names the first few.
    order = [a for a in np.argsort(-rate, kind="stable") if careless[a]]
    return {
        "annotators": [
            {"annotator": str(annotations.annotators[a]), "random": float(rate[a])} for a in order
        ],
        "p": p,
        "explains": p is not None and test is not None and test["verdict"] == "no",
    }


def _declared_groupings(vectors: LabelVectors, declared: Ints, count: int) -> list[Clusters]:
    """The declared groups of two annotators or more, if there are two such groups."""
    active = np.where(vectors.per_annotator > 0, declared, -1)
    large = np.bincount(active[active >= 0], minlength=count) >= 2
    number = np.append(np.where(large, np.cumsum(large) - 1, -1), -1)
    return [Clusters(number[active], int(large.sum()))] if large.sum() >= 2 else []


def _why_no_groups(analysis: _Analysis) -> str | None:
    """Why no groups are shown; None if some were found."""
    clusters, test, careless = analysis.clusters, analysis.test, analysis.careless
    if clusters is None or clusters.count < 2:
        if clusters is not None and (clusters.group >= 0).sum() > 2:
            return "annotators agree within no two groups more than across them"
        return "too few annotators labelled enough contested items to look for groups"
    p = 0.0 if test is None else test["group_item"]["p"]
    if test is not None and test["group_item"]["verdict"] != "yes":
        reason = "the groups are not clearer than those in permuted labels"
        if test["group_item"]["verdict"] == "can't tell":
            reason = "can't tell whether the groups are clearer than those in permuted labels"
        return reason + ("" if p is None else f" (p = {p:.2g})")
    if careless and careless["explains"]:
        return "the structure disappears without the careless annotators"
    return None


def _found_groups(
    vectors: LabelVectors, analysis: _Analysis
) -> tuple[Ints, list[str], dict[str, Any]]:
    """The found group of each annotator [A], their names, and what is known about them."""
    reason, clusters = _why_no_groups(analysis), analysis.clusters
    if reason is not None or clusters is None:
        return np.full(vectors.annotators, -1), [], {"reason": reason}
    codes, placed = clusters.group, clusters.group >= 0
    labels = np.bincount(codes[placed], vectors.per_annotator[placed])
    # A is the group with the most labels.
    rank = np.append(np.argsort(np.argsort(-labels, kind="stable"), kind="stable"), -1)
    grouping = {"kind": "found", "stability": stability(analysis.groupings)}
    return rank[codes], list(ascii_uppercase[: clusters.count]), grouping


def _variance_values(total: float, parts: dict[str, Part], declared: bool) -> dict[str, Any]:
    """The parts of the variance as plain values: within [0, 1], None where unknown."""
    values = {
        name: None
        if math.isnan(part.share)
        else {key: min(max(value, 0.0), 1.0) for key, value in part._asdict().items()}
        for name, part in parts.items()
    }
    # Shares that chance put below 0 are 0, and the others still sum to 1.
    estimated = [value for value in values.values() if value]
    positive = sum(value["share"] for value in estimated)
    for value in estimated:
        value["share"] /= positive
    disagreement = 1.0 - parts["item"].share
    systematic = sum(
        np.nan_to_num(max(parts[name].share, 0.0)) for name in ("annotator", "group_item")
    )
    reason = None
    if values["group_item"] is None:
        reason = "no two groups of two annotators were found on enough contested items"
        if declared:
            reason = "fewer than two of the declared groups have two annotators who share items"
    return {
        "total": total,
        "disagreement": min(max(disagreement, 0.0), 1.0),
        **values,
        # The least share of the disagreement that is systematic.
        "structured": min(float(systematic / disagreement), 1.0) if disagreement > 1e-12 else 0.0,
        "reason": reason,
    }
