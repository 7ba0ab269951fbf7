"""``ensemble.json`` and the card beside it: what a saved ensemble is, and how it is read."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from edokit._errors import InputError, counted
from edokit._io import read_json, whole_file, write_json
from edokit._io.documents import Count, Document, to_model
from edokit._io.markup import markdown_text
from edokit._names import as_name
from edokit._outputs import begin_run
from edokit._version import __version__
from edokit.annotator_effects import ATTRIBUTES_NOTE, attribute_names
from edokit.ensemble.answers import ANSWERS_FOR, ORDERED_STEP
from edokit.ensemble.fitted import Fitted, on_simplex
from edokit.metrics import main_metrics
from edokit.objective.settings import SCALE_TERMS

FORMAT = 1
"""Raised when older versions could no longer read what is written."""
FILE = "ensemble.json"
_HINT = "restore it, or fit again"

Content = TypeVar("Content")


class _Header(Document):
    kind: str
    format: Count


def _check(fitted: Fitted) -> None:
    """Refuse parts that do not go together; anyone may have written the file."""
    members, classes, scale = len(fitted.members), len(fitted.classes), fitted.scale
    units, unit_weights = fitted.unit_weights
    heavy = int((unit_weights > 0).sum())
    labels, label_weights = fitted.labels, fitted.label_weights
    mean_weights = fitted.weights if label_weights is None else label_weights.mean(axis=0)
    steps = {answer.step for answer in fitted.answers.values()}
    columns = [] if fitted.trajectory is None else list(vars(fitted.trajectory).values())
    rules = {
        "groups must be one per member": len(fitted.groups or fitted.members) == members,
        "weights must be one per member, not negative and sum to 1": on_simplex(
            fitted.weights, members
        ),
        "group_weights must be one per group, not negative and sum to 1": on_simplex(
            unit_weights, len(units)
        ),
        f"size is {fitted.size}, but {heavy} of {len(units)} carry weight": heavy
        <= fitted.size
        <= len(units),
        "labels must be the classes, one for each": labels is None
        or tuple(map(as_name, labels)) == fitted.classes,
        "member_ce must be one per member": fitted.member_ce.shape == (members,),
        "classes must be at least two": scale.is_multi_label or classes > 1,
        "label_weights must be weights of the members for each label of sets": label_weights is None
        or (scale.is_multi_label and on_simplex(label_weights, classes, members)),
        "weights must be the mean of label_weights": mean_weights.shape == (members,)
        and np.allclose(mean_weights, fitted.weights, rtol=0, atol=1e-6),
        "label_fits must be one for each label": tuple(fitted.label_fits or fitted.classes)
        == fitted.classes,
        "constant must be shares of the classes, and one of them": _is_constant(fitted),
        "answers must be steps for metrics of the scale": set(fitted.answers) <= set(ANSWERS_FOR)
        and (scale.positions is not None or ORDERED_STEP not in steps),
        "trajectory must be equally long everywhere": len(set(map(len, columns))) < 2,
    }
    for rule, holds in rules.items():
        if not holds:
            raise ValueError(rule)
    try:
        # Parts that these need may be missing.
        _ = fitted.options, fitted.pool, fitted.regularization, fitted.nothing_learned
    except InputError as error:
        raise ValueError(f"settings: {error.message}") from error
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(
            f"settings and trajectory do not go together ({type(error).__name__})"
        ) from error


def _is_constant(fitted: Fitted) -> bool:
    shares, label, classes = fitted.constant.shares, fitted.constant.label, len(fitted.classes)
    if isinstance(label, int) or not fitted.scale.is_multi_label:
        return isinstance(label, int) and label < classes and on_simplex(shares, classes)
    return len(shares) == len(label) == classes and set(label) <= {0, 1}


def read_saved(path: Path, kind: str, model: type[Content]) -> Content:
    """The content of a JSON file of this kind; whatever is wrong with it is one error."""
    content, title = read_json(path), f"an EDO {kind}"
    header = to_model(content, _Header, path, title=title, hint="check that it is the right file")
    if header.kind != f"edo-{kind}":
        raise InputError(f"{path} does not describe {title}", "check that it is the right file")
    if header.format > FORMAT:
        raise InputError(
            f"{path} has format {header.format}; this version reads format {FORMAT} or older",
            "install a newer edokit (pip install --upgrade edokit)",
        )
    return to_model(content, model, path, title=title, hint=_HINT)


def read_fitted(folder: str | Path) -> Fitted:
    """What ``write_fitted`` wrote; anything else is refused."""
    path = Path(folder) / FILE
    if not path.exists():
        inside = Path(folder) / "ensemble"
        raise InputError(
            f"an ensemble is a folder with {FILE}, but {folder}"
            f" {'has none' if Path(folder).exists() else 'does not exist'}",
            f"give {inside}"
            if (inside / FILE).exists()
            else "make one with `edo fit` or EDOEnsemble.save",
        )
    fitted = read_saved(path, "ensemble", Fitted)
    try:
        _check(fitted)
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}", _HINT) from error
    return fitted


def write_fitted(fitted: Fitted, folder: str | Path) -> None:
    """Write ``ensemble.json`` and ``README.md``, the card."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"an ensemble is written into a folder, but {folder} is a file", "name a folder"
        )
    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    content = {
        "format": FORMAT,
        "kind": "edo-ensemble",
        **fitted.to_dict(),
        "versions": {"edokit": __version__, **libraries},
    }
    begin_run(folder)
    # By this the folder is known as EDO's, should the process end before there is a card.
    write_json(content, folder / FILE)
    with whole_file(folder / "README.md") as temporary:
        temporary.write_text(card(fitted), encoding="utf-8")


_ALWAYS = (
    *("solver", "ce", "diversity", "lambda_f1", "lambda_ce", "lambda_div", "lambda_reg"),
    *("class_weights", "recalibrate"),
)
_UNLESS_DEFAULT = (*SCALE_TERMS, "label_weights")


def card(fitted: Fitted) -> str:
    """The card of an ensemble, ``assets/card.md`` filled in."""
    settings, info = fitted.settings, fitted.member_info.values()
    attributes = [str(facts["attributes"]) for facts in info if facts.get("attributes")]
    environment = Environment(
        loader=PackageLoader("edokit.ensemble", "assets"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"escaped": markdown_text, "counted": counted}
    order = np.argsort(-fitted.weights, kind="stable")
    metrics = {name: fitted.metrics.get(name) for name in main_metrics(fitted.scale)}
    return environment.get_template("card.md").render(
        fitted=fitted,
        learned=settings.get("solver") != "given",
        version=__version__,
        heavy=[k for k in order if fitted.weights[k] > 0],
        metrics={name: value for name, value in metrics.items() if value is not None},
        settings={name: settings[name] for name in _ALWAYS if name in settings}
        | {
            name: settings[name]
            for name in _UNLESS_DEFAULT
            if settings.get(name, 0) not in (0, "shared")
        },
        users=attributes,
        attributes=dict.fromkeys(name for text in attributes for name in attribute_names(text)),
        note=ATTRIBUTES_NOTE,
    )
