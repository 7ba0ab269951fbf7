"""Groups: those who think alike are found, and chance makes nobody alike on average."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from diagnose_cases import camps, noise
from hypothesis import assume, given
from hypothesis import strategies as st

from edokit.analysis.diagnose.clusters import Design, contrast, find_groups, find_structure
from edokit.analysis.diagnose.vectors import LabelVectors


def same(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> bool:
    """Whether two partitions are the same but for the names of their groups."""
    return bool(np.array_equal(one[:, None] == one, other[:, None] == other))


@pytest.mark.parametrize(
    ("sizes", "per_item"), [((3, 3), None), ((5, 3), None), ((4, 4, 4), None), ((20, 10), 5)]
)
def test_camps_are_found(sizes: tuple[int, ...], per_item: int | None) -> None:
    annotations = camps(items=600, sizes=sizes, per_item=per_item)
    vectors = LabelVectors.from_annotations(annotations)
    found = find_structure(vectors, Design.from_vectors(vectors)).groups
    names = np.unique(annotations.attributes["camp"], return_inverse=True)[1]
    assert same(found.group, names)


def test_camps_in_a_sparse_crowd_are_mostly_found() -> None:
    annotations = camps(items=4000, sizes=(60, 40), per_item=5, apart=0.3)
    vectors = LabelVectors.from_annotations(annotations)
    found = find_structure(vectors, Design.from_vectors(vectors)).groups
    camp = np.unique(annotations.attributes["camp"], return_inverse=True)[1]
    placed = found.group >= 0
    alike = (found.group[:, None] == found.group)[placed][:, placed]
    assert np.mean(alike == (camp[:, None] == camp)[placed][:, placed]) > 0.9


@given(st.integers(0, 1000))
def test_nothing_better_is_found_by_trying_everything(seed: int) -> None:
    vectors = LabelVectors.from_annotations(camps(items=80, sizes=(3, 3), apart=0.3, seed=seed))
    design = Design.from_vectors(vectors)
    excess = design.excess(vectors, vectors.deviations)
    found = find_groups(design, excess)
    best = max(
        contrast(design, excess, np.array([0, *split]), 2).score
        for split in np.ndindex(2, 2, 2, 2, 2)
        if 2 <= sum(split) <= 4
    )
    # Where groups stand apart at all: two or more, and nearly as clear as the clearest two.
    assume(best >= 2)
    assert found.score >= 0.8 * best


@given(st.integers(0, 1000))
def test_the_excesses_of_an_item_sum_to_zero(seed: int) -> None:
    vectors = LabelVectors.from_annotations(noise(items=30, seed=seed))
    design = Design.from_vectors(vectors, fewest=0)
    assert np.sum(design.excess(vectors, vectors.deviations)) == pytest.approx(0, abs=1e-9)


def test_who_answered_too_little_is_in_no_group() -> None:
    table = camps(items=300, sizes=(4, 4)).to_table().to_pylist()
    table += [{**table[0], "annotator": "guest"}]
    from edokit import Annotations

    annotations = Annotations.from_table({key: [row[key] for row in table] for key in table[0]})
    vectors = LabelVectors.from_annotations(annotations)
    found = find_structure(vectors, Design.from_vectors(vectors)).groups
    assert found.group[list(annotations.annotators).index("guest")] == -1
