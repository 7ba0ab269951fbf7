"""Predictions of members [N, K, C] with the names of items, members and classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import ConfigDict, Field

from edokit._errors import InputError, are, counted, examples, one_of, option, warn
from edokit._io.documents import Count, Document, to_model
from edokit._names import (
    as_name,
    as_names,
    check_positions,
    check_unique,
)
from edokit._types import Bools, Floats, Strings
from edokit.annotations.core import Annotations
from edokit.item_array import classes_of, match_rows, rows_of, with_ids
from edokit.rows import Rows, check_same_ids, in_order, is_default_index
from edokit.scales import NOMINAL, DeclaredScale, Scale, ScaleLike, check_same_scale, number_list

Invalid: TypeAlias = Literal["error", "normalize"]
"""What to do with probabilities that do not sum to one: refuse them, or divide by their sum."""
EXACT = 1e-6
"""Largest deviation of the sum of probabilities from 1 that is left unchanged."""
ANONYMOUS = " (anonymous)"
"""Suffix of the name of a member that consists of another member's anonymous answers."""
Array = npt.NDArray[Any]
_FAULT_HINT = (
    f"correct them; {option('invalid', 'normalize')} divides by their sum,"
    f" {option('scale', 'multi-label')} is for labels that are predicted separately, and"
    f" {option('logits', True)} (`edo predictions join FILE:logits`) for logits"
)


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """Probabilities of K members for N items in C classes.

    Build them with `from_arrays`, which converts any common layout to this form and checks it.
    Predictions and annotations are matched by item id, never by position.

    Parameters
    ----------
    probabilities : ndarray of shape (N, K, C)
        Each row over the classes is a distribution; float32 or float64.
    rows : Rows
        The item of each row and, for pairs of an item and an annotator, its annotator. Rows with an
        empty annotator are the members' anonymous answers.
    members : tuple of str of length K
        Names of the members.
    classes : tuple of str of length C
        Names of the classes, in class order.
    groups : tuple of str of length K, default=None
        The group (recipe) of each member; empty for a member without one.
    scale : Scale, default=nominal
        The answer scale. In multi-label data, each label has a separate probability.
    member_info : mapping of str to mapping, default={}
        Known facts about members, by name: ``model``, ``prompt``, ``persona``, ``cost`` (per item,
        in any unit), ``requests``, ``failures``, ….

    Attributes
    ----------
    items : ndarray of str of shape (N,)
        The item of each row.
    annotators : ndarray of str of shape (N,) or None
        The annotator whose label each row predicts; None for rows of items.

    Examples
    --------
    >>> from edokit import Predictions
    >>> predictions = Predictions.from_arrays(
    ...     {"bert": [[0.9, 0.1], [0.2, 0.8]], "tfidf": [[0.7, 0.3], [0.4, 0.6]]},
    ...     items=["a", "b"],
    ...     classes=["no", "yes"],
    ... )
    >>> predictions
    Predictions(2 items, 2 members, classes no, yes)
    >>> predictions.uniform.round(3).tolist()
    [[0.8, 0.2], [0.3, 0.7]]
    """

    probabilities: Array
    rows: Rows
    members: tuple[str, ...]
    classes: tuple[str, ...]
    groups: tuple[str, ...] | None = None
    scale: Scale = NOMINAL
    member_info: MemberInfo = field(default_factory=dict)

    @classmethod
    def from_arrays(
        cls,
        values: Any,
        *,
        items: Iterable[object] | None = None,
        members: Iterable[object] | None = None,
        classes: Iterable[object] | None = None,
        groups: Iterable[object] | None = None,
        annotators: Iterable[object] | None = None,
        layout: Layout | None = None,
        logits: bool = False,
        invalid: Invalid = "error",
        scale: ScaleLike | None = None,
        member_info: MemberInfo | None = None,
    ) -> Predictions:
        """Build predictions from an array, or from one array per member.

        Parameters
        ----------
        values : array-like, ItemArray, DataFrame, list or mapping of these
            The numbers. A list or mapping has one array [N, C] (or [N] for two classes) per member;
            the keys of a mapping name the members, index and columns of a DataFrame its axes. An
            `ItemArray` names its items and classes; several are matched by item id.
        items, members, classes : iterable, default=None
            Names along each axis; 0, 1, 2, … if neither these nor the values name it. Columns with
            names are put into the order of ``classes``.
        groups : iterable, default=None
            The group (recipe) of each member; empty for a member without one.
        annotators : iterable, default=None
            The annotator of each row, for pairs of an item and an annotator.
        layout : {"NKC", "KNC", "NC", "NK", "KN"}, default=None
            The axes of an array: items N, members K, classes C. Without C, the numbers are the
            probabilities of the second of two classes. If None, it is inferred from the shape, the
            names and, if these are ambiguous, from the sums over classes. Not needed for a list or
            mapping of members.
        logits : bool, default=False
            Whether the numbers are logits; members with probabilities are then refused.
        invalid : {"error", "normalize"}, default="error"
            What to do with probabilities that do not sum to 1: refuse them, or divide by their
            sum.
        scale : Scale or str, default=None
            ``nominal`` (default), ``ordinal``, ``multi-label``, or with the classes as in
            ``ordinal:low=0,mid=1,high=3``. In multi-label data, each label has a separate
            probability (or logit).
        member_info : mapping of str to mapping, default=None
            Facts about members, such as ``{"bert": {"model": "bert-base"}}``.

        Returns
        -------
        Predictions

        Raises
        ------
        InputError
            If the layout is ambiguous, the numbers are not probabilities, or names are repeated or
            do not match the shape.

        Examples
        --------
        >>> from edokit import Predictions
        >>> Predictions.from_arrays([[0.1, 0.6], [0.8, 0.7]], layout="NK").shape
        (2, 2, 2)
        >>> Predictions.from_arrays([[0.1, 0.6, 0.3]], items=["a"], members=["m", "n", "o"]).shape
        (1, 3, 2)
        """
        declared = DeclaredScale(scale or NOMINAL)
        if classes is None:
            classes = declared.classes
        values, item_rows, array_classes = _matched_members(values)
        array, layout, value_names = _stacked(values, layout)
        given_names: dict[str, Strings] = {}
        for axis, axis_names in (("N", items), ("K", members), ("C", classes)):
            if axis_names is not None:
                given_names[axis] = as_names(axis_names)
        if array_classes is not None:
            value_names["C"] = as_names(array_classes)
        sizes = {
            axis: len(axis_names) for axis, axis_names in {**value_names, **given_names}.items()
        }
        group_names = None
        if groups is not None:
            group_names = tuple(as_names(groups))
            sizes.setdefault("K", len(group_names))
        # Which rows are distributions depends only on whether labels are separate. Positions of an
        # ordinal scale are resolved at the end, once the classes are known.
        row_scale = NOMINAL
        if declared.kind == "multi-label":
            row_scale = Scale("multi-label")
        if layout is None:
            any_numbers = row_scale.is_multi_label or logits
            layout = _only_layout(array, sizes, any_numbers=any_numbers)
            if isinstance(values, pd.DataFrame):
                value_names = _named_axes(layout, values.axes)
        names = {**value_names, **given_names}
        _check_layout(array.shape, layout, sizes)
        array, is_binary = _canonical(array, layout)
        if logits:
            array = _from_logits(array, is_binary, names.get("K"), row_scale)
        n_items, n_members, n_classes = array.shape
        if "K" not in names:
            names["K"] = as_names(range(n_members))
        if "C" not in names:
            names["C"] = as_names(range(n_classes))
        if "C" in value_names:
            array = _with_classes(
                array, value_names["C"], names["C"], may_rename=array_classes is None
            )
        if "N" in value_names:
            _check_order("items", value_names["N"], names["N"])
        if "K" in value_names:
            _check_order("members", value_names["K"], names["K"])
        if annotators is not None:
            annotators = as_names(annotators)
            if len(annotators) != n_items:
                raise _wrong_length("annotators", len(annotators), array.shape, n_items)
        rows = _named_rows(n_items, names.get("N"), annotators, item_rows)
        predictions = cls(
            array,
            rows,
            members=tuple(names["K"]),
            classes=tuple(names["C"]),
            groups=group_names,
            scale=declared.resolve(tuple(names["C"])),
        )
        # `with_info` also checks the names of items, members and classes.
        return predictions.with_info(member_info or {}).checked(invalid)

    def check_names(self) -> None:
        """Refuse names that are repeated or do not match the shape."""
        shape = n_items, n_members, n_classes = self.probabilities.shape
        if len(self.rows) != n_items:
            raise _wrong_length("items", len(self.rows), shape, n_items)
        self.rows.check_named()
        for axis, names, length in (
            ("members", self.members, n_members),
            ("classes", self.classes, n_classes),
        ):
            if len(names) != length:
                raise _wrong_length(axis, len(names), shape, length)
            if "" in names:
                raise InputError(
                    f"one of the {axis} has an empty name", "name every entry", code="missing-value"
                )
        if self.groups is not None and len(self.groups) != n_members:
            raise _wrong_length("groups", len(self.groups), shape, n_members)
        noun = self.rows.noun
        self.rows.check_unique(f"names of {noun}s", f"rename or drop the {noun}s")
        check_unique(as_names(self.members), "names of members", "rename or drop the members")
        check_unique(as_names(self.classes), "names of classes", "rename or drop the classes")

    def with_info(self, member_info: MemberInfo) -> Predictions:
        """The same predictions with further facts about members.

        The facts are checked, and so are the names of items, members and classes, as in
        `check_names`.
        """
        new_info = checked_info(member_info, self.members)
        combined = {}
        for name in self.members:
            facts = {**self.member_info.get(name, {}), **new_info.get(name, {})}
            if facts:
                combined[name] = facts
        predictions = replace(self, member_info=combined)
        predictions.check_names()
        return predictions

    def checked(self, invalid: Invalid = "error") -> Predictions:
        """The same predictions; numbers that are not probabilities are refused.

        Probabilities are divided by their sum if it differs from 1 by rounding, or if ``invalid``
        is ``"normalize"``.
        """
        one_of("invalid", invalid, get_args(Invalid))

        def refuse(fault: str, row: tuple[int, ...]) -> InputError:
            n, k = row
            numbers = self.probabilities[n, k]
            return InputError(
                f"the probabilities of member {self.members[k]!r} for {self.rows.noun}"
                f" {self.rows.take([n]).names[0]!r} {fault}: ({number_list(numbers)})",
                _FAULT_HINT,
                code="invalid-probabilities",
            )

        normalize = invalid == "normalize"
        probabilities = self.scale.checked_distributions(
            self.probabilities, EXACT, refuse, normalize=normalize
        )
        return replace(self, probabilities=probabilities)

    @property
    def items(self) -> Strings:
        """The item of each row [N]."""
        return self.rows.item_names

    @property
    def annotators(self) -> Strings | None:
        """The annotator of each row [N]; None for rows of items."""
        return self.rows.annotator_names

    @property
    def shape(self) -> tuple[int, int, int]:
        """(N, K, C)."""
        n, k, c = self.probabilities.shape
        return n, k, c

    def __repr__(self) -> str:
        n, k, _ = self.shape
        sizes = f"{counted(n, self.rows.noun)}, {counted(k, 'member')}"
        classes = f"classes {', '.join(self.classes)}"
        if self.scale != NOMINAL:
            classes = f"{self.scale.kind} {classes}"
        return f"Predictions({sizes}, {classes})"

    def __len__(self) -> int:
        return len(self.probabilities)

    def take(self, positions: npt.ArrayLike) -> Predictions:
        """The rows at these positions (or where a mask is True), in this order."""
        places = check_positions(positions, len(self))
        return replace(self, probabilities=self.probabilities[places], rows=self.rows.take(places))

    def pairs(self, *, anonymous: bool = False) -> Predictions:
        """Return the rows of named annotators, without the anonymous answers.

        Parameters
        ----------
        anonymous : bool, default=False
            Whether the anonymous answers of each member are added as another member.

        Returns
        -------
        Predictions
        """
        self.rows.check_pairs("predictions")
        predictions = self
        if anonymous:
            predictions = self.with_anonymous()
        return predictions.take(predictions.rows.is_named)

    def annotated(self, annotations: Annotations) -> Predictions:
        """Return the predictions without the pairs that lack a label.

        Predictions for annotators who did not label the item, such as those of a panel, are left
        out and counted in a warning. Anonymous answers, and items that the annotations lack, stay.
        """
        rows = self.rows
        labelled = annotations.pairs().rows
        is_unlabelled = rows.is_named & (labelled.positions(rows) < 0)
        is_unlabelled &= annotations.rows.has_items(rows)
        if not is_unlabelled.any():
            return self
        n_pairs = int(rows.is_named.sum())
        warn(f"{are(int(is_unlabelled.sum()), n_pairs, noun='pair')} left out for lack of a label")
        return self.take(~is_unlabelled)

    def with_anonymous(self) -> Predictions:
        """Return the pairs with the anonymous answers of each member as another member."""
        answers = self.anonymous()
        place_by_item = answers.rows.positions(self.rows.by_item())
        places = place_by_item[self.rows.item_codes]
        is_missing = places < 0  # −1: the item lacks an anonymous answer
        if is_missing.any():
            raise InputError(
                f"item {self.items[is_missing][0]!r} lacks an anonymous answer",
                "score the items again: `edo score --annotators` writes both",
                code="missing-predictions",
            )
        anonymous = answers.renamed([f"{name}{ANONYMOUS}" for name in self.members])
        groups = self.groups
        if groups is not None:
            groups = (*groups, *groups)
        return replace(
            self,
            probabilities=np.concatenate(
                [self.probabilities, anonymous.probabilities[places]], axis=1
            ),
            members=(*self.members, *anonymous.members),
            groups=groups,
            member_info={**self.member_info, **anonymous.member_info},
        )

    def anonymous(self) -> Predictions:
        """Return the anonymous answers, one per item."""
        self.rows.check_pairs("predictions")
        answers = self.take(~self.rows.is_named)
        if not len(answers):
            raise InputError(
                "these predictions for pairs lack anonymous answers",
                "score the items without naming annotators",
                code="missing-predictions",
            )
        return replace(answers, rows=answers.rows.by_item())

    @property
    def is_known(self) -> Bools:
        """Whether each member knows the annotator of each row [N, K].

        A member that does not know an annotator gives its anonymous answer, so that it knows those
        for whom its answer differs from that. False for an item without an anonymous answer.
        """
        place_by_item = self.rows.positions(self.rows.by_item())
        places = place_by_item[self.rows.item_codes]
        # Without an anonymous answer, the place is −1, which selects the last row; it is masked.
        differs = (self.probabilities != self.probabilities[places]).any(axis=2)
        return np.asarray(differs & (places >= 0)[:, None])

    def panel_means(self) -> Predictions:
        """Return the mean answer for the named annotators of each item.

        Anonymous answers are left out. Predictions without named annotators are unchanged.
        """
        if not self.rows.is_named.any():
            return self
        pairs = self.pairs()
        means = pairs.rows.mean(pairs.probabilities)
        return replace(pairs, probabilities=means, rows=pairs.rows.by_item())

    def align(self, rows: Rows | Iterable[object], against: str = "annotations") -> Predictions:
        """The same predictions with rows in the given order; the ids must be the same.

        ``rows`` are item ids, or the rows of annotations or of other predictions. ``against`` says
        in messages where they come from.
        """
        target_rows = rows
        if not isinstance(target_rows, Rows):
            target_rows = Rows.from_names(target_rows)
        # Annotations without ids are in the order of these predictions.
        if target_rows.are_numbers_of(self.rows):
            return self
        order = self.rows.match(target_rows, "predictions", against)
        if in_order(order):
            return self
        return self.take(order)

    def order_classes(self, classes: Iterable[object]) -> Predictions:
        """The same predictions with classes in the given order; the names must be the same."""
        names = tuple(as_names(classes))
        if names == self.classes:
            return self
        if sorted(names) != sorted(self.classes):
            raise InputError(
                f"the classes of the predictions are {examples(self.classes, 20)}, not"
                f" {examples(names, 20)}",
                f"rename the classes, or declare all of them: {option('classes')}",
                code="classes-differ",
            )
        order = [self.classes.index(name) for name in names]
        scale = self.scale.reordered(self.classes, names)
        reordered = self.probabilities[:, :, order]
        return replace(self, probabilities=reordered, classes=names, scale=scale)

    def on_scale(self, scale: ScaleLike, against: str = "declaration") -> Predictions:
        """The same predictions on this scale; predictions of another scale are refused.

        Nominal predictions may be declared ordinal. ``against`` names the source of the scale in
        the message.
        """
        return replace(self, scale=declared_scale(self.scale, self.classes, scale, against))

    def select(self, members: Iterable[object]) -> Predictions:
        """The named members, in this order."""
        names = as_names(members)
        check_unique(names, "selected members", "name each member once")
        unknown = [name for name in names if name not in self.members]
        if unknown:
            raise InputError(
                f"no member is named {examples(unknown)}; the members are"
                f" {examples(self.members, 10)}",
                "check the spelling",
                code="unknown-member",
            )
        positions = [self.members.index(name) for name in names]
        groups = None
        if self.groups is not None:
            groups = tuple(self.groups[k] for k in positions)
        return replace(
            self,
            probabilities=self.probabilities[:, positions],
            members=tuple(names),
            groups=groups,
            member_info={n: self.member_info[n] for n in names if n in self.member_info},
        )

    def renamed(self, members: Sequence[str]) -> Predictions:
        """The same predictions with other names of the members, in their order."""
        renames = zip(self.members, members, strict=True)
        info = {new: self.member_info[old] for old, new in renames if old in self.member_info}
        return replace(self, members=tuple(members), member_info=info)

    def grouped(self, groups: Mapping[str, str]) -> Predictions:
        """The same predictions with new groups of some members; others keep their groups."""
        self.select(groups)  # refuses unknown members
        old_groups = self.groups
        if old_groups is None:
            old_groups = ("",) * len(self.members)  # an empty name means no group
        new_groups = [
            groups.get(name, group) for name, group in zip(self.members, old_groups, strict=True)
        ]
        return replace(self, groups=tuple(new_groups))

    @cached_property
    def uniform(self) -> Floats:
        """The uniform mean of the members [N, C], an `ItemArray` if items have ids."""
        mean: Floats = self.probabilities.mean(axis=1, dtype=np.float64)
        return with_ids(mean, self.rows, self.classes)


