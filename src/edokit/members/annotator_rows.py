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
    """The rows to predict for texts whose annotators are known.

    There is one row for each text or, ``by_annotator``, one for each pair of a text and one of its
    annotators, followed by one anonymous row for each text.

    Attributes
    ----------
    positions : ndarray of int of shape (R,)
        The position of each row's text among the texts.
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
        all_texts = np.arange(len(items))
        self.positions: Ints = all_texts
        # The annotators of each row; none for an anonymous row.
        self._names: list[tuple[str, ...]] = names_of_texts
        if by_annotator:
            counts = [len(names) for names in names_of_texts]
            self.positions = np.append(np.repeat(all_texts, counts), all_texts)
            self._names = [(name,) for name in chain.from_iterable(names_of_texts)]
            self._names += [()] * len(items)
        # Annotators whom some member has known so far.
        self._known_annotators: set[str] = set()

    @property
    def annotators(self) -> list[str]:
        """The annotator of each row, if rows are by annotator; empty for the anonymous answer."""
        return [names[0] if names else "" for names in self._names]

    def predict(self, member: Member, texts: Sequence[Text]) -> Floats:
        """Probabilities of each row, for its annotators if the member knows some."""
        known_annotators = set(member.known_annotators)
        if not known_annotators:
            return predict_texts(member, texts)[self.positions]
        self._known_annotators |= known_annotators
        with warnings.catch_warnings():
            # `warn_of_unknown_annotators` reports all at once.
            warnings.simplefilter("ignore", EDOWarning)
            row_texts = [texts[position] for position in self.positions]
            answers = predict_texts(member, row_texts, self._names)
        # Annotators whom the member does not know get exactly the answer of the anonymous row of
        # their text, whatever else is in a batch on a GPU.
        n_pairs = len(self.positions) - len(texts)
        for row in range(n_pairs):
            if known_annotators.isdisjoint(self._names[row]):
                answers[row] = answers[n_pairs + self.positions[row]]
        return answers

    def pool(self, answers_by_annotator: Mapping[str, Floats]) -> Floats:
        """The answers of members that were trained on one annotator each, as those of one member.

        The answer to a row is that of its annotator's member; for all others, the mean of all.
        """
        self._known_annotators |= set(answers_by_annotator)
        mean = np.mean(list(answers_by_annotator.values()), axis=0)
        rows = []
        for row, name in enumerate(self.annotators):
            rows.append(answers_by_annotator.get(name, mean)[row])
        return np.array(rows)

    def warn_of_unknown_annotators(self) -> None:
        """Warn of annotators whom no member knows."""
        if not self._known_annotators:
            warn(
                "the members know no annotators, so that only the text counts (`edo fit` learns how"
                " annotators differ from any members' answers; `edo predict --as` answers for them)"
            )
            return
        requested = set(chain.from_iterable(self._names))
        unknown = sorted(requested - self._known_annotators)
        if unknown:
            warn(
                f"{are(len(unknown), len(requested), noun='annotator')} unknown to all members,"
                f" and answered anonymously: {examples(unknown)}"
            )
