"""How often words and runs of characters occur in texts, counted once for all members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer

from edokit.members.recipe import Text

WIDTH = 1 << 22
"""Columns of a block: pieces of text are hashed to a column, so that nothing must be learned."""
BLOCKS = ("words", "characters", "context words", "context characters")
"""Blocks of columns; the last two are empty unless texts are pairs."""

# Arabic vowel marks and the stroke that stretches a word are a matter of style.
_MARKS = dict.fromkeys([*range(0x064B, 0x0653), 0x0670, 0x0640])


@dataclass(frozen=True, eq=False)
class TextCounts:
    """Counts [T, blocks · WIDTH] of texts that were read before."""

    rows: dict[Text, int]
    """The row of each text."""
    counts: sparse.csr_matrix
    """Counts, a row per text."""

    @classmethod
    def of(cls, texts: Sequence[Text]) -> TextCounts:
        """Read every text once."""
        distinct = list(dict.fromkeys(texts))
        return cls({text: row for row, text in enumerate(distinct)}, count(distinct))

    def __call__(self, texts: Sequence[Text]) -> sparse.csr_matrix:
        """Counts [N, blocks · WIDTH]; texts not read before are read now."""
        rows = [self.rows.get(text, -1) for text in texts]
        return recall(texts) if -1 in rows else self.counts[rows]


def count(texts: Sequence[Text]) -> sparse.csr_matrix:
    """Counts [N, blocks · WIDTH] of words and pairs of words, and of 2 to 5 characters in a row."""
    paired = any(not isinstance(text, str) for text in texts)
    segments = [[text if isinstance(text, str) else text[0] for text in texts]]
    if paired:
        segments.append(["" if isinstance(text, str) else text[1] for text in texts])
    parts = [
        counter.transform([text.translate(_MARKS) for text in segment])
        for segment in segments
        for counter in _counters()
    ]
    empty = sparse.csr_matrix((len(texts), WIDTH * (len(BLOCKS) - len(parts))))
    joined: sparse.csr_matrix = sparse.hstack([*parts, empty], format="csr", dtype=np.float32)
    return joined


def recall(texts: Sequence[Text]) -> sparse.csr_matrix:
    """The same, remembering the last texts: many members are asked about them in turn."""
    return _last_counts(tuple(texts))


@lru_cache(maxsize=1)
def _last_counts(texts: tuple[Text, ...]) -> sparse.csr_matrix:
    return count(texts)


@cache
def _counters() -> tuple[Any, Any]:
    plain = {"n_features": WIDTH, "norm": None, "alternate_sign": False, "dtype": np.float32}
    return (
        HashingVectorizer(ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b", **plain),
        HashingVectorizer(analyzer="char_wb", ngram_range=(2, 5), **plain),
    )


@dataclass(frozen=True, eq=False)
class TfIdf:
    """Which columns count, and how much each is worth."""

    columns: npt.NDArray[np.int32]
    """The columns that are kept [F], ascending."""
    idf: npt.NDArray[np.float32]
    """Worth of each of them [F]: the rarer the more."""
    block_weights: npt.NDArray[np.float32]
    """Length of each block's part of a row [blocks]."""

    @classmethod
    def fit(
        cls, counts: sparse.csr_matrix, block_weights: Sequence[float], fewest: int = 2
    ) -> TfIdf:
        """Keep what occurs in at least ``fewest`` of the texts; everything, if nothing does."""
        columns, frequency = np.unique(counts.indices, return_counts=True)
        kept = frequency >= fewest
        kept |= not kept.any()
        idf = np.log((1 + counts.shape[0]) / (1 + frequency[kept])) + 1
        return cls(
            columns[kept].astype(np.int32),
            idf.astype(np.float32),
            np.asarray(block_weights, dtype=np.float32),
        )

    def transform(self, counts: sparse.csr_matrix) -> sparse.csr_matrix:
        """Features [N, F]: (1 + ln count) · idf, each block of a row scaled to its weight."""
        place = np.searchsorted(self.columns, counts.indices)
        found = place < len(self.columns)
        found[found] = self.columns[place[found]] == counts.indices[found]
        place = place[found]
        row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))[found]
        values = (1 + np.log(counts.data[found].astype(np.float64))) * self.idf[place]
        block = self.columns[place] // WIDTH
        part = row * len(BLOCKS) + block
        length = np.sqrt(np.bincount(part, values**2, minlength=counts.shape[0] * len(BLOCKS)))
        values *= self.block_weights[block] / length[part]
        return sparse.csr_matrix((values, (row, place)), shape=(counts.shape[0], len(self.columns)))
