"""Array types of the whole package; the docstrings of functions give the shapes."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Reals: TypeAlias = NDArray[np.floating]
"""Float64, or the float32 of files."""
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Counts: TypeAlias = NDArray[np.unsignedinteger]
Codes: TypeAlias = NDArray[np.int32]
"""Positions in a list of names: classes, annotators, items."""
HardLabels: TypeAlias = NDArray[np.integer]
"""Positions of classes [N]; for multi-label data, 0 or 1 for each label [N, L]."""
Strings: TypeAlias = NDArray[np.object_]
ClassValues: TypeAlias = NDArray[np.generic]
"""Class labels in the type that the user passed: numbers, booleans or text."""
