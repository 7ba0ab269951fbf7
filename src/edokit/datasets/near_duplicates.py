"""Texts that are nearly the same: the same words with other links, mentions or a few letters.

Texts are compared as ``normal_form`` leaves them. Two are near-duplicates when their sets of
five-character pieces overlap by at least ``threshold`` (Jaccard). The search is exact: two sets
that overlap so much are nearly as large and share one of their rarest pieces, so only such pairs
are compared. In a whole conversation the set phrases of an
agent count as much as what the user says.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from edokit._errors import InputError, option
from edokit._types import Bools, Floats, Ints
from edokit.datasets.clean import Characters, without_markup

if TYPE_CHECKING:
    from scipy import sparse

THRESHOLD = 0.8
"""Overlap from which two texts count as nearly the same."""
_PIECE = 5
_PAIRS_AT_ONCE = 4_000_000
_COMPARED_AT_ONCE = 20_000
# Products of the threshold and a count are off in the last bits.
_ROUNDING = 1e-9

Texts = Sequence[str] | npt.NDArray[np.object_]

_WORDS = Characters(lambda char: char if unicodedata.category(char)[0] in "LMN" else " ")


def normal_form(text: str) -> str:
    """Small letters and digits of any script; no markup, URLs, mentions, punctuation or emoji.

    A text with no letter or digit stays as it is, but for its blanks.
    """
    folded = unicodedata.normalize("NFKC", without_markup(text)).casefold()
    words = " ".join(folded.translate(_WORDS).split())
    return words or " ".join(text.split())


def near_duplicate_groups(texts: Texts, threshold: float = THRESHOLD) -> Ints:
    """A group number per text [N]; near-duplicates, also by way of others, share one."""
    return NearDuplicates.among(texts, threshold).groups


@dataclass(frozen=True)
class NearDuplicates:
    """Which of N texts are nearly the same. Empty texts are near-duplicates of nothing."""

    forms: Ints
    """The number of each text's normal form [N], -1 for an empty text."""
    left: Ints
    """One form of each pair of near-duplicate forms [P]."""
    right: Ints
    """The other form of each pair [P]."""

    @classmethod
    def among(cls, texts: Texts, threshold: float = THRESHOLD) -> NearDuplicates:
        """Found by comparing all texts; a threshold of 1 asks for the same normal form."""
        if not 0 < threshold <= 1:
            raise InputError(
                f"{option('threshold', threshold)} is not above 0 and at most 1",
                f"{THRESHOLD} is a good start",
            )
        return _among(tuple(texts), threshold)

    @property
    def groups(self) -> Ints:
        """A group number per text [N], in order of first appearance."""
        n = int(self.forms.max(initial=-1)) + 1
        pairs = np.ones(len(self.left), bool), (self.left, self.right)
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        component = connected_components(sparse.coo_matrix(pairs, shape=(n, n)), directed=False)[1]
        # Each empty text becomes a group of its own.
        groups = n + np.arange(len(self.forms))
        groups[self.forms >= 0] = component[self.forms[self.forms >= 0]]
        return pd.factorize(groups)[0].astype(np.int64)

    def of(self, reference: Bools, *, verbatim: bool = False) -> Bools:
        """Whether each text [N] has a near-duplicate among those marked as reference [N].

        ``verbatim`` asks for the same normal form.
        """
        # Empty texts look at the last entry, which belongs to no form.
        is_target = np.zeros(int(self.forms.max(initial=-1)) + 2, bool)
        is_target[self.forms[reference & (self.forms >= 0)]] = True
        is_match = is_target.copy()
        if not verbatim:
            is_match[self.left[is_target[self.right]]] = True
            is_match[self.right[is_target[self.left]]] = True
        return is_match[self.forms]


@lru_cache(maxsize=1)  # texts are described after they are split
def _among(texts: tuple[str, ...], threshold: float) -> NearDuplicates:
    codes, forms = pd.factorize(
        np.array([normal_form(text) or None for text in texts], dtype=object)
    )
    nothing = np.zeros(0, np.int64)
    pairs = [(nothing, nothing)]
    if threshold < 1 and len(forms) > 1:
        pieces = _pieces([str(form) for form in forms])
        for rows, columns in _candidates(pieces, threshold):
            alike = _overlap(pieces, rows, columns) >= threshold - _ROUNDING
            pairs.append((rows[alike], columns[alike]))
    joined = map(np.concatenate, zip(*pairs, strict=True))
    return NearDuplicates(codes.astype(np.int64), *joined)


