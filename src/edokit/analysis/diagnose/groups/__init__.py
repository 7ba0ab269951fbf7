"""Do groups of people answer differently? Levels of attributes, compared on the same items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from edokit._errors import InputError, headings, option
from edokit._progress import Progress, no_progress
from edokit._types import Bools, Floats, Ints
from edokit.analysis.diagnose.groups.result import (
    AnswerPoint,
    DividingItem,
    GroupComparison,
    LevelComparison,
)
from edokit.analysis.diagnose.groups.statistics import (
    LevelTests,
    PersonScores,
    interval,
    item_differences,
    permutation_tests,
)
from edokit.analysis.diagnose.vectors import LabelVectors
from edokit.analysis.sequential import MonteCarloTests
from edokit.annotations.core import Annotations
from edokit.annotations.people import FEW_PEOPLE, Attribute
from edokit.datasets.item_groups import item_clusters
from edokit.scales import Scale

MOST_PERMUTATIONS = 19_999
MOST_PERMUTATIONS_OF_SMALL_PANELS = 99_999
"""The same for small panels, where a permutation takes microseconds."""
_MOST_PEOPLE_OF_SMALL_PANELS = 200
ITEMS_SHOWN = 10
"""Items of each attribute that divide its levels most."""


@dataclass(frozen=True, eq=False)
class _AttributeData:
    """An attribute with the people who labelled items together, and their labels.

    ``people`` is None if no two people labelled an item together. ``codes`` [A] are the levels of
    these people, ``item_numbers`` [N] the numbers of their items in the annotations.
    """

    attribute: Attribute
    people: PersonScores | None
    codes: Ints
    item_numbers: Ints

    @property
    def comparable_levels(self) -> tuple[int, ...]:
        """Levels that two people or more have, and two or more do not have."""
        if self.people is None:
            return ()
        counts = np.bincount(self.codes, minlength=len(self.attribute.levels))
        is_comparable = (counts >= 2) & (len(self.codes) - counts >= 2)
        return tuple(np.flatnonzero(is_comparable).tolist())

    @property
    def tested_levels(self) -> tuple[int, ...]:
        """Levels to test: of two, only the first, since the other one has the same test."""
        if len(np.unique(self.codes)) == 2:
            return self.comparable_levels[:1]
        return self.comparable_levels


def compare_groups(
    annotations: Annotations,
    by: Sequence[str],
    *,
    permutations: int | None = None,
    random_state: int = 0,
    progress: Progress = no_progress,
) -> GroupComparison:
    """Compare the levels of attributes of the annotators on the same items.

    Parameters
    ----------
    annotations : Annotations
    by : sequence of str
        Attributes of the annotators, as in ``["gender", "age"]``.
    permutations : int, default=None
        Permutations at most; they stop when every verdict is clear. 0: no tests. None: up to 99,999
        with 200 people or fewer, else up to 19,999.
    random_state : int, default=0
        Seed of the permutations.
    progress : callable, default=no_progress
        Called with the permutations done and their largest number.

    Returns
    -------
    GroupComparison

    Raises
    ------
    InputError
        If an attribute does not exist or can't be used.
    """
    names = list(dict.fromkeys(by))
    people = annotations.people
    if not names:
        raise InputError(
            f"{option('by')} names no attribute",
            f"the attributes are {headings(people.names) or 'none'}",
            code="empty-option",
        )
    attributes = [people.attribute(name) for name in names]
    class_vectors = _class_vectors(annotations.scale, len(annotations.classes))
    vectors = LabelVectors.from_annotations(annotations, class_vectors)
    item_groups = item_clusters(annotations)
    # Many small products: threads only wait for each other.
    with threadpool_limits(1):
        data = [_attribute_data(attribute, vectors) for attribute in attributes]
        tests = None
        families = []
        for entry in data:
            if entry.people is not None and entry.tested_levels:
                families.append(LevelTests(entry.people, entry.codes, entry.tested_levels))
        if permutations is None:
            permutations = MOST_PERMUTATIONS
            if len(people) <= _MOST_PEOPLE_OF_SMALL_PANELS:
                permutations = MOST_PERMUTATIONS_OF_SMALL_PANELS
        if permutations and families:
            tests = permutation_tests(families, random_state, permutations, progress)
        levels: list[LevelComparison] = []
        items: list[DividingItem] = []
        item_spread = {}
        first_test = 0
        for entry in data:
            compared, spread, dividing = _describe(annotations, vectors, entry, item_groups)
            if tests is not None:
                compared = _with_tests(compared, entry, tests, first_test)
                first_test += len(entry.tested_levels)
            levels += compared
            items += dividing
            item_spread[entry.attribute.name] = spread
    return GroupComparison(
        levels=tuple(levels),
        items=tuple(items),
        item_spread=item_spread,
        unknown={attribute.name: attribute.unknown for attribute in attributes},
        notes={attribute.name: attribute.note for attribute in attributes if attribute.note},
        tests=0 if tests is None else len(tests.p),
        permutations=0 if tests is None else int(tests.permutations.max()),
        scale=annotations.scale.kind,
        classes=annotations.classes,
        seed=random_state,
    )


def _class_vectors(scale: Scale, classes: int) -> Floats:
    """What is averaged for each class [C, D]: its point on a scale, else an indicator."""
    if scale.positions is not None:
        return np.array(scale.positions, dtype=np.float64)[:, None]
    return np.eye(classes)


def _attribute_data(attribute: Attribute, vectors: LabelVectors) -> _AttributeData:
    """The labels of people whose level is known, on items that two of them labelled."""
    vectors_with_level = vectors.without(attribute.codes < 0)
    shared = vectors_with_level.per_item >= 2
    item_numbers = np.flatnonzero(shared)
    labels = vectors_with_level.take(shared)
    active = np.flatnonzero(labels.per_annotator > 0)
    if not len(active):
        return _AttributeData(attribute, None, attribute.codes[active], item_numbers)
    number = np.full(labels.annotators, -1, dtype=np.int64)
    number[active] = np.arange(len(active))
    labels = replace(labels, annotator=number[labels.annotator], annotators=len(active))
    people = PersonScores.from_labels(labels)
    return _AttributeData(attribute, people, attribute.codes[active], item_numbers)


def _describe(
    annotations: Annotations,
    vectors: LabelVectors,
    data: _AttributeData,
    item_groups: Ints | None,
) -> tuple[list[LevelComparison], float, list[DividingItem]]:
    """Means and differences of the levels, how much differences vary, and dividing items."""
    attribute = data.attribute
    if item_groups is not None:
        item_groups = item_groups[data.item_numbers]
    labels_per_level = np.bincount(
        attribute.codes[vectors.annotator] + 1, minlength=len(attribute.levels) + 1
    )[1:]
    # No difference is larger than the scale, but intervals from few people may be.
    largest = 1.0
    if annotations.scale.span is not None:
        largest = annotations.scale.span
    compared = []
    candidates: list[tuple[float, DividingItem]] = []
    spread = 0.0
    for code, level in enumerate(attribute.levels):
        level_vectors = vectors.values[attribute.codes[vectors.annotator] == code]
        n_people = attribute.people[code]
        mean = None
        if len(level_vectors):
            mean = _answer(annotations, level_vectors.mean(axis=0))
        row = LevelComparison(
            attribute=attribute.name,
            level=level,
            people=n_people,
            labels=int(labels_per_level[code]),
            mean=mean,
            few_people=n_people < FEW_PEOPLE,
        )
        if data.people is None or code not in data.comparable_levels:
            compared.append(replace(row, reason=_why_not(data, code)))
            continue
        member = data.codes == code
        difference, low, high = interval(data.people, member, item_groups)
        low = np.maximum(low, -largest)
        high = np.minimum(high, largest)
        if np.isnan(difference).any():
            reason = "no item was labelled both by them and by others"
            compared.append(replace(row, reason=reason))
            continue
        compared.append(
            replace(
                row,
                difference=_answer(annotations, difference),
                low=_answer(annotations, low),
                high=_answer(annotations, high),
                missed=float(np.maximum(np.abs(low), np.abs(high)).max()),
            )
        )
        level_spread, level_items = _dividing_items(annotations, data, code, member, difference)
        spread = max(spread, level_spread)
        candidates += level_items
    return compared, spread, _most_dividing(candidates)


def _why_not(data: _AttributeData, code: int) -> str:
    """Why a level can't be compared with the others."""
    if data.people is None:
        return "no item was labelled by two people, so answers to the same item can't be compared"
    if (data.codes == code).sum() < 2:
        return "fewer than two of them labelled items together with others"
    return "fewer than two others labelled items together with them"


