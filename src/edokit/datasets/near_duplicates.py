"""Near-duplicate texts, which differ only in links, mentions, punctuation or a few letters.

Two texts are near-duplicates if the sets of five-character pieces of their normal forms overlap by
at least `THRESHOLD` (Jaccard index). The search is exact: it compares only sets that are similar in
size and share one of their rarest pieces, as sets with such an overlap do.

If all texts together have more than `MOST_PIECES` characters, only the beginnings of the longest
texts are compared, and a warning says so.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from edokit._errors import InputError, warn
from edokit._types import Bools, Ints

if TYPE_CHECKING:
    from scipy import sparse

THRESHOLD = 0.8
"""Smallest overlap of near-duplicates."""
MOST_PIECES = 1 << 24
"""Largest number of pieces of all texts together; each takes some 40 bytes of memory."""
_PIECE = 5  # characters
_FORMS_AT_ONCE = 256
_PAIRS_AT_ONCE = 1 << 24
_PIECES_AT_ONCE = 1 << 22
_DENSE = 0.1  # with a larger share of pairs to compare, comparing all is faster
_MOST_PAIRS = 1 << 26
_ROUNDING = 1e-9  # larger than the rounding errors of the threshold times a count

TextColumn = Sequence[str] | npt.NDArray[np.object_]

_MARKUP = re.compile(r"<[a-zA-Z/!][^<>]*>")
_URL = re.compile(r"(?:https?://|www\.|pic\.twitter\.com/)\S+", re.IGNORECASE)
_MENTION = re.compile(r"(?<!\w)@\w+")
# Python refuses to parse numbers of thousands of digits; no character has such a number.
_ENDLESS_REFERENCE = re.compile(r"&#[xX]?[0-9a-fA-F]{20,};?")


def normal_form(text: str) -> str:
    """The text in lower case without markup, URLs, mentions, punctuation and emoji.

    A text without letters and digits keeps all its characters; only blanks are normalised.
    """
    folded = unicodedata.normalize("NFKC", without_markup(text)).casefold()
    separators = {}
    for character in set(folded):
        # Letters, marks (such as accents) and numbers are kept.
        if unicodedata.category(character)[0] not in "LMN":
            separators[ord(character)] = " "
    words = " ".join(folded.translate(separators).split())
    return words or " ".join(text.split())


def without_markup(text: str) -> str:
    """The text without markup (entities such as ``&amp;`` are resolved), URLs and mentions."""
    text = html.unescape(_ENDLESS_REFERENCE.sub(" ", text))
    text = _MARKUP.sub(" ", text)
    return _MENTION.sub(" ", _URL.sub(" ", text))


def near_duplicate_groups(texts: TextColumn) -> Ints:
    """The group number of each text [N]; chains of near-duplicates share one."""
    return NearDuplicates.among(texts).groups


@dataclass(frozen=True)
class NearDuplicates:
    """Which of N texts are nearly the same. Empty texts are near-duplicates of nothing.

    Attributes
    ----------
    forms : Ints
        The number of each text's normal form [N], -1 for an empty text.
    first_forms : Ints
        One form of each pair of near-duplicate forms [P].
    second_forms : Ints
        The other form of each pair [P].
    """

    forms: Ints
    first_forms: Ints
    second_forms: Ints

    @classmethod
    def among(cls, texts: TextColumn) -> NearDuplicates:
        """Find the near-duplicates among these texts."""
        # The normal form is computed once for items with the same text.
        code_by_text: dict[str, int] = {}
        text_codes = [code_by_text.setdefault(text, len(code_by_text)) for text in texts]
        forms = np.array([normal_form(text) or None for text in code_by_text], dtype=object)
        form_codes, distinct_forms = pd.factorize(forms)
        pairs = [np.zeros((2, 0), np.int64)]
        if len(distinct_forms):
            n_pairs = 0
            pieces = _pieces(_compared_parts(distinct_forms.tolist()))
            for some_pairs in similar_pairs(pieces, THRESHOLD):
                pairs.append(some_pairs)
                n_pairs += some_pairs.shape[1]
                if n_pairs > _MOST_PAIRS:
                    raise InputError(
                        f"more than {_MOST_PAIRS:,} pairs of the texts are near-duplicates",
                        "remove texts that repeat, or the column of texts",
                        code="too-many-duplicates",
                    )
        first_forms, second_forms = np.concatenate(pairs, axis=1)
        codes = form_codes[text_codes].astype(np.int64)
        return cls(codes, first_forms, second_forms)

    @property
    def groups(self) -> Ints:
        """The group number of each text [N], in order of first appearance."""
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        n_forms = int(self.forms.max(initial=-1)) + 1
        edges = (np.ones(len(self.first_forms), bool), (self.first_forms, self.second_forms))
        graph = sparse.coo_matrix(edges, shape=(n_forms, n_forms))
        component = connected_components(graph, directed=False)[1]
        # Each empty text is alone in its group.
        groups = n_forms + np.arange(len(self.forms))
        has_form = self.forms >= 0
        groups[has_form] = component[self.forms[has_form]]
        return pd.factorize(groups)[0].astype(np.int64)

    def has_match(self, reference: Bools, *, verbatim: bool = False) -> Bools:
        """Whether each text [N] has a near-duplicate among the texts of the mask ``reference`` [N].

        With ``verbatim``, only texts with the same normal form count.
        """
        # The last entry is that of empty texts, whose form is -1.
        is_target = np.zeros(int(self.forms.max(initial=-1)) + 2, bool)
        is_target[self.forms[reference & (self.forms >= 0)]] = True
        is_match = is_target.copy()
        if not verbatim:
            is_match[self.first_forms[is_target[self.second_forms]]] = True
            is_match[self.second_forms[is_target[self.first_forms]]] = True
        return is_match[self.forms]


def _compared_parts(forms: Sequence[str]) -> list[str]:
    """The forms; if they have more than `MOST_PIECES` characters in all, the longest are cut."""
    lengths = np.sort([len(form) for form in forms])
    if lengths.sum() <= MOST_PIECES:
        return list(forms)
    # If the k shortest forms remain whole, the others share the remaining characters equally.
    before = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    n_others = np.arange(len(lengths), 0, -1)
    shares = (MOST_PIECES - before) // n_others
    longest = int(shares[np.argmax(lengths > shares)])
    warn(
        f"the texts have {lengths.sum():,} characters in all; near-duplicates are looked for in the"
        f" first {longest:,} of each"
    )
    return [form[:longest] for form in forms]


def _pieces(forms: Sequence[str]) -> sparse.csr_array:
    """The pieces of each form as a matrix of zeros and ones [N, pieces], rarest pieces first."""
    letters = sorted(set().union(*forms) | {" "})
    letter_codes = np.zeros(ord(letters[-1]) + 1, np.uint64)
    letter_codes[[ord(letter) for letter in letters]] = np.arange(len(letters), dtype=np.uint64)
    base = np.uint64(len(letters))
    sets = []
    for form in forms:
        numbers = np.frombuffer(form.ljust(_PIECE).encode("utf-32-le"), np.uint32)
        codes = letter_codes[numbers]
        # A piece is a number of five digits, which are letters. With more than 7,131 different
        # letters it may overflow; then two pieces have the same number once in 2^64 times.
        count = len(codes) - _PIECE + 1
        pieces = np.zeros(count, np.uint64)
        for start in range(_PIECE):
            pieces = pieces * base + codes[start : start + count]
        sets.append(np.unique(pieces))
    sizes = [len(pieces) for pieces in sets]
    return ranked_sets(np.concatenate(sets), sizes)


def ranked_sets(
    pieces: npt.NDArray[np.uint64] | npt.NDArray[np.object_], sizes: Sequence[int]
) -> sparse.csr_array:
    """The pieces of each set as a matrix of zeros and ones [N, pieces], rarest pieces first.

    ``pieces`` are the pieces of all sets, one set after another, and ``sizes`` their numbers.
    """
    from scipy import sparse

    columns, distinct = pd.factorize(pieces)
    order = np.argsort(np.bincount(columns), kind="stable")
    ranks = np.empty(len(distinct), np.int32)
    ranks[order] = np.arange(len(distinct), dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    entries = np.ones(len(columns), np.int32)
    table = sparse.csr_array((entries, ranks[columns], starts), shape=(len(sizes), len(distinct)))
    table.sort_indices()
    return table


def similar_pairs(pieces: sparse.csr_array, threshold: float) -> Iterator[Ints]:
    """Pairs of sets that overlap by at least the threshold (Jaccard index), in parts [2, pairs]."""
    order = np.argsort(np.diff(pieces.indptr), kind="stable")
    pieces = pieces[order]
    sizes = np.diff(pieces.indptr).astype(np.int64)
    # Two sets that overlap by the threshold share at least this many pieces of each, and therefore
    # one of the rarest pieces of each.
    least_shared = np.ceil(threshold * sizes - _ROUNDING).astype(np.int64)
    rarest = _rarest(pieces, threshold)
    rarest_of_small = _rarest(pieces, 2 * threshold / (1 + threshold))
    at_once = max(1, min(_FORMS_AT_ONCE, _PAIRS_AT_ONCE // len(sizes)))
    for start in range(0, len(sizes), at_once):
        stop = min(start + at_once, len(sizes))
        smallest = np.searchsorted(sizes, least_shared[start])  # smaller sets are too small
        candidates = (rarest[start:stop] @ rarest_of_small[smallest:stop].T).tocoo()
        large = candidates.row + np.int64(start)
        small = candidates.col + smallest
        may_overlap = (small < large) & (sizes[small] >= least_shared[large])
        small = small[may_overlap]
        large = large[may_overlap]
        if len(small) > _DENSE * (stop - start) * (stop - smallest):
            counts = (pieces[start:stop] @ pieces[smallest:stop].T).toarray()
            shared = counts[large - start, small - smallest]
            is_near = shared / (sizes[small] + sizes[large] - shared) >= threshold - _ROUNDING
            yield order[np.stack([small[is_near], large[is_near]])]
            continue
        for part in _parts(sizes[small] + sizes[large]):
            small_rows = small[part]
            large_rows = large[part]
            shared = pieces[small_rows].multiply(pieces[large_rows]).sum(axis=1)
            is_near = (
                shared / (sizes[small_rows] + sizes[large_rows] - shared) >= threshold - _ROUNDING
            )
            yield order[np.stack([small_rows[is_near], large_rows[is_near]])]


def _parts(sizes: Ints) -> Iterator[slice]:
    """Slices of the pairs whose sets have few enough pieces to be compared at once.

    ``sizes`` are the numbers of pieces of each pair.
    """
    part_numbers = np.cumsum(sizes) // _PIECES_AT_ONCE
    cuts = np.flatnonzero(np.diff(part_numbers)) + 1
    starts = [0, *cuts.tolist()]
    stops = [*cuts.tolist(), len(sizes)]
    for start, stop in zip(starts, stops, strict=True):
        yield slice(start, stop)


def _rarest(pieces: sparse.csr_array, share: float) -> sparse.csr_array:
    """The rarest pieces of each set; a set that has ``share`` of its pieces has one of these."""
    sizes = np.diff(pieces.indptr)
    least_shared = np.ceil(share * sizes - _ROUNDING).astype(np.int64)
    is_rare = np.arange(pieces.nnz) <= np.repeat(pieces.indptr[1:] - least_shared, sizes)
    rarest = pieces.copy()
    rarest.data = is_rare.astype(np.int32)
    rarest.eliminate_zeros()
    return rarest
