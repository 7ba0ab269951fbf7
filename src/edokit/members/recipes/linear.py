"""Members that train in seconds: TF-IDF of words and characters, and logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer

from edokit.members.arrays import read_arrays, write_arrays
from edokit.members.contexts import Text, split_context
from edokit.members.recipe_options import Range
from edokit.members.recipes._regression import ARRAYS, ClassifierMember

_FILE = "linear.npz"
TFIDF = ("columns", "idf", "block_weights")  # the arrays of its features


@dataclass(eq=False)
class LinearMember(ClassifierMember):
    """Logistic regression on words, pairs of words and runs of 2 to 5 characters.

    The defaults were chosen on the dev splits of the four LeWiDi 2023 datasets. Options are those
    of `ClassifierMember`, and those below.

    Parameters
    ----------
    words : float, default=0.5
        Weight of words and pairs of words, relative to the runs of characters.
    fewest : int, default=2
        Pieces that occur in fewer texts are not features.
    """

    words: Annotated[float, Range(0)] = 0.5
    fewest: Annotated[int, Range(1)] = 2
    _tfidf: TfIdf = field(init=False, repr=False)

    def save(self, folder: Path) -> None:
        """Write one file of plain arrays."""
        write_arrays(folder / _FILE, **vars(self._tfidf), **self._arrays())

    @classmethod
    def load(cls, folder: Path) -> LinearMember:
        """Read what ``save`` wrote."""
        arrays = read_arrays(folder / _FILE, (*ARRAYS, *TFIDF))
        member = cls(int(arrays["n_classes"]))
        member._tfidf = TfIdf(*(arrays[name] for name in TFIDF))
        member._take_arrays(arrays)
        return member

    def _fit_features(self, texts: Sequence[Text]) -> sparse.csr_matrix:
        counts = counts_of(texts, self._corpus)
        weights = (self.words, 1.0, self.words * self.context, self.context)
        self._tfidf = TfIdf.fit(counts, weights, self.fewest)
        return self._tfidf.transform(counts)

    def _features(self, texts: Sequence[Text]) -> sparse.csr_matrix:
        return self._tfidf.transform(counts_of(texts, self._corpus))


# Columns of a block: pieces of text are hashed to a column, so that no vocabulary is learned.
WIDTH = 1 << 22
# Blocks of columns; those of the context are empty unless texts have one.
BLOCKS = ("words", "characters", "context words", "context characters")
BLOCK_WEIGHTS = (0.5, 1.0, 0.2, 0.4)
# Arabic vowel marks and the stroke that stretches a word are a matter of style.
_MARKS = dict.fromkeys([*range(0x064B, 0x0653), 0x0670, 0x0640])


@dataclass(frozen=True, eq=False)
class Counts:
    """How often pieces of text occur in texts.

    Attributes
    ----------
    matrix : csr_matrix of shape (N, U)
        The counts, sorted by column in each row.
    columns : ndarray of shape (U,)
        The column of each piece among all blocks, ascending. Members look up each piece once, not
        once for each text.
    """

    matrix: sparse.csr_matrix
    columns: npt.NDArray[np.int32]

    def take(self, rows: Sequence[int]) -> Counts:
        """The counts of some of the texts."""
        return Counts(self.matrix[rows], self.columns)


def counts_of(texts: Sequence[Text], corpus: Sequence[Text] = ()) -> Counts:
    """The counts of `count` for each text; a corpus is counted once for all members.

    Texts that are not all in the corpus are counted on their own.
    """
    row_of, counts = _distinct_counts(tuple(corpus or texts))
    if any(text not in row_of for text in texts):
        row_of, counts = _distinct_counts(tuple(texts))
    if len(row_of) == len(texts) and not corpus:
        return counts  # each text once, in this order
    return counts.take([row_of[text] for text in texts])


@lru_cache(maxsize=2)
def _distinct_counts(texts: tuple[Text, ...]) -> tuple[dict[Text, int], Counts]:
    """The row of each text, and the counts of each row."""
    row_of = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    return row_of, count(list(row_of))


def count(texts: Sequence[Text]) -> Counts:
    """Counts of words and pairs of words, and of 2 to 5 characters in a row."""
    strings, contexts = split_context(texts)
    segments = [strings]
    if contexts is not None:
        segments.append(contexts)
    blocks = []
    for segment in segments:
        cleaned = [text.translate(_MARKS) for text in segment]
        blocks += [counter.transform(cleaned) for counter in _counters()]
    empty = sparse.csr_matrix((len(texts), WIDTH * (len(BLOCKS) - len(blocks))))
    counts: sparse.csr_matrix = sparse.hstack([*blocks, empty], format="csr", dtype=np.float32)
    counts.sort_indices()
    # Of all columns, only those that occur.
    columns, places = np.unique(counts.indices, return_inverse=True)
    matrix = sparse.csr_matrix(
        (counts.data, places.astype(np.int32), counts.indptr), shape=(len(texts), len(columns))
    )
    return Counts(matrix, columns.astype(np.int32))


@cache
def _counters() -> tuple[HashingVectorizer, HashingVectorizer]:
    options = {"n_features": WIDTH, "norm": None, "alternate_sign": False, "dtype": np.float32}
    return (
        HashingVectorizer(ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b", **options),
        HashingVectorizer(analyzer="char_wb", ngram_range=(2, 5), **options),
    )


@dataclass(frozen=True, eq=False)
class TfIdf:
    """Columns of counts that are features, and their weights.

    Attributes
    ----------
    columns : ndarray of shape (F,)
        Columns that count, ascending.
    idf : ndarray of shape (F,)
        Inverse document frequency of each column.
    block_weights : ndarray of shape (blocks,)
        Length of each block's part of a row.
    """

    columns: npt.NDArray[np.int32]
    idf: npt.NDArray[np.float32]
    block_weights: npt.NDArray[np.float32]

    @classmethod
    def fit(
        cls,
        counts: Counts,
        block_weights: Sequence[float],
        fewest: int = 2,
        most: float = np.inf,
        pieces: int = 0,
    ) -> TfIdf:
        """Keep what occurs in ``fewest`` to ``most`` of the texts; everything, if nothing does.

        Of these, the ``pieces`` most frequent ones are kept; 0: all.
        """
        n = counts.matrix.shape[0]
        frequency = np.bincount(counts.matrix.indices, minlength=len(counts.columns))
        occurs = frequency > 0  # others are pieces of other texts of the corpus
        frequent = occurs & (frequency >= fewest) & (frequency <= most)
        if not frequent.any():
            frequent = occurs
        if pieces:
            frequent[np.argsort(-frequency * frequent, kind="stable")[pieces:]] = False
        idf = np.log((1 + n) / (1 + frequency[frequent])) + 1
        weights = np.asarray(block_weights, dtype=np.float32)
        return cls(counts.columns[frequent], idf.astype(np.float32), weights)

    def transform(self, counts: Counts) -> sparse.csr_matrix:
        """Features [N, F]: (1 + ln count) · idf, each block of a row scaled to its weight."""
        matrix = counts.matrix
        n = matrix.shape[0]
        size = len(self.columns)
        # The feature of each column of the counts, where it is one.
        feature_of = np.searchsorted(self.columns, counts.columns)
        is_feature = feature_of < size
        is_feature[is_feature] = self.columns[feature_of[is_feature]] == counts.columns[is_feature]
        # The row, feature and value of each count of a feature.
        is_kept = is_feature[matrix.indices]
        features = feature_of[matrix.indices[is_kept]]
        rows = np.repeat(np.arange(n), np.diff(matrix.indptr))[is_kept]
        values = (1 + np.log(matrix.data[is_kept].astype(np.float64))) * self.idf[features]
        # The length of each block of each row.
        blocks = (self.columns // WIDTH)[features]
        row_blocks = rows * len(BLOCKS) + blocks
        lengths = np.sqrt(np.bincount(row_blocks, values**2, minlength=n * len(BLOCKS)))
        values *= self.block_weights[blocks] / lengths[row_blocks]
        starts = np.concatenate([[0], np.cumsum(is_kept)])[matrix.indptr]
        return sparse.csr_matrix((values, features, starts), shape=(n, size))
