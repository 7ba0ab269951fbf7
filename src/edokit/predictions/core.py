"""The canonical table of predictions [N, K, C] with its names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, examples, one_of
from edokit._names import as_names, check_positions, check_unique, match
from edokit._types import Strings
from edokit.predictions.layout import Array, Layout, canonical, names_of_frames


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


TOLERANCE = 1e-3
"""How far probabilities may be from summing to one and still count as rounded."""
EXACT = 1e-6
"""How far they may be and stay as they are."""
LOGITS_HINT = ", or say that they are logits with logits=True (--logits)"
# Numbers that are looked at together while they stay in the cache.
_BLOCK = 2**18
# Up to so many classes numpy adds up one after the other, and slowly along so short an axis.
_FEW_CLASSES = 7


class Invalid(str, Enum):
    """What happens to probabilities that do not sum to one."""

    ERROR = "error"
    NORMALIZE = "normalize"


def policy_for(invalid: str) -> Invalid:
    """The policy of that name."""
    one_of("invalid", invalid, [policy.value for policy in Invalid])
    return Invalid(invalid)


def checked(
    array: Array,
    items: Strings,
    members: Sequence[str],
    policy: Invalid,
    where: str = "",
    logits_hint: str = LOGITS_HINT,
) -> Array:
    """[N, K, C] with rows that sum to one; anything that is no probability is refused.

    Each row is judged and divided by its sum on its own, so that shards give the same numbers as
    the whole.
    """
    result = array
    step = max(1, _BLOCK // max(1, array.shape[1] * array.shape[2]))
    for start in range(0, len(array), step):
        block = array[start : start + step]
        with np.errstate(invalid="ignore", over="ignore"):
            total = _totals(block)
        rule, bad = _fault(block, total, policy)
        if rule:
            n, k = (int(axis[0]) for axis in np.nonzero(bad))
            shown = examples((f"{value:g}" for value in block[n, k]), 10).replace("'", "")
            hint = "correct the predictions"
            if rule.startswith("sum"):
                hint += (
                    f", or divide by the sum with invalid='normalize' (--normalize){logits_hint}"
                )
            raise InputError(
                f"probabilities must be {rule}, but item {items[start + n]!r} of member"
                f" {members[k]!r}{where} has ({shown})",
                hint,
            )
        rounded = np.abs(total - 1) > EXACT
        if rounded.any():
            if result is array:
                result = array.copy()
            result[start : start + step][rounded] = block[rounded] / total[rounded][:, None]
    return result


def _totals(block: Array) -> npt.NDArray[np.float64]:
    """[n, K] what the classes sum to, in float64: many rounded numbers of float32 do not add up."""
    classes = block.shape[2]
    if classes == 0 or classes > _FEW_CLASSES:
        return np.asarray(block.sum(axis=2, dtype=np.float64))
    total = block[:, :, 0].astype(np.float64)
    for c in range(1, classes):
        total += block[:, :, c]
    return total


def _fault(
    block: Array, total: npt.NDArray[np.float64], policy: Invalid
) -> tuple[str, npt.NDArray[np.bool_]]:
    """The first rule that some rows [n, K] break, and which rows; no rule if all are well."""
    finite = np.isfinite(total)
    if not finite.all():
        return "finite", ~finite
    if block.min() < 0:
        return "not negative", np.asarray((block < 0).any(axis=2))
    if (total == 0).any():
        return "not all zero", total == 0
    off = np.abs(total - 1) > TOLERANCE
    if policy is Invalid.ERROR and off.any():
        return f"summing to 1 (within {TOLERANCE:g})", off
    return "", off
