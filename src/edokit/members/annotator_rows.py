"""Rows to predict when the annotators of texts are known."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np

from edokit._errors import HAVE, EDOWarning, InputError, are, counted, examples, warn
from edokit._types import Floats, Ints
from edokit.members.contexts import Text
from edokit.members.recipe import Member, predict_texts


class AnnotatorRows:
    """Texts with their annotators or, ``by_annotator``, a row for each text and annotator.

    With ``by_annotator``, the rows of all pairs come first, then one anonymous row for each text.

    Attributes
    ----------
    texts : ndarray of shape (R,)
        The text of each row.
    """

    def __init__(
        self,
        annotators: Mapping[str, Iterable[str]],
        items: Sequence[str],
        by_annotator: bool = False,
    ) -> None:
        # Without annotators, by_annotator asks for anonymous answers alone.
        only_anonymous = by_annotator and not annotators
        if not only_anonymous and not any(item in annotators for item in items):
            raise InputError(
                f"annotators are given for {examples(annotators) or 'no item'}, for none of the"
                f" {counted(len(items), 'text')} ({examples(items)})",
                "use the same item ids in both files",
                code="unknown-item",
            )
        names_of_texts = []
        for item in items:
            names = [str(name) for name in annotators.get(item, ())]
            names_of_texts.append(tuple(dict.fromkeys(names)))
        unnamed = sum(not names for names in names_of_texts)
        if annotators and unnamed:
            warn(
                f"{are(unnamed, len(items), HAVE, 'text')} no annotator and only an anonymous"
                " prediction"
            )
        positions = np.arange(len(items))
        self.texts: Ints = positions
        self._names: list[tuple[str, ...]] = names_of_texts
        if by_annotator:
            counts = [len(names) for names in names_of_texts]
            self.texts = np.append(np.repeat(positions, counts), positions)
            self._names = [(name,) for name in chain.from_iterable(names_of_texts)]
            self._names += [()] * len(items)
        self._known: set[str] = set()

    @property
    def annotators(self) -> list[str]:
        """The annotator of each row, by annotator; empty for the anonymous answer."""
        return [names[0] if names else "" for names in self._names]

    def predict(self, member: Member, texts: Sequence[Text]) -> Floats:
        """Probabilities of each row, for its annotators if the member knows some."""
        known_annotators = set(member.known_annotators)
        if not known_annotators:
            return predict_texts(member, texts)[self.texts]
        self._known |= known_annotators
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EDOWarning)  # `warn_of_strangers` reports all at once
            answers = predict_texts(member, [texts[row] for row in self.texts], self._names)
        # To strangers exactly the anonymous answer, whatever else is in a batch on a GPU.
        strangers = [
            row for row, names in enumerate(self._names) if known_annotators.isdisjoint(names)
        ]
        answers[strangers] = answers[self.texts[strangers] - len(texts)]
        return answers

    def pool(self, answers_by_annotator: Mapping[str, Floats]) -> Floats:
        """Each row by the member of its annotator, and by the mean of all for everybody else."""
        self._known |= set(answers_by_annotator)
        mean = np.mean(list(answers_by_annotator.values()), axis=0)
        rows = []
        for row, name in enumerate(self.annotators):
            rows.append(answers_by_annotator.get(name, mean)[row])
        return np.array(rows)

    def warn_of_strangers(self) -> None:
        """Warn of annotators that made no difference."""
        if not self._known:
            warn(
                "the members know no annotators, so that only the text counts (`edo fit` learns how"
                " annotators differ from any members' answers; `edo predict --as` answers for them)"
            )
            return
        requested = set(chain.from_iterable(self._names))
        strangers = sorted(requested - self._known)
        if strangers:
            warn(
                f"{are(len(strangers), len(requested), noun='annotator')} unknown to all members,"
                f" and answered anonymously: {examples(strangers)}"
            )
