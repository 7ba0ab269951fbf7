"""Dividing items into splits: alike in classes and disagreement, near-duplicates together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from edokit._errors import InputError, examples
from edokit._types import Floats, Ints
from edokit.annotations import Annotations
from edokit.datasets.near_duplicates import THRESHOLD, near_duplicate_groups

SHARES: Mapping[str, float] = {"train": 0.8, "dev": 0.1, "test": 0.1}
_LEVELS = 4
"""Steps from full agreement to the most even division."""


def split_items(
    annotations: Annotations,
    shares: Mapping[str, float] | None = None,
    *,
    random_state: int = 0,
    threshold: float | None = THRESHOLD,
) -> Annotations:
    """Divide items into splits, stratified by hard label and disagreement.

    Near-duplicate texts stay in one split. Splits that the annotations had are replaced.

    Parameters
    ----------
    annotations : Annotations
    shares : mapping of str to float, default=None
        Names and shares of the splits; ``{"train": 0.8, "dev": 0.1, "test": 0.1}`` if None.
    random_state : int, default=0
        Seed; the same seed gives the same splits.
    threshold : float or None, default=0.8
        Overlap from which two texts are near-duplicates; None lets those part.

    Returns
    -------
    Annotations
        The same annotations with a split for each item.

    Raises
    ------
    InputError
        If the shares are not positive and do not sum to 1, or a split would get no item.

    Examples
    --------
    >>> from edokit import simulate
    >>> from edokit.datasets import split_items
    >>> annotations = simulate("two-camps", items=(100, 0, 0)).annotations
    >>> parts = split_items(annotations, {"train": 0.7, "test": 0.3})
    >>> {name: len(parts.split(name).items) for name in parts.split_names}
    {'train': 70, 'test': 30}
    """
    shares = SHARES if shares is None else shares
    names, wanted = list(shares), np.array(list(shares.values()), dtype=np.float64)
    if not names or not (wanted > 0).all() or abs(wanted.sum() - 1) > 1e-6:
        shown = ", ".join(f"{name}={share:g}" for name, share in shares.items()) or "none"
        raise InputError(
            f"the shares of the splits ({shown}) are not positive or do not sum to 1",
            "write for example train=0.8, dev=0.1, test=0.1",
            parameters=("shares",),
        )
    n = len(annotations.items)
    rng = np.random.default_rng(random_state)
    if annotations.texts is None or threshold is None:
        groups = np.arange(n)
    else:
        groups = near_duplicate_groups(annotations.texts, threshold)
    # Groups in random order, but those of one stratum side by side.
    sizes = np.bincount(groups)
    first_item = np.unique(groups, return_index=True)[1]
    strata = _strata(annotations, random_state)[first_item]
    order = np.lexsort((rng.permutation(len(sizes)), -sizes, strata))
    chosen = _deal(sizes, order, _whole(wanted / wanted.sum(), n), rng)
    empty = [name for k, name in enumerate(names) if k not in chosen]
    if empty:
        together = f" in {len(sizes)} groups of near-duplicates" if (sizes > 1).any() else ""
        raise InputError(
            f"the split {examples(empty)} would get none of the {n} items{together}",
            "give it a larger share"
            + (", or let near-duplicates part (threshold=None)" if together else ""),
            parameters=("shares", "threshold"),
        )
    return replace(annotations, splits=np.array(names, dtype=object)[chosen[groups]])


def _strata(annotations: Annotations, random_state: int) -> Ints:
    """A number per item [N] for its hard label and how divided its annotators are."""
    # On which side a tied item counts matters little here, so there is no warning.
    labels = annotations.hard_labels(ties="random", random_state=random_state)
    most = np.log(max(2, len(annotations.classes)))
    level = np.ceil(annotations.entropy / most * _LEVELS - 1e-9)
    strata: Ints = labels.astype(np.int64) * (_LEVELS + 1) + level.astype(np.int64)
    return strata


def _whole(shares: Floats, n: int) -> Ints:
    """Whole numbers that sum to n, by largest remainder."""
    exact = shares / shares.sum() * n
    whole: Ints = np.floor(exact + 1e-9).astype(np.int64)
    whole[np.argsort(whole - exact, kind="stable")[: n - whole.sum()]] += 1
    return whole


def _deal(sizes: Ints, order: Ints, wanted: Ints, rng: np.random.Generator) -> Ints:
    """The split of each group [G], given its size and how many items each split wants."""
    chosen = np.empty(len(sizes), dtype=np.int64)
    left = wanted.astype(np.float64)
    # Groups of several items go one by one to the split that is then the least filled.
    for group in order[sizes[order] > 1]:
        split = int(np.argmax((left - sizes[group]) / np.maximum(wanted, 0.5)))
        chosen[group] = split
        left[split] -= sizes[group]
    # Single items are dealt like cards: of those dealt in a row each split has its share.
    single = order[sizes[order] == 1]
    if len(single):
        hands = _whole(np.maximum(left, 0), len(single))
        turns = np.concatenate([(np.arange(hand) + 0.5) / hand for hand in hands if hand])
        owner = np.repeat(np.arange(len(hands)), hands)[np.argsort(turns, kind="stable")]
        chosen[single] = np.roll(owner, rng.integers(len(single)))
    return chosen
