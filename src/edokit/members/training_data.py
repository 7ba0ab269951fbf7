"""Texts and annotations in plain arrays, and which items a job trains on, stops on and predicts."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edokit._errors import HAVE, EDOWarning, InputError, are, examples, warn
from edokit._io.atomic import whole_file
from edokit._io.schema import (
    Check,
    distinct,
    listed,
    mapping,
    names,
    needs,
    number,
    optional,
    read_document,
    record,
    text,
)
from edokit._types import Codes, Floats, Ints
from edokit.annotator_effects import find_attribute, label_shares
from edokit.members.recipe import Text, joined
from edokit.scales import NOMINAL, Declared, Scale

if TYPE_CHECKING:
    from edokit.annotations import Annotations
    from edokit.members.texts import Texts

TRAIN = "train"
DEV = ("dev", "validation", "valid", "val")
"""What the split to choose by may be called."""
FIT = "fit"
"""The name of the out-of-fold predictions, from which weights are fitted."""
_STOP_SHARE = 0.1
_NAMES = ("items", "texts", "splits", "classes", "annotators")
_CODES = ("item_codes", "annotator_codes", "label_codes", "hard")


@dataclass(frozen=True, eq=False)
class TrainingData:
    """N items with their texts, and M annotations by A annotators in C classes.

    `edokit.Annotations` in plain arrays that need numpy alone, so that they travel to any machine.
    """

    items: tuple[str, ...]
    texts: tuple[Text, ...]
    """Texts [N], or pairs (utterance, context)."""
    splits: tuple[str, ...]
    """The split of each item [N]."""
    classes: tuple[str, ...]
    annotators: tuple[str, ...]
    item_codes: Codes
    """The item of each annotation [M]."""
    annotator_codes: Codes
    label_codes: Codes | None
    """The class of each annotation [M]; none when annotators gave probabilities."""
    label_probabilities: Floats | None
    """Probabilities of each annotation [M, C], where annotators gave them instead of a class; 1
    for each chosen label and 0 for others where they gave sets."""
    hard: Codes
    """Hard labels [N]; of sets [N, C], 1 for each label that most annotators chose."""
    scale: Scale = NOMINAL
    """The answer scale of the classes."""
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Items without annotations, with the annotators whose labels are to be predicted."""
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Attributes of the annotators that members use, by name, each [A]; "" is a gap."""

    @classmethod
    def from_annotations(
        cls,
        annotations: Annotations,
        *,
        pairs: bool = False,
        unlabelled: Mapping[str, Texts] | None = None,
        attributes: Iterable[str] = (),
    ) -> TrainingData:
        """From annotations with texts, and with no more than these attributes of the annotators.

        Where the annotations have contexts, texts are pairs (text, context). With ``pairs`` the
        first line of a text is the utterance and the others are its context. Items without splits
        are all "train". ``unlabelled`` are more items, by their split.
        """
        if annotations.texts is None:
            raise InputError(
                "members train on texts, but the data has none",
                "add a text column, or name the one that it has: columns={'text': 'NAME'}",
                parameters=("columns",),
            )
        n, texts = len(annotations.items), list(annotations.texts)
        absent = [i for i, text in enumerate(texts) if not (isinstance(text, str) and text.strip())]
        if absent:
            raise InputError(
                f"{are(len(absent), n, HAVE)} no text: {examples(annotations.items[absent])}",
                "fill the gap or drop these items",
            )
        contexts = annotations.contexts
        if contexts is not None:
            refuse_two_contexts(pairs)
        splits = ("train",) * n if annotations.splits is None else annotations.splits
        return cls(
            items=tuple(map(str, annotations.items)),
            texts=tuple(
                map(utterance_and_context if pairs else str, texts)
                if contexts is None
                else zip(map(str, texts), map(str, contexts), strict=True)
            ),
            splits=tuple(map(str, splits)),
            classes=annotations.classes,
            annotators=tuple(map(str, annotations.annotators)),
            item_codes=annotations.item_codes,
            annotator_codes=annotations.annotator_codes,
            label_codes=annotations.label_codes,
            label_probabilities=annotations.label_probabilities,
            hard=annotations.hard_labels(),
            scale=annotations.scale,
            attributes={name: _attribute(annotations, name) for name in attributes},
        )._and_unlabelled(unlabelled or {})

    def _and_unlabelled(self, splits: Mapping[str, Texts]) -> TrainingData:
        """With more items, which have no annotations."""
        data = self
        for split, more in splits.items():
            if split in data.splits or split in (TRAIN, *DEV):
                raise InputError(
                    f"the texts without labels are named {split!r}, which is a split with labels",
                    "name them otherwise, as in {'test': texts}",
                    parameters=("unlabelled",),
                )
            if twice := sorted({*data.items} & {*more.items}):
                raise InputError(
                    f"the split {split!r} has items of other splits: {examples(twice)}",
                    "give each item its own id",
                    parameters=("unlabelled",),
                )
            n = len(more.items)
            data = replace(
                data,
                items=(*data.items, *more.items),
                texts=(*data.texts, *more.texts),
                splits=(*data.splits, *[split] * n),
                hard=np.concatenate(
                    [data.hard, np.zeros_like(data.hard, shape=(n, *data.hard.shape[1:]))]
                ),
                asked={
                    **data.asked,
                    **dict(zip(more.items, more.annotators or [()] * n, strict=True)),
                },
            )
        return data

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def annotations_per_item(self) -> Ints:
        """How many annotations each item has [N]."""
        return np.bincount(self.item_codes, minlength=len(self))

    @cached_property
    def soft_labels(self) -> Floats:
        """Share of annotators per class, or per label of sets [N, C]."""
        labels = label_shares(self, len(self.classes))
        totals = [np.bincount(self.item_codes, share, minlength=len(self)) for share in labels.T]
        soft: Floats = np.column_stack(totals) / np.maximum(self.annotations_per_item, 1)[:, None]
        return soft

    def annotators_of(self, positions: npt.ArrayLike) -> list[tuple[str, ...]]:
        """Who labelled each of these items or, where it has no labels, is asked for."""
        order = np.argsort(self.item_codes, kind="stable")
        starts = np.searchsorted(self.item_codes[order], np.arange(len(self) + 1))
        codes = self.annotator_codes[order]
        found = []
        for i in np.asarray(positions, dtype=np.int64):
            own = (self.annotators[a] for a in codes[starts[i] : starts[i + 1]])
            found.append(self.asked.get(self.items[i]) or tuple(dict.fromkeys(own)))
        return found

    def hard_labels(self) -> Codes:
        """Hard labels [N], or [N, C] of sets."""
        return self.hard

    def where(self, *splits: str) -> Ints:
        """Positions of the items of these splits."""
        return np.flatnonzero(np.isin(np.array(self.splits, dtype=object), splits))

    def take(self, positions: npt.ArrayLike) -> TrainingData:
        """The items at these positions, in this order, with their annotators."""
        chosen = np.asarray(positions, dtype=np.int64)
        row_of = np.full(len(self), -1, dtype=np.int32)
        row_of[chosen] = np.arange(len(chosen), dtype=np.int32)
        kept = np.flatnonzero(row_of[self.item_codes] >= 0)
        annotators, codes = np.unique(self.annotator_codes[kept], return_inverse=True)
        labels, probabilities = self.label_codes, self.label_probabilities
        return TrainingData(
            items=tuple(self.items[i] for i in chosen),
            texts=tuple(self.texts[i] for i in chosen),
            splits=tuple(self.splits[i] for i in chosen),
            classes=self.classes,
            annotators=tuple(self.annotators[a] for a in annotators),
            item_codes=row_of[self.item_codes[kept]],
            annotator_codes=codes.astype(np.int32),
            label_codes=None if labels is None else labels[kept],
            label_probabilities=None if probabilities is None else probabilities[kept],
            hard=self.hard[chosen],
            scale=self.scale,
            asked={
                self.items[i]: self.asked[self.items[i]]
                for i in chosen
                if self.items[i] in self.asked
            },
            attributes={
                name: tuple(values[a] for a in annotators)
                for name, values in self.attributes.items()
            },
        )

    @cached_property
    def digest(self) -> str:
        """A name for exactly this data."""
        return hashlib.sha256(self._json().encode()).hexdigest()[:32]

    def save(self, path: Path) -> None:
        """Write one JSON file."""
        with whole_file(path) as temporary:
            temporary.write_text(self._json(), encoding="utf-8")

    @classmethod
    def load(cls, path: Path, hint: str = "save it again") -> TrainingData:
        """Read what ``save`` wrote."""
        stored = read_document(path, _whole, "whole training data", hint)
        texts = (text if isinstance(text, str) else tuple(text) for text in stored["texts"])
        fields: dict[str, Any] = {name: tuple(stored[name]) for name in _NAMES}
        for name in (*_CODES, "label_probabilities"):
            dtype = np.int32 if name in _CODES else np.float64
            fields[name] = None if stored[name] is None else np.asarray(stored[name], dtype=dtype)
        scale = Declared(stored.get("scale") or NOMINAL).on(fields["classes"])
        asked = {item: tuple(whose) for item, whose in (stored.get("asked") or {}).items()}
        attributes = {name: tuple(own) for name, own in (stored.get("attributes") or {}).items()}
        more = {"scale": scale, "asked": asked, "attributes": attributes}
        return cls(**{**fields, "texts": tuple(texts), **more})

    def _json(self) -> str:
        stored = {name: getattr(self, name) for name in _NAMES}
        for name in (*_CODES, "label_probabilities"):
            values = getattr(self, name)
            stored[name] = None if values is None else values.tolist()
        # Nominal data keep the digest that they had before there were other scales.
        if self.scale != NOMINAL:
            stored["scale"] = self.scale.to_text(self.classes)
        if self.asked:
            stored["asked"] = dict(self.asked)
        if self.attributes:
            stored["attributes"] = dict(self.attributes)
        return json.dumps(stored)


def _text(value: Any, at: str) -> Any:
    """A text, or a pair of them."""
    return listed(text, 2)(value, at) if isinstance(value, list) else text(value, at)


def _whole(value: Any, at: str) -> Any:
    """Training data whose codes name what is there."""
    strings = dict.fromkeys(("items", "classes", "annotators"), distinct(names))
    more = {"scale": text, "asked": mapping(distinct(names)), "attributes": mapping(listed(text))}
    held = record({**strings, "texts": listed(_text), "splits": names}, more)(value, at)
    sets = Declared(held.get("scale") or NOMINAL).on(held["classes"]).is_multi_label
    n, c = len(held["items"]), len(held["classes"])
    for name, own in (held.get("attributes") or {}).items():
        needs(len(own) == len(held["annotators"]), name, "is not one value for each annotator")
    for name in ("texts", "splits"):
        needs(len(held[name]) == n, name, f"are {len(held[name])}, not one for each of {n} items")

    def codes(most: int, length: int | None = None) -> Check:
        return listed(number(0, most - 1, whole=True), length)

    given = record(
        {
            "item_codes": codes(n),
            "annotator_codes": codes(len(held["annotators"])),
            "label_codes": optional(codes(c)),
            "label_probabilities": optional(listed(listed(number(0, 1), c))),
            "hard": listed(codes(2, c), n) if sets else codes(c, n),
        }
    )(held, at)
    lengths = {len(given[name]) for name in _PER_ANNOTATION if given[name] is not None}
    needs(len(lengths) == 1, "item_codes, annotator_codes and labels", "must be equally long")
    labels = [given[name] for name in ("label_codes", "label_probabilities")]
    needs(labels.count(None) == 1, "label_codes", "or label_probabilities must be there")
    return given


_PER_ANNOTATION = ("item_codes", "annotator_codes", "label_codes", "label_probabilities")


def _attribute(annotations: Annotations, name: str) -> tuple[str, ...]:
    """An attribute of the annotators; gaps are counted in a warning."""
    values = tuple(map(str, find_attribute(annotations, name)))
    missing = [str(annotations.annotators[a]) for a, value in enumerate(values) if not value]
    if len(missing) == len(values):
        raise InputError(
            f"no annotator has a value of {name!r}",
            "fill the gaps, or leave it out",
            parameters=("attributes",),
        )
    if missing:
        warn(
            f"{are(len(missing), len(values), HAVE, 'annotator')} no {name}, which then changes"
            f" nothing in their answers: {examples(missing)}"
        )
    if len({*values} - {""}) == 1:
        warn(f"all annotators have {name} {max(values)!r}, from which nothing can be learned")
    return values


def refuse_two_contexts(pairs: bool) -> None:
    """Refuse to look for a context in texts that have one already."""
    if pairs:
        raise InputError(
            "these texts have a context of their own, so their lines are not one",
            "leave out pairs, or the column with the context",
            parameters=("pairs",),
        )


def utterance_and_context(text: str) -> tuple[str, str]:
    """The first line of a text, and the others."""
    utterance, _, context = text.partition("\n")
    return utterance, context


class JobRows(NamedTuple):
    """Positions of items for one fit: to train on, to stop early on, and to predict, by name."""

    train: Ints
    stop: Ints
    predict: dict[str, Ints]


def rows_for_job(data: TrainingData, folds: Codes | None, fold: int | None) -> JobRows:
    """The rows of a fit without folds, of one fold's fit, or of one that is the same in all."""
    splits = dict.fromkeys(filter(None, data.splits))
    others = {name: data.where(name) for name in splits if name not in (TRAIN, *DEV)}
    if folds is not None and fold is None:
        inside = np.flatnonzero(folds >= 0)
        return JobRows(inside, inside[:0], {FIT: inside, **others})
    if folds is None or fold is None:
        dev = [name for name in DEV if name in splits][:1]
        predict = {name: data.where(name) for name in splits if name != TRAIN}
        return JobRows(data.where(TRAIN), data.where(*dev), predict)
    train = np.flatnonzero((folds >= 0) & (folds != fold))
    # The labels of the held-out fold stay unknown, so a part of the rest tells when to stop.
    chosen = np.random.default_rng([fold, 0xED0]).permutation(len(train))
    stop = np.sort(chosen[: int(_STOP_SHARE * len(train))])
    return JobRows(train, train[stop], {FIT: np.flatnonzero(folds == fold), **others})


