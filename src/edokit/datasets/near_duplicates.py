"""Texts that are nearly the same: the same words with other links, mentions or a few letters.

Texts are compared as ``normal_form`` leaves them. Two are near-duplicates when their sets of
five-character pieces overlap by at least ``threshold`` (Jaccard). The search is exact: two sets
that overlap so much share one of their rarest pieces, so only such pairs are compared. In a whole
conversation the set phrases of an agent count as much as what the user says.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError
from edokit._lazy import pd
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
    plain = unicodedata.normalize("NFKC", without_markup(text)).casefold()
    words = " ".join(plain.translate(_WORDS).split())
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
                f"the threshold {threshold} is not above 0 and at most 1",
                f"{THRESHOLD} is a good start",
                parameters=("threshold",),
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
        known = np.zeros(int(self.forms.max(initial=-1)) + 2, bool)
        known[self.forms[reference & (self.forms >= 0)]] = True
        found = known.copy()
        if not verbatim:
            found[self.left[known[self.right]]] = True
            found[self.right[known[self.left]]] = True
        return found[self.forms]


@lru_cache(maxsize=1)  # texts are described after they are split
def _among(texts: tuple[str, ...], threshold: float) -> NearDuplicates:
    codes, forms = pd.factorize(
        np.array([normal_form(text) or None for text in texts], dtype=object)
    )
    nothing = np.zeros(0, np.int64)
    found = [(nothing, nothing)]
    if threshold < 1 and len(forms) > 1:
        pieces = _pieces([str(form) for form in forms])
        for left, right in _candidates(pieces, threshold):
            alike = _overlap(pieces, left, right) >= threshold - _ROUNDING
            found.append((left[alike], right[alike]))
    both = map(np.concatenate, zip(*found, strict=True))
    return NearDuplicates(codes.astype(np.int64), *both)


def _pieces(texts: list[str]) -> sparse.csr_matrix:
    """Which pieces each text has [N, pieces], rarest pieces first."""
    padded = [text.ljust(_PIECE) for text in texts]
    joined = "\0".join(padded) + "\0"
    coded = joined.encode("utf-32-le", "surrogatepass")
    letters = np.frombuffer(coded, np.uint32).astype(np.uint64)
    text = np.repeat(np.arange(len(padded)), [len(one) + 1 for one in padded])
    starts = len(letters) - _PIECE + 1
    # A piece is one number: a polynomial of its letters modulo 2**64.
    hashed = np.zeros(starts, np.uint64)
    whole = np.ones(starts, bool)
    for offset in range(_PIECE):
        letter = letters[offset : offset + starts]
        hashed = hashed * np.uint64(0x9E3779B97F4A7C15) + letter
        whole &= letter != 0
    rows = text[:starts][whole]
    _, columns, frequency = np.unique(hashed[whole], return_inverse=True, return_counts=True)
    rank = np.empty(len(frequency), np.int64)
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
    sizes = np.diff(pieces.indptr).astype(np.int64)
    # Two sets that overlap by the threshold share one of the first so many pieces of each.
    first = sizes - np.ceil(threshold * sizes - _ROUNDING).astype(np.int64) + 1
    rest = sizes - first
    rare = pieces.copy()
    rare.data *= np.arange(pieces.nnz) < np.repeat(pieces.indptr[:-1] + first, sizes)
    rare.eliminate_zeros()
    across = rare.T.tocsr()
    work = np.cumsum(rare @ np.diff(across.indptr).astype(np.int64))
    start = 0
    while start < len(sizes):
        done = work[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(work, done + _PAIRS_AT_ONCE)))
        shared = (rare[start:stop] @ across).tocoo()
        # Every pair is there twice, and a text with itself.
        once = np.flatnonzero(shared.row + start < shared.col)
        left, right = shared.row[once].astype(np.int64) + start, shared.col[once].astype(np.int64)
        # What two sets can share at most: the rare pieces found, and all others of one of them.
        most = shared.data[once] + np.maximum(rest[left], rest[right])
        most = np.minimum(most, np.minimum(sizes[left], sizes[right]))
        needed = threshold / (1 + threshold) * (sizes[left] + sizes[right])
        kept = most >= needed - _ROUNDING
        yield left[kept], right[kept]
        start = stop


def _overlap(pieces: sparse.csr_matrix, left: Ints, right: Ints) -> Floats:
    """Shared pieces of each pair by all of its pieces (Jaccard)."""
    sizes = np.diff(pieces.indptr)
    shared = np.zeros(len(left))
    for start in range(0, len(left), _COMPARED_AT_ONCE):
        some = slice(start, start + _COMPARED_AT_ONCE)
        shared[some] = pieces[left[some]].multiply(pieces[right[some]]).sum(axis=1).ravel()
    jaccard: Floats = shared / (sizes[left] + sizes[right] - shared)
    return jaccard