def _pieces(texts: list[str]) -> sparse.csr_matrix:
    """Which pieces each text has [N, pieces], rarest pieces first."""
    padded = [text.ljust(_PIECE) for text in texts]
    joined = "\0".join(padded) + "\0"
    coded = joined.encode("utf-32-le", "surrogatepass")
    letters = np.frombuffer(coded, np.uint32)
    text = np.repeat(np.arange(len(padded)), [len(text) + 1 for text in padded])
    starts = len(letters) - _PIECE + 1
    # A piece is one number: a polynomial of its letters modulo 2**64.
    hashed = np.zeros(starts, np.uint64)
    is_inside = np.ones(starts, bool)
    for offset in range(_PIECE):
        letter = letters[offset : offset + starts]
        hashed *= np.uint64(0x9E3779B97F4A7C15)
        hashed += letter
        is_inside &= letter != 0
    rows = text[:starts][is_inside]
    columns = pd.factorize(hashed[is_inside])[0]
    frequency = np.bincount(columns)
    rank = np.empty(len(frequency), np.int32)
    rank[np.argsort(frequency, kind="stable")] = np.arange(len(frequency))
    from scipy import sparse

    present = sparse.csr_matrix(
        (np.ones(len(rows), np.int32), (rows, rank[columns])), shape=(len(padded), len(frequency))
    )
    present.sum_duplicates()
    present.data[:] = 1
    return present


def _candidates(pieces: sparse.csr_matrix, threshold: float) -> Iterator[tuple[Ints, Ints]]:
    """Pairs of texts that may reach the threshold, a bounded number of pairs at a time."""
    if not pieces.nnz:  # texts of null characters alone
        return
    sizes = np.diff(pieces.indptr).astype(np.int64)
    order = np.argsort(sizes, kind="stable")
    pieces, sizes = pieces[order], sizes[order]
    # Each set (right) is compared with the smaller ones (left) that are large enough. Two sets that
    # overlap by the threshold share one of the rarest pieces of each.
    right_pieces = _rarest(pieces, threshold)
    left_pieces = _rarest(pieces, 2 * threshold / (1 + threshold))
    smallest = np.searchsorted(sizes, threshold * sizes - _ROUNDING)
    work = np.cumsum(right_pieces @ np.bincount(left_pieces.indices, minlength=pieces.shape[1]))
    start = 0
    while start < len(sizes):
        done = work[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(work, done + _PAIRS_AT_ONCE)))
        shared = (right_pieces[start:stop] @ left_pieces[smallest[start] : stop].T).tocoo()
        left, right = shared.col.astype(np.int64) + smallest[start], shared.row + np.int64(start)
        selected = (left < right) & (left >= smallest[right])
        yield order[left[selected]], order[right[selected]]
        start = stop


def _rarest(pieces: sparse.csr_matrix, share: float) -> sparse.csr_matrix:
    """The rarest pieces of each set: any set that shares this share of it has one of them."""
    from scipy import sparse

    sizes = np.diff(pieces.indptr).astype(np.int64)
    remaining = np.maximum(np.ceil(share * sizes - _ROUNDING).astype(np.int64) - 1, 0)
    in_prefix = np.arange(pieces.nnz) < np.repeat(pieces.indptr[1:] - remaining, sizes)
    starts = np.append(0, np.cumsum(sizes - remaining))
    rows = (pieces.data[in_prefix], pieces.indices[in_prefix], starts)
    return sparse.csr_matrix(rows, shape=pieces.shape)


def _overlap(pieces: sparse.csr_matrix, left: Ints, right: Ints) -> Floats:
    """Shared pieces of each pair by all of its pieces (Jaccard)."""
    sizes = np.diff(pieces.indptr)
    shared = np.zeros(len(left))
    for start in range(0, len(left), _COMPARED_AT_ONCE):
        block = slice(start, start + _COMPARED_AT_ONCE)
        shared[block] = pieces[left[block]].multiply(pieces[right[block]]).sum(axis=1).ravel()
    jaccard: Floats = shared / (sizes[left] + sizes[right] - shared)
    return jaccard
