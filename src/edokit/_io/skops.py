"""Fitted scikit-learn estimators in skops files: without pickle, and with known types only."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edokit._errors import InputError, examples, option
from edokit._io.memory import check_memory
from edokit._types import Bools, Ints

_PARTS = {
    "scipy.sparse._csr": "csr_array csr_matrix",
    "sklearn._loss.link": "HalfLogitLink IdentityLink Interval LogitLink LogLink MultinomialLogit",
    "sklearn._loss.loss": "ExponentialLoss HalfBinomialLoss HalfMultinomialLoss",
    "sklearn._loss._loss": "CyExponentialLoss CyHalfBinomialLoss CyHalfMultinomialLoss",
    "sklearn.calibration": "_CalibratedClassifier _SigmoidCalibration _TemperatureScaling",
    "sklearn.ensemble._hist_gradient_boosting.binning": "_BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor": "TreePredictor",
    "sklearn.gaussian_process._gpc": "_BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels": "ConstantKernel Product RBF Sum WhiteKernel",
    "sklearn.metrics._dist_metrics": "EuclideanDistance64 ManhattanDistance64 MinkowskiDistance64",
    "sklearn.neighbors._ball_tree": "BallTree",
    "sklearn.neighbors._kd_tree": "KDTree",
    "sklearn.neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
    "sklearn.tree._tree": "Tree",
}


def _trusted_types() -> Iterator[str]:
    for module, names in _PARTS.items():
        for name in names.split():
            yield f"{module}.{name}"


TRUSTED = frozenset(_trusted_types())
"""Types in addition to those that skops trusts: internal parts of scikit-learn's classifiers."""


def write_estimator(estimator: object, path: Path) -> None:
    """Write a fitted estimator."""
    import skops.io

    skops.io.dump(estimator, path, compression=zipfile.ZIP_DEFLATED)


def read_estimator_file(path: Path, trust: Sequence[str] = ()) -> Any:
    """Read a fitted estimator.

    Types outside skops' list, `TRUSTED` and the packages in ``trust`` are refused before any object
    is created.
    """
    import skops.io

    try:
        with zipfile.ZipFile(path) as archive:
            # The arrays, and the same amount again to decompress them.
            check_memory(path, 2 * sum(entry.file_size for entry in archive.infolist()))
        unknown = skops.io.get_untrusted_types(file=path)
        untrusted = [
            name for name in unknown if name not in TRUSTED and name.split(".")[0] not in trust
        ]
        if untrusted:
            raise InputError(
                f"{path} contains unknown types: {examples(untrusted)}",
                f"if you made it yourself, add {option('trust', untrusted[0].split('.')[0])}",
                code="untrusted-code",
            )
        estimator = skops.io.load(path, trusted=unknown)
        _check_trees(estimator, set())
        return estimator
    except (InputError, MemoryError):
        raise
    except ImportError as error:
        raise InputError(
            f"{path} can't be loaded here: {error}",
            "install the packages that the member was trained with, in these versions",
            code="unloadable-model",
        ) from error
    except Exception as error:  # a damaged file can fail in any way
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputError(
            f"{path} is damaged or not a skops file: {reason}",
            "train the member again, or write the model again with skops.io.dump",
            code="damaged-file",
        ) from error


def _check_trees(value: Any, seen: set[int]) -> None:
    """Refuse trees with invalid child nodes: compiled code would follow them unchecked."""
    if id(value) in seen or isinstance(value, str | bytes | int | float | type(None)):
        return
    seen.add(id(value))
    kind = type(value).__name__
    if kind == "Tree":
        children = (value.children_left, value.children_right)
        inner = (children[0] != -1) | (children[1] != -1)
        _check_nodes(inner, *children, value.feature, value.n_features)
    elif kind == "TreePredictor":
        nodes = value.nodes
        inner = nodes["is_leaf"] == 0
        columns = (nodes["left"], nodes["right"], nodes["feature_idx"])
        _check_nodes(inner, *columns, np.iinfo(np.int32).max)
    elif isinstance(value, dict):
        for entry in value.values():
            _check_trees(entry, seen)
    elif isinstance(value, list | tuple):
        for entry in value:
            _check_trees(entry, seen)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        for entry in value.ravel():
            _check_trees(entry, seen)
    elif hasattr(value, "get_params"):
        _check_trees(vars(value), seen)


def _check_nodes(is_inner: Bools, left: Ints, right: Ints, feature: Ints, n_features: int) -> None:
    """Every inner node must have two children after it and split on an existing feature."""
    nodes = np.flatnonzero(is_inner)
    for child in (left[nodes].astype(np.int64), right[nodes].astype(np.int64)):
        if not ((child > nodes) & (child < len(left))).all():
            raise ValueError("a tree in it has an invalid child node")
    if not ((feature[nodes] >= 0) & (feature[nodes] < n_features)).all():
        raise ValueError("a tree in it uses a feature that does not exist")
