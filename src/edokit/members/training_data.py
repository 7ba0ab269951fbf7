"""Annotations with the texts that members read; what a job trains on, stops on and predicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edokit._errors import InputError, are, examples, option, warn
from edokit._io.digests import digest_text
from edokit._types import Codes, Ints
from edokit.folds import balanced_folds, merge_groups
from edokit.members.contexts import Text, join_context
from edokit.members.layout import BY_ANNOTATOR
from edokit.members.texts import Texts
from edokit.scales import NOMINAL, Scale

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations
    from edokit.annotations.people import Attribute

TRAIN = "train"
# What the split to choose by may be called.
DEV = ("dev", "validation", "valid", "val")
# The name of the out-of-fold predictions, from which weights are fitted.
FIT = "fit"
_STOP_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Annotations of n items with the texts that members read, and texts to predict as well.

    Attributes
    ----------
    annotations : Annotations
        The annotations, whose items all have a split.
    texts : tuple of str or of (str, str)
        Texts [N], or pairs (text, context): of the n annotated items, then of the others.
    hard_labels : ndarray
        Hard labels [n]; for multi-label data [n, C], 1 for each label that most annotators chose.
    unlabelled : mapping of str to Texts
        Items without annotations, by their split, with the annotators that are to be predicted.
    attributes : mapping of str to Attribute
        The attributes of annotators that groups of members learn by, by name.
    """

    annotations: Annotations
    texts: tuple[Text, ...]
    hard_labels: Codes
    unlabelled: Mapping[str, Texts] = field(default_factory=dict)
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    @classmethod
    def from_annotations(
        cls,
        annotations: Annotations,
        *,
        unlabelled: Mapping[str, Texts] | None = None,
        attributes: Iterable[str] = (),
    ) -> TrainingData:
        """Take texts and annotations.

        If the annotations have contexts, texts are pairs (text, context). Items without splits are
        all "train". ``unlabelled`` are further items, by their split. Of the attributes of the
        annotators, the named ones are kept.
        """
        if annotations.texts is None:
            raise InputError(
                "members train on texts, but the data has none",
                f"add a text column, or name it: {option('columns', {'text': 'NAME'})}",
                code="missing-texts",
            )
        texts = Texts.from_source(annotations).checked()
        splits = annotations.splits
        if splits is None:
            splits = np.full(len(annotations.items), TRAIN, dtype=object)
        labelled = replace(
            annotations,
            splits=splits,
            attributes={},
            item_columns={},
            annotation_columns={},
        )
        attribute_values = {name: annotations.people.attribute(name) for name in attributes}
        hard_labels = np.asarray(annotations.hard_labels())
        data = cls(labelled, texts.texts, hard_labels, attributes=attribute_values)
        return data._with_unlabelled(unlabelled or {})

    def _with_unlabelled(self, texts_by_split: Mapping[str, Texts]) -> TrainingData:
        """The same data with further items without annotations."""
        from edokit._names import check_unique

        shared = {TRAIN, *DEV, *self.splits}.intersection(texts_by_split)
        if not shared:
            items = chain.from_iterable(texts.items for texts in texts_by_split.values())
            shared = set(self.items).intersection(items)
        if shared:
            raise InputError(
                f"{option('unlabelled')} has splits or items that have labels: {examples(shared)}",
                "give each split and each item a name of its own, as in {'test': texts}",
                code="duplicate-name",
            )
        for split, texts in texts_by_split.items():
            names = np.array(texts.items, dtype=object)
            check_unique(names, f"the items of {split}", "give each item an id of its own")
        further = chain.from_iterable(texts.texts for texts in texts_by_split.values())
        return replace(self, texts=(*self.texts, *further), unlabelled=texts_by_split)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the C classes."""
        return self.annotations.classes

    @property
    def scale(self) -> Scale:
        """The answer scale."""
        return self.annotations.scale

    @cached_property
    def items(self) -> tuple[str, ...]:
        """Item ids [N]."""
        further = chain.from_iterable(texts.items for texts in self.unlabelled.values())
        return (*map(str, self.annotations.items), *further)

    @cached_property
    def splits(self) -> tuple[str, ...]:
        """The split of each item [N]."""
        assert self.annotations.splits is not None
        further = (split for split, texts in self.unlabelled.items() for _ in texts.items)
        return (*map(str, self.annotations.splits), *further)

    @cached_property
    def item_annotators(self) -> list[tuple[str, ...]]:
        """The annotators who labelled each item [N]; without labels, those to be predicted."""
        annotations = self.annotations
        names = [str(name) for name in annotations.annotators]
        # The keys of a dictionary are distinct, and in the order of the annotations.
        labelled_by: list[dict[str, None]] = [{} for _ in annotations.items]
        for item, code in zip(annotations.item_codes, annotations.annotator_codes, strict=True):
            labelled_by[item][names[code]] = None
        item_annotators = [tuple(annotators) for annotators in labelled_by]
        for texts in self.unlabelled.values():
            if texts.annotators is None:
                item_annotators += [()] * len(texts.items)
            else:
                item_annotators += texts.annotators
        return item_annotators

    def place_of(self, text: Text) -> str:
        """A text, or a part of a pair, as messages name it: by the first item that has it."""
        return Texts(self.items, self.texts).place_of(text)

    def where(self, *splits: str) -> Ints:
        """Positions of the items of these splits."""
        return np.flatnonzero(np.isin(np.array(self.splits, dtype=object), splits))

    @cached_property
    def digest(self) -> str:
        """A digest of all texts and annotations; members of other data are not reused."""
        labels = self.annotations
        n = len(labels.items)
        # Items without annotations have the label 0 here.
        filler_shape = (len(self) - n, *self.hard_labels.shape[1:])
        filler = np.zeros_like(self.hard_labels, shape=filler_shape)
        content: dict[str, Any] = {
            "items": self.items,
            "texts": self.texts,
            "splits": self.splits,
            "classes": self.classes,
            "annotators": list(map(str, labels.annotators)),
            "item_codes": labels.item_codes,
            "annotator_codes": labels.annotator_codes,
            "label_codes": labels.label_codes,
            "hard": np.concatenate([self.hard_labels, filler]),
            "label_probabilities": labels.label_probabilities,
        }
        if self.scale != NOMINAL:
            content["scale"] = self.scale.to_text(self.classes)
        if labels.item_groups is not None:
            content["item_groups"] = labels.item_groups  # folds depend on them
        if self.unlabelled:
            asked = list(zip(self.items[n:], self.item_annotators[n:], strict=True))
            content["asked"] = dict(asked)
            if len(content["asked"]) < len(asked):
                content["asked"] = asked  # items of different splits have the same id
        text = json.dumps(content, default=np.ndarray.tolist)
        return digest_text(text)[:32]


class JobRows(NamedTuple):
    """Positions of items for one fit: to train on, to stop early on, and to predict, by split."""

    train: Ints
    stop: Ints
    predict: dict[str, Ints]


def rows_for_job(data: TrainingData, folds: Codes | None, fold: int | None) -> JobRows:
    """The rows of a fit without folds, of one fold's fit, or of one that is the same in all."""
    splits = dict.fromkeys(filter(None, data.splits))
    if folds is None:
        stop = np.empty(0, dtype=np.int64)
        for name in DEV:
            if name in splits:
                stop = data.where(name)
                break
        predict = {name: data.where(name) for name in splits if name != TRAIN}
        return JobRows(data.where(TRAIN), stop, predict)
    test = {name: data.where(name) for name in splits if name not in (TRAIN, *DEV)}
    if fold is None:
        inside = np.flatnonzero(folds >= 0)
        return JobRows(inside, inside[:0], {FIT: inside, **test})
    train = np.flatnonzero((folds >= 0) & (folds != fold))
    # The labels of the held-out fold stay unknown: a part of the training items tells when to stop.
    order = np.random.default_rng([fold, 0xED0]).permutation(len(train))
    stop = train[np.sort(order[: int(_STOP_SHARE * len(train))])]
    return JobRows(train, stop, {FIT: np.flatnonzero(folds == fold), **test})


