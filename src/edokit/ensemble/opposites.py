"""Annotators who answer the opposite of each other, although the pool can't tell them apart.

The soft label of such a pair is one half for every text. Members that learn soft labels, or a
label drawn of several, then learn nothing of the text, and no effect of a person can add it.
"""

from __future__ import annotations

import numpy as np

from edokit._errors import counted, warn
from edokit._types import Floats
from edokit.annotations.core import Annotations
from edokit.ensemble.people import PeopleEffects

FEWEST_SHARED = 20
"""Annotators with fewer items in common are not compared."""
MOST_AGREEMENT = 0.1
"""Opposite annotators agree on at most this share of the items that both labelled."""
LEAST_CHANCE = 0.3
"""They would agree on at least this share by chance, with their own shares of labels."""
MOST_ANNOTATORS = 200
"""Among more annotators, opposite ones are not looked for."""
TOLD_APART = 0.2
"""Known answers that are farther apart, on average over items, tell the two apart."""


def opposite_pairs(annotations: Annotations) -> list[tuple[int, int]]:
    """Pairs of annotators, by position, who nearly always disagree and would not by chance."""
    codes = annotations.label_codes
    n_annotators = len(annotations.annotators)
    if codes is None or annotations.scale.is_multi_label or n_annotators > MOST_ANNOTATORS:
        return []
    n_classes = len(annotations.classes)
    answers = np.full((n_annotators, len(annotations.items)), -1, dtype=np.int32)
    answers[annotations.annotator_codes, annotations.item_codes] = codes
    counts = np.zeros((n_annotators, n_classes))
    np.add.at(counts, (annotations.annotator_codes, codes), 1.0)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    chance = shares @ shares.T
    pairs: list[tuple[int, int]] = []
    for annotator in range(n_annotators):
        of_first = answers[annotator]
        later_answers = answers[annotator + 1 :]
        shared = ((later_answers >= 0) & (of_first >= 0)).sum(axis=1)
        agreed = ((later_answers == of_first) & (of_first >= 0)).sum(axis=1)
        is_opposite = (shared >= FEWEST_SHARED) & (agreed <= MOST_AGREEMENT * shared)
        is_opposite &= chance[annotator, annotator + 1 :] >= LEAST_CHANCE
        for offset in np.flatnonzero(is_opposite).tolist():
            pairs.append((annotator, annotator + 1 + offset))
    return pairs


def warn_of_opposites(answers: Floats, annotations: Annotations, people: PeopleEffects) -> None:
    """Warn of opposite annotators whose known answers hardly differ.

    Parameters
    ----------
    answers : ndarray of shape (n_items, n_classes)
        The pool's answers.
    annotations : Annotations
        Who labelled these items how.
    people : PeopleEffects
        How annotators differ from the pool.
    """
    names: list[str] = []
    n_pairs = 0
    for first, second in opposite_pairs(annotations):
        of_first = people.answers(answers, np.full(len(answers), first))
        of_second = people.answers(answers, np.full(len(answers), second))
        # Half the L1 distance: the probability that must move to turn one into the other.
        distance = np.abs(of_first - of_second).sum(axis=1).mean() / 2
        if distance >= TOLD_APART:
            continue
        if not names:
            names = [str(annotations.annotators[first]), str(annotations.annotators[second])]
        n_pairs += 1
    if not n_pairs:
        return
    more_pairs = ""
    if n_pairs > 1:
        more_pairs = f" (and {counted(n_pairs - 1, 'more pair')})"
    warn(
        f"{names[0]!r} and {names[1]!r}{more_pairs} nearly always give different labels to the same"
        " item, so their shares are divided on every text and the members learned nothing of it:"
        " the two could not be told apart by their answers. Check whether one of them read the"
        " labels the other way round; else train members for each of them, with `edo train"
        " --supervision per-annotator`, and look at these"
    )