def _answer(annotations: Annotations, values: Floats) -> AnswerPoint:
    """A mean as a result has it: a point on an ordinal scale, else shares by class."""
    if annotations.scale.positions is not None:
        return float(values[0])
    return dict(zip(annotations.classes, map(float, values), strict=True))


def _dividing_items(
    annotations: Annotations, data: _AttributeData, code: int, member: Bools, difference: Floats
) -> tuple[float, list[tuple[float, DividingItem]]]:
    """How much a level's differences vary, and the items where it is farthest from the others."""
    assert data.people is not None
    differences = item_differences(data.people.labels, member, difference)
    distance = np.nan_to_num(np.linalg.norm(differences.shrunken, axis=1), nan=-1.0)
    # Where single items say nothing beyond chance, the largest plain difference comes first.
    gap = np.nan_to_num(np.linalg.norm(differences.inside - differences.outside, axis=1), nan=0.0)
    order = np.lexsort((-gap, -distance.round(9)))[:ITEMS_SHOWN]
    candidates = []
    for item in order:
        if distance[item] < 0:
            continue
        entry = DividingItem(
            attribute=data.attribute.name,
            level=data.attribute.levels[code],
            item=str(annotations.items[data.item_numbers[item]]),
            mean=_answer(annotations, differences.inside[item]),
            others=_answer(annotations, differences.outside[item]),
            labels=int(differences.count[item]),
            other_labels=int(differences.other_count[item]),
            difference=_answer(annotations, differences.shrunken[item]),
        )
        candidates.append((float(distance[item]), entry))
    return differences.spread, candidates