def fold_numbers(data: TrainingData, n_folds: int, seed: int) -> Codes:
    """The fold of each item of train and dev [N], -1 for the others.

    Folds are alike in size and in hard labels; near-duplicate texts share a fold.
    """
    from edokit.datasets.near_duplicates import near_duplicate_groups

    inside = data.where(TRAIN, *DEV)
    if not 2 <= n_folds <= len(inside):
        raise InputError(
            f"{n_folds} folds can't be made of the {len(inside)} items of train and dev",
            "choose between 2 and the number of items; five folds are common",
        )
    groups = near_duplicate_groups([joined(data.texts[i]) for i in inside])
    order = np.random.default_rng([seed, n_folds]).permutation(int(groups.max()) + 1)
    sizes = np.bincount(groups)
    # A hard label, or a set of labels.
    found, labels = np.unique(data.hard[inside], axis=0, return_inverse=True)
    labels = labels.reshape(-1)
    counts = np.zeros((n_folds, len(found)), dtype=np.int64)
    starts = np.argsort(groups, kind="stable")
    ends = np.cumsum(sizes)
    folds = np.full(len(data), -1, dtype=np.int32)
    # Large groups first; each goes where its class is rarest, then where there is most room.
    for group in order[np.argsort(-sizes[order], kind="stable")]:
        members = starts[ends[group] - sizes[group] : ends[group]]
        tally = np.bincount(labels[members], minlength=len(found))
        fold = int(np.lexsort((counts.sum(axis=1), counts[:, tally.argmax()]))[0])
        counts[fold] += tally
        folds[inside[members]] = fold
    if (counts.sum(axis=1) == 0).any():
        raise InputError(
            f"near-duplicate texts share a fold, which leaves some of the {n_folds} folds empty",
            "ask for fewer folds",
        )
    return folds