def fold_numbers(data: TrainingData, n_folds: int, seed: int) -> Codes:
    """The fold of each item of train and dev [N], -1 for the others.

    Folds are alike in size and in hard labels; near-duplicate texts and the items of a group share
    a fold.
    """
    from edokit.datasets.item_groups import group_codes
    from edokit.datasets.near_duplicates import near_duplicate_groups
    from edokit.datasets.similar_texts import warn_of_similar_texts

    inside = data.where(TRAIN, *DEV)
    if not 2 <= n_folds <= len(inside):
        raise InputError(
            f"{n_folds} folds can't be made of the {len(inside)} items of train and dev",
            "choose between 2 and the number of items; five folds are common",
            code="too-many-folds",
        )
    groups = near_duplicate_groups([join_context(data.texts[i]) for i in inside])
    warn_of_similar_texts(data.annotations.take(inside))
    item_groups = data.annotations.item_groups
    if item_groups is not None:
        groups = merge_groups(groups, group_codes(item_groups[inside]))
    dealt = balanced_folds(data.hard_labels[inside], n_folds, [seed, n_folds], groups=groups)
    folds = np.full(len(data), -1, dtype=np.int32)
    folds[inside] = dealt
    if len(np.unique(dealt)) < n_folds:
        raise InputError(
            "the items of a group and near-duplicate texts share a fold, which leaves some of the"
            f" {n_folds} folds empty",
            "ask for fewer folds",
            code="too-many-folds",
        )
    return folds


