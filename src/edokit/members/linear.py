"""Members that train in seconds: TF-IDF of words and characters, and logistic regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edokit._errors import InputError
from edokit._types import Floats
from edokit.members.arrays_file import read_arrays, write_arrays
from edokit.members.logistic import Logistic
from edokit.members.recipe import Lesson, Member, Progress, Text
from edokit.members.text_counts import TextCounts, TfIdf, recall

_FILE = "linear.npz"


class LinearMember(Member):
    """Logistic regression on words, pairs of words and runs of 2 to 5 characters.

    The defaults were chosen on the dev splits of the four LeWiDi 2023 datasets.
    """

    def __init__(
        self,
        n_classes: int,
        *,
        strength: float = 5.0,
        words: float = 0.5,
        context: float = 0.4,
        fewest: int = 2,
    ) -> None:
        """``strength`` is how freely weights may grow, ``words`` and ``context`` what words and a
        context count against the characters of the text, ``fewest`` in how many texts a piece of
        text must occur."""
        for name, value, least in (
            ("strength", strength, 0.0),
            ("words", words, 0.0),
            ("context", context, 0.0),
            ("fewest", fewest, 1),
        ):
            if value < least or (name == "strength" and value == 0):
                bound = f"at least {least:g}" if value != 0 else "above 0"
                raise InputError(f"{name} must be {bound}, but got {value}", f"raise {name}")
        self.n_classes = n_classes
        self.strength = strength
        self.words = words
        self.context = context
        self.fewest = fewest
        self._features: TfIdf | None = None
        self._model: Logistic | None = None
        self._count: Any = recall

    @classmethod
    def prepare(cls, texts: Sequence[Text], options: Mapping[str, Any]) -> TextCounts:
        """Counts of all texts."""
        return TextCounts.of(texts)

    def fit(
        self, lesson: Lesson, *, seed: int = 0, progress: Progress | None = None
    ) -> LinearMember:
        """Learn from the targets of epoch 0; the optimum is unique, so the seed plays no part."""
        self._count = lesson.shared or recall
        counts = self._count(lesson.texts)
        weights = (self.words, 1.0, self.words * self.context, self.context)
        self._features = TfIdf.fit(counts, weights, self.fewest)
        features = self._features.transform(counts)
        self._model = Logistic.fit(features, lesson.targets(0), self.strength)
        return self

    def predict_proba(self, texts: Sequence[Text]) -> Floats:
        """Probabilities [N, C]."""
        if self._model is None or self._features is None:
            raise InputError("a member must be fitted before it predicts", "call fit first")
        return self._model.predict(self._features.transform(self._count(texts)))

    def save(self, folder: Path) -> None:
        """Write one file of plain arrays."""
        assert self._model is not None
        assert self._features is not None
        write_arrays(
            folder / _FILE,
            columns=self._features.columns,
            idf=self._features.idf,
            block_weights=self._features.block_weights,
            **self._model.arrays(),
        )

    @classmethod
    def load(cls, folder: Path) -> LinearMember:
        """Read what ``save`` wrote."""
        arrays = read_arrays(
            folder / _FILE, ("columns", "idf", "block_weights", *Logistic.__annotations__)
        )
        member = cls(int(arrays["n_classes"]))
        member._features = TfIdf(arrays["columns"], arrays["idf"], arrays["block_weights"])
        member._model = Logistic.of(arrays)
        return member
