"""Texts that are nearly the same: the same words with other links, mentions or a few letters.

Texts are compared as ``normal_form`` leaves them. Two are near-duplicates when their sets of
five-character pieces overlap by at least `THRESHOLD` (Jaccard). The search is exact: two sets
that overlap so much are nearly as large and share one of their rarest pieces, so only such pairs
are compared.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from edokit._types import Bools, Ints

if TYPE_CHECKING:
    from scipy import sparse

THRESHOLD = 0.8
"""Overlap from which two texts count as nearly the same."""
_PIECE = 5
_FORMS_AT_ONCE = 256
# Products of the threshold and a count are off in the last bits.
_ROUNDING = 1e-9

Texts = Sequence[str] | npt.NDArray[np.object_]

_MARKUP = re.compile(r"<[a-zA-Z/!][^<>]*>")
_URL = re.compile(r"(?:https?://|www\.|pic\.twitter\.com/)\S+", re.IGNORECASE)
_MENTION = re.compile(r"(?<!\w)@\w+")


def normal_form(text: str) -> str:
    """Small letters and digits of any script; no markup, URLs, mentions, punctuation or emoji.

    A text with no letter or digit stays as it is, but for its blanks.
    """
    folded = unicodedata.normalize("NFKC", without_markup(text)).casefold()
    letters = (char if unicodedata.category(char)[0] in "LMN" else " " for char in folded)
    words = " ".join("".join(letters).split())
    return words or " ".join(text.split())


def without_markup(text: str) -> str:
    """The text without markup (entities such as ``&amp;`` are resolved), URLs and mentions."""
    text = _MARKUP.sub(" ", html.unescape(text))
    return _MENTION.sub(" ", _URL.sub(" ", text))


def near_duplicate_groups(texts: Texts) -> Ints:
    """A group number per text [N]; near-duplicates, also by way of others, share one."""
    return NearDuplicates.among(texts).groups


@dataclass(frozen=True)
class NearDuplicates:
    """Which of N texts are nearly the same. Empty texts are near-duplicates of nothing.

    Attributes
    ----------
    forms : Ints
        The number of each text's normal form [N], -1 for an empty text.
    left : Ints
        One form of each pair of near-duplicate forms [P].
    right : Ints
        The other form of each pair [P].
    """

    forms: Ints
    left: Ints
    right: Ints

    @classmethod
    def among(cls, texts: Texts) -> NearDuplicates:
        """Found by comparing all texts."""
        forms = np.array([normal_form(text) or None for text in texts], dtype=object)
        codes, distinct = pd.factorize(forms)
        pairs = [*_pairs(_pieces(distinct))] if len(distinct) else []
        left, right = np.concatenate([np.zeros((2, 0), np.int64), *pairs], axis=1)
        return cls(codes.astype(np.int64), left, right)

    @property
    def groups(self) -> Ints:
        """A group number per text [N], in order of first appearance."""
        n = int(self.forms.max(initial=-1)) + 1
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        pairs = np.ones(len(self.left), bool), (self.left, self.right)
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


def _pieces(forms: Iterable[str]) -> sparse.csr_array:
    """Which pieces each form has [N, pieces], rarest pieces first."""
    from scipy import sparse
    from sklearn.feature_extraction.text import CountVectorizer

    def cut(form: str) -> list[str]:
        starts = range(max(1, len(form) - _PIECE + 1))
        return [form[start : start + _PIECE].ljust(_PIECE) for start in starts]

    counts = CountVectorizer(analyzer=cut, binary=True, dtype=np.int32).fit_transform(forms)
    order = np.argsort(np.bincount(counts.indices, minlength=counts.shape[1]), kind="stable")
    pieces = sparse.csr_array(counts[:, order])
    pieces.sort_indices()
    return pieces


def _pairs(pieces: sparse.csr_array) -> Iterator[Ints]:
    """Pairs of forms whose sets of pieces overlap by the threshold (Jaccard): [2, pairs]."""
    order = np.argsort(np.diff(pieces.indptr), kind="stable")
    pieces = pieces[order]
    sizes = np.diff(pieces.indptr).astype(np.int64)
    # Two sets that overlap by the threshold share so many pieces of each, and more of the smaller
    # one: so one of the rarest of each.
    least_shared = np.ceil(THRESHOLD * sizes - _ROUNDING).astype(np.int64)
    rarest = _rarest(pieces, THRESHOLD)
    rarest_of_small = _rarest(pieces, 2 * THRESHOLD / (1 + THRESHOLD))
    for start in range(0, len(sizes), _FORMS_AT_ONCE):
        stop = start + _FORMS_AT_ONCE
        smallest = np.searchsorted(sizes, least_shared[start])  # smaller sets are too small
        candidates = (rarest[start:stop] @ rarest_of_small[smallest:stop].T).tocoo()
        large, small = candidates.row + np.int64(start), candidates.col + smallest
        may_overlap = (small < large) & (sizes[small] >= least_shared[large])
        small, large = small[may_overlap], large[may_overlap]
        shared = pieces[small].multiply(pieces[large]).sum(axis=1)
        is_near = shared / (sizes[small] + sizes[large] - shared) >= THRESHOLD - _ROUNDING
        yield order[np.stack([small[is_near], large[is_near]])]


def _rarest(pieces: sparse.csr_array, share: float) -> sparse.csr_array:
    """The rarest pieces of each set: any set with this share of its pieces has one of them."""
    sizes = np.diff(pieces.indptr)
    least_shared = np.ceil(share * sizes - _ROUNDING).astype(np.int64)
    is_rare = np.arange(pieces.nnz) <= np.repeat(pieces.indptr[1:] - least_shared, sizes)
    rarest = pieces.copy()
    rarest.data = is_rare.astype(np.int32)
    rarest.eliminate_zeros()
    return rarest
