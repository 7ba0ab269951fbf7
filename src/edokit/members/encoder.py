"""Members on a frozen sentence encoder: its vectors, and logistic regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import InputError
from edokit._types import Floats
from edokit.members.arrays_file import read_arrays, write_arrays
from edokit.members.embeddings import Vectors, embed
from edokit.members.logistic import Logistic
from edokit.members.recipe import Lesson, Member, Progress, Text

_FILE = "encoder.npz"
MODEL = "sentence-transformers/all-MiniLM-L6-v2"


@dataclass(frozen=True, eq=False)
class TextVectors:
    """Vectors of texts that were embedded before."""

    rows: dict[str, int]
    """The row of each text."""
    vectors: Vectors
    """[T, D]."""

    @classmethod
    def of(cls, texts: Sequence[Text], model: str, device: str | None = None) -> TextVectors:
        """Embed every text once, utterance and context apart; the last ones are remembered."""
        return _last_vectors(tuple(texts), model, device)

    def __call__(self, texts: Sequence[Text], context: float) -> Floats:
        """Features [N, D], or [N, 2 D] with the context's vector scaled by its weight."""
        first = [text if isinstance(text, str) else text[0] for text in texts]
        features: Floats = self.vectors[[self.rows[text] for text in first]].astype(np.float64)
        if all(isinstance(text, str) for text in texts):
            return features
        second = self.vectors[[self.rows[text[1]] for text in texts if not isinstance(text, str)]]
        if len(second) < len(texts):
            raise InputError(
                "texts must all be single or all be pairs (utterance, context), but both occur",
                "give every utterance a context, which may be empty",
            )
        return np.hstack([features, context * second.astype(np.float64)])

    def knows(self, texts: Sequence[Text]) -> bool:
        """Whether all of the texts were embedded."""
        return all(
            part in self.rows
            for text in texts
            for part in ((text,) if isinstance(text, str) else text)
        )


@lru_cache(maxsize=1)
def _last_vectors(texts: tuple[Text, ...], model: str, device: str | None) -> TextVectors:
    parts = (part for text in texts for part in ((text,) if isinstance(text, str) else text))
    distinct = list(dict.fromkeys(parts))
    rows = {text: row for row, text in enumerate(distinct)}
    return TextVectors(rows, embed(distinct, model, device))


class EncoderMember(Member):
    """Logistic regression on the vectors of a sentence encoder that stays as it is."""

    def __init__(
        self,
        n_classes: int,
        *,
        model: str = MODEL,
        strength: float = 5.0,
        context: float = 0.5,
        device: str | None = None,
    ) -> None:
        """``model`` is a hub id or folder, ``strength`` how freely weights may grow, ``context``
        what a context counts against the text itself."""
        for name, value in (("strength", strength), ("context", context)):
            if value < 0 or (name == "strength" and value == 0):
                raise InputError(f"{name} must be above 0, but got {value}", f"raise {name}")
        self.n_classes = n_classes
        self.model = model
        self.strength = strength
        self.context = context
        self.device = device
        self._vectors: TextVectors | None = None
        self._classifier: Logistic | None = None

    @classmethod
    def prepare(cls, texts: Sequence[Text], options: Mapping[str, Any]) -> TextVectors:
        """Vectors of all texts."""
        return TextVectors.of(texts, options.get("model", MODEL), options.get("device"))

    def fit(
        self, lesson: Lesson, *, seed: int = 0, progress: Progress | None = None
    ) -> EncoderMember:
        """Learn from the targets of epoch 0; the optimum is unique, so the seed plays no part."""
        self._vectors = lesson.shared
        self._classifier = Logistic.fit(
            self._features(lesson.texts), lesson.targets(0), self.strength
        )
        return self

    def predict_proba(self, texts: Sequence[Text]) -> Floats:
        """Probabilities [N, C]."""
        if self._classifier is None:
            raise InputError("a member must be fitted before it predicts", "call fit first")
        return self._classifier.predict(self._features(texts))

    def save(self, folder: Path) -> None:
        """Write one file of plain arrays; the encoder itself stays where it is."""
        assert self._classifier is not None
        write_arrays(
            folder / _FILE,
            model=np.array(self.model),
            context=np.array(self.context),
            **self._classifier.arrays(),
        )

    @classmethod
    def load(cls, folder: Path, *, device: str | None = None) -> EncoderMember:
        """Read what ``save`` wrote."""
        arrays = read_arrays(folder / _FILE, ("model", "context", *Logistic.__annotations__))
        member = cls(
            int(arrays["n_classes"]),
            model=str(arrays["model"]),
            context=float(arrays["context"]),
            device=device,
        )
        member._classifier = Logistic.of(arrays)
        return member

    def _features(self, texts: Sequence[Text]) -> Floats:
        if self._vectors is None or not self._vectors.knows(texts):
            self._vectors = TextVectors.of(texts, self.model, self.device)
        return self._vectors(texts, self.context)
