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
from edokit._types import Bools, Ints
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
from edokit.datasets.item_groups import item_clusters

# Permutations of labels within items at most, and the fewest with which p can be below 5 %.
PERMUTATIONS = 1999
FEWEST_PERMUTATIONS = 39
# The seed that divides items into halves and blocks: always the same, so that groups and shares of
# the variance do not depend on the user's seed.
_SEED_OF_HALVES = 0


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
        Who labelled which item how; a path is read with `edokit.read_annotations`. For the folder
        of `run` or `fit`, these are the annotations of its fit.
    groups : str, optional
        The attribute of the annotators that names their groups. By default, groups are searched for
        in the labels.
    by : str or sequence of str, optional
        Attributes of the annotators, such as ``["gender", "age"]``: do people with different levels
        answer differently on the same items?
    permutations : int, optional
        Largest number of permutations, at least 39; 0 for no test. By default 1,999 of the labels
        within items and up to 99,999 of the people. They stop when a verdict is clear; if it is not
        clear in the end, the verdict is "can't tell". With fewer than 199, the verdict may change
        with the seed.
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
    item_groups = item_clusters(annotations)
    declared: Ints | None = None
    names: list[str] = []
    if groups is not None:
        declared, names = declared_groups(annotations, groups)
    analysis = _analyse(
        annotations,
        vectors,
        item_groups,
        declared,
        len(names),
        structure_permutations,
        random_state,
        progress,
    )
    if declared is None:
        group, names, origin = _found_groups(vectors, analysis)
    else:
        group = declared
        origin = {"kind": "declared", "attribute": groups}
    coefficients = agreement(annotations)
    coverage = overview.coverage(annotations)
    balance = overview.balance(annotations)
    clusters = _describe_groups(annotations, group, names, origin)
    # Without shares, the variance is only a reason.
    shares = None
    if analysis.variance is not None and "total" in analysis.variance:
        shares = analysis.variance
    advice, limits, commands = advise(
        annotations,
        coverage=coverage,
        balance=balance,
        clusters=clusters,
        variance=shares,
        test=analysis.test,
        careless=analysis.careless,
        grouped_items=_count_grouped(item_groups),
    )
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
    return Diagnosis(
        items=len(annotations.items),
        annotators=len(annotations.annotators),
        annotations=len(annotations),
        classes=list(annotations.classes),
        scale=annotations.scale.to_text(annotations.classes),
        coverage=coverage,
        balance=balance,
        agreement=overview.agreement(annotations, coefficients),
        entropy=overview.entropy(annotations),
        per_annotator=overview.describe_annotators(annotations, group, names, coefficients),
        clusters=clusters,
        variance=analysis.variance,
        test=analysis.test,
        careless=analysis.careless,
        advice=advice,
        limits=limits,
        commands=commands,
        splits=list(annotations.split_names),
        groups=compared,
        people=people_text,
    )


def _count_grouped(item_groups: Ints | None) -> int:
    """The number of items that belong together with others."""
    if item_groups is None:
        return 0
    _, group_of_item, sizes = np.unique(item_groups, return_inverse=True, return_counts=True)
    return int((sizes[group_of_item] > 1).sum())


def read_source(path: Path) -> Annotations:
    """Return the annotations in a file, or those of the fit in a folder."""
    from edokit.analysis.fit_items import is_fit_folder, read_fit_labels  # slow to import
    from edokit.datasets.read import read_annotations

    if is_fit_folder(path):
        return read_fit_labels(path).annotations
    return read_annotations(path)


def _describe_groups(
    annotations: Annotations, group: Ints, names: list[str], origin: dict[str, Any]
) -> dict[str, Any]:
    """Each group, and how the groups came about: ``origin`` says as much of it as is known."""
    active = group[annotations.annotations_per_annotator > 0]
    sizes = np.bincount(active[active >= 0], minlength=len(names))
    unassigned = 0
    if names:
        unassigned = int((active < 0).sum())
    return {
        "kind": "none",
        "attribute": None,
        "reason": None,
        "stability": None,
        **origin,
        "unassigned": unassigned,
        "single": [name for name, size in zip(names, sizes, strict=True) if size == 1],
        "groups": overview.describe_groups(annotations, group, names),
    }


