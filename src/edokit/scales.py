"""Answer scales (nominal, ordinal, multi-label), and their rows of distributions."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, examples, one_of, option, word
from edokit._types import (
    Bools,
    ClassValues,
    Codes,
    Floats,
    HardLabels,
    Ints,
    Reals,
    Strings,
)

# Unordered classes, ordered points, or labels of which any number may be chosen.
ScaleKind = Literal["nominal", "ordinal", "multi-label"]
Number = TypeVar("Number", bound=np.number)
Real = TypeVar("Real", bound=np.floating)
TOLERANCE = 1e-3
"""Largest deviation of the sum of probabilities from 1 that counts as rounding."""
_BLOCK = 2**16
"""Numbers that are checked at a time, so that they stay in the processor's cache."""
# Largest relative difference from the first step that counts as even.
_EVEN = 1e-9
_MISTAKES = 0.1
"""Largest share of annotations whose labels outside a scale may be taken for mistakes."""


@dataclass(frozen=True)
class Scale:
    """The answer scale of a question.

    An answer is one of the classes (``nominal``), a point of a scale (``ordinal``) or any subset
    of the labels (``multi-label``). Data of every scale are converted to rows of distributions
    (`rows`), so that learning weights and computing metrics is the same for all scales.

    Parameters
    ----------
    kind : {"nominal", "ordinal", "multi-label"}, default="nominal"
        What an answer is.
    positions : tuple of float, default=None
        For an ordinal scale, the positions of the classes in ascending order; steps may be uneven.

    Examples
    --------
    >>> Scale("ordinal", (1, 2, 4)).steps
    array([1., 2.])
    >>> Scale("multi-label").rows([[0.25, 1.0]])
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """

    kind: ScaleKind = "nominal"
    positions: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        one_of("scale", self.kind, get_args(ScaleKind))
        if self.kind != "ordinal" and self.positions is None:
            return
        places = tuple(float(place) for place in self.positions or ())
        is_ascending = all(low < high for low, high in pairwise(places))
        if self.kind != "ordinal":
            raise InputError(
                f"a {self.kind} scale is declared with the positions {_listed(places) or 'none'},"
                " but only an ordinal scale has positions",
                f"leave them out, or declare {option('scale', 'ordinal:1,2,3,4,5')}",
                code="invalid-scale",
            )
        if len(places) < 2 or not is_ascending or not np.isfinite(places).all():
            raise InputError(
                "an ordinal scale has at least two ascending positions, but this one has"
                f" {_listed(places) or 'none'}",
                "give one number per class of an ordinal scale, in the order of the classes,"
                f" including unused ones: {option('scale', 'ordinal:1,2,3,4,5')}",
                code="invalid-scale",
            )
        object.__setattr__(self, "positions", places)

    def __str__(self) -> str:
        if self.positions:
            return f"{self.kind} ({_listed(self.positions)})"
        return self.kind

    @property
    def steps(self) -> Floats | None:
        """Distances [C − 1] between neighbouring classes of an ordinal scale, else None."""
        if self.positions is None:
            return None
        return np.diff(np.array(self.positions))

    @property
    def span(self) -> float | None:
        """Distance between the ends of an ordinal scale, else None."""
        if self.positions is None:
            return None
        return self.positions[-1] - self.positions[0]

    @property
    def is_multi_label(self) -> bool:
        """Whether an answer may have several labels, so that probabilities need not sum to 1."""
        return self.kind == "multi-label"

    def is_binary(self, classes: int) -> bool:
        """Whether there are two mutually exclusive classes."""
        return classes == 2 and not self.is_multi_label

    def rows(self, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return rows of distributions: one row per item, or per item and label.

        Parameters
        ----------
        values : ndarray of shape [N, C] or [N, K, C]
            Probabilities, or shares of annotators.

        Returns
        -------
        numpy.ndarray
            The values; for multi-label data [N · L, 2] or [N · L, K, 2], item by item, with "not
            chosen" and "chosen" as the two classes.
        """
        if not self.is_multi_label:
            return values
        shares = np.moveaxis(np.asarray(values), -1, 1)
        shares = shares.reshape(-1, *shares.shape[2:])
        return np.stack([1 - shares, shares], axis=-1)

    def from_rows(self, rows: npt.NDArray[Number], labels: int) -> npt.NDArray[Number]:
        """Return the inverse of `rows`: probabilities [N, L] of rows [N · L, 2]."""
        if self.is_multi_label:
            return rows[..., 1].reshape(-1, labels)
        return rows

    def tables(
        self, values: npt.NDArray[Number], total: int | Ints = 1
    ) -> list[npt.NDArray[Number]]:
        """Return values [N, C] as one table; for multi-label data, one table per label [N, 2].

        ``total`` is the sum of "not chosen" and "chosen": 1 for shares, and the number of labels
        [N] for counts.
        """
        if not self.is_multi_label:
            return [values]
        return [
            np.stack([total - label_values, label_values], axis=-1) for label_values in values.T
        ]

    def from_tables(self, tables: Sequence[npt.NDArray[Number]]) -> npt.NDArray[Number]:
        """Return the inverse of `tables`: values [N, C]."""
        if self.is_multi_label:
            return np.stack([table[:, 1] for table in tables], axis=1)
        return tables[0]

    def totals(self, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return the sum over items [C]; for multi-label data [L, 2]: not chosen and chosen."""
        sums = [table.sum(axis=0) for table in self.tables(values)]
        if self.is_multi_label:
            return np.stack(sums)
        return np.asarray(sums[0])

    def row_codes(self, hard_labels: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return the hard label of each row, from one per item [N] or one per label [N, L]."""
        return hard_labels.reshape(-1)

    def from_row_codes(
        self, codes: npt.NDArray[Number], classes: Sequence[str]
    ) -> npt.NDArray[Number]:
        """Return the inverse of `row_codes`: hard labels [N] or [N, L]."""
        if self.is_multi_label:
            return codes.reshape(-1, len(classes))
        return codes

    def rows_per_item(self, classes: Sequence[str]) -> int:
        """Return the number of rows of an item: one, or one per label."""
        if self.is_multi_label:
            return len(classes)
        return 1

    def row_labels(self, classes: Sequence[str]) -> tuple[str, ...]:
        """Return the label of each row of an item; empty for scales other than multi-label."""
        if self.is_multi_label:
            return tuple(classes)
        return ()

    def per_item(self, values: Floats | Bools, items: int) -> Floats:
        """Return one value per item: the mean over its rows (one, or one per label)."""
        if self.is_multi_label:
            values = values.reshape(items, -1).mean(axis=1)
        return np.asarray(values, dtype=np.float64)

    def faults(self, values: Reals, *, normalize: bool = False) -> dict[str, Bools]:
        """Return, for each kind of fault, which of the distributions [..., C] have it [...].

        With ``normalize``, they may have any sum above 0. For multi-label data, each number is a
        separate probability.
        """
        total = _totals(values)
        faults: dict[str, Bools] = {
            "are not finite": np.asarray(~np.isfinite(total)),
            "are negative": np.asarray((values < 0).any(axis=-1)),
        }
        if self.is_multi_label:
            faults["are above 1"] = np.asarray((values > 1).any(axis=-1))
        else:
            faults["are all zero"] = np.asarray(total == 0)
            if not normalize:
                is_off = np.abs(total - 1) > TOLERANCE
                faults[f"do not sum to 1 (within {TOLERANCE:g})"] = np.asarray(is_off)
        return faults

    def are_all_distributions(self, values: Reals) -> bool:
        """Return whether all rows over classes [..., C] are distributions."""
        if self._passes_fast_check(values, TOLERANCE / 2):
            return True
        return bool(self.is_distribution(values).all())

    def _passes_fast_check(self, values: Reals, tolerance: float) -> bool:
        """Whether a fast check shows that all are distributions; False if it can't tell."""
        if not values.size:
            return False
        items_per_block = max(1, _BLOCK * len(values) // values.size)
        for start in range(0, len(values), items_per_block):
            block = values[start : start + items_per_block]
            # The minimum and the maximum are NaN if any number is.
            if not (block.min() >= 0 and block.max() <= 1):
                return False
            if self.is_multi_label:
                continue
            if values.shape[-1] == 2:  # adding two columns takes a third of the time of a sum
                sums = block[..., 0] + block[..., 1]
            else:
                sums = np.einsum("...c->...", block)  # fast, since it keeps the values' type
            if not np.abs(sums - 1).max() <= tolerance:
                return False
        return True

    def normalized(self, values: npt.NDArray[Real]) -> npt.NDArray[Real]:
        """Return values [..., C] that sum to 1; for multi-label data, the values as given."""
        if self.is_multi_label:
            return values
        return np.asarray(values / values.sum(axis=-1, keepdims=True))

    def is_distribution(self, values: Reals) -> Bools:
        """Return which of the rows over classes [..., C] are distributions."""
        return np.asarray(~np.logical_or.reduce(list(self.faults(values).values())))

    def checked_distributions(
        self,
        values: npt.NDArray[Real],
        exact: float,
        refuse: Callable[[str, tuple[int, ...]], InputError],
        *,
        normalize: bool = False,
    ) -> npt.NDArray[Real]:
        """Return distributions [..., C], divided by their sum where rounding made it differ from 1.

        A row whose sum is within ``exact`` of 1 is left unchanged, so that writing and reading
        changes nothing. Invalid rows raise ``refuse(fault, position)``. Rows are treated
        independently, so that shards give the same numbers as one table.
        """
        if self._passes_fast_check(values, exact / 2):
            return values
        for fault, rows in self.faults(values, normalize=normalize).items():
            if rows.any():
                raise refuse(fault, tuple(int(axis[0]) for axis in np.nonzero(rows)))
        if self.is_multi_label:
            return values
        total = _totals(values)
        normalized = values.copy()
        is_off = np.abs(total - 1) > exact
        normalized[is_off] = values[is_off] / total[is_off][:, None]
        return normalized

    def hard(self, p: Floats) -> Codes:
        """Return hard labels: the likeliest class [N], or whether each label is chosen [N, L]."""
        if self.is_multi_label:
            return np.asarray(p > 0.5, dtype=np.int32)
        return np.asarray(likeliest_classes(p), dtype=np.int32)

    def hard_label_shape(self, classes: int) -> tuple[int, ...]:
        """Return the shape of the hard label of an item: a code, or a code per label [L]."""
        if self.is_multi_label:
            return (classes,)
        return ()

    def n_codes(self, classes: int) -> int:
        """Return how many codes a hard label may have: one per class; for multi-label data, two."""
        if self.is_multi_label:
            return len(ROW_CLASSES)
        return classes

    @property
    def fewest_columns(self) -> int:
        """The fewest columns of a table of probabilities: two classes, or one label."""
        if self.is_multi_label:
            return 1
        return 2

    def smoothed(
        self, counts: Floats | Ints, total: float | Floats | Ints, smoothing: float
    ) -> Floats:
        """Return probabilities [..., C] with additive smoothing, from counts of answers by class.

        ``total`` is the number of answers. For multi-label data, each label is smoothed
        separately.
        """
        n_codes = self.n_codes(counts.shape[-1])
        return np.asarray((counts + smoothing) / (total + smoothing * n_codes))

    def labels(self, hard_labels: HardLabels, classes: ClassValues) -> ClassValues:
        """Return labels in scikit-learn's form: a class per item [N], or indicators [N, L]."""
        if self.is_multi_label:
            return hard_labels
        return np.asarray(classes[hard_labels])

    def codes(self, labels: ClassValues, classes: Sequence[str]) -> Ints:
        """Return the inverse of `labels`: hard labels, by these class names."""
        if self.is_multi_label:
            return np.asarray(labels, dtype=np.int64)
        code_by_name = {name: code for code, name in enumerate(classes)}
        return np.array([code_by_name[str(label)] for label in labels])

    def logits(self, p: Floats) -> Floats:
        """Return logits [N, C] of probabilities.

        Those of exclusive classes are centred, which does not change their softmax.
        """
        z: Floats = np.log(p)
        if self.is_multi_label:
            return np.asarray(z - np.log1p(-p))
        return np.asarray(z - z.mean(axis=1, keepdims=True))

    def from_logits(self, z: npt.NDArray[Real]) -> npt.NDArray[Real]:
        """Return probabilities [..., C]: the softmax; for multi-label data, the sigmoid."""
        from scipy.special import expit, softmax  # slow to import

        if self.is_multi_label:
            return np.asarray(expit(z))
        return np.asarray(softmax(z, axis=-1))

    def curvature(self, p: Floats) -> Floats:
        """Return the derivative of probabilities [N, C] with respect to their logits [N, C, C]."""
        diagonal = p[:, :, None] * np.eye(p.shape[1])
        if self.is_multi_label:
            return np.asarray(diagonal * (1 - p[:, :, None]))
        return np.asarray(diagonal - p[:, :, None] * p[:, None, :])

    def curvature_product(self, p: Floats, design: Floats) -> Floats:
        """Return the products [N, C, E] of the curvatures of p [N, C] with matrices [N, C, E]."""
        weighted = p[:, :, None] * design
        if self.is_multi_label:
            return np.asarray((1.0 - p[:, :, None]) * weighted)
        return np.asarray(weighted - p[:, :, None] * weighted.sum(axis=1, keepdims=True))

    def indicators(self, hard_labels: HardLabels | Bools, classes: int) -> Bools:
        """Return whether each class is the hard label, or each label is chosen [N, C]."""
        if self.is_multi_label:
            return hard_labels.astype(bool)
        matches: Bools = hard_labels[:, None] == np.arange(classes)
        return matches

    def vectors(self, classes: int, *, absolute: bool = False) -> Floats:
        """Return a vector per class [C, D]; the vector of an answer is the sum over its classes.

        The squared distance between the vectors of two answers, from 0 to 1, measures their
        disagreement: whether the classes differ, the share of labels in which two label sets
        differ, or the squared difference of two positions relative to the range (with
        ``absolute``, the difference itself).
        """
        if self.positions is not None:
            place = np.array(self.positions) - self.positions[0]
            if not absolute:
                return np.asarray(place / place[-1])[:, None]
            steps = np.sqrt(np.diff(place) / place[-1])
            return np.asarray(np.tri(classes, classes - 1, -1) * steps)
        if self.is_multi_label:
            return np.asarray(np.eye(classes) / np.sqrt(classes))
        if classes == 2:
            return np.eye(2)[:, 1:]
        # Two different classes differ in two columns, and each counts half.
        return np.asarray(np.eye(classes) * np.sqrt(0.5))

    def offset_basis(self, classes: int) -> Floats:
        """Return M [classes, n_offsets], which turns offsets into shifts of the classes' log-odds.

        On an ordinal scale there is an offset for each threshold between neighbouring points, for
        multi-label data one for each label, and otherwise one for each of C − 1 orthonormal
        contrasts between classes.
        """
        if self.is_multi_label:
            return np.eye(classes)
        if self.positions is not None:
            above_threshold = np.tril(np.ones((classes, classes)), -1)[:, : classes - 1]
            return np.asarray(above_threshold - above_threshold.mean(axis=0))
        contrasts = np.zeros((classes, classes - 1))
        for j in range(1, classes):
            contrasts[:j, j - 1] = 1.0
            contrasts[j, j - 1] = -j
        return np.asarray(contrasts / np.linalg.norm(contrasts, axis=0))

    def opposed_shares(self, hard_labels: HardLabels, shares: Floats) -> Floats:
        """Return the largest share of annotators who would change the label in the same way [N].

        ``shares`` [N, C] are those of the annotators' labels. On an ordinal scale the ways are up
        and down; for multi-label data, to change one of the labels; on a nominal scale any other
        class counts.
        """
        if self.is_multi_label:
            return np.asarray(np.abs(shares - hard_labels).max(axis=1))
        rows = np.arange(len(hard_labels))
        if self.positions is None:
            return np.asarray(1.0 - shares[rows, hard_labels])
        up_to = np.cumsum(shares, axis=1)[rows, hard_labels]
        lower = up_to - shares[rows, hard_labels]
        return np.asarray(np.maximum(lower, 1.0 - up_to))

    def different_label(self, hard_label: Ints, classes: int) -> Ints:
        """Return a hard label that differs: the next class, or the set without or with a label."""
        if self.is_multi_label:
            changed = hard_label.copy()
            changed[0] = 1 - changed[0]
            return changed
        return np.asarray((hard_label + 1) % classes)

    def merged_columns(self, p: Floats, codes: Sequence[int], classes: int) -> Floats:
        """Return probabilities [N, classes] of columns [N, M], whose classes are ``codes`` [M].

        Probabilities of the same class are added up. For multi-label data several columns may be
        chosen at once, and the highest probability counts.
        """
        merged = np.zeros((len(p), classes))
        for column, code in enumerate(codes):
            if self.is_multi_label:
                merged[:, code] = np.maximum(merged[:, code], p[:, column])
            else:
                merged[:, code] += p[:, column]
        return merged

    def unknown_labels(self, labels: ClassValues, classes: Sequence[str]) -> list[str]:
        """Return the labels, in the form of `labels`, that are not names of classes.

        Indicators of multi-label data have no names.
        """
        if self.is_multi_label:
            return []
        return sorted({str(label) for label in labels} - set(classes))

    def names(self, hard_labels: HardLabels, classes: Sequence[str]) -> Strings:
        """Return hard labels by name [N]; for multi-label data, JSON lists of labels."""
        names = self.chosen(hard_labels, classes)
        if self.is_multi_label:
            names = [json.dumps(labels) for labels in names]
        return np.array(names, dtype=object)

    def chosen(self, hard_labels: HardLabels, classes: Sequence[str]) -> list[str | list[str]]:
        """Return each hard label in its JSON form: a class name, or the list of chosen labels."""
        listed = np.array(tuple(classes), dtype=object)
        if self.is_multi_label:
            return [listed[row > 0].tolist() for row in hard_labels]
        return list(listed[hard_labels])

    def coordinates(self, values: npt.ArrayLike) -> Floats:
        """Return vectors [..., D] of distributions [..., C]; their L1 distance is the scale's.

        It is ‖p − p′‖₁; for multi-label data, its mean over labels; for an ordinal scale, the
        Wasserstein-1 distance in units of the scale.
        """
        array = np.asarray(values, dtype=np.float64)
        if self.steps is not None:
            return np.asarray(np.cumsum(array, axis=-1)[..., :-1] * self.steps)
        if self.is_multi_label:
            # Each label counts twice: as chosen and as not chosen.
            return np.asarray(array * (2 / array.shape[-1]))
        return array

    def expected(self, p: Floats) -> Floats:
        """Return the expected point of each distribution [..., C] on an ordinal scale [...]."""
        return np.asarray(p @ np.array(self.positions))

    def at_least(self, p: Floats) -> Floats:
        """Return the probability of each point or a higher one [..., C] on an ordinal scale.

        The probability of the lowest point is 1.

        Examples
        --------
        >>> Scale("ordinal", (1, 2, 3)).at_least(np.array([0.5, 0.25, 0.25]))
        array([1.  , 0.5 , 0.25])
        """
        above = np.cumsum(p[..., :0:-1], axis=-1)[..., ::-1]
        highest = np.ones((*p.shape[:-1], 1))
        shares = np.concatenate([highest, above], axis=-1)
        return np.asarray(np.clip(shares, 0.0, 1.0))

    def deviations(self, p: Floats) -> Floats:
        """Return the standard deviation of each distribution on an ordinal scale [N]."""
        place = np.array(self.positions)
        variance = p @ place**2 - (p @ place) ** 2
        # Rounding errors leave tiny variances in place of 0.
        return np.sqrt(np.where(variance > 1e-12, variance, 0.0))

    def row_classes(self, classes: Sequence[str]) -> tuple[str, ...]:
        """Return the classes of the rows."""
        if self.is_multi_label:
            return ROW_CLASSES
        return tuple(classes)

    def answer_in_words(self, names: Sequence[str]) -> str | None:
        """Return the answer with these classes or labels in words, for messages.

        None if there is no such answer, such as one with two exclusive classes.
        """
        if self.is_multi_label:
            if not names:
                return "the empty set"
            return f"the set {{{', '.join(map(repr, names))}}}"
        if len(names) != 1:
            return None
        return repr(names[0])

    @property
    def majority_noun(self) -> str:
        """What a constant answer gives as the hard label of its annotators, for messages."""
        if self.is_multi_label:
            return "the labels that most of them have"
        return "their majority class"

    @property
    def tie_rule(self) -> str:
        """The effect of ``ties="first"`` on tied items, for messages."""
        rule = "each takes the first of its tied classes"
        if self.is_multi_label:
            rule = "a label that half of them chose is left out"
        return f"{rule} ({option('ties', 'first')})"

    def to_text(self, classes: Sequence[str]) -> str:
        """Return the scale with its classes as one line, which `DeclaredScale` reads."""
        if self.kind == "nominal":
            return self.kind
        names = list(classes)
        if self.positions is not None and names != list(map(_name, self.positions)):
            pairs = zip(names, self.positions, strict=True)
            names = [f"{name}={_name(place)}" for name, place in pairs]
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(names)
        return f"{self.kind}:{line.getvalue()}"

    def reordered(self, old: Sequence[str], new: Sequence[str]) -> Scale:
        """Return the scale of the classes ``new``, which include ``old``.

        An ordinal scale can gain classes that are numbers, not names.
        """
        if self.positions is not None and tuple(old) != tuple(new):
            has_number_names = self.positions == tuple(map(as_number, old))
            places = [place for place in map(as_number, new) if place is not None]
            if has_number_names and len(places) == len(new) and places == sorted(places):
                return Scale("ordinal", tuple(places))
            raise InputError(
                f"the classes {examples(new, 20)} are in another order than the scale"
                f" {_listed(old)}",
                "name the classes in the order of the scale",
                code="classes-differ",
            )
        return self


def unordered_scale(is_multi_label: bool) -> Scale:
    """Return the multi-label scale, or the nominal one."""
    if is_multi_label:
        return Scale("multi-label")
    return NOMINAL


NOMINAL = Scale()
# The two classes of a row of multi-label data.
ROW_CLASSES = ("no", "yes")
# A scale, its kind, or a declaration: ``ordinal:1,2,3``, ``ordinal:low=0,high=3``,
# ``multi-label:rude,mocking``.
ScaleLike: TypeAlias = Scale | str


_RANGE = re.compile(r"\s*(\d{1,3})\s*(?:-|\u2013|\.\.|to)\s*(\d{1,3})\s*")
"""A range of points, which people write for a scale."""


class DeclaredScale:
    """A scale declared by a user; `resolve` returns the `Scale` once the classes are known.

    Parameters
    ----------
    declaration : Scale or str
        ``nominal``, ``ordinal``, ``multi-label``; or with the classes: ``ordinal:1,2,3`` (numbers
        are their own positions, names are evenly spaced), ``ordinal:low=0,mid=1,high=3``,
        ``multi-label:rude,mocking``.

    Examples
    --------
    >>> declared = DeclaredScale("ordinal:never=0,sometimes=1,often=3")
    >>> declared.classes
    ('never', 'sometimes', 'often')
    >>> declared.resolve(declared.classes).steps
    array([1., 2.])
    """

    def __init__(self, declaration: ScaleLike) -> None:
        self.kind: ScaleKind = "nominal"
        self.classes: tuple[str, ...] | None = None
        self._positions: tuple[float, ...] | None = None
        if isinstance(declaration, Scale):
            self.kind = declaration.kind
            self._positions = declaration.positions
            return
        kind, colon, listed = str(declaration).partition(":")
        points = _RANGE.fullmatch(str(declaration))
        if points is not None and int(points[1]) < int(points[2]):
            numbers = ",".join(map(str, range(int(points[1]), int(points[2]) + 1)))
            raise InputError(
                f"{option('scale', str(declaration))} does not say what kind of scale it is",
                f"for points in order, write {option('scale', f'ordinal:{numbers}')}",
                code="invalid-scale",
            )
        one_of("scale", kind, get_args(ScaleKind))
        self.kind = kind  # type: ignore[assignment]
        if not colon:
            return
        names = next(csv.reader([listed], skipinitialspace=True), [])
        if self.kind == "ordinal":
            names, self._positions = _parsed_points(names)
        if not names or "" in names or len(set(names)) < len(names):
            raise InputError(
                f"the scale {declaration!r} lacks classes, or has an empty or repeated name",
                "write for example ordinal:1,2,3 or multi-label:rude,mocking",
                code="invalid-scale",
            )
        self.classes = tuple(names)

    @property
    def has_positions(self) -> bool:
        """Whether the positions of its points are declared."""
        return self._positions is not None

    def resolve(self, classes: Sequence[str], where: Callable[[str], str] | None = None) -> Scale:
        """Return the scale of these classes; ``where`` locates a label for messages."""
        names = tuple(classes)
        differs = self.classes is not None and names != self.classes
        if differs and self.kind == "multi-label":  # the order of labels does not matter
            differs = sorted(names) != sorted(self.classes or ())
        if differs:
            raise InputError(
                f"the classes are {examples(names, 20)}, but the scale declares"
                f" {examples(self.classes or (), 20)}",
                "declare them once, in the order of the scale",
                code="classes-differ",
            )
        if self.kind != "ordinal":
            return Scale(self.kind)
        if self._positions is not None:
            if len(self._positions) != len(names):
                raise InputError(
                    f"{len(names)} classes ({examples(names, 20)}) need as many positions, but the"
                    f" scale has {_listed(self._positions)}",
                    "give one position per class",
                    code="invalid-scale",
                )
            return Scale("ordinal", self._positions)
        return Scale("ordinal", _even_positions(names, where))


def _parsed_points(declared: Sequence[str]) -> tuple[list[str], tuple[float, ...]]:
    """The names and positions of points that are declared as 1, as low, or as low=0."""
    numbers = [as_number(name) for name in declared]
    places = [number for number in numbers if number is not None]
    if len(places) == len(declared):
        return [_name(place) for place in places], tuple(places)
    names = []
    places = []
    for entry in declared:
        name, _, number = entry.rpartition("=")
        names.append(name)
        place = as_number(number)
        if name and place is not None:
            places.append(place)
    if not places:
        # Names without positions are evenly spaced.
        return list(declared), tuple(map(float, range(len(declared))))
    if len(places) < len(declared):
        raise InputError(
            f"some classes of the scale {_listed(declared)} have a position and some have none",
            "give each a position, as in ordinal:low=0,mid=1,high=3, or none of them",
            code="invalid-scale",
        )
    return names, tuple(places)


def likeliest_classes(p: Floats) -> Ints:
    """Return the class with the highest probability in each row [N]; on a tie, the first."""
    if p.shape[1] == 2:  # comparing two columns takes a tenth of the time of a search
        return np.asarray(p[:, 1] > p[:, 0], dtype=np.int64)
    return np.asarray(p.argmax(axis=1))


def _even_positions(names: Sequence[str], where: Callable[[str], str] | None) -> tuple[float, ...]:
    """Positions from class names that are evenly spaced numbers; others must be declared."""
    for name in names:
        if as_number(name) is None:
            problem = f"label {word(name)} is not a number"
            if where is not None:
                problem = f"{where(name)} has the label {word(name)}, which is not a number"
            raise InputError(
                f"{problem}, and points of an ordinal scale need positions",
                "correct the label, or declare all classes in their order:"
                f" {option('scale', 'ordinal:low,high')} for even steps,"
                f" {option('scale', 'ordinal:low=0,mid=1,high=3')} for any steps",
                code="not-a-number",
            )
    places = [float(name) for name in names]
    steps = np.diff(places)
    if not np.allclose(steps, steps[:1], rtol=_EVEN, atol=0):
        raise InputError(
            f"the labels {_listed(places)} are not evenly spaced",
            "declare every point of the scale, including unused ones; for uneven steps:"
            f" {option('scale', 'ordinal:' + ','.join(map(_name, places)))}",
            code="uneven-scale",
        )
    return tuple(places)


def _totals(values: Reals) -> Floats:
    """The sums of distributions [..., C] in float64; float32 would be too inexact."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.einsum("...c->...", values, dtype=np.float64))


def number_list(values: Reals, most: int = 10) -> str:
    """The first numbers and how many more there are, for a message."""
    text = ", ".join(f"{value:g}" for value in values[:most])
    if len(values) > most:
        text += f" and {len(values) - most} more"
    return text


def split_points(counts: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Divide labels into points of a scale and probable mistakes.

    Points are the longest run of at least three consecutive whole numbers. The other labels count
    as mistakes if they are rare in total, and each is not a number, or farther away than the
    length of the scale, or negative while no point is. Otherwise both lists are empty.

    Parameters
    ----------
    counts : mapping of str to int
        The annotations with each label.
    """
    name_by_number = {}
    for name in counts:
        number = as_number(name)
        if number is not None and number == int(number):
            name_by_number[int(number)] = name
    longest = _longest_run(name_by_number)
    points = [name_by_number[number] for number in longest]
    mistakes = [name for name in counts if name not in points]
    most_mistakes = max(1.0, _MISTAKES * sum(counts.values()))
    if len(points) < 3 or sum(counts[name] for name in mistakes) > most_mistakes:
        return [], []
    low = longest[0]
    high = longest[-1]
    for name in mistakes:
        number = as_number(name)
        if number is None:
            continue
        is_far = number < low - (high - low) or number > high + (high - low)
        if not is_far and not number < 0 <= low:
            return [], []
    return points, mistakes


def _longest_run(numbers: Collection[int]) -> range:
    """The longest run of consecutive numbers; of several, the lowest."""
    longest = range(0)
    for start in sorted(numbers):
        if start - 1 in numbers:
            continue
        stop = start
        while stop in numbers:
            stop += 1
        if stop - start > len(longest):
            longest = range(start, stop)
    return longest


def check_same_scale(scale: Scale, what: str, reference: Scale, against: str) -> None:
    """Refuse data of two scales; ``what`` and ``against`` name the data in the message."""
    if scale != reference:
        kind = scale.kind
        if kind == "nominal":
            kind = reference.kind
        raise InputError(
            f"the scale of the {what} is {scale}, but that of the {against} is {reference}",
            f"declare the same scale for both, as in {option('scale', kind)}; the scale of"
            f" predictions is fixed when they are written (edo predictions join … --scale {kind})",
            code="scales-differ",
        )


def as_number(text: str) -> float | None:
    """The finite number that a text represents, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    return value


def _name(value: object) -> str:
    """The class name of a position: 1.0 is "1"."""
    if isinstance(value, float) and value == int(value):
        value = int(value)
    return str(value)


def _listed(values: Sequence[object] | None) -> str:
    return ", ".join(map(_name, values or ()))
