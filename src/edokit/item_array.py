"""Arrays with item ids, which are matched by id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from edokit._errors import InputError, counted, examples, one_of
from edokit._types import Ints

if TYPE_CHECKING:  # rows need pandas, which a bare GPU machine does not have
    from edokit.rows import Rows

_NAME_ROWS = (
    "give what predict_proba or describe returns for named predictions, or"
    " edokit.ItemArray(values, items=…), or np.asarray of all arrays"
)
Order = Literal["annotations"]
"""The order of the rows of an array without ids: items in the order of the annotations."""


class ItemArray(np.ndarray[Any, np.dtype[Any]]):
    """An array with one row per item and the ids of the items.

    ``predict_proba`` of named predictions, soft labels and hard labels are such arrays. Metrics
    and `edokit.evaluate` match them by id, whatever their order. The array is read-only, since
    sorting it in place would not move the ids. Selecting rows, as in ``p[:10]`` or ``p[mask]``,
    keeps their ids; any other computation, including ``p.copy()``, returns an array without ids.

    Parameters
    ----------
    values : array-like of shape [N, ...]
        The numbers, one row per item.
    items : Rows or iterable of length N
        The item id of each row.
    classes : sequence of str of length C, default=None
        The classes of the columns, or of class codes; None if unknown.

    Attributes
    ----------
    rows : Rows or None
        The item of each row and, for pairs, its annotator; None without ids.
    classes : tuple of str or None
        The classes of the columns.

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
    """The index that contains the ids."""
    _positions: Ints | None = None
    """The positions of this array's rows in `_source`; None for all rows in their order."""
    classes: tuple[str, ...] | None = None

    def __new__(
        cls,
        values: npt.ArrayLike,
        items: Rows | Iterable[object],
        classes: Sequence[object] | None = None,
    ) -> ItemArray:
        from edokit._names import as_names
        from edokit.rows import Rows

        rows = items
        if not isinstance(rows, Rows):
            rows = Rows.from_names(rows)
        base_array = np.asarray(values)
        if base_array.ndim == 0 or len(base_array) != len(rows):
            raise InputError(
                f"there are ids of {counted(len(rows), 'item')} for an array of the shape"
                f" {base_array.shape}",
                "give one id per row",
                code="lengths-differ",
            )
        array = base_array.view(cls)
        array._source = rows
        if classes is not None:
            array.classes = tuple(as_names(classes))
        array.flags.writeable = False
        return array

    def __array_finalize__(self, source: npt.NDArray[Any] | None) -> None:
        """Remove the ids of views and copies, which may have other rows."""
        self._source = None
        self._positions = None
        self.classes = None

    @property
    def rows(self) -> Rows | None:
        """The item of each row and, for pairs, its annotator; None without ids."""
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
        """The selected part; where whole rows are selected, they keep their ids."""
        part = self.view(np.ndarray)[key]
        if self._source is None or not self._selects_rows(key):
            return part
        selected = part.view(ItemArray)
        positions = self._positions
        if positions is None:
            positions = np.arange(len(self))
        selected._source = self._source
        selected._positions = positions[key]
        selected.classes = self.classes
        selected.flags.writeable = False
        return selected

    def _selects_rows(self, key: object) -> bool:
        """Whether the key is a slice, a mask or a list of positions."""
        if isinstance(key, slice):
            return True
        if not isinstance(key, np.ndarray | list):
            return False
        array = np.asarray(key)
        return array.ndim == 1 and array.dtype.kind in "iub"

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        """Compute on arrays without ids, since the rows of the result may be different."""
        if out is not None:
            options["out"] = tuple(map(_plain, out))
        return getattr(ufunc, method)(*map(_plain, inputs), **options)

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (self.view(np.ndarray), self.rows, self.classes)

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))


def _plain(values: object) -> object:
    if isinstance(values, ItemArray):
        return values.view(np.ndarray)
    return values


def _unpickled(
    values: npt.NDArray[Any], rows: Rows | None, classes: tuple[str, ...] | None
) -> npt.NDArray[Any]:
    if rows is None:
        return values
    return ItemArray(values, rows, classes)