def check_splits(data: TrainingData, n_folds: int | None, learns: bool = True) -> None:
    """Refuse data with a single class, with nothing to train on or nothing to predict.

    Members that learn nothing need no items to train on. Items without a split are counted in a
    warning.
    """
    if len(data.classes) < 2:
        raise InputError(
            f"all annotations have one class, {examples(data.classes)}: nothing is to classify",
            "name the classes that nobody chose, too: classes=['no', 'yes']",
            parameters=("classes",),
        )
    names = list(dict.fromkeys(filter(None, data.splits)))
    if not len(data.where(TRAIN) if learns else data.where(*names)):
        raise InputError(
            f"members train on the split 'train', which has no items; the splits are"
            f" {examples(names, 20) or 'unnamed'}",
            "name the splits train, dev and test, or make them with `edo data split`",
        )
    if n_folds is None and names == [TRAIN]:
        raise InputError(
            "there is no split beside 'train' to predict",
            "make one with `edo data split`, or train in folds: cross_fit=5",
            parameters=("cross_fit",),
        )
    if nowhere := len(data.where("")):
        warnings.warn(
            f"{are(nowhere, len(data.splits), noun='item')} in no split: members neither train on"
            " such items nor predict them; `edo data split` puts them into splits",
            EDOWarning,
            stacklevel=2,
        )
