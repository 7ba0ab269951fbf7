"""A scikit-learn estimator written as text: its import path, and its parameters in brackets.

``sklearn.naive_bayes.ComplementNB(alpha=0.3)`` is read, not evaluated: names are looked up in
scikit-learn (and in packages that the user allows), parameters are plain values or further
estimators written the same way.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from importlib import import_module
from typing import Any

from edokit._errors import InputError

_FACTORIES = ("sklearn.pipeline", "sklearn.compose")
_EXAMPLE = "write for example sklearn.naive_bayes.ComplementNB(alpha=0.3)"


def read_estimator(text: str, allowed: Collection[str] = ()) -> Any:
    """The estimator, not fitted; ``allowed`` names packages beside scikit-learn."""
    packages = {"sklearn", *allowed}
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise _wrong(text, f"it can't be read: {error}") from error
    estimator = _value(tree, text, packages)
    if isinstance(tree, ast.Name | ast.Attribute):
        estimator = _made(tree, text, packages, [], {})
    if not hasattr(estimator, "fit"):
        raise _wrong(text, "it has no fit")
    if not hasattr(type(estimator), "predict_proba"):
        raise _wrong(
            text,
            f"{type(estimator).__name__} gives no probabilities",
            "put it into sklearn.calibration.CalibratedClassifierCV(…)",
        )
    return estimator


def _value(node: ast.AST, text: str, packages: Collection[str]) -> Any:
    if isinstance(node, ast.Call):
        if any(keyword.arg is None for keyword in node.keywords):
            raise _wrong(text, "** is not understood")
        arguments = [_value(argument, text, packages) for argument in node.args]
        named = {str(word.arg): _value(word.value, text, packages) for word in node.keywords}
        return _made(node.func, text, packages, arguments, named)
    if isinstance(node, ast.List | ast.Tuple):
        values = [_value(element, text, packages) for element in node.elts]
        return values if isinstance(node, ast.List) else tuple(values)
    if isinstance(node, ast.Name | ast.Attribute):
        return _named(node, text, packages)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError) as error:
        raise _wrong(text, f"{ast.unparse(node)!r} is no plain value") from error


def _made(
    function: ast.AST,
    text: str,
    packages: Collection[str],
    arguments: list[Any],
    named: dict[str, Any],
) -> Any:
    found = _named(function, text, packages)
    estimator = isinstance(found, type) and hasattr(found, "get_params")
    factory = getattr(found, "__module__", "") in _FACTORIES and callable(found)
    if not (estimator or factory):
        raise _wrong(text, f"{ast.unparse(function)} is no estimator")
    try:
        return found(*arguments, **named)
    except TypeError as error:
        raise _wrong(text, str(error)) from error


def _named(node: ast.AST, text: str, packages: Collection[str]) -> Any:
    path = ast.unparse(node)
    parts = path.split(".")
    if not all(part.isidentifier() and not part.startswith("_") for part in parts):
        raise _wrong(text, f"{path} is no public name")
    if parts[0] not in packages:
        raise _wrong(
            text,
            f"{parts[0]} is not among the allowed packages {', '.join(sorted(packages))}",
            f"if you trust it, allow it with the option allow={parts[0]}",
        )
    try:
        found = import_module(".".join(parts[:-1])) if len(parts) > 1 else None
        return getattr(found, parts[-1])
    except (ImportError, AttributeError) as error:
        raise _wrong(text, str(error)) from error


def _wrong(text: str, reason: str, hint: str = _EXAMPLE) -> InputError:
    return InputError(
        f"estimator must be an import path with parameters, but in {text!r} {reason}", hint
    )