@dataclass
class _Analysis:
    """Structure of the disagreement; empty where nothing varies.

    ``clusters`` are the groups of annotators, as found on all items or declared; ``groupings`` are
    those with which the share of groups in the variance is estimated: found on halves of the items,
    or declared.
    """

    variance: dict[str, Any] | None = None
    test: dict[str, Any] | None = None
    clusters: Clusters | None = None
    careless: dict[str, Any] | None = None
    groupings: list[Clusters] = field(default_factory=list)


def _analyse(
    annotations: Annotations,
    vectors: LabelVectors,
    item_groups: Ints | None,
    declared: Ints | None,
    n_declared: int,
    permutations: int,
    random_state: int,
    progress: Progress,
) -> _Analysis:
    """Components of the variance, the permutation test, groups and careless annotators.

    Items with the same number in ``item_groups`` [N] belong together; ``declared`` are the groups
    of annotators [A].
    """
    if not (vectors.per_item >= 2).any():
        reason = "no item has labels of two annotators, so disagreement can't be seen"
        return _Analysis({"reason": reason})
    label = overview.only_answer(annotations)
    if label is not None:
        return _Analysis({"reason": f"all labels are {label}, so nothing varies"})
    analysis = _Analysis()
    design = Design.from_vectors(vectors, declared, n_declared)
    structure = find_structure(vectors, design)
    analysis.clusters = structure.groups
    if declared is None:
        analysis.groupings = cross_fitted(vectors, _SEED_OF_HALVES, item_groups=item_groups)
    else:
        analysis.groupings = _declared_groupings(vectors, declared, n_declared)
    shares = decompose(vectors, design, analysis.groupings, _SEED_OF_HALVES, item_groups)
    if shares is not None:
        analysis.variance = _variance_values(*shares, declared is not None)
    if permutations and (vectors.scatter > 1e-12).any():
        analysis.test = permutation_test(
            vectors, design, structure, permutations, random_state, progress
        )
    analysis.careless, analysis.test = _examine_careless(
        annotations, vectors, design, analysis.test, permutations
    )
    return analysis


