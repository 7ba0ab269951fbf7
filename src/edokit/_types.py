"""Array types that are used throughout; shapes are in the docstrings of whoever takes them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Counts: TypeAlias = NDArray[np.unsignedinteger]
Codes: TypeAlias = NDArray[np.int32]
"""Positions in a list of names: classes, annotators, items."""
Strings: TypeAlias = NDArray[np.object_]