def _most_dividing(candidates: list[tuple[float, DividingItem]]) -> list[DividingItem]:
    """The items with the largest distance, each once, with the level that is farthest there."""
    ordered = sorted(candidates, key=lambda candidate: -candidate[0])
    entry_by_item: dict[str, DividingItem] = {}
    for _, entry in ordered:
        entry_by_item.setdefault(entry.item, entry)
    return list(entry_by_item.values())[:ITEMS_SHOWN]


def _with_tests(
    compared: list[LevelComparison], data: _AttributeData, tests: MonteCarloTests, first_test: int
) -> list[LevelComparison]:
    """The levels with their p-values; the second of two levels has those of the first."""
    test_of_level = {}
    for number, code in enumerate(data.tested_levels):
        test_of_level[code] = first_test + number
    if len(data.tested_levels) == 1:
        test_of_level = dict.fromkeys(data.comparable_levels, first_test)
    tested = []
    for code, row in enumerate(compared):
        if code not in test_of_level or row.difference is None:
            tested.append(row)
            continue
        test = test_of_level[code]
        tested.append(
            replace(
                row,
                p=float(tests.p[test]),
                p_adjusted=float(tests.adjusted[test]),
                p_low=float(tests.low[test]),
                p_high=float(tests.high[test]),
                differs=tests.verdicts[test],
            )
        )
    return tested