def check_splits(data: TrainingData, n_folds: int | None, learns: bool = True) -> None:
    """Raise an error for a single class, for nothing to train on and for nothing to predict.

    Members that learn nothing need no items to train on. A split whose name can't be that of its
    file of predictions is an error, too. Items without a split are counted in a warning.
    """
    if len(data.classes) < 2:
        raise InputError(
            f"all annotations have one class, {examples(data.classes)}",
            f"name all classes, also those that nobody chose: {option('classes', ['no', 'yes'])}",
            code="too-few-classes",
        )
    names = list(dict.fromkeys(filter(None, data.splits)))
    _check_split_names(names, n_folds)
    needed_rows = data.where(TRAIN) if learns else data.where(*names)
    if not len(needed_rows):
        problem = "no item is in a split to predict"
        if learns:
            problem = "members train on the split 'train', which is empty"
        raise InputError(
            f"{problem}; the splits are {examples(names, 20) or 'unnamed'}",
            "name the splits train, dev and test, or make them with `edo data split`",
            code="empty-split",
        )
    if n_folds is None and names == [TRAIN]:
        raise InputError(
            "no split is left to predict: all items are in 'train'",
            f"make one with `edo data split`, or train in folds: {option('cross_fit', 5)}",
            code="empty-split",
        )
    unsplit = len(data.where(""))
    if unsplit:
        warn(
            f"{are(unsplit, len(data.splits), noun='item')} in no split: members neither train on"
            " such items nor predict them; `edo data split` puts them into splits"
        )


def _check_split_names(names: Sequence[str], n_folds: int | None) -> None:
    """Raise an error for splits whose predictions would be written elsewhere or be replaced."""
    for name in names:
        if PurePath(name).name != name or "\\" in name:
            raise InputError(
                "predictions are written to a file with the name of their split, but"
                f" {name!r} can't be the name of a file",
                "name splits by letters, digits, '_' and '-', such as 'test'",
                code="invalid-name",
            )
    reserved = {f"{name}{BY_ANNOTATOR}" for name in names}
    if n_folds is not None:
        reserved |= {FIT, f"{FIT}{BY_ANNOTATOR}"}
    conflicting_names = [name for name in names if name in reserved]
    if conflicting_names:
        raise InputError(
            f"a split is called {examples(conflicting_names)}, the name of predictions that are"
            " made of the other splits: 'fit' of all folds, '…-pairs' by annotator",
            "give the split another name",
            code="reserved-name",
        )