def with_ids(
    values: npt.NDArray[Any], rows: Rows, classes: Sequence[str] | None = None
) -> npt.NDArray[Any]:
    """The array with the ids of its rows; unchanged if the items are only numbered."""
    if not rows.has_ids:
        return values
    return ItemArray(values, rows, classes)


def rows_of(values: object) -> Rows | None:
    """The rows of an array with ids, or of pooled answers; None for an array without ids."""
    rows = getattr(values, "rows", None)
    if rows is None:
        return None
    from edokit.rows import Rows

    if not isinstance(rows, Rows) or not rows.has_ids:
        return None
    return rows


def classes_of(values: object) -> tuple[str, ...] | None:
    """The classes of the columns of an array with ids; None if unknown."""
    if rows_of(values) is None:
        return None
    classes: tuple[str, ...] | None = getattr(values, "classes", None)
    return classes


def with_index_ids(values: object, classes: Sequence[str] | None = None) -> Any:
    """A pandas table or series as an array with the ids of its index; other values unchanged.

    The index that pandas gives a table by itself holds no ids. Where ``classes`` are given, columns
    name classes only if they are these; else all columns with names do.
    """
    if not hasattr(values, "iloc"):
        return values
    import pandas as pd

    from edokit.rows import is_default_index

    if not isinstance(values, pd.DataFrame | pd.Series) or is_default_index(values.index):
        return values
    columns = None
    if isinstance(values, pd.DataFrame) and not isinstance(values.columns, pd.RangeIndex):
        columns = [str(column) for column in values.columns]
    if columns is not None and classes is not None and {*columns} != {*classes}:
        columns = None
    return ItemArray(values.to_numpy(), values.index, columns)


def match_rows(
    arrays: Mapping[str, npt.ArrayLike], order: Order | None = None
) -> list[npt.ArrayLike]:
    """The arrays with their rows and columns in one order.

    Rows are in the order of the last array that has ids, columns in that of the last array that
    names its classes; the index of a pandas table holds ids, too. Callers pass answers first and
    hard labels last, so that answers are brought into the order of the labels. If only some arrays
    have ids, the others are refused unless ``order`` declares their order.
    """
    if order is not None:
        one_of("order", order, get_args(Order))
    arrays = {name: with_index_ids(values) for name, values in arrays.items()}
    rows = {name: rows_of(values) for name, values in arrays.items()}
    names_with_ids = [name for name in arrays if rows[name] is not None]
    if not names_with_ids:
        return list(arrays.values())
    reference = names_with_ids[-1]
    reference_rows = rows[reference]
    assert reference_rows is not None
    classes = None
    for values in arrays.values():
        array_classes = classes_of(values)
        if array_classes is not None:
            classes = array_classes
    # `edokit.rows` needs pandas: a bare machine imports it only for arrays with ids.
    from edokit.rows import in_order, missing_ids

    matched: list[npt.ArrayLike] = []
    for name, values in arrays.items():
        array_rows = rows[name]
        if array_rows is None:
            if order is None:
                raise missing_ids(f"the rows of {name}", f"those of {reference}", _NAME_ROWS)
            matched.append(values)
            continue
        places = array_rows.match(reference_rows, name, reference)
        array = _with_columns(name, values, classes)
        if not in_order(places):
            array = array[places]
        matched.append(array)
    return matched


def _with_columns(
    name: str, values: npt.ArrayLike, classes: tuple[str, ...] | None
) -> npt.NDArray[Any]:
    """The columns of an array [N, C] in the order of these classes, if both are known."""
    array = np.asarray(values)
    array_classes = classes_of(values)
    if array_classes is None or classes is None:
        return array
    if array_classes == classes or array.ndim != 2:
        return array
    if {*array_classes} != {*classes}:
        raise InputError(
            f"the classes of {name} are {examples(array_classes, 20)}, not {examples(classes, 20)}",
            "give both the same classes: annotations.with_classes(…)",
            code="classes-differ",
        )
    return array[:, [array_classes.index(label) for label in classes]]
