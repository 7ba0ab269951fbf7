"""Arrays whose rows belong to items with ids, so that they are matched by id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, counted
from edokit._types import Ints

if TYPE_CHECKING:  # rows need pandas, which a bare GPU machine has not
    from edokit.rows import Rows

Order = Literal["annotations"]
"""What the rows of an array without ids are: items in the order of the annotations."""


class ItemArray(np.ndarray[Any, np.dtype[Any]]):
    """An array with the ids of the items that its rows are about.

    ``predict_proba`` of named predictions, soft labels and hard labels are such arrays. Metrics
    and `edokit.evaluate` match them by id, whatever their order. It is read-only, since sorting it
    in place would leave the ids behind. Selecting rows, as in ``p[:10]`` or ``p[mask]``, keeps
    their ids; whatever else is computed from it, ``p.copy()`` included, is an array without ids.

    Parameters
    ----------
    values : array-like of shape [N, ...]
        The numbers, one row per item.
    items : Rows or iterable of length N
        The id of the item of each row.
    classes : sequence of str of length C, default=None
        What the columns are, or what class codes stand for, where that is known.

    Attributes
    ----------
    rows : Rows or None
        The item of each row, and its annotator where rows are pairs of both; None without ids.
    classes : tuple of str or None
        What the columns are.

    Examples
    --------
    >>> from edokit import Annotations, ItemArray
    >>> from edokit.metrics import md
    >>> annotations = Annotations.from_matrix([[0, 0], [1, 1]], items=["b", "a"])
    >>> p = ItemArray([[0.2, 0.8], [0.9, 0.1]], items=["a", "b"])
    >>> round(md(p, annotations.soft_labels), 2)
    0.3
    >>> p[:1].rows.names
    ['a']
    """

    _source: Rows | None = None
    """The rows that the ids are taken from."""
    _positions: Ints | None = None
    """Which of them; None: all, in their order."""
    classes: tuple[str, ...] | None = None

    def __new__(
        cls,
        values: npt.ArrayLike,
        items: Rows | Iterable[object],
        classes: Sequence[object] | None = None,
    ) -> ItemArray:
        from edokit._names import as_names
        from edokit.rows import Rows

        rows = items if isinstance(items, Rows) else Rows.from_names(items)
        plain = np.asarray(values)
        if plain.ndim == 0 or len(plain) != len(rows):
            raise InputError(
                f"there are ids of {counted(len(rows), 'item')} for an array of the shape"
                f" {plain.shape}",
                "give one id per row",
                code="lengths-differ",
            )
        array = plain.view(cls)
        array._source = rows
        if classes is not None:
            array.classes = tuple(as_names(classes))
        array.flags.writeable = False
        return array

    def __array_finalize__(self, source: npt.NDArray[Any] | None) -> None:
        """A view or a copy may have other rows: it has no ids."""
        self._source = None
        self._positions = None
        self.classes = None

    @property
    def rows(self) -> Rows | None:
        """The item of each row, and its annotator where rows are pairs of both."""
        if self._source is None:
            return None
        if self._positions is not None:
            items = self._source.item_names[self._positions]
            annotators = self._source.annotator_names
            if annotators is not None:
                annotators = annotators[self._positions]
            self._source = type(self._source).from_names(items, annotators)
            self._positions = None
        return self._source

    def __getitem__(self, key: Any) -> Any:
        """The part of the array; rows that are selected keep their ids."""
        found = self.view(np.ndarray)[key]
        if self._source is None or not self._selects_rows(key):
            return found
        selected = found.view(ItemArray)
        positions = self._positions
        if positions is None:
            positions = np.arange(len(self))
        selected._source = self._source
        selected._positions = positions[key]
        selected.classes = self.classes
        selected.flags.writeable = False
        return selected

    def _selects_rows(self, key: Any) -> bool:
        """Whether the key is a slice, a mask or positions of rows."""
        if isinstance(key, slice):
            return True
        if not isinstance(key, np.ndarray | list):
            return False
        array = np.asarray(key)
        return array.ndim == 1 and array.dtype.kind in "iub"

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        """Arithmetic gives arrays without ids: their rows may be other ones."""
        if out is not None:
            options["out"] = tuple(map(_plain, out))
        return getattr(ufunc, method)(*map(_plain, inputs), **options)

    def __reduce__(self) -> Any:
        return _restored, (self.view(np.ndarray), self.rows, self.classes)

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))


def _plain(values: Any) -> Any:
    return values.view(np.ndarray) if isinstance(values, ItemArray) else values


def _restored(
    values: npt.NDArray[Any], rows: Rows | None, classes: tuple[str, ...] | None
) -> npt.NDArray[Any]:
    """A pickled array."""
    return values if rows is None else ItemArray(values, rows, classes)


def with_ids(
    values: npt.NDArray[Any], rows: Rows, classes: Sequence[str] | None = None
) -> npt.NDArray[Any]:
    """The array with the ids of its rows; as it is where items have no ids."""
    from edokit.rows import NumberedRows

    if isinstance(rows, NumberedRows):
        return values
    return ItemArray(values, rows, classes)


def rows_of(values: object) -> Rows | None:
    """The rows of an array with ids, or of pooled answers; None of a bare array."""
    rows = getattr(values, "rows", None)
    if rows is None:
        return None
    from edokit.rows import NumberedRows, Rows

    if not isinstance(rows, Rows) or isinstance(rows, NumberedRows):
        return None
    return rows


def classes_of(values: object) -> tuple[str, ...] | None:
    """What the columns of an array with ids are, where that is known."""
    if rows_of(values) is None:
        return None
    classes: tuple[str, ...] | None = getattr(values, "classes", None)
    return classes
