"""The canonical table of predictions [N, K, C] with its names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, examples, one_of
from edokit._names import as_names, check_positions, check_unique, match
from edokit._types import Strings
from edokit.predictions.arrays import (
    Array,
    Layout,
    canonical,
    checked,
    names_of_frames,
    policy_for,
)


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """Probabilities of K members for N items in C classes."""

    probabilities: Array
    """[N, K, C], each row over C a distribution; float32 or float64."""
    items: Strings
    """Item ids [N]."""
    members: tuple[str, ...]
    """Member names [K]."""
    classes: tuple[str, ...]
    """Class names [C], in class order."""
    groups: tuple[str, ...] | None = None
    """The recipe each member comes from [K]."""

    @classmethod
    def from_arrays(
        cls,
        values: Any,
        *,
        items: Iterable[object] | None = None,
        members: Iterable[object] | None = None,
        classes: Iterable[object] | None = None,
        groups: Iterable[object] | None = None,
        layout: str | None = None,
        logits: bool = False,
        invalid: str = "error",
    ) -> Predictions:
        """From an array or a list of arrays; names that are not given are 0, 1, 2, ….

        ``layout`` says what the axes are ("NKC", "KNC", "NC", "NK", "KN"); it may be left out
        where the names given leave one possibility. A mapping names its members, a DataFrame what
        its index and columns are. ``invalid="normalize"`` divides probabilities by their sum,
        ``logits=True`` turns logits into probabilities.
        """
        policy = policy_for(invalid)
        if layout is not None:
            one_of("layout", layout, [choice.value for choice in Layout])
        if members is None and isinstance(values, Mapping):
            members = list(values)
        known = names_of_frames(values, layout)
        names = {
            axis: as_names(given) if given is not None else _known_names(known.get(axis))
            for axis, given in (("N", items), ("K", members), ("C", classes))
        }
        grouped = None if groups is None else tuple(as_names(groups))
        members_known = names["K"] if names["K"] is not None else grouped
        array = canonical(
            values,
            layout,
            n_items=_length(names["N"]),
            n_members=_length(members_known),
            n_classes=_length(names["C"]),
            logits=logits,
        )
        n, k, c = array.shape
        item_names = as_names(range(n)) if names["N"] is None else names["N"]
        member_names = tuple(as_names(range(k)) if names["K"] is None else names["K"])
        array = checked(array, item_names, member_names, policy)
        return cls(
            array,
            item_names,
            member_names,
            tuple(as_names(range(c)) if names["C"] is None else names["C"]),
            grouped,
        ).named()

    def named(self) -> Predictions:
        """Itself, if names are unique and as many as the axes are long."""
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
                    f"predictions of shape {self.probabilities.shape} need {length} {what},"
                    f" but got {len(names)}",
                    "give one name per entry",
                )
            if what != "groups":
                check_unique(as_names(names), f"names of {what}", f"rename or drop the {what}")
                if "" in names:
                    raise InputError(
                        f"names of {what} must not be empty text, but one is", "name every entry"
                    )
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
                f"predictions must be about the classes {examples(names, 20)}, but are about"
                f" {examples(self.classes, 20)}",
                "rename the classes, or declare them with --classes",
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
                f"members must be among {examples(self.members, 10)}, but {examples(unknown)}"
                f" {'is' if len(unknown) == 1 else 'are'} not",
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
        self.select(groups)
        old = self.groups or ("",) * len(self.members)
        new = (groups.get(name, group) for name, group in zip(self.members, old, strict=True))
        return replace(self, groups=tuple(new))

    @cached_property
    def uniform(self) -> npt.NDArray[np.float64]:
        """The plain mean of the members [N, C]."""
        mean: npt.NDArray[np.float64] = self.probabilities.mean(axis=1, dtype=np.float64)
        return mean


def _known_names(names: Iterable[object] | None) -> Strings | None:
    return None if names is None else as_names(names)


def _length(names: Sequence[str] | Strings | None) -> int | None:
    return None if names is None else len(names)
