"""Predictions of members [N, K, C] with the names of items, members and classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, examples
from edokit._names import as_names, check_positions, check_unique, match
from edokit._types import Floats, Strings
from edokit.predictions.arrays import Array, Invalid, Layout, canonical, checked, names_of_frames


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """Probabilities of K members for N items in C classes.

    Use `from_arrays` to build one: it brings any common layout into this form and checks it.
    Predictions and annotations are matched by item id, never by position.

    Parameters
    ----------
    probabilities : ndarray of shape (N, K, C)
        Each row over the classes is a distribution; float32 or float64.
    items : ndarray of str of shape (N,)
        Item ids.
    members : tuple of str of length K
        Names of the members.
    classes : tuple of str of length C
        Names of the classes, in class order.
    groups : tuple of str of length K, default=None
        The group (recipe) of each member.

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
    items: Strings
    members: tuple[str, ...]
    classes: tuple[str, ...]
    groups: tuple[str, ...] | None = None

    @classmethod
    def from_arrays(
        cls,
        values: Any,
        *,
        items: Iterable[object] | None = None,
        members: Iterable[object] | None = None,
        classes: Iterable[object] | None = None,
        groups: Iterable[object] | None = None,
        layout: Layout | None = None,
        logits: bool = False,
        invalid: Invalid = "error",
    ) -> Predictions:
        """Build predictions from an array, or from one array per member.

        Parameters
        ----------
        values : array-like, DataFrame, list or mapping of either
            The numbers. A list or mapping holds one array [N, C] (or [N] for two classes) per
            member; a mapping names its members, a DataFrame its index and columns.
        items, members, classes : iterable, default=None
            Names along each axis; 0, 1, 2, … if None.
        groups : iterable, default=None
            The group (recipe) of each member.
        layout : {"NKC", "KNC", "NC", "NK", "KN"}, default=None
            What the axes are: items N, members K, classes C. Without C the numbers are
            probabilities of the second of two classes. May be left out if the names given leave
            one possibility.
        logits : bool, default=False
            Whether the numbers are logits.
        invalid : {"error", "normalize"}, default="error"
            What to do with probabilities that do not sum to 1: refuse them, or divide by their
            sum.

        Returns
        -------
        Predictions

        Raises
        ------
        InputError
            If the layout is unclear, the numbers are no probabilities, or names repeat or do not
            fit.

        Examples
        --------
        >>> from edokit import Predictions
        >>> Predictions.from_arrays([[0.1, 0.6], [0.8, 0.7]], layout="NK").shape
        (2, 2, 2)
        """
        if members is None and isinstance(values, Mapping):
            members = list(values)
        known: dict[str, Any] = names_of_frames(values, layout)
        known |= {
            axis: given
            for axis, given in (("N", items), ("K", members), ("C", classes))
            if given is not None
        }
        names = {axis: as_names(given) for axis, given in known.items()}
        grouped = None if groups is None else tuple(as_names(groups))
        sizes = {axis: len(listed) for axis, listed in names.items()}
        if grouped is not None:
            sizes.setdefault("K", len(grouped))
        array = canonical(values, layout, sizes, logits=logits)
        item_names, member_names, class_names = (
            names[axis] if axis in names else as_names(range(length))
            for axis, length in zip("NKC", array.shape, strict=True)
        )
        array = checked(array, item_names, list(member_names), invalid)
        return cls(array, item_names, tuple(member_names), tuple(class_names), grouped).named()

    def named(self) -> Predictions:
        """Itself, if the names are unique and fit the shape."""
        n, k, c = self.probabilities.shape
        for what, names, length in (
            ("items", self.items, n),
            ("members", self.members, k),
            ("classes", self.classes, c),
            ("groups", self.groups, k),
        ):
            if names is None:
                continue
            if len(names) != length:
                raise InputError(
                    f"there are {len(names)} {what} for predictions of shape"
                    f" {self.probabilities.shape}, which need {length}",
                    "give one name per entry",
                )
            if what != "groups":
                check_unique(as_names(names), f"names of {what}", f"rename or drop the {what}")
                if "" in names:
                    raise InputError(f"one of the {what} has an empty name", "name every entry")
        return self

    @property
    def shape(self) -> tuple[int, int, int]:
        """(N, K, C)."""
        n, k, c = self.probabilities.shape
        return n, k, c

    def __repr__(self) -> str:
        n, k, _ = self.shape
        return f"Predictions({n} items, {k} members, classes {', '.join(self.classes)})"

    def __len__(self) -> int:
        return len(self.items)

    def take(self, positions: npt.ArrayLike) -> Predictions:
        """The items at these positions (or where a mask is true), in this order."""
        chosen = check_positions(positions, len(self.items))
        return replace(self, probabilities=self.probabilities[chosen], items=self.items[chosen])

    def align(self, items: Iterable[object], against: str = "annotations") -> Predictions:
        """The same predictions with items in the given order; both must hold the same ids."""
        wanted = as_names(items)
        if len(wanted) == len(self.items) and bool((wanted == self.items).all()):
            return self
        return self.take(match(wanted, self.items, "predictions", against))

    def order_classes(self, classes: Iterable[object]) -> Predictions:
        """The same predictions with classes in the given order; both must hold the same names."""
        names = tuple(as_names(classes))
        if names == self.classes:
            return self
        if sorted(names) != sorted(self.classes):
            raise InputError(
                f"the predictions are about the classes {examples(self.classes, 20)}, not about"
                f" {examples(names, 20)}",
                "rename the classes, or declare all of them as classes",
                parameters=("classes",),
            )
        order = [self.classes.index(name) for name in names]
        return replace(self, probabilities=self.probabilities[:, :, order], classes=names)

    def select(self, members: Iterable[object]) -> Predictions:
        """The named members, in this order."""
        names = as_names(members)
        check_unique(names, "selected members", "name each member once")
        unknown = [name for name in names if name not in self.members]
        if unknown:
            raise InputError(
                f"{examples(unknown)} {'is' if len(unknown) == 1 else 'are'} not among the members"
                f" {examples(self.members, 10)}",
                "check the spelling",
            )
        chosen = [self.members.index(name) for name in names]
        return replace(
            self,
            probabilities=self.probabilities[:, chosen],
            members=tuple(names),
            groups=None if self.groups is None else tuple(self.groups[k] for k in chosen),
        )

    def grouped(self, groups: Mapping[str, str]) -> Predictions:
        """The same predictions with these members in these groups; others keep theirs."""
        self.select(groups)  # refuses unknown members
        old = self.groups or ("",) * len(self.members)
        new = (groups.get(name, group) for name, group in zip(self.members, old, strict=True))
        return replace(self, groups=tuple(new))

    @cached_property
    def uniform(self) -> Floats:
        """The uniform mean of the members [N, C]."""
        mean: Floats = self.probabilities.mean(axis=1, dtype=np.float64)
        return mean
