"""Texts and annotations in plain arrays; the items that a job trains on, stops on and predicts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from edokit._errors import HAVE, InputError, are, examples, option, warn
from edokit._types import Codes, Floats, Ints
from edokit.annotator_effects import find_attribute, label_shares
from edokit.members.recipe import Text, joined
from edokit.scales import NOMINAL, Scale

if TYPE_CHECKING:
    from edokit.annotations import Annotations
    from edokit.members.texts import Texts

T = TypeVar("T")
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

    `edokit.Annotations` in plain arrays, which worker processes load without pandas.
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
    unlabelled_annotators: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
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
        """Take texts and annotations, and these attributes of the annotators.

        If the annotations have contexts, texts are pairs (text, context). With ``pairs`` the first
        line of a text is the utterance and the others are its context. Items without splits are
        all "train". ``unlabelled`` are further items, by their split.
        """
        if annotations.texts is None:
            raise InputError(
                "members train on texts, but the data has none",
                f"add a text column, or name it: {option('columns', {'text': 'NAME'})}",
            )
        n, texts = len(annotations.items), list(annotations.texts)
        absent = [i for i, text in enumerate(texts) if not (isinstance(text, str) and text.strip())]
        if absent:
            raise InputError(
                f"{are(len(absent), n, HAVE)} no text: {examples(annotations.items[absent])}",
                "fill the gap or drop these items",
            )
        contexts = annotations.contexts
        refuse_two_contexts(pairs and contexts is not None)
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
        )._with_unlabelled(unlabelled or {})

    def _with_unlabelled(self, texts_by_split: Mapping[str, Texts]) -> TrainingData:
        """The same data with further items, which have no annotations."""
        data = self
        for split, texts in texts_by_split.items():
            if split in data.splits or split in (TRAIN, *DEV):
                raise InputError(
                    f"{option('unlabelled')} names a split {split!r}, which has labels",
                    "choose another name for the split, as in {'test': texts}",
                )
            if repeated := sorted({*data.items} & {*texts.items}):
                raise InputError(
                    f"{option('unlabelled')}: the split {split!r} has items of other splits:"
                    f" {examples(repeated)}",
                    "give each item its own id",
                )
            n = len(texts.items)
            no_labels = np.zeros_like(data.hard, shape=(n, *data.hard.shape[1:]))
            annotators = dict(zip(texts.items, texts.annotators or [()] * n, strict=True))
            data = replace(
                data,
                items=(*data.items, *texts.items),
                texts=(*data.texts, *texts.texts),
                splits=(*data.splits, *[split] * n),
                hard=np.concatenate([data.hard, no_labels]),
                unlabelled_annotators={**data.unlabelled_annotators, **annotators},
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
        """The annotators who labelled each of these items or, without labels, are predicted."""
        order = np.argsort(self.item_codes, kind="stable")
        starts = np.searchsorted(self.item_codes[order], np.arange(len(self) + 1))
        codes = self.annotator_codes[order]
        annotators = []
        for i in np.asarray(positions, dtype=np.int64):
            labelled_by = (self.annotators[a] for a in codes[starts[i] : starts[i + 1]])
            predicted = self.unlabelled_annotators.get(self.items[i])
            annotators.append(predicted or tuple(dict.fromkeys(labelled_by)))
        return annotators

    def hard_labels(self) -> Codes:
        """Hard labels [N], or [N, C] of sets."""
        return self.hard

    def where(self, *splits: str) -> Ints:
        """Positions of the items of these splits."""
        return np.flatnonzero(np.isin(np.array(self.splits, dtype=object), splits))

    def take(self, positions: npt.ArrayLike) -> TrainingData:
        """The items at these positions, in this order, with their annotators."""
        rows = np.asarray(positions, dtype=np.int64)
        row_of = np.full(len(self), -1, dtype=np.int32)
        row_of[rows] = np.arange(len(rows), dtype=np.int32)
        annotations = np.flatnonzero(row_of[self.item_codes] >= 0)
        annotators, codes = np.unique(self.annotator_codes[annotations], return_inverse=True)
        labels, probabilities = self.label_codes, self.label_probabilities
        return replace(
            self,
            items=_at(self.items, rows),
            texts=_at(self.texts, rows),
            splits=_at(self.splits, rows),
            annotators=_at(self.annotators, annotators),
            item_codes=row_of[self.item_codes[annotations]],
            annotator_codes=codes.astype(np.int32),
            label_codes=None if labels is None else labels[annotations],
            label_probabilities=None if probabilities is None else probabilities[annotations],
            hard=self.hard[rows],
            attributes={name: _at(values, annotators) for name, values in self.attributes.items()},
        )

    @cached_property
    def digest(self) -> str:
        """A digest of all texts and annotations; members of other data are not reused."""
        content = {name: getattr(self, name) for name in _NAMES}
        for name in (*_CODES, "label_probabilities"):
            values = getattr(self, name)
            content[name] = None if values is None else values.tolist()
        if self.scale != NOMINAL:
            content["scale"] = self.scale.to_text(self.classes)
        if self.unlabelled_annotators:
            content["asked"] = dict(self.unlabelled_annotators)
        if self.attributes:
            content["attributes"] = dict(self.attributes)
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]


def _at(values: tuple[T, ...], positions: Codes | Ints) -> tuple[T, ...]:
    return tuple(values[k] for k in positions)


def _attribute(annotations: Annotations, name: str) -> tuple[str, ...]:
    """An attribute of the annotators; gaps are counted in a warning."""
    values = tuple(map(str, find_attribute(annotations, name)))
    missing = [str(annotations.annotators[a]) for a, value in enumerate(values) if not value]
    if len(missing) == len(values):
        raise InputError(
            f"{option('attributes')}: no annotator has a value of {name!r}",
            "fill the gaps, or leave it out",
        )
    if missing:
        warn(
            f"{are(len(missing), len(values), HAVE, 'annotator')} no {name}, which then changes"
            f" nothing in their answers: {examples(missing)}"
        )
    if len({*values} - {""}) == 1:
        warn(f"all annotators have {name} {max(values)!r}, from which nothing can be learned")
    return values


def refuse_two_contexts(has_context: bool) -> None:
    """Refuse to look for a context in texts that have a context column."""
    if has_context:
        raise InputError(
            f"these texts have a context column, so {option('pairs')} does not apply",
            "leave it out, or leave out the column",
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
    test = {name: data.where(name) for name in splits if name not in (TRAIN, *DEV)}
    if folds is not None and fold is None:
        inside = np.flatnonzero(folds >= 0)
        return JobRows(inside, inside[:0], {FIT: inside, **test})
    if folds is None or fold is None:
        dev = [name for name in DEV if name in splits][:1]
        predict = {name: data.where(name) for name in splits if name != TRAIN}
        return JobRows(data.where(TRAIN), data.where(*dev), predict)
    train = np.flatnonzero((folds >= 0) & (folds != fold))
    # The labels of the held-out fold stay unknown: a part of the training items tells when to stop.
    order = np.random.default_rng([fold, 0xED0]).permutation(len(train))
    stop = np.sort(order[: int(_STOP_SHARE * len(train))])
    return JobRows(train, train[stop], {FIT: np.flatnonzero(folds == fold), **test})


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
    distinct, labels = np.unique(data.hard[inside], axis=0, return_inverse=True)
    labels = labels.reshape(-1)
    counts = np.zeros((n_folds, len(distinct)), dtype=np.int64)
    starts = np.argsort(groups, kind="stable")
    ends = np.cumsum(sizes)
    folds = np.full(len(data), -1, dtype=np.int32)
    # Large groups first; each goes where its class is rarest, then where there is most room.
    for group in order[np.argsort(-sizes[order], kind="stable")]:
        members = starts[ends[group] - sizes[group] : ends[group]]
        tally = np.bincount(labels[members], minlength=len(distinct))
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
            f"all annotations have one class, {examples(data.classes)}",
            f"name all classes, also those that nobody chose: {option('classes', ['no', 'yes'])}",
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
            f"make one with `edo data split`, or train in folds: {option('cross_fit', 5)}",
        )
    if unsplit := len(data.where("")):
        warn(
            f"{are(unsplit, len(data.splits), noun='item')} in no split: members neither train on"
            " such items nor predict them; `edo data split` puts them into splits"
        )
