"""What takes a while to import, imported when something of it is first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.json as pa_json
    import pyarrow.parquet as pa_parquet

    __all__ = ["pa", "pa_csv", "pa_json", "pa_parquet", "pc", "pd"]
else:

    class _Lazy(ModuleType):
        def __getattr__(self, name: str) -> Any:
            attribute = getattr(import_module(self.__name__), name)
            setattr(self, name, attribute)
            return attribute

    pa, pc, pd = map(_Lazy, ("pyarrow", "pyarrow.compute", "pandas"))
    pa_csv, pa_json = _Lazy("pyarrow.csv"), _Lazy("pyarrow.json")
    pa_parquet = _Lazy("pyarrow.parquet")


def lazy_names(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package: these names, by module, are imported when first used."""
    home = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        if name in home:
            return getattr(import_module(f"{package}.{home[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


def is_frame(values: Any, *, series: bool = False) -> bool:
    """Whether this is a DataFrame (or a Series) of pandas, which is not imported to find out."""
    if "pandas" not in sys.modules:
        return False
    return isinstance(values, pd.DataFrame) or (series and isinstance(values, pd.Series))


def is_pandas_gap(value: object) -> bool:
    """Whether this is NA or NaT of pandas."""
    return "pandas" in sys.modules and (value is pd.NA or value is pd.NaT)


def is_gap(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which entries are gaps: None, NaN, NA."""
    import numpy as np

    if values.dtype.kind in "biuUS":
        return np.zeros(values.shape, dtype=bool)
    return np.isnan(values) if values.dtype.kind == "f" else np.asarray(pd.isna(values))
