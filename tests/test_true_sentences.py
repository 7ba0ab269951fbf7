"""The last sentence of a run, on small tables whose truth is known.

Members are two quick regressions in three folds; the sentence is made as `edo run` makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import edokit
from edokit import Annotations
from edokit.analysis.scores.text import result_sentence
from edokit.members import parse_groups
from tests.errors import raises_code

pytestmark = pytest.mark.filterwarnings("ignore::edokit._errors.EDOWarning")
WORDS = [a + b + c for a in "bdgklmnprst" for b in "aeiou" for c in "lnrst"]
CONSTANT = "the same answer for every text"
NOT_BETTER = (f"Not clearly better than {CONSTANT} (", f"Clearly worse than {CONSTANT} (")

Answer = Callable[[int, int], int]


def table(
    texts: list[str], answer: Answer, annotators: int = 3, groups: list[str] | None = None
) -> Annotations:
    """Annotations with ``answer(item, annotator)``; -1 for no answer."""
    rows: dict[str, list[str]] = {"item": [], "annotator": [], "label": [], "text": []}
    if groups is not None:
        rows["thread"] = []
    for i, text in enumerate(texts):
        for a in range(annotators):
            label = answer(i, a)
            if label < 0:
                continue
            rows["item"].append(f"i{i}")
            rows["annotator"].append(f"a{a}")
            rows["label"].append("ny"[label])
            rows["text"].append(text)
            if groups is not None:
                rows["thread"].append(groups[i])
    if groups is None:
        return Annotations.from_table(rows)
    return Annotations.from_table(rows, columns={"group": "thread"})


def random_texts(count: int, rng: np.random.Generator) -> list[str]:
    return [" ".join(rng.choice(WORDS, 8)) for _ in range(count)]


def signal_texts(truth: np.ndarray, rng: np.random.Generator) -> list[str]:
    """Texts that hold a word of their class."""
    texts = []
    for label in truth:
        words = [*rng.choice(WORDS, 5), ("kindly", "rudely")[label]]
        texts.append(" ".join(words))
    return texts


def grouped_texts(rng: np.random.Generator, shared: int) -> list[str]:
    """Twenty groups of five texts of twelve words, which share some and shuffle them."""
    texts = []
    for _ in range(20):
        common = rng.choice(WORDS, shared, replace=False).tolist()
        for _ in range(5):
            rest = rng.choice(WORDS, 12 - shared).tolist()
            texts.append(" ".join(rng.permutation([*common, *rest])))
    return texts


def sentence_of(annotations: Annotations, folder: Path) -> str:
    """What `edo run` would say of two quick members."""
    groups = parse_groups("linear:2")
    trained = edokit.train_members(annotations, groups, out=folder / "m", cross_fit=3, jobs=1)
    comparison = edokit.compare(
        trained.predictions["fit"], annotations, methods=["edo"], samples=50
    )
    return result_sentence(comparison.gains)


def test_no_signal_is_not_called_a_gain(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=(60, 3))
    said = sentence_of(table(random_texts(60, rng), lambda i, a: labels[i, a]), tmp_path)
    assert said.startswith(NOT_BETTER)


def test_a_signal_is_found_with_one_annotator(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=100)
    annotations = table(signal_texts(truth, rng), lambda i, a: truth[i], annotators=1)
    said = sentence_of(annotations, tmp_path)
    assert said.startswith(f"Matches your annotators clearly better than {CONSTANT} (+")


def test_a_signal_is_found_where_all_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    truth = rng.integers(2, size=100)
    said = sentence_of(table(signal_texts(truth, rng), lambda i, a: truth[i]), tmp_path)
    assert said.startswith(f"Matches your annotators clearly better than {CONSTANT} (+")


def test_a_signal_is_found_with_one_annotation_each(tmp_path: Path) -> None:
    """Item i is labelled by annotator i mod 3 alone."""
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=100)
    annotations = table(signal_texts(truth, rng), lambda i, a: int(truth[i]) if i % 3 == a else -1)
    said = sentence_of(annotations, tmp_path)
    assert said.startswith(f"Matches your annotators clearly better than {CONSTANT} (+")


def test_opposite_annotators_leave_nothing_to_gain(tmp_path: Path) -> None:
    """Their mean is one half for every text, which the constant says, too."""
    rng = np.random.default_rng(4)
    truth = rng.integers(2, size=60)
    annotations = table(signal_texts(truth, rng), lambda i, a: int(truth[i] ^ a), annotators=2)
    assert sentence_of(annotations, tmp_path).startswith(NOT_BETTER)


def test_annotators_who_are_classes_leave_nothing_to_gain(tmp_path: Path) -> None:
    """Each annotator always gives the same label."""
    rng = np.random.default_rng(5)
    annotations = table(random_texts(60, rng), lambda i, a: a, annotators=2)
    assert sentence_of(annotations, tmp_path).startswith(NOT_BETTER)


def test_rare_labels_without_signal_are_not_called_a_gain(tmp_path: Path) -> None:
    """99:1, where a few lucky items would decide."""
    rng = np.random.default_rng(6)
    labels = (rng.random((100, 3)) < 0.01).astype(int)
    labels[:10, 0] = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0]  # both classes occur
    said = sentence_of(table(random_texts(100, rng), lambda i, a: labels[i, a]), tmp_path)
    assert said.startswith(NOT_BETTER)


@pytest.mark.parametrize(
    "shared",
    [pytest.param(8, id="templates"), pytest.param(12, id="shuffled")],
)
def test_groups_of_alike_texts_are_no_gain_on_new_groups(shared: int, tmp_path: Path) -> None:
    """The label of a group is random: other texts of it tell nothing of a new group."""
    rng = np.random.default_rng(shared)
    texts = grouped_texts(rng, shared)
    labels = rng.integers(2, size=20).repeat(5)
    names = [f"t{number // 5}" for number in range(100)]
    alone = sentence_of(table(texts, lambda i, a: labels[i]), tmp_path / "alone")
    assert alone.startswith("Matches your annotators clearly better")  # why groups must be named
    together = sentence_of(table(texts, lambda i, a: labels[i], groups=names), tmp_path / "groups")
    assert together.startswith(NOT_BETTER)


def test_five_items_are_too_few(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    truth = np.array([0, 1, 0, 1, 1])
    with raises_code("too-many-folds", "5 items"):
        sentence_of(table(signal_texts(truth, rng), lambda i, a: truth[i]), tmp_path)
