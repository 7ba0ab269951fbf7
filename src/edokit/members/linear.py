"""Members that train in seconds: TF-IDF of words and characters, and logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from edokit.ids import Codes

Floats = npt.NDArray[np.float64]


class TextFeatures:
    """Words and pairs of words beside runs of 2 to 5 characters; members share one of these."""

    def __init__(self) -> None:
        self._words = TfidfVectorizer(
            ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"(?u)\b\w+\b"
        )
        self._characters = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(2, 5), min_df=3, sublinear_tf=True
        )

    def fit(self, texts: Sequence[str]) -> TextFeatures:
        """Learn the vocabulary."""
        self._words.fit(texts)
        self._characters.fit(texts)
        return self

    def transform(self, texts: Sequence[str]) -> sparse.csr_matrix:
        """Features [N, F]."""
        return sparse.hstack(
            [self._words.transform(texts), self._characters.transform(texts)], format="csr"
        )


class LinearMember:
    """Logistic regression on text features; a constant where it saw a single class."""

    def __init__(self, n_classes: int, strength: float = 1.0) -> None:
        self.n_classes = n_classes
        self.strength = strength
        self._model: Any = None
        self._classes: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def fit(self, features: sparse.csr_matrix, targets: Codes) -> LinearMember:
        """Learn from one class per item [N]."""
        self._classes = np.unique(targets).astype(np.int64)
        if len(self._classes) > 1:
            self._model = LogisticRegression(C=self.strength, max_iter=1000)
            self._model.fit(features, targets)
        return self

    def predict_proba(self, features: sparse.csr_matrix) -> Floats:
        """Probabilities [N, C] over all classes, also those it never saw."""
        probabilities = np.zeros((features.shape[0], self.n_classes))
        known = 1.0 if self._model is None else self._model.predict_proba(features)
        probabilities[:, self._classes] = known
        return probabilities
