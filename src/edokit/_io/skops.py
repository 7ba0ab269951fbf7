"""Fitted scikit-learn estimators on disk, in skops' format: no pickle, known types only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edokit._errors import InputError, MissingExtraError, examples

TRUSTED = frozenset(
    {
        "scipy.sparse._csr.csr_array",
        "scipy.sparse._csr.csr_matrix",
        "sklearn._loss.link.HalfLogitLink",
        "sklearn._loss.link.IdentityLink",
        "sklearn._loss.link.Interval",
        "sklearn._loss.link.LogitLink",
        "sklearn._loss.link.LogLink",
        "sklearn._loss.link.MultinomialLogit",
        "sklearn._loss.loss.ExponentialLoss",
        "sklearn._loss.loss.HalfBinomialLoss",
        "sklearn._loss.loss.HalfMultinomialLoss",
        "sklearn._loss._loss.CyExponentialLoss",
        "sklearn._loss._loss.CyHalfBinomialLoss",
        "sklearn._loss._loss.CyHalfMultinomialLoss",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.gaussian_process.kernels.ConstantKernel",
        "sklearn.gaussian_process.kernels.Product",
        "sklearn.gaussian_process.kernels.RBF",
        "sklearn.gaussian_process.kernels.Sum",
        "sklearn.gaussian_process.kernels.WhiteKernel",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.metrics._dist_metrics.ManhattanDistance64",
        "sklearn.metrics._dist_metrics.MinkowskiDistance64",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
    }
)
"""Types beyond those that skops itself trusts: inner parts of scikit-learn's classifiers."""


def write_estimator(estimator: Any, path: Path) -> None:
    """Write a fitted estimator."""
    _skops().dump(estimator, path)


def read_estimator_file(path: Path, trust: Sequence[str] = ()) -> Any:
    """Read it back; types outside skops' list, ``TRUSTED`` and the packages in ``trust`` are
    refused before anything of them is made."""
    skops = _skops()
    try:
        unknown = skops.get_untrusted_types(file=path)
        strange = [
            name for name in unknown if name not in TRUSTED and name.split(".")[0] not in trust
        ]
        if strange:
            raise InputError(
                f"{path} holds unknown types: {examples(strange)}",
                f"if you made it yourself, add trust={strange[0].split('.')[0]!r}",
                parameters=("trust",),
            )
        return skops.load(path, trusted=unknown)
    except InputError:
        raise
    except Exception as error:  # a damaged file can fail in any way
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputError(
            f"{path} is damaged or no skops file: {reason}",
            "train the member again",
        ) from error


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise MissingExtraError(
            f"fitted estimators are kept with skops, which can't be imported: {error}",
            "install it with: pip install skops",
        ) from error
    return skops.io
