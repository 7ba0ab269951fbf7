"""Texts are counted once; TF-IDF is what scikit-learn computes, block by block."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from edokit.members.recipes import linear as text_counts
from edokit.members.recipes.linear import BLOCKS, WIDTH, Counts, TfIdf, count, counts_of

TEXTS = ["A warm cup of tea", "tea in the garden", "the river is warm, warm, warm", "tea"]


def all_columns(counts: Counts) -> sparse.csr_matrix:
    matrix = counts.matrix
    parts = (matrix.data, counts.columns[matrix.indices], matrix.indptr)
    return sparse.csr_matrix(parts, shape=(matrix.shape[0], len(BLOCKS) * WIDTH))


def block(counts: Counts, number: int) -> sparse.csr_matrix:
    return all_columns(counts)[:, number * WIDTH : (number + 1) * WIDTH]


def are_same(first: Counts, second: Counts) -> bool:
    return bool((all_columns(first) != all_columns(second)).nnz == 0)


def test_tfidf_of_each_block_is_scikit_learns() -> None:
    tfidf = TfIdf.fit(count(TEXTS), (1, 1, 1, 1), fewest=1)
    mine = tfidf.transform(count(TEXTS)).toarray()
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    theirs = [v.fit_transform(TEXTS).toarray() for v in (words, characters)]
    # Columns stand in another order, so rows are compared by their products.
    for number, features in enumerate(theirs):
        own = mine[:, tfidf.columns // WIDTH == number]
        np.testing.assert_allclose(own @ own.T, features @ features.T, atol=1e-5)


def test_each_block_of_a_row_is_as_long_as_its_weight() -> None:
    pairs = [(text, "what do you think?") for text in TEXTS]
    tfidf = TfIdf.fit(count(pairs), (0.5, 1.0, 0.2, 0.4), fewest=1)
    features = tfidf.transform(count(pairs)).toarray()
    for number, weight in enumerate((0.5, 1.0, 0.2, 0.4)):
        own = features[:, tfidf.columns // WIDTH == number]
        np.testing.assert_allclose(np.linalg.norm(own, axis=1), weight, rtol=1e-5)


def test_pieces_in_too_few_texts_do_not_count() -> None:
    few, many = (TfIdf.fit(count(TEXTS), (1, 1, 1, 1), fewest=f) for f in (1, 3))
    assert 0 < len(many.columns) < len(few.columns)
    strange = many.transform(count(["zzz qqq"]))
    assert strange.shape == (1, len(many.columns))
    assert strange.nnz == 0


def test_texts_that_share_nothing_keep_everything() -> None:
    assert len(TfIdf.fit(count(["abc", "xyz"]), (1, 1, 1, 1), fewest=2).columns) > 0


def test_arabic_vowel_marks_and_stretching_make_no_difference() -> None:
    plain = "كتاب جميل"
    marked = "كِتَابٌ جَمِيــل"
    assert are_same(count([plain]), count([marked]))


def test_utterance_and_context_are_counted_apart() -> None:
    single = count(["tea"])
    pair = count([("tea", "river")])
    assert (block(single, 0) != block(pair, 0)).nnz == 0
    assert block(single, 2).nnz == 0
    assert block(pair, 2).nnz == 1


def test_texts_that_were_read_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    counts_of(TEXTS)
    expected = count([TEXTS[2], TEXTS[0]])
    monkeypatch.setattr(text_counts, "_counters", lambda: pytest.fail("read again"))
    assert are_same(counts_of([TEXTS[2], TEXTS[0]], TEXTS), expected)


def test_new_texts_are_read() -> None:
    assert are_same(counts_of(["tea", "coffee"], TEXTS), count(["tea", "coffee"]))
