"""A warning about annotators who give opposite labels, from which the members learned nothing.

The soft label of two such annotators is one half for every text. Members that learn soft labels, or
one label drawn per text, then learn nothing from the text, and effects of people cannot change
that.
"""

from __future__ import annotations

import numpy as np

from edokit._errors import counted, warn
from edokit._types import Floats
from edokit.annotations.core import Annotations
from edokit.ensemble.people import PeopleEffects

MIN_SHARED_ITEMS = 20
"""Two annotators are compared if both labelled at least this many items."""
MAX_AGREEMENT = 0.1
"""Opposite annotators agree on at most this share of the items that both labelled."""
MIN_CHANCE_AGREEMENT = 0.3
"""By chance, given how often each uses each label, they would agree on at least this share."""
MAX_ANNOTATORS = 200
"""With more annotators, no opposite ones are searched for."""
MIN_DISTANCE = 0.2
"""An ensemble tells two annotators apart if its answers for them differ by at least this much."""


def opposite_pairs(annotations: Annotations) -> list[tuple[int, int]]:
    """Positions of pairs of annotators who nearly always disagree, more than chance explains.

    There are none where annotators gave several labels or probabilities instead of one class.
    """
    codes = annotations.label_codes
    n_annotators = len(annotations.annotators)
    if codes is None or n_annotators > MAX_ANNOTATORS:
        return []
    n_classes = len(annotations.classes)
    # The label of each annotator for each item, -1 where there is none.
    labels = np.full((n_annotators, len(annotations.items)), -1, dtype=np.int32)
    labels[annotations.annotator_codes, annotations.item_codes] = codes
    counts = np.zeros((n_annotators, n_classes))
    np.add.at(counts, (annotations.annotator_codes, codes), 1.0)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    chance = shares @ shares.T
    pairs: list[tuple[int, int]] = []
    for annotator in range(n_annotators):
        own_labels = labels[annotator]
        other_labels = labels[annotator + 1 :]
        shared = ((other_labels >= 0) & (own_labels >= 0)).sum(axis=1)
        agreed = ((other_labels == own_labels) & (own_labels >= 0)).sum(axis=1)
        is_opposite = (shared >= MIN_SHARED_ITEMS) & (agreed <= MAX_AGREEMENT * shared)
        is_opposite &= chance[annotator, annotator + 1 :] >= MIN_CHANCE_AGREEMENT
        for offset in np.flatnonzero(is_opposite).tolist():
            pairs.append((annotator, annotator + 1 + offset))
    return pairs


def warn_of_opposites(answers: Floats, annotations: Annotations, people: PeopleEffects) -> None:
    """Warn of opposite annotators whose predicted answers hardly differ.

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
    for first_person, second_person in opposite_pairs(annotations):
        first_answers = people.answers(answers, np.full(len(answers), first_person))
        second_answers = people.answers(answers, np.full(len(answers), second_person))
        # Half the L1 distance is the total variation distance.
        distance = np.abs(first_answers - second_answers).sum(axis=1).mean() / 2
        if distance >= MIN_DISTANCE:
            continue
        if not names:
            names = [
                str(annotations.annotators[first_person]),
                str(annotations.annotators[second_person]),
            ]
        n_pairs += 1
    if not n_pairs:
        return
    more_pairs = ""
    if n_pairs > 1:
        more_pairs = f" (and {counted(n_pairs - 1, 'more pair')})"
    warn(
        f"{names[0]!r} and {names[1]!r}{more_pairs} nearly always give different labels to the same"
        " item, so their shares are divided on every text and the members learned nothing from it:"
        " the two could not be told apart by their answers. Check whether one of them read the"
        " labels the other way round; if not, train members for each of them with `edo train"
        " --supervision per-annotator`"
    )