def _examine_careless(
    annotations: Annotations,
    vectors: LabelVectors,
    design: Design,
    test: dict[str, Any] | None,
    permutations: int,
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Careless annotators, None if there are none; and the test, with its verdict without them.

    Labels count as structured only if they also are without careless annotators.
    """
    is_structured = test is not None and test["structured"]
    # That the structure vanishes without them is further evidence, so less is required before.
    is_careless, rate = find_careless(annotations, false_alarms=1.0 if is_structured else 0.1)
    if not is_careless.any():
        return None, test
    p = None
    explains = False
    if test is not None and is_structured:
        repeated = _test_without(is_careless, vectors, design, permutations, test["seed"])
        p = repeated["p"]
        if p is not None:
            explains = repeated["verdict"] == "no"
            test = test | {"structured": repeated["structured"], "verdict": repeated["verdict"]}
    annotators = []
    # The most random first: advice names the first few.
    for a in np.argsort(-rate, kind="stable"):
        if is_careless[a]:
            name = str(annotations.annotators[a])
            annotators.append({"annotator": name, "random": float(rate[a])})
    return {"annotators": annotators, "p": p, "explains": explains}, test


def _test_without(
    annotators: Bools,
    vectors: LabelVectors,
    design: Design,
    permutations: int,
    random_state: int,
) -> dict[str, Any]:
    """The permutation test on the labels of all but these annotators (mask [A])."""
    remaining = vectors.without(annotators)
    design = Design.from_vectors(remaining, design.declared, design.n_declared)
    structure = find_structure(remaining, design)
    return permutation_test(remaining, design, structure, permutations, random_state)


def _declared_groupings(vectors: LabelVectors, declared: Ints, n_declared: int) -> list[Clusters]:
    """The declared groups of two annotators or more, if there are two such groups."""
    is_active = (vectors.per_annotator > 0) & (declared >= 0)
    is_large = np.bincount(declared[is_active], minlength=n_declared) >= 2
    if is_large.sum() < 2:
        return []
    # Large groups are numbered anew; everybody else is in none.
    new_numbers = np.where(is_large, np.cumsum(is_large) - 1, -1)
    group = np.full(len(declared), -1, dtype=np.int64)
    group[is_active] = new_numbers[declared[is_active]]
    return [Clusters(group, int(is_large.sum()))]


def _why_no_groups(analysis: _Analysis) -> str | None:
    """Why no groups are shown; None if some were found."""
    clusters = analysis.clusters
    if clusters is None or clusters.count < 2:
        if clusters is not None and (clusters.group >= 0).sum() > 2:
            return "annotators agree within no two groups more than across them"
        return "too few annotators labelled enough contested items to look for groups"
    if analysis.test is not None:
        test = analysis.test["group_item"]
        reason = "the groups are not shown to be clearer than those in permuted labels"
        if test["verdict"] == "can't tell":
            reason = "can't tell whether the groups are clearer than those in permuted labels"
        if test["p"] is not None:
            reason += f" (p = {test['p']:.2g})"
        if test["verdict"] != "yes":
            return reason
    if analysis.careless is not None and analysis.careless["explains"]:
        return "no structure is shown without the careless annotators"
    return None


def _found_groups(
    vectors: LabelVectors, analysis: _Analysis
) -> tuple[Ints, list[str], dict[str, Any]]:
    """The found group of each annotator [A], the groups' names, and how they were found."""
    reason = _why_no_groups(analysis)
    clusters = analysis.clusters
    if reason is not None or clusters is None:
        return np.full(vectors.annotators, -1), [], {"reason": reason}
    placed = clusters.group >= 0
    labels = np.bincount(clusters.group[placed], vectors.per_annotator[placed])
    # A is the group with the most labels.
    largest_first = np.argsort(-labels, kind="stable")
    rank = np.empty(len(largest_first), dtype=np.int64)
    rank[largest_first] = np.arange(len(largest_first))
    group = np.full(vectors.annotators, -1, dtype=np.int64)
    group[placed] = rank[clusters.group[placed]]
    origin = {"kind": "found", "stability": stability(analysis.groupings)}
    return group, list(ascii_uppercase[: clusters.count]), origin


def _variance_values(total: float, parts: dict[str, Part], declared: bool) -> dict[str, Any]:
    """The parts of the variance as plain values: within [0, 1], None where unknown."""
    values: dict[str, dict[str, float] | None] = {}
    positive = 0.0
    for name, part in parts.items():
        values[name] = None
        if not math.isnan(part.share):
            share = _within_unit(part.share)
            values[name] = {
                "share": share,
                "low": _within_unit(part.low),
                "high": _within_unit(part.high),
            }
            positive += share
    # Shares that chance put below 0 are 0, and the others still sum to 1.
    for value in values.values():
        if value is not None:
            value["share"] /= positive
    disagreement = 1.0 - parts["item"].share
    systematic = 0.0
    for name in ("annotator", "group_item"):
        systematic += float(np.nan_to_num(max(parts[name].share, 0.0)))
    reason = None
    if values["group_item"] is None:
        reason = "no two groups of two annotators were found on enough contested items"
        if declared:
            reason = "fewer than two of the declared groups have two annotators who share items"
    return {
        "total": total,
        "disagreement": _within_unit(disagreement),
        **values,
        # The least share of the disagreement that is systematic.
        "structured": min(float(systematic / disagreement), 1.0) if disagreement > 1e-12 else 0.0,
        "reason": reason,
    }


def _within_unit(value: float) -> float:
    return min(max(value, 0.0), 1.0)
