"""Texts and answers of all splits in plain arrays, so that they travel to any machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edokit._errors import HAVE, InputError, are, examples
from edokit._types import Floats
from edokit.members.recipe import Text

if TYPE_CHECKING:
    from edokit.annotations import Annotations

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Course:
    """N items with their texts, and M answers of A annotators in C classes."""

    items: tuple[str, ...]
    """Item ids [N]."""
    texts: tuple[Text, ...]
    """Texts [N], or pairs (utterance, context)."""
    splits: tuple[str, ...]
    """The split of each item [N]."""
    classes: tuple[str, ...]
    """Class names [C]."""
    annotators: tuple[str, ...]
    """Annotator ids [A]."""
    item_codes: Ints
    """The item of each answer [M]."""
    annotator_codes: Ints
    """The annotator of each answer [M]."""
    label_codes: Ints | None
    """The class of each answer [M]; none when annotators gave probabilities."""
    label_probabilities: Floats | None
    """Probabilities of each answer [M, C], where annotators gave them instead of a class."""
    hard: Ints
    """Hard labels [N]."""

    @classmethod
    def of(cls, annotations: Annotations, *, pairs: bool = False, ties: str = "first") -> Course:
        """From annotations with texts.

        With ``pairs`` the first line of a text is the utterance and the others are its context.
        Items without splits are all "train".
        """
        texts = _texts(annotations)
        n = len(annotations.items)
        splits = ("train",) * n if annotations.splits is None else annotations.splits
        return cls(
            items=tuple(map(str, annotations.items)),
            texts=tuple(map(utterance_and_context, texts)) if pairs else tuple(texts),
            splits=tuple(map(str, splits)),
            classes=annotations.classes,
            annotators=tuple(map(str, annotations.annotators)),
            item_codes=annotations.item_codes,
            annotator_codes=annotations.annotator_codes,
            label_codes=annotations.label_codes,
            label_probabilities=annotations.label_probabilities,
            hard=annotations.hard_labels(ties),
        )

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def annotations_per_item(self) -> npt.NDArray[np.int64]:
        """How many answers each item has [N]."""
        return np.bincount(self.item_codes, minlength=len(self))

    @cached_property
    def soft_labels(self) -> Floats:
        """Share of annotators per class [N, C]."""
        answers: Any = self.label_probabilities
        if self.label_codes is not None:
            answers = np.eye(len(self.classes))[self.label_codes]
        shares = np.column_stack(
            [
                np.bincount(self.item_codes, weights=share, minlength=len(self))
                for share in answers.T
            ]
        )
        soft: Floats = shares / self.annotations_per_item[:, None]
        return soft

    def hard_labels(self) -> Ints:
        """Hard labels [N]."""
        return self.hard

    def where(self, *splits: str) -> npt.NDArray[np.int64]:
        """Positions of the items of these splits."""
        return np.flatnonzero(np.isin(np.array(self.splits, dtype=object), splits))

    def take(self, positions: npt.ArrayLike) -> Course:
        """The items at these positions, in this order, with the annotators who answered them."""
        chosen = np.asarray(positions, dtype=np.int64)
        place = np.full(len(self), -1, dtype=np.int32)
        place[chosen] = np.arange(len(chosen), dtype=np.int32)
        kept = np.flatnonzero(place[self.item_codes] >= 0)
        people, codes = np.unique(self.annotator_codes[kept], return_inverse=True)
        labels, probabilities = self.label_codes, self.label_probabilities
        return Course(
            items=tuple(self.items[i] for i in chosen),
            texts=tuple(self.texts[i] for i in chosen),
            splits=tuple(self.splits[i] for i in chosen),
            classes=self.classes,
            annotators=tuple(self.annotators[a] for a in people),
            item_codes=place[self.item_codes[kept]],
            annotator_codes=codes.astype(np.int32),
            label_codes=None if labels is None else labels[kept],
            label_probabilities=None if probabilities is None else probabilities[kept],
            hard=self.hard[chosen],
        )

    @cached_property
    def digest(self) -> str:
        """A name for exactly this data."""
        return hashlib.sha256(self._json().encode()).hexdigest()[:32]

    def save(self, path: Path) -> None:
        """Write one JSON file."""
        from edokit._io import whole_file

        with whole_file(path) as temporary:
            temporary.write_text(self._json(), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Course:
        """Read what ``save`` wrote."""
        stored = json.loads(path.read_text(encoding="utf-8"))
        texts = (text if isinstance(text, str) else tuple(text) for text in stored["texts"])
        fields: dict[str, Any] = {name: tuple(stored[name]) for name in _NAMES}
        fields |= {name: _array(stored[name], np.int32) for name in _CODES}
        probabilities = _array(stored["label_probabilities"], np.float64)
        return cls(**{**fields, "texts": tuple(texts)}, label_probabilities=probabilities)

    def _json(self) -> str:
        stored = {name: getattr(self, name) for name in _NAMES}
        for name in (*_CODES, "label_probabilities"):
            values = getattr(self, name)
            stored[name] = None if values is None else values.tolist()
        return json.dumps(stored)


_NAMES = ("items", "texts", "splits", "classes", "annotators")
_CODES = ("item_codes", "annotator_codes", "label_codes", "hard")


def utterance_and_context(text: str) -> tuple[str, str]:
    """The first line of a text, and the others."""
    utterance, _, context = text.partition("\n")
    return utterance, context


def _texts(annotations: Annotations) -> Sequence[str]:
    if annotations.texts is None:
        raise InputError(
            "members learn from texts, but the data has none",
            "give it a text column, or name the one that it has with --column text=NAME",
        )
    odd = [
        str(item)
        for item, text in zip(annotations.items, annotations.texts, strict=True)
        if not (isinstance(text, str) and text.strip())
    ]
    if odd:
        raise InputError(
            f"every item needs a text, but {are(len(odd), len(annotations.items), HAVE)} none:"
            f" {examples(odd)}",
            "fill the gap or drop these items",
        )
    return [str(text) for text in annotations.texts]


def _array(values: Any, kind: type) -> Any:
    return None if values is None else np.asarray(values, dtype=kind)
