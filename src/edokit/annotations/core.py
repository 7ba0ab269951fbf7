"""Annotations: labels of items by annotators, and the soft and hard labels computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from edokit._errors import (
    EDOWarning,
    InputError,
    are,
    counted,
    examples,
    headings,
    one_of,
    option,
    warn,
    word,
)
from edokit._names import as_names, check_positions, check_unique
from edokit._package import notebook_html
from edokit._types import Bools, Codes, Floats, Strings
from edokit.annotations.people import People, contradictions, unknown_attribute
from edokit.item_array import with_ids
from edokit.rows import Rows, in_order, sums
from edokit.scales import NOMINAL, Scale, ScaleLike

Ties = Literal["first", "error", "random"]
"""How the hard label of an evenly split item without a published hard label is chosen."""
Duplicates = Literal["error", "first", "all"]
"""What to do if an annotator labels an item more than once."""
_ROUNDED = 0.0101
"""Rounding error of published shares, some of which are written with two digits."""
Entry = TypeVar("Entry", bound=np.generic)


class PublishedLabelWarning(EDOWarning):
    """A published hard label is used although most annotators chose another class."""


@dataclass(frozen=True, eq=False, repr=False)
class Annotations:
    """M annotations of N items by A annotators in C classes.

    Build one with `from_table`, `from_matrix` or `from_soft_labels`, or read a file with
    `edokit.read_annotations`. Methods raise `InputError` for arguments that do not exist in the
    data, are repeated, or do not fit.

    Parameters
    ----------
    rows : Rows of length N
        The items in order of first appearance; after `pairs`, pairs of an item and an annotator.
    annotators : ndarray of str of shape (A,)
        Ids of the annotators, in order of first appearance.
    classes : tuple of str of length C
        Names of the classes, in class order.
    item_codes, annotator_codes : ndarray of int32 of shape (M,)
        Row and annotator of each annotation, as positions in ``items`` and ``annotators``.
    label_codes : ndarray of int32 of shape (M,) or None
        Class of each annotation; None if annotators gave probabilities.
    label_probabilities : ndarray of shape (M, C), default=None
        Probabilities of each annotation, if annotators gave them instead of a class. Multi-label
        annotations have 1 for each chosen label and 0 for others, so that soft labels are the share
        of each label separately.
    published : ndarray of int32 of shape (N,), default=None
        Published hard label of each item, -1 for an item without one.
    texts, contexts, splits : ndarray of str of shape (N,), default=None
        The text of each item, the context in which it is shown (such as the post that it replies
        to), and its split.
    item_groups : ndarray of str of shape (N,), default=None
        Group of each item, such as its thread or author; "" for an item without a group. Folds,
        splits and intervals keep the items of a group together.
    attributes : mapping of str to ndarray of shape (A,), default={}
        Columns with one value per annotator, by name, with unchanged values; `people` has those
        that describe people, with levels.
    item_columns : mapping of str to ndarray of shape (N,), default={}
        Other columns with one value per item, such as its language; gaps are "".
    annotation_columns : mapping of str to ndarray of shape (M,), default={}
        Columns that vary between the annotations of an item and of an annotator.
    scale : Scale, default=nominal
        The answer scale.

    Attributes
    ----------
    items : ndarray of str of shape (N,)
        The item of each row.

    Examples
    --------
    >>> from edokit import Annotations
    >>> annotations = Annotations.from_table(
    ...     {
    ...         "item": ["a", "a", "a", "b", "b"],
    ...         "annotator": ["x", "y", "z", "x", "y"],
    ...         "label": ["rude", "rude", "polite", "polite", "polite"],
    ...     }
    ... )
    >>> annotations
    Annotations(2 items, 3 annotators, 5 annotations, classes polite, rude)
    >>> annotations.soft_labels.round(2)
    array([[0.33, 0.67],
           [1.  , 0.  ]])
    >>> [annotations.classes[code] for code in annotations.hard_labels()]
    ['rude', 'polite']
    """

    rows: Rows
    annotators: Strings
    classes: tuple[str, ...]
    item_codes: Codes
    annotator_codes: Codes
    label_codes: Codes | None
    label_probabilities: Floats | None = None
    published: Codes | None = None
    texts: Strings | None = None
    contexts: Strings | None = None
    splits: Strings | None = None
    item_groups: Strings | None = None
    attributes: Mapping[str, Strings] = field(default_factory=dict)
    item_columns: Mapping[str, Strings] = field(default_factory=dict)
    annotation_columns: Mapping[str, Strings] = field(default_factory=dict)
    scale: Scale = NOMINAL

    @classmethod
    def from_table(
        cls,
        table: pa.Table | pd.DataFrame | Mapping[str, Any],
        *,
        columns: Mapping[str, str] | None = None,
        classes: Sequence[object] | None = None,
        duplicates: Duplicates = "error",
        split: str | None = None,
        label_map: Mapping[Any, object] | None = None,
        scale: ScaleLike | None = None,
        annotator_columns: Sequence[str] | None = None,
        **policies: Any,
    ) -> Annotations:
        """Read a long table with one row per annotation.

        Parameters
        ----------
        table : pyarrow.Table, pandas.DataFrame or mapping of str to sequence
            Columns ``item``, ``annotator`` and ``label`` (or one ``p_<class>`` column per class).
            ``text``, ``context`` (a second text, such as the post that the text replies to),
            ``split``, ``hard_label`` and ``item_group`` (the item's thread, author or template) are
            optional and describe the item. Any other column is kept as text: in ``item_columns`` if
            it has one value per item, in ``attributes`` if it has one per annotator, else in
            ``annotation_columns``.
        columns : mapping of str to str, optional
            Names of columns that differ from these, as in ``{"item": "id"}``; the column of item
            groups has the key ``group``, as in ``{"group": "thread"}``.
        classes : sequence, optional
            All classes in their order. By default, those that occur: numbers in numeric order,
            names in alphabetical order.
        duplicates : {"error", "first", "all"}, default="error"
            What to do if an annotator labels an item more than once: raise, keep the first label,
            or count every label.
        split : str, optional
            Keep only the items of this split; the classes are those of all splits.
        label_map : mapping, optional
            Labels and hard labels to replace, as in ``{"Rude": "rude"}``.
        scale : Scale or str, optional
            ``nominal``, ``ordinal``, ``multi-label``, or with the classes as in
            ``ordinal:low=0,mid=1,high=3``; by default the value of a column ``answer_scale``, else
            nominal. Multi-label annotations are lists of labels in one cell (``["rude",
            "mocking"]`` or ``rude,mocking``; ``[]`` is the empty set), or one row per chosen label.
        annotator_columns : sequence of str, optional
            Of a table with one row per item: the columns with the labels of one annotator each, who
            are named by them. Empty cells are skipped.
        **policies
            ``empty="drop"`` drops rows without an item, an annotator or a label, and items without
            a text if others have one. ``drop_label`` and ``drop_annotator`` (lists of names) drop
            the rows of certain labels or annotators. ``ignore_case=True`` merges labels, annotators
            and splits that differ only in case or blanks. A warning counts the dropped rows.

        Returns
        -------
        Annotations

        Raises
        ------
        InputError
            If a column or a value is missing, a label is not among ``classes``, or the rows of an
            item contradict each other. Without ``classes``, also if labels differ only in case or
            blanks, or if a hard label is none of the annotators' labels. The message names the row.

        Examples
        --------
        >>> rows = {"id": [7, 7, 8], "who": ["x", "y", "x"], "label": [0, 1, 1]}
        >>> Annotations.from_table(rows, columns={"item": "id", "annotator": "who"})
        Annotations(2 items, 2 annotators, 3 annotations, classes 0, 1)
        """
        from edokit.annotations.decisions import read_or_ask_all
        from edokit.annotations.long_table import Policies, from_long_table

        reading_options = {
            "annotator_columns": annotator_columns,
            "columns": columns,
            "classes": classes,
            "split": split,
            "label_map": label_map,
            "scale": scale,
        }
        policy_options = {"duplicates": duplicates, **policies}

        def read(arguments: Mapping[str, Any]) -> Annotations:
            # These are the arguments above, some of them changed.
            chosen_reading = {}
            chosen_policies = {}
            for name, value in arguments.items():
                if name in reading_options:
                    chosen_reading[name] = value
                else:
                    chosen_policies[name] = value
            return from_long_table(table, policies=Policies(**chosen_policies), **chosen_reading)

        return read_or_ask_all(read, {**reading_options, **policy_options})

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        *,
        items: Iterable[object] | None = None,
        annotators: Iterable[object] | None = None,
        classes: Sequence[object] | None = None,
        scale: ScaleLike | None = None,
    ) -> Annotations:
        """Read a matrix of labels with one row per item and one column per annotator.

        Parameters
        ----------
        matrix : array-like or pandas.DataFrame of shape [N, A]
            Labels. ``None``, NaN, empty text and masked entries, as in
            ``np.ma.masked_equal(matrix, -1)``, denote missing annotations.
        items, annotators : iterable, optional
            Ids [N] and [A]. Default: index and columns of a DataFrame, else ``0, 1, …``.
        classes : sequence, optional
            All classes in their order; by default, those that occur.
        scale : Scale or str, optional
            See `from_table`; nominal by default.

        Returns
        -------
        Annotations

        Examples
        --------
        >>> Annotations.from_matrix([["yes", "no", None], ["no", "no", "yes"]]).counts
        array([[1., 1.],
               [2., 1.]])
        """
        from edokit.annotations.arrays import from_wide_matrix

        return from_wide_matrix(matrix, items, annotators, classes, scale)

    @classmethod
    def from_soft_labels(
        cls,
        soft_labels: npt.ArrayLike,
        *,
        items: Iterable[object] | None = None,
        classes: Sequence[object] | None = None,
        scale: ScaleLike | None = None,
    ) -> Annotations:
        """Read soft labels whose single annotations are unknown, as labels of one annotator.

        Parameters
        ----------
        soft_labels : array-like or pandas.DataFrame of shape [N, C]
            Share of annotators per class; each row sums to 1. For multi-label data, per label.
        items, classes : iterable, optional
            Names [N] and [C]. Default: index and columns of a DataFrame, else ``0, 1, …``.
        scale : Scale or str, optional
            See `from_table`; nominal by default.

        Returns
        -------
        Annotations

        Examples
        --------
        >>> Annotations.from_soft_labels([[0.25, 0.75], [1, 0]], classes=["no", "yes"]).soft_labels
        array([[0.25, 0.75],
               [1.  , 0.  ]])
        """
        from edokit.annotations.arrays import from_shares

        return from_shares(soft_labels, items, classes, scale)

    @property
    def items(self) -> Strings:
        """The item of each row [N]."""
        return self.rows.item_names

    def __repr__(self) -> str:
        classes = f"classes {', '.join(self.classes)}"
        if self.scale != NOMINAL:
            classes = f"{self.scale.kind} {classes}"
        return (
            f"Annotations({counted(len(self.rows), self.rows.noun)},"
            f" {counted(len(self.annotators), 'annotator')}, {counted(len(self), 'annotation')},"
            f" {classes})"
        )

    def _repr_html_(self) -> str:
        """The shares of the classes and the first items, in a notebook."""
        return notebook_html("annotations_html", self)

    def __len__(self) -> int:
        return len(self.item_codes)

    @property
    def labels(self) -> Codes | Floats:
        """Label of each annotation: class codes [M], or probabilities [M, C]."""
        if self.label_codes is not None:
            return self.label_codes
        assert self.label_probabilities is not None
        return self.label_probabilities

    @cached_property
    def counts(self) -> Floats:
        """Number of annotations per item and class [N, C]; the sum of probabilities."""
        n = len(self.rows)
        c = len(self.classes)
        if self.label_codes is not None:
            flat = np.bincount(_cells(self.item_codes, self.label_codes, c), minlength=n * c)
            return flat.reshape(n, c).astype(np.float64)
        if len(self) == n and in_order(self.item_codes):
            return np.asarray(self.labels, dtype=np.float64)
        return sums(self.labels, self.item_codes, n)

    @cached_property
    def soft_labels(self) -> Floats:
        """Share of annotators per class [N, C], an `ItemArray` if items have ids."""
        return with_ids(self.shares, self.rows, self.classes)

    @cached_property
    def shares(self) -> Floats:
        """The soft labels [N, C] as a plain array, without the ids of the items."""
        counts = self.counts
        if len(self) == len(counts) and in_order(self.item_codes):
            return counts
        return counts / self.annotations_per_item[:, None]

    @cached_property
    def annotations_per_item(self) -> npt.NDArray[np.int64]:
        """Number of annotations per item [N]."""
        return np.bincount(self.item_codes, minlength=len(self.rows))

    @cached_property
    def annotations_per_annotator(self) -> npt.NDArray[np.int64]:
        """Number of annotations per annotator [A]."""
        return np.bincount(self.annotator_codes, minlength=len(self.annotators))

    @cached_property
    def coverage(self) -> Floats:
        """Share of the items that each annotator labelled [A]."""
        repeats = np.bincount(self.annotator_codes[self.repeated], minlength=len(self.annotators))
        covered: Floats = (self.annotations_per_annotator - repeats) / len(self.rows)
        return covered

    @cached_property
    def repeated(self) -> Bools:
        """Whether an earlier annotation has the same annotator and item [M]."""
        cells = _cells(self.item_codes, self.annotator_codes, len(self.annotators))
        return pd.Index(cells).duplicated()

    @cached_property
    def entropy(self) -> Floats:
        """Entropy of each soft label in nats [N]; for multi-label data, the mean over labels."""
        q = self.scale.rows(self.soft_labels)
        terms = q * np.log(np.where(q > 0, q, 1.0))
        # The zero turns -0 into 0.
        nats: Floats = self.scale.per_item(0.0 - terms.sum(axis=1), len(self.rows))
        return nats

    @cached_property
    def contradicted(self) -> Bools:
        """Whether most annotators chose another class than the published one [N]."""
        if self.published is None:
            return np.zeros(len(self.rows), dtype=bool)
        tolerance = 1e-12
        if self.label_probabilities is not None:
            tolerance = _ROUNDED
        published_shares = self.soft_labels[np.arange(len(self.rows)), self.published]
        is_minority: Bools = published_shares < self.soft_labels.max(axis=1) - tolerance
        return is_minority & (self.published >= 0)

    def hard_labels(self, ties: Ties = "first", random_state: int = 0) -> Codes:
        """Return one class per item: the published one, else the majority.

        Parameters
        ----------
        ties : {"first", "error", "random"}, default="first"
            What to do with an evenly split item without a published label: take the first of the
            tied classes (with a warning), raise, or draw one of the tied classes.
        random_state : int, default=0
            Seed of ``ties="random"``.

        Returns
        -------
        numpy.ndarray of int32, shape [N]
            Positions in ``classes``; for multi-label data, whether most annotators chose each label
            [N, L]. An `ItemArray` if items have ids.

        Examples
        --------
        >>> annotations = Annotations.from_matrix([["no", "yes", "yes"], ["no", "yes", None]])
        >>> annotations.hard_labels(ties="random", random_state=1)
        array([1, 1], dtype=int32)
        """
        codes = self.majority_codes(ties, random_state)
        return with_ids(codes, self.rows, self.classes)

    def majority_codes(self, ties: Ties = "first", random_state: int = 0) -> Codes:
        """Return `hard_labels` as a plain array, without the ids of the items."""
        one_of("ties", ties, get_args(Ties))
        best = self._is_most_chosen
        tied = best.sum(axis=1) > 1
        labels: Codes = best.argmax(axis=1).astype(np.int32)  # the first of the best
        if self.published is not None:
            labels = np.where(self.published < 0, labels, self.published)
            tied &= self.published < 0
        if not tied.any():
            return self.scale.from_row_codes(labels, self.classes)
        tied_items = are(int(self.tied.sum()), len(self.rows), noun="item")
        # Sorted, so that the message does not depend on the order of items.
        tied_items += f" tied: {examples(sorted(self.rows.take(self.tied).names))}"
        if ties == "error":
            policies = f"{option('ties', 'first')} or {option('ties', 'random')}"
            raise InputError(
                tied_items, f"choose {policies}, or give a hard_label column", code="tied-item"
            )
        if ties == "random":
            draw = np.random.default_rng(random_state).random(best.shape)
            labels[tied] = np.where(best, draw, -1.0)[tied].argmax(axis=1)
        else:
            warn(f"{tied_items}; {self.scale.tie_rule}")
        return self.scale.from_row_codes(labels, self.classes)

    @cached_property
    def _is_most_chosen(self) -> Bools:
        """Whether each class of a row has the largest share of annotators."""
        # The largest of a few columns is found several times as fast in this layout.
        shares = np.asfortranarray(self.scale.rows(self.shares))
        # Equal shares of probabilities may differ by rounding errors.
        best: Bools = shares >= shares.max(axis=1, keepdims=True) * (1 - 1e-12)
        return best

    @property
    def evenly_split(self) -> Bools:
        """Whether the annotators of each item are evenly split [N]."""
        return np.asarray(
            (self._is_most_chosen.sum(axis=1) > 1).reshape(len(self.rows), -1).any(axis=1)
        )

    @property
    def tied(self) -> Bools:
        """Whether each item is evenly split and lacks a published hard label [N]."""
        if self.published is None:
            return self.evenly_split
        return np.asarray(self.evenly_split & (self.published < 0))

    def take(self, positions: npt.ArrayLike) -> Annotations:
        """Return the items at these positions, in this order, with their annotations.

        Parameters
        ----------
        positions : array-like of int or bool
            Positions in ``items``, each at most once, or a mask [N].

        Returns
        -------
        Annotations
            Without annotators who labelled none of these items.

        Examples
        --------
        >>> annotations = Annotations.from_matrix([["no", "yes"], ["no", None]], items=["a", "b"])
        >>> annotations.take([1])
        Annotations(1 item, 1 annotator, 1 annotation, classes no, yes)
        """
        positions_taken = check_positions(positions, len(self.rows))
        new_codes = np.full(len(self.rows), -1, dtype=np.int32)
        new_codes[positions_taken] = np.arange(len(positions_taken), dtype=np.int32)
        rows = np.flatnonzero(new_codes[self.item_codes] >= 0)
        if (positions_taken[1:] < positions_taken[:-1]).any():
            # Annotations are sorted by their items, so that a table has the same order.
            rows = rows[np.argsort(new_codes[self.item_codes[rows]], kind="stable")]
        annotators = np.unique(self.annotator_codes[rows])
        renumber = np.full(len(self.annotators), -1, dtype=np.int32)
        renumber[annotators] = np.arange(len(annotators), dtype=np.int32)

        return replace(
            self,
            rows=self.rows.take(positions_taken),
            annotators=self.annotators[annotators],
            item_codes=new_codes[self.item_codes[rows]],
            annotator_codes=renumber[self.annotator_codes[rows]],
            label_codes=take_rows(self.label_codes, rows),
            label_probabilities=take_rows(self.label_probabilities, rows),
            published=take_rows(self.published, positions_taken),
            texts=take_rows(self.texts, positions_taken),
            contexts=take_rows(self.contexts, positions_taken),
            splits=take_rows(self.splits, positions_taken),
            item_groups=take_rows(self.item_groups, positions_taken),
            attributes=take_column_rows(self.attributes, annotators),
            item_columns=take_column_rows(self.item_columns, positions_taken),
            annotation_columns=take_column_rows(self.annotation_columns, rows),
        )

    def align(self, rows: Rows | Iterable[object], against: str = "predictions") -> Annotations:
        """Return the annotations with the items in the given order.

        Parameters
        ----------
        rows : Rows or iterable
            The same item ids in another order, or the rows of predictions.
        against : str, default="predictions"
            The name of the table with these ids, for the error message.

        Returns
        -------
        Annotations

        Examples
        --------
        >>> annotations = Annotations.from_matrix([["no"], ["yes"]], items=["a", "b"])
        >>> annotations.align(["b", "a"]).items.tolist()
        ['b', 'a']
        """
        target_rows = rows
        if not isinstance(target_rows, Rows):
            target_rows = Rows.from_names(target_rows)
        if self.rows.are_numbers_of(target_rows):
            return replace(self, rows=target_rows)
        order = self.rows.match(target_rows, "annotations", against)
        if in_order(order):
            return self
        return self.take(order)

    def with_classes(self, classes: Sequence[object]) -> Annotations:
        """Return the annotations with other classes, which must include the current ones.

        Parameters
        ----------
        classes : sequence
            All classes in their new order.

        Returns
        -------
        Annotations

        Examples
        --------
        >>> Annotations.from_matrix([["no"], ["yes"]]).with_classes(["yes", "no", "unsure"]).counts
        array([[0., 1., 0.],
               [1., 0., 0.]])
        """
        names = tuple(as_names(classes))
        check_unique(as_names(names), "classes", "name each class once")
        missing = [name for name in self.classes if name not in names]
        if missing:
            raise InputError(
                f"the annotations have {counted(len(missing), 'class')} not among"
                f" {examples(names, 20)}: {examples(missing)}",
                "add them",
                code="unknown-class",
            )
        new_codes = np.array([names.index(name) for name in self.classes], dtype=np.int32)

        def recoded(codes: Codes | None) -> Codes | None:
            if codes is None:
                return None
            return np.append(new_codes, np.int32(-1))[codes]

        shares = self.label_probabilities
        if shares is not None:
            shares = np.zeros((len(self), len(names)))
            shares[:, new_codes] = self.label_probabilities
        return replace(
            self,
            classes=names,
            scale=self.scale.reordered(self.classes, names),
            label_codes=recoded(self.label_codes),
            label_probabilities=shares,
            published=recoded(self.published),
        )

    @cached_property
    def people(self) -> People:
        """The annotators with their attributes and levels."""
        contradicted = contradictions(
            self.annotators, self.annotator_codes, self.annotation_columns
        )
        return People.from_columns(
            self.annotators, self.attributes, self.item_columns, contradicted
        )

    def with_attributes(self, names: Sequence[str]) -> Annotations:
        """Return the annotations with only these columns as attributes of annotators.

        Parameters
        ----------
        names : sequence of str
            Columns with one value per annotator; other attributes become ordinary columns.

        Returns
        -------
        Annotations

        Examples
        --------
        >>> rows = {"item": [1, 1, 1], "annotator": ["x", "y", "z"], "label": [0, 1, 1]}
        >>> described = {"gender": ["f", "m", "m"], "shift": ["am", "am", "pm"]}
        >>> annotations = Annotations.from_table({**rows, **described})
        >>> annotations.with_attributes(["gender"]).people.names
        ('gender',)
        """
        attribute_names = list(dict.fromkeys(names))
        for name in attribute_names:
            find_attribute(self, name)
        attributes = {name: self.attributes[name] for name in attribute_names}
        item_columns = {
            name: values for name, values in self.item_columns.items() if name not in attributes
        }
        annotation_columns = dict(self.annotation_columns)
        for name, values in self.attributes.items():
            if name not in attributes and name not in item_columns:
                annotation_columns[name] = values[self.annotator_codes]
        annotations = replace(
            self,
            attributes=attributes,
            item_columns=item_columns,
            annotation_columns=annotation_columns,
        )
        for name in attribute_names:
            annotations.people.attribute(name)  # refuses a column that can't be an attribute
        return annotations

    @property
    def split_names(self) -> tuple[str, ...]:
        """Names of the splits in order of first appearance; items may also be in none of them."""
        if self.splits is None:
            return ()
        return tuple(filter(None, pd.unique(self.splits)))

    def split(self, *names: object) -> Annotations:
        """Return the items of one or more splits, in the order of the data.

        Parameters
        ----------
        *names : str
            Names of splits.

        Returns
        -------
        Annotations

        Examples
        --------
        >>> rows = {"item": [1, 2], "annotator": ["x", "x"], "label": [0, 1]}
        >>> annotations = Annotations.from_table({**rows, "split": ["dev", "test"]})
        >>> annotations.split("dev").items.tolist()
        ['1']
        """
        split_names = as_names(names)
        for name in split_names:
            if name not in self.split_names:
                raise no_split(name, self.split_names)
        if self.splits is None:
            return self.take([])
        return self.take(np.flatnonzero(np.isin(self.splits, split_names)))

    def pairs(self) -> Annotations:
        """Return the same labels with one row per pair of an item and an annotator.

        The soft label of a pair is the label of this annotator, so that methods that learn from
        items, or measure them, apply to single annotators.

        Returns
        -------
        Annotations
            Annotations whose rows are pairs.

        Examples
        --------
        >>> Annotations.from_matrix([["no", "yes"]], items=["a"]).pairs().soft_labels
        array([[1., 0.],
               [0., 1.]])
        """
        width = len(self.annotators)
        codes, cells = pd.factorize(_cells(self.item_codes, self.annotator_codes, width))
        items, annotators = np.divmod(cells, width)
        return replace(
            self,
            rows=Rows.from_names(self.items[items], self.annotators[annotators]),
            item_codes=codes.astype(np.int32),
            published=None,
            texts=take_rows(self.texts, items),
            contexts=take_rows(self.contexts, items),
            splits=take_rows(self.splits, items),
            item_groups=take_rows(self.item_groups, items),
            item_columns=take_column_rows(self.item_columns, items),
        )

    @property
    def whole_texts(self) -> Strings | None:
        """Text of each item [N], with its context on a separate line before it."""
        if self.texts is None or self.contexts is None:
            return self.texts
        parts = zip(self.contexts, self.texts, strict=True)
        return as_names("\n".join(filter(None, pair)) for pair in parts)

    def item_column(self, name: str, parameter: str = "column") -> Strings:
        """Return the values of a column that describes items.

        Parameters
        ----------
        name : str
            One of ``item_columns``, ``split`` or ``item_group``.
        parameter : str, default="column"
            The caller's parameter with this name, for the error message.

        Returns
        -------
        numpy.ndarray of str, shape [N]
            Empty text for an item without a value.

        Examples
        --------
        >>> rows = {"item": [1, 2], "annotator": ["x", "x"], "label": [0, 1], "lang": ["en", "it"]}
        >>> Annotations.from_table(rows).item_column("lang").tolist()
        ['en', 'it']
        """
        columns = dict(self.item_columns)
        if self.splits is not None:
            columns["split"] = self.splits
        if self.item_groups is not None:
            columns["item_group"] = self.item_groups
        if name not in columns:
            if name in self.attributes:
                raise InputError(
                    f"{option(parameter)} names column {word(name)}, which describes annotators,"
                    " not items",
                    "to compare groups of annotators, use `edo diagnose --by`",
                    code="inapplicable-column",
                )
            raise InputError(
                f"{option(parameter)} names column {word(name)}, which the items do not have",
                f"the columns with one value per item are {headings(columns) or 'none'}",
                code="missing-column",
            )
        return columns[name]

    def to_table(self) -> pa.Table:
        """Return the long table that `from_table` reads, one row per annotation.

        Returns
        -------
        pyarrow.Table
            Use ``.to_pandas()`` for a DataFrame.

        Examples
        --------
        >>> Annotations.from_matrix([["yes"]], items=["a"]).to_table().to_pylist()
        [{'item': 'a', 'annotator': '0', 'label': 'yes'}]
        """
        from edokit.annotations.long_table import to_long_table

        return to_long_table(self)


def take_rows(
    values: npt.NDArray[Entry] | None, rows: npt.NDArray[np.integer] | Bools
) -> npt.NDArray[Entry] | None:
    """The rows of an optional array."""
    if values is None:
        return None
    return np.asarray(values[rows])


def take_column_rows(
    columns: Mapping[str, Strings], rows: npt.NDArray[np.integer]
) -> dict[str, Strings]:
    """The rows of every column."""
    return {name: values[rows] for name, values in columns.items()}


def no_split(name: object, names: Iterable[object]) -> InputError:
    """The error for a split that is not in the data; ``names`` are the existing splits."""
    return InputError(
        f"split {name!r} does not exist; the splits are {examples(names, 20) or 'none'}",
        f"name an existing split, or the column of splits: {option('columns', {'split': 'NAME'})}",
        code="unknown-split",
    )


def find_attribute(annotations: Annotations, name: str) -> Strings:
    """The values [A] of an attribute of the annotators; an unknown name is refused."""
    if name not in annotations.attributes:
        raise unknown_attribute(name, annotations.attributes)
    return annotations.attributes[name]


def _cells(rows: Codes, columns: Codes, width: int) -> npt.NDArray[np.int64]:
    """The index of each pair [M] in a flattened table with ``width`` columns."""
    cells: npt.NDArray[np.int64] = rows.astype(np.int64)
    cells *= width  # in place: there may be millions
    cells += columns
    return cells


def contradiction_message(count: int, items: int) -> str:
    """The warning about published labels that differ from the annotators' majority."""
    return (
        f"hard_label of {count} of {items} items is used as given, though it is not the class that"
        " annotators chose most often"
    )