MemberInfo: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Facts about members, by name; see `Predictions`."""
IDENTITY = ("model", "prompt", "persona")
"""The facts that identify a member that is a language model."""
_Cost = Annotated[float, Field(ge=0)]


class MemberFacts(Document):
    """Facts about a member: counts and costs, which are not negative, and any others."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str | bool | int | float]
    requests: Count = 0
    answers: Count = 0
    failures: Count = 0
    tokens_in: Count = 0
    tokens_out: Count = 0
    cost: _Cost = 0.0
    total_cost: _Cost = 0.0


def checked_info(member_info: MemberInfo, members: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Facts about these members without missing values; invalid names and values are refused."""
    info: dict[str, Any] = {as_name(name): facts for name, facts in member_info.items()}
    for name, facts in info.items():
        if name not in members:
            raise InputError(
                f"member_info describes {name!r}, but the members are {examples(members, 10)}",
                "check the spelling",
                code="unknown-member",
            )
        # Facts that are not a mapping are refused below.
        if isinstance(facts, Mapping):
            present = {}
            for key, fact in facts.items():
                if isinstance(fact, np.generic):
                    fact = fact.item()
                if fact is not None:
                    present[str(key)] = fact
            info[name] = present
    # The document only checks the facts: as a result it would add counts of 0.
    kind: Any = dict[str, MemberFacts]
    hint = "give text and numbers about each member"
    to_model(info, kind, "member_info", title="text and numbers about members", hint=hint)
    return info


def common_info(parts: Sequence[MemberInfo], members: Sequence[str]) -> MemberInfo:
    """The facts about members that are the same in all parts, such as shards."""
    common: dict[str, dict[str, Any]] = {}
    for name in members:
        facts = dict(parts[0].get(name, {}))
        for part in parts[1:]:
            part_facts = part.get(name, {})
            for key in list(facts):
                if key not in part_facts or part_facts[key] != facts[key]:
                    del facts[key]
        if facts:
            common[name] = facts
    return common


def declared_scale(
    scale: Scale, classes: Sequence[str], declaration: ScaleLike, against: str = "declaration"
) -> Scale:
    """The scale of predictions after a declaration; a different scale is refused."""
    declared = DeclaredScale(declaration)
    order = declared.classes or ()
    if declared.kind == "ordinal" and {*classes} == {*order} and tuple(classes) != order:
        raise InputError(
            f"the predictions have the classes {examples(classes, 20)}, in another order than the"
            f" scale: {examples(order, 20)}",
            "write the classes in the order of the scale: `edo predictions join FILE --out NEW"
            f" --scale '{declaration}'`",
            code="classes-differ",
        )
    target = declared.resolve(classes)
    may_be_declared = scale == NOMINAL and target.positions is not None
    if not may_be_declared:
        check_same_scale(scale, "predictions", target, against)
    return target


PAIRS = "pairs"
WITH_ANONYMOUS = "pairs+anonymous"
LEARN = ("items", PAIRS, WITH_ANONYMOUS)
"""What to learn from predictions for pairs of an item and an annotator.

``items``: the joint answer of the annotators of an item. ``pairs``: the answer of each annotator.
``pairs+anonymous``: the same, with the members' anonymous answers as further members.
"""


def view_pairs(predictions: Predictions, learn: str | None) -> Predictions:
    """The predictions to learn from; see `LEARN`.

    With ``items``, predictions for pairs become the mean answer per item, and predictions of items
    stay unchanged; with ``pairs``, the latter are refused. None leaves all unchanged.
    """
    if learn is None:
        return predictions
    if learn == "items":
        return predictions.panel_means()
    return predictions.pairs(anonymous=learn == WITH_ANONYMOUS)


def view_labels(annotations: Annotations, learn: str | None) -> Annotations:
    """The labels to learn from: those of pairs for ``pairs``, else those of items; see `LEARN`."""
    if learn in (PAIRS, WITH_ANONYMOUS):
        return annotations.pairs()
    return annotations


def _wrong_length(axis: str, given: int, shape: tuple[int, ...], needed: int) -> InputError:
    return InputError(
        f"there are {given} {axis} for predictions of shape {shape}, which need {needed}",
        "give one name per entry",
        code="lengths-differ",
    )


Layout: TypeAlias = Literal["NKC", "KNC", "NC", "NK", "KN"]
"""The axes of an array: items N, members K, classes C. Without K, there is one member; without C,
the numbers are probabilities of the second of two classes."""
_LAYOUTS: tuple[Layout, ...] = get_args(Layout)


def _matched_members(values: Any) -> tuple[Any, Rows | None, Sequence[str] | None]:
    """The values with members matched by item id, the rows of these ids, and the known classes.

    Values without ids are unchanged, and have neither rows nor classes.
    """
    if rows_of(values) is not None:
        return np.asarray(values), rows_of(values), classes_of(values)
    if not isinstance(values, Mapping | list | tuple):
        return values, None, None
    if isinstance(values, Mapping):
        members = {f"member {name}": member for name, member in values.items()}
    else:
        members = {f"member {number}": member for number, member in enumerate(values)}
    named_members = [member for member in members.values() if rows_of(member) is not None]
    if not named_members:
        return values, None, None
    matched: Any = [np.asarray(member) for member in match_rows(members)]
    classes = None
    # `match_rows` puts columns into the order of the last known classes.
    for member in named_members:
        classes = classes_of(member) or classes
    if isinstance(values, Mapping):
        matched = dict(zip(values, matched, strict=True))
    # `match_rows` puts rows into the order of the last array with ids.
    return matched, rows_of(named_members[-1]), classes


def _stacked(values: Any, layout: Layout | None) -> tuple[Array, Layout | None, dict[str, Strings]]:
    """One array, its layout if it is known, and the names along its axes in the values.

    A list of arrays has one array per member, [N, C], or [N] for two classes. The names in a single
    table are left out if its layout is unknown.
    """
    if layout is not None:
        one_of("layout", layout, _LAYOUTS)
    names: dict[str, Strings] = {}
    # A list may also be the nested list of a single array.
    is_list_of_arrays = (
        isinstance(values, list | tuple) and len(values) > 0 and hasattr(values[0], "shape")
    )
    if isinstance(values, Mapping):
        names["K"] = as_names(values)
        values = list(values.values())
    elif not is_list_of_arrays:
        if isinstance(values, pd.DataFrame) and layout in ("NC", "NK", "KN"):
            names = _named_axes(layout, values.axes)
        return _numbers(values), layout, names
    array = _stacked_members(values)
    if layout is None:
        layout = "KN"
        if array.ndim == 3:
            layout = "KNC"
    return array, layout, names | _common_axes(values)


def _stacked_members(members: Sequence[Any]) -> Array:
    """The arrays of all members as one array [K, N, C], or [K, N]."""
    parts = [_numbers(member) for member in members]
    shapes = sorted({part.shape for part in parts})
    if len(shapes) != 1 or len(shapes[0]) not in (1, 2):
        raise InputError(
            f"the arrays of the members have the shapes {', '.join(map(str, shapes)) or '(none)'}",
            "give one array [items, classes] per member, of the same items and classes",
            code="shapes-differ",
        )
    return np.stack(parts)


def _common_axes(members: Sequence[Any]) -> dict[str, Strings]:
    """The names of items and classes in tables of members; they must be the same in all tables."""
    frames = [member for member in members if isinstance(member, pd.DataFrame | pd.Series)]
    if not frames:
        return {}
    axes = frames[0].axes
    is_same = [all(map(pd.Index.equals, frame.axes, axes)) for frame in frames]
    if len(frames) < len(members) or not all(is_same):
        raise InputError(
            "the members are not all tables with the same index and columns",
            "bring them into one order, for example with frame.reindex(...)",
            code="items-differ",
        )
    return _named_axes("NC", axes)


def _named_axes(layout: str, axes: Sequence[pd.Index[Any]]) -> dict[str, Strings]:
    """The names along the axes of a table.

    The default index 0, 1, 2, … of a table is a position, not an item id.
    """
    return {
        axis: as_names(index)
        for axis, index in zip(layout, axes, strict=False)
        if not (axis == "N" and is_default_index(index))
    }


def _with_classes(
    array: Array, array_classes: Strings, classes: Strings, *, may_rename: bool
) -> Array:
    """The array [N, K, C] with its columns in the order of the classes.

    The columns of a table may be renamed, as in ``p_0`` to ``no``; those of an `ItemArray` are
    classes, so other names are refused.
    """
    if np.array_equal(array_classes, classes):
        return array
    if sorted(array_classes) == sorted(classes):
        column_by_class = {name: column for column, name in enumerate(array_classes)}
        return array[:, :, [column_by_class[name] for name in classes]]
    if may_rename:
        return array
    raise InputError(
        f"the array has the classes {examples(array_classes, 20)}, not {examples(classes, 20)}",
        "check the classes; to rename those of the array, give np.asarray of it",
        code="classes-differ",
    )


def _named_rows(
    count: int, items: Strings | None, annotators: Strings | None, array_rows: Rows | None
) -> Rows:
    """The rows with the names that are given, or with those of the array."""
    if array_rows is not None:
        if items is not None:
            check_same_ids(array_rows, items)
        if annotators is None:
            return array_rows
        _check_same_annotators(array_rows, annotators)
        items = array_rows.item_names
    if items is None and annotators is None:
        return Rows.numbered(count)
    if items is None:
        items = as_names(range(count))
    return Rows.from_names(items, annotators)


def _check_order(
    axis: Literal["items", "members"], value_names: Strings, given_names: Strings
) -> None:
    """Refuse the names in the values in another order, which would exchange the numbers."""
    if sorted(value_names) != sorted(given_names) or np.array_equal(value_names, given_names):
        return
    code = "items-differ"
    if axis == "members":
        code = "members-differ"
    raise InputError(
        f"the values have the {axis} {examples(value_names)}, in another order than the names that"
        f" are given: {examples(given_names)}",
        f"leave {axis} out, since the values name them",
        code=code,
    )


def _check_same_annotators(rows: Rows, annotators: Strings) -> None:
    """Refuse names of annotators for an array whose rows have other annotators."""
    if rows.annotator_names is None or np.array_equal(rows.annotator_names, annotators):
        return
    raise InputError(
        f"the array has the pairs {examples(rows.names)}, but annotators names"
        f" {examples(annotators)}",
        "leave annotators out; to rename them, give np.asarray of the array",
        code="items-differ",
    )


def _canonical(values: Array, layout: Layout) -> tuple[Array, bool]:
    """The array as [N, K, C], and whether its layout lacks an axis of classes.

    Without classes, the numbers x of the second class become (1 − x, x).
    """
    array = as_floats(values)
    if layout.startswith("K"):
        array = np.ascontiguousarray(array.swapaxes(0, 1))
    if layout == "NC":
        array = array[:, None, :]
    is_binary = "C" not in layout
    if is_binary:
        array = np.stack([1 - array, array], axis=2)
    return array, is_binary


def _from_logits(array: Array, is_binary: bool, members: Strings | None, scale: Scale) -> Array:
    """Probabilities from logits [N, K, C]; with ``is_binary``, from log-odds in the last column.

    A member with probabilities is refused, since the softmax would flatten them.
    """
    names = members
    if names is None:
        names = as_names(range(array.shape[1]))
    # A member all of whose rows are distributions.
    has_probabilities = scale.is_distribution(array).all(axis=0)
    if has_probabilities.any():
        raise InputError(
            f"the numbers of {examples(names[has_probabilities])} are probabilities, not logits",
            f"leave out {option('logits', True)}; mark the files that hold logits as FILE:logits",
            code="not-logits",
        )
    if is_binary:
        # Log-odds are the logit of the second class if that of the first is 0. The first column,
        # 1 − log-odds, means nothing.
        log_odds = array[..., 1]
        array = np.stack([np.zeros_like(log_odds), log_odds], axis=2)
    # An infinite logit becomes NaN, which `Predictions.checked` refuses.
    with np.errstate(invalid="ignore"):
        return scale.from_logits(array)


def as_floats(array: Array) -> Array:
    """Numbers of type float16 and float32 as float32, all others as float64."""
    if array.dtype.kind == "f" and array.dtype.itemsize <= 4:
        return array.astype(np.float32, copy=False)
    return array.astype(np.float64, copy=False)


def _numbers(values: Any) -> Array:
    """The values as an array of numbers; gaps become NaN, other values are refused."""
    hint = "give an array of probabilities, all rows of one length"
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O" and isinstance(values, pd.DataFrame | pd.Series):
            # pandas' own number types come as objects, with NA for gaps.
            array = values.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError, RuntimeError) as error:  # torch explains how to detach a tensor
        raise InputError(
            f"the predictions are not an array of numbers: {error}", hint, code="not-numbers"
        ) from error
    if array.dtype.kind not in "fiub":  # floats, signed and unsigned integers, booleans
        raise InputError(
            f"the predictions have the type {array.dtype}, not numbers", hint, code="not-numbers"
        )
    if isinstance(values, np.ma.MaskedArray):
        array = np.where(np.ma.getmaskarray(values), np.nan, array)
    return array


def _only_layout(array: Array, sizes: Mapping[str, int], *, any_numbers: bool) -> Layout:
    """The only layout that matches the shape, the known sizes of axes and, in doubt, the numbers.

    With ``any_numbers``, the numbers of an item need not be a distribution over classes.
    """
    candidates = [layout for layout in _LAYOUTS if _fits(array.shape, layout, sizes)]
    if len(candidates) > 1 and not any_numbers and not NOMINAL.is_distribution(array).all():
        candidates = [layout for layout in candidates if "C" not in layout]
    if len(candidates) == 1:
        return candidates[0]
    reason = "have no clear layout"
    if candidates:
        reason += f": {', '.join(candidates)} fit them"
    raise InputError(
        f"predictions of shape {array.shape}{_known_sizes(sizes)} {reason}",
        f"name the axes, as in {option('layout', 'NKC')}, or give names of"
        f" {option('items')}, {option('members')} and {option('classes')} from which they follow",
        code="ambiguous-layout",
    )


def _fits(shape: tuple[int, ...], layout: Layout, sizes: Mapping[str, int]) -> bool:
    """Whether an array of this shape may have this layout, with these known sizes of axes."""
    if len(shape) != len(layout):
        return False
    # A layout without K has one member, and one without C has two classes.
    axis_sizes = {"K": 1, "C": 2, **dict(zip(layout, shape, strict=True))}
    return all(axis_sizes[axis] == size for axis, size in sizes.items())


def _known_sizes(sizes: Mapping[str, int]) -> str:
    """The known sizes of axes in a message, as in `` with N=3, K=2``; empty without any."""
    axes = [f"{axis}={sizes[axis]}" for axis in "NKC" if axis in sizes]
    if not axes:
        return ""
    return f" with {', '.join(axes)}"


def _check_layout(shape: tuple[int, ...], layout: Layout, sizes: Mapping[str, int]) -> None:
    """Refuse a layout that the shape or the known sizes of axes do not fit."""
    if not _fits(shape, layout, sizes):
        raise InputError(
            f"predictions of shape {shape} do not fit the layout {layout}{_known_sizes(sizes)}",
            "check the layout and the names",
            code="wrong-shape",
        )
    if 0 in shape:
        raise InputError(
            f"predictions of shape {shape} lack items, members or classes",
            "check that the arrays were filled",
            code="wrong-shape",
        )
