"""Which items a fit learns from, and which it answers; with folds, all items serve for both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, examples
from edokit.members.course import Course

Positions = npt.NDArray[np.int64]
TRAIN = "train"
DEV = ("dev", "validation", "valid", "val")
"""What the split to choose by may be called."""
FIT = "fit"
"""The name of the out-of-fold predictions, from which weights are fitted."""
_STOP_SHARE = 0.1


class Rows(NamedTuple):
    """Positions of items for one fit."""

    learn: Positions
    """To learn from."""
    stop: Positions
    """To stop early on."""
    answer: dict[str, Positions]
    """To predict, by the name of the predictions."""


def rows_of(course: Course, folds: npt.NDArray[np.int32] | None, fold: int | None) -> Rows:
    """The rows of a plain fit, or of one fold's fit."""
    if folds is None or fold is None:
        others = [name for name in dict.fromkeys(course.splits) if name != TRAIN]
        dev = next((name for name in DEV if name in others), "")
        answer = {name: course.where(name) for name in others}
        return Rows(course.where(TRAIN), course.where(dev), answer)
    inside = [name for name in dict.fromkeys(course.splits) if name in (TRAIN, *DEV)]
    learn = np.flatnonzero((folds >= 0) & (folds != fold))
    # The answers of the held-out fold stay unknown, so a part of the rest tells when to stop.
    chosen = np.random.default_rng([fold, 0xED0]).permutation(len(learn))
    stop = np.sort(chosen[: int(_STOP_SHARE * len(learn))])
    answer = {FIT: np.flatnonzero(folds == fold)}
    answer |= {
        name: course.where(name) for name in dict.fromkeys(course.splits) if name not in inside
    }
    return Rows(learn, learn[stop], answer)


def fold_numbers(course: Course, n_folds: int, seed: int) -> npt.NDArray[np.int32]:
    """The fold of each item of train and dev [N], -1 for the others.

    Folds are alike in size and in hard labels; near-duplicate texts share a fold.
    """
    from edokit.datasets.near_duplicates import near_duplicate_groups

    inside = course.where(TRAIN, *DEV)
    if not 2 <= n_folds <= len(inside):
        raise InputError(
            f"the number of folds must be between 2 and the {len(inside)} items of train and dev,"
            f" but got {n_folds}",
            "five folds are common",
        )
    texts = [text if isinstance(text, str) else "\n".join(text) for text in course.texts]
    groups = near_duplicate_groups([texts[i] for i in inside])
    order = np.random.default_rng([seed, n_folds]).permutation(int(groups.max()) + 1)
    sizes = np.bincount(groups)
    labels = course.hard[inside]
    counts = np.zeros((n_folds, len(course.classes)), dtype=np.int64)
    starts = np.argsort(groups, kind="stable")
    ends = np.cumsum(sizes)
    folds = np.full(len(course), -1, dtype=np.int32)
    # Large groups first; each goes where its class is rarest, then where there is most room.
    for group in order[np.argsort(-sizes[order], kind="stable")]:
        members = starts[ends[group] - sizes[group] : ends[group]]
        tally = np.bincount(labels[members], minlength=len(course.classes))
        fold = int(np.lexsort((counts.sum(axis=1), counts[:, tally.argmax()]))[0])
        counts[fold] += tally
        folds[inside[members]] = fold
    if (counts.sum(axis=1) == 0).any():
        raise InputError(
            f"every fold must get an item, but near-duplicate texts leave {n_folds} folds"
            " with none",
            "ask for fewer folds",
        )
    return folds


def check_splits(course: Course, n_folds: int | None) -> None:
    """Refuse data that leave nothing to tell apart, to learn from or to predict."""
    if len(course.classes) < 2:
        raise InputError(
            "members learn to tell classes apart, which must be two at least, but everyone said"
            f" {examples(course.classes)}",
            "name those that nobody chose, too: --classes no,yes",
        )
    names = list(dict.fromkeys(course.splits))
    shown = ", ".join(map(repr, names))
    if not len(course.where(TRAIN)):
        raise InputError(
            "members learn from the split 'train', which must have items, but the data has"
            f" {shown}",
            "name the splits train, dev and test, or make them with `edo data split`",
        )
    if n_folds is None and names == [TRAIN]:
        raise InputError(
            "without folds there must be a split beside 'train' to predict, but there is none",
            "make one with `edo data split`, or use --cross-fit 5",
        )
